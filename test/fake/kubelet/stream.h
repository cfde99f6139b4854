// SPDX-License-Identifier: Apache-2.0
/* stream - the client's end of a server stream, which the product itself never needs. A thread of
 * its own. */
#pragma once

#include <stddef.h>

struct stream;

/* on_message gets every message, with NULL at the end of the stream; on the stream's thread. */
struct stream *stream_open(const char *socket, const char *method,
                           void (*on_message)(void *arg, const void *bytes, size_t n), void *arg);
/* Cancels it, waits for its end, frees. */
void stream_close(struct stream *s);

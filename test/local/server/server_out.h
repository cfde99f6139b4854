// SPDX-License-Identifier: Apache-2.0
/*
 * server_out - what a connection still has to send: pieces in order, its own or shared with other
 * connections. Pure: the caller writes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "lib/base/str.h"
#include "test/local/admission/call.h"

struct server_piece {
    struct shared_bytes *shared; /* or */
    char *owned;
    const char *bytes;
    size_t len;
};

struct server_out {
    struct server_piece *pieces; /* a ring; cap is a power of two */
    size_t cap, head, len;
    size_t done;   /* of the first piece */
    size_t unsent; /* bytes in all */
};

void server_out_deinit(struct server_out *o);
void server_out_clear(struct server_out *o);
void server_out_take(struct server_out *o, struct strbuf *take);
void server_out_text(struct server_out *o, const char *static_text);
/* framed: as a chunk. */
void server_out_share(struct server_out *o, struct shared_bytes *b, bool framed);
/* Fills up to max entries; returns how many. */
int server_out_gather(const struct server_out *o, struct iovec *iov, int max);
/* Copies up to n bytes, for TLS; returns how many. */
size_t server_out_copy(const struct server_out *o, char *to, size_t n);
void server_out_sent(struct server_out *o, size_t n);

// SPDX-License-Identifier: Apache-2.0
/* base64 - RFC 4648. Decoding is strict: standard alphabet and '=' padding only. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/str.h"

/* Appends the decoded bytes. False if not base64 (out may have grown). Newlines are allowed, since
 * some tools wrap lines. */
bool base64_decode(const char *text, size_t n, struct strbuf *out);
/* Appends the standard form: one line, padded. */
void base64_encode(const void *bytes, size_t n, struct strbuf *out);

// SPDX-License-Identifier: Apache-2.0
/*
 * base64 - bytes as text (RFC 4648) and back. Decoding is strict: the standard alphabet, '='
 * padding, nothing else. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/str.h"

/* Appends the bytes that n characters encode. false: not base64 (out may have grown). Newlines
 * between characters are allowed: some tools wrap lines. */
bool base64_decode(const char *text, size_t n, struct strbuf *out);
/* Appends the usual form, on one line, with padding. */
void base64_encode(const void *bytes, size_t n, struct strbuf *out);
/* Appends the form for URLs, without padding. */
void base64_encode_url(const void *bytes, size_t n, struct strbuf *out);

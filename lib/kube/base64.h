// SPDX-License-Identifier: Apache-2.0
/*
 * base64 - decoding, strict: the standard alphabet, '=' padding, nothing else. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/str.h"

/* Appends what the n characters stand for. false: not base64 (out may have grown). Newlines between characters are allowed, as some tools wrap lines. */
bool base64_decode(const char *text, size_t n, struct strbuf *out);

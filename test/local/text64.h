// SPDX-License-Identifier: Apache-2.0
/*
 * text64 - bytes as base64 (RFC 4648). The way back is lib/kube/base64. Pure.
 */
#pragma once

#include <stddef.h>

#include "lib/base/str.h"

/* Appends the usual form, on one line, with padding. */
void text64_encode(const char *bytes, size_t n, struct strbuf *out);
/* Appends the form for URLs, without padding. */
void text64_encode_url(const char *bytes, size_t n, struct strbuf *out);

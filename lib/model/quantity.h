// SPDX-License-Identifier: Apache-2.0
/*
 * quantity - Kubernetes amounts ("100m", "1.5Gi", "2e3", "0.5") as exact int64, in the caller's
 * unit.
 *
 * Grammar: [+-] digits [. digits] (or . digits) then nothing, one of n u m k M G T P E Ki Mi Gi Ti
 * Pi Ei, or an exponent e/E with [+-] digits. The result is rounded up for requests and down for
 * capacity; it never wraps. Text of any length is read, in time linear in it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum quantity_round { QUANTITY_UP, QUANTITY_DOWN }; /* towards +infinity, towards -infinity */
enum quantity_scale { QUANTITY_UNITS, QUANTITY_MILLI };

/* "not a quantity: '4x'" (ERROR_INVALID) or "quantity too large: '16Ei'" (ERROR_RANGE: *out is
 * then INT64_MAX, or INT64_MIN). */
int quantity_parse(const char *text, size_t n, enum quantity_scale scale, enum quantity_round round,
                   int64_t *out, struct error *err);
/* The shortest usual form: 1500 milli -> "1500m", 2000 milli -> "2", bytes 1073741824 -> "1Gi",
 * 1000 -> "1000". */
void quantity_print_milli(int64_t milli, struct strbuf *out);
void quantity_print_bytes(int64_t bytes, struct strbuf *out);

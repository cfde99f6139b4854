// SPDX-License-Identifier: Apache-2.0
/* num - checked integer arithmetic and strict parsing. Accounting uses nothing else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"

/* False on overflow (*out untouched). */
bool num_add(int64_t a, int64_t b, int64_t *out);
bool num_sub(int64_t a, int64_t b, int64_t *out);
bool num_mul(int64_t a, int64_t b, int64_t *out);
/* Saturate at INT64_MIN and INT64_MAX, for sums that must neither wrap nor fail. */
int64_t num_add_sat(int64_t a, int64_t b);
int64_t num_sub_sat(int64_t a, int64_t b);

static inline int64_t num_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static inline int64_t num_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Decimal with optional '-' and nothing else. "not an integer: '4x'", or ERROR_RANGE. */
int num_parse(const char *s, size_t n, int64_t *out, struct error *err);
/* Likewise within [min, max]: "must be between 1 and 65535: '0'". */
int num_parse_range(const char *s, int64_t min, int64_t max, int64_t *out, struct error *err);
/* An index as we print it: digits without a leading zero, below limit. */
bool num_parse_index(const char *s, size_t n, size_t limit, size_t *out);

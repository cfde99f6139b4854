// SPDX-License-Identifier: Apache-2.0
/*
 * card_value - the value of the free part of a shared card, given the expected requests. Pure.
 *
 * A free part of 300 is worth nothing if no pod requests less than 320, and one of 460 is worth
 * much if every third pod requests just that. A request is worth its dual price in the covering
 * problem: the fewest cards that hold all requests seen, where a card holds any set of requests
 * that fits its size. So the prices of the requests on one card never exceed one card. A free part
 * is worth the best set of requests that fits into it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    CARD_VALUE_SIZES_MAX = 64,
    CARD_VALUE_UNITS_MAX = 1000,
    CARD_VALUE_ONE = 1000 /* upper bound for an empty card */
};

struct card_value_ask {
    int64_t size;   /* 0 < size < the card's */
    int64_t weight; /* number of such requests; > 0 */
};

/* Dual prices of `asks` (at most CARD_VALUE_SIZES_MAX distinct sizes) for a card of `units` (at
 * most CARD_VALUE_UNITS_MAX): no set that fits a card sums to more than 1, and the weighted sum is
 * maximal. */
void card_value_prices(int64_t units, const struct card_value_ask *asks, size_t len,
                       double *prices);
/* The value of each free part: value[0..units], in thousandths of a card, rounded, never
 * decreasing. Without asks it is the square of the part's share of the card, so the fullest card
 * that fits is the cheapest. */
void card_value_table(int64_t units, const struct card_value_ask *asks, size_t len, int32_t *value);

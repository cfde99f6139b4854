// SPDX-License-Identifier: Apache-2.0
/*
 * card_value - what the rest of a shared card is worth, by the requests that are likely to come. Pure.
 *
 * A rest of 300 is worth nothing where nobody asks for less than 320, and one of 460 much where every third pod asks for just that. The worth of a request is its dual price
 * in the covering problem: the fewest cards that hold all requests seen, where a card holds any set of requests whose sum is not above its size. The prices of the
 * requests on one card never sum to more than one card. The worth of a rest is the best that fits into it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    CARD_VALUE_SIZES_MAX = 64,
    CARD_VALUE_UNITS_MAX = 1000,
    CARD_VALUE_ONE = 1000 /* the worth of an empty card at most */
};

/* Requests of one size. */
struct card_value_ask {
    int64_t size;   /* 0 < size < the card's */
    int64_t weight; /* how many, or how often; > 0 */
};

/* Dual prices of `asks` (at most CARD_VALUE_SIZES_MAX, of different sizes) for a card of `units` (at most CARD_VALUE_UNITS_MAX): no set of them that a card holds has
 * a sum above 1, and the weighted sum is as large as it can be. */
void card_value_prices(int64_t units, const struct card_value_ask *asks, size_t len,
                       double *prices);
/* The worth of each rest: value[0..units], in thousandths of a card, rounded. Never falls. Without asks a rest is worth the square of its share of the card, which makes the
 * fullest card that fits the cheapest one. */
void card_value_table(int64_t units, const struct card_value_ask *asks, size_t len, int32_t *value);

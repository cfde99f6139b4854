// SPDX-License-Identifier: Apache-2.0
/*
 * Dual prices by column generation (Gilmore and Gomory, for cutting stock): a simplex over
 * patterns, of which only those in the basis are known. Each step prices the sizes by the basis and
 * solves a knapsack for the best pattern at these prices; if that is worth no more than the card it
 * takes, the prices are optimal, else the pattern enters the basis. There are some 20 sizes, 1,000
 * units and a few dozen steps: an LP library would replace only a hundred lines, and its choice
 * among equally good prices would change with its version.
 *
 * Floating point is only for prices, which choose between placements that all fit; no account uses
 * it. The operations and their order are the same on every machine (C11 without contraction), so
 * the prices are too (I4). The simplex stops after a fixed number of steps. The prices are then
 * divided by the worth of the best pattern, so they are always feasible and near the optimum.
 */
#include "scheduler/accounts/card_value.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#define TINY 1e-9

enum { STEPS_MAX = 2000, N = CARD_VALUE_SIZES_MAX };

struct simplex {
    int64_t units;
    const struct card_value_ask *asks;
    size_t len;
    double inverse[N][N]; /* of the basis: a column for each size, a row for each pattern in it */
    double used[N];       /* cards cut by that pattern */
    double cost[N];       /* 1, or 0 for a pattern that discards surplus */
    double prices[N];
};

/* The best worth for each remainder, and the request added last; -1: none. */
struct knapsack {
    double best[CARD_VALUE_UNITS_MAX + 1];
    int16_t last[CARD_VALUE_UNITS_MAX + 1];
};

static void start(struct simplex *s)
{
    for (size_t i = 0; i < s->len; i++) {
        int64_t whole = s->units / s->asks[i].size;
        double per_card = (double)whole;
        s->inverse[i][i] = 1 / per_card;
        s->used[i] = (double)s->asks[i].weight / per_card;
        s->cost[i] = 1;
    }
}

static void set_prices(struct simplex *s)
{
    for (size_t k = 0; k < s->len; k++) {
        double sum = 0;
        for (size_t i = 0; i < s->len; i++)
            sum += s->cost[i] * s->inverse[i][k];
        s->prices[k] = sum;
    }
}

static void pack(int64_t units, const struct card_value_ask *asks, const double *prices, size_t len,
                 struct knapsack *out)
{
    out->best[0] = 0;
    out->last[0] = -1;
    for (int64_t at = 1; at <= units; at++) {
        out->best[at] = out->best[at - 1];
        out->last[at] = -1;
        for (size_t i = 0; i < len; i++) {
            if (asks[i].size > at)
                continue;
            double worth = out->best[at - asks[i].size] + prices[i];
            if (worth > out->best[at] + TINY) {
                out->best[at] = worth;
                out->last[at] = (int16_t)i;
            }
        }
    }
}

/* Replaces the basis pattern that is used up first. */
static bool enter(struct simplex *s, const double *pattern, double cost)
{
    double way[N], least = 0;
    size_t out = s->len;
    for (size_t i = 0; i < s->len; i++) {
        way[i] = 0;
        for (size_t k = 0; k < s->len; k++)
            way[i] += s->inverse[i][k] * pattern[k];
        if (way[i] > TINY && (out == s->len || s->used[i] / way[i] < least)) {
            out = i;
            least = s->used[i] / way[i];
        }
    }
    if (out == s->len)
        return false;
    for (size_t k = 0; k < s->len; k++)
        s->inverse[out][k] /= way[out];
    for (size_t i = 0; i < s->len; i++) {
        if (i == out)
            continue;
        s->used[i] -= least * way[i];
        for (size_t k = 0; k < s->len; k++)
            s->inverse[i][k] -= way[i] * s->inverse[out][k];
    }
    s->used[out] = least;
    s->cost[out] = cost;
    return true;
}

/* Handles a size with a negative price: its surplus is cut and discarded. */
static bool throw_away(struct simplex *s)
{
    size_t worst = 0;
    for (size_t k = 1; k < s->len; k++)
        if (s->prices[k] < s->prices[worst])
            worst = k;
    if (s->prices[worst] >= -TINY)
        return false;
    double pattern[N] = {0};
    pattern[worst] = -1;
    return enter(s, pattern, 0);
}

static bool improve(struct simplex *s, struct knapsack *k)
{
    set_prices(s);
    if (throw_away(s))
        return true;
    pack(s->units, s->asks, s->prices, s->len, k);
    if (k->best[s->units] <= 1 + 1e-7)
        return false;
    double pattern[N] = {0};
    for (int64_t at = s->units; at > 0;) {
        int16_t i = k->last[at];
        if (i >= 0)
            pattern[i]++;
        at -= i >= 0 ? s->asks[i].size : 1;
    }
    return enter(s, pattern, 1);
}

void card_value_prices(int64_t units, const struct card_value_ask *asks, size_t len, double *prices)
{
    struct simplex s = {.units = units, .asks = asks, .len = len};
    struct knapsack k;
    assert(units <= CARD_VALUE_UNITS_MAX && len <= CARD_VALUE_SIZES_MAX);
    if (len == 0)
        return;
    start(&s);
    for (int step = 0; step < STEPS_MAX && improve(&s, &k); step++)
        ;
    set_prices(&s);
    for (size_t i = 0; i < len; i++)
        prices[i] = s.prices[i] > 0 ? s.prices[i] : 0;
    pack(units, asks, prices, len, &k);
    for (size_t i = 0; k.best[units] > 1 && i < len; i++)
        prices[i] /= k.best[units];
}

void card_value_table(int64_t units, const struct card_value_ask *asks, size_t len, int32_t *value)
{
    double prices[N];
    struct knapsack k;
    if (len == 0) {
        for (int64_t at = 0; at <= units; at++)
            value[at] = (int32_t)(CARD_VALUE_ONE * at * at / (units * units));
        return;
    }
    card_value_prices(units, asks, len, prices);
    pack(units, asks, prices, len, &k);
    for (int64_t at = 0; at <= units; at++)
        value[at] = (int32_t)(k.best[at] * CARD_VALUE_ONE + 0.5);
}

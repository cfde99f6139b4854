// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/card_value.h"

#include <string.h>

#include "test/unit/lib/base/expect.h"

enum { SMALL = 3, PATTERNS_MAX = 512 };

/* ---- the dual problem by brute force: every corner of what the patterns allow ---- */

struct corner_search {
    double row[PATTERNS_MAX][SMALL]; /* sum of row * prices <= limit */
    double limit[PATTERNS_MAX];
    size_t rows, len;
    const struct card_value_ask *asks;
    double best;
};

static void add_patterns(struct corner_search *s, int64_t left, size_t from, double *pattern)
{
    if (from == s->len) {
        assert_true(s->rows < PATTERNS_MAX);
        memcpy(s->row[s->rows], pattern, sizeof s->row[0]);
        s->limit[s->rows++] = 1;
        return;
    }
    for (int64_t n = 0; n * s->asks[from].size <= left; n++) {
        pattern[from] = (double)n;
        add_patterns(s, left - n * s->asks[from].size, from + 1, pattern);
    }
    pattern[from] = 0;
}

/* Gauss, on a copy; false: no single point. */
static bool solve(const struct corner_search *s, const size_t *chosen, double *out)
{
    double m[SMALL][SMALL + 1];
    for (size_t i = 0; i < s->len; i++) {
        for (size_t k = 0; k < s->len; k++)
            m[i][k] = s->row[chosen[i]][k];
        m[i][s->len] = s->limit[chosen[i]];
    }
    for (size_t c = 0; c < s->len; c++) {
        size_t p = c;
        while (p < s->len && m[p][c] < 1e-9 && m[p][c] > -1e-9)
            p++;
        if (p == s->len)
            return false;
        for (size_t k = 0; k <= s->len; k++) {
            double held = m[c][k];
            m[c][k] = m[p][k];
            m[p][k] = held;
        }
        for (size_t i = 0; i < s->len; i++) {
            double by = i != c ? m[i][c] / m[c][c] : 0;
            for (size_t k = c; k <= s->len; k++)
                m[i][k] -= by * m[c][k];
        }
    }
    for (size_t i = 0; i < s->len; i++)
        out[i] = m[i][s->len] / m[i][i];
    return true;
}

static bool is_legal(const struct corner_search *s, const double *prices)
{
    for (size_t i = 0; i < s->rows; i++) {
        double sum = 0;
        for (size_t k = 0; k < s->len; k++)
            sum += s->row[i][k] * prices[k];
        if (sum > s->limit[i] + 1e-6)
            return false;
    }
    return true;
}

static double total(const struct corner_search *s, const double *prices)
{
    double sum = 0;
    for (size_t k = 0; k < s->len; k++)
        sum += prices[k] * (double)s->asks[k].weight;
    return sum;
}

static void try_corners(struct corner_search *s, size_t *chosen, size_t n, size_t from)
{
    double prices[SMALL] = {0};
    if (n == s->len) {
        if (solve(s, chosen, prices) && is_legal(s, prices) && total(s, prices) > s->best)
            s->best = total(s, prices);
        return;
    }
    for (size_t i = from; i < s->rows; i++) {
        chosen[n] = i;
        try_corners(s, chosen, n + 1, i + 1);
    }
}

static void are_the_best_prices(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        int64_t units;
        struct card_value_ask asks[SMALL];
        size_t len;
    } rows[] = {
        {"one size that divides the card", 12, {{3, 5}}, 1},
        {"one size that does not", 10, {{3, 7}}, 1},
        {"more than a half and less than a half", 10, {{4, 5}, {6, 5}}, 2},
        {"more small ones than go with the large", 10, {{3, 50}, {7, 5}}, 2},
        {"more large ones than go with the small", 10, {{3, 5}, {7, 50}}, 2},
        {"two that never meet", 10, {{6, 3}, {7, 4}}, 2},
        {"three of a trace", 20, {{6, 33}, {9, 75}, {16, 108}}, 3},
        {"three whose best patterns are mixed", 13, {{3, 10}, {4, 10}, {5, 10}}, 3},
        {"one very rare", 15, {{2, 1}, {7, 1000}, {8, 1000}}, 3},
        {"the same weight", 14, {{4, 1}, {5, 1}, {9, 1}}, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct corner_search s = {.asks = rows[i].asks, .len = rows[i].len};
        double pattern[SMALL] = {0}, prices[SMALL];
        size_t chosen[SMALL];
        add_patterns(&s, rows[i].units, 0, pattern);
        for (size_t k = 0; k < s.len; k++) { /* no price is below 0 */
            memset(s.row[s.rows], 0, sizeof s.row[0]);
            s.row[s.rows][k] = -1;
            s.limit[s.rows++] = 0;
        }
        try_corners(&s, chosen, 0, 0);
        card_value_prices(rows[i].units, rows[i].asks, rows[i].len, prices);
        expect_true(rows[i].row, is_legal(&s, prices));
        expect_int(rows[i].row, (int64_t)(s.best * 1e5 + 0.5),
                   (int64_t)(total(&s, prices) * 1e5 + 0.5));
    }
    expect_done();
}

static void never_falls(void **state)
{
    (void)state;
    static const struct card_value_ask asks[] = {{50, 7},    {110, 24},  {230, 140}, {320, 328},
                                                 {460, 128}, {470, 750}, {650, 253}, {810, 1078}};
    int32_t value[CARD_VALUE_UNITS_MAX + 1], again[CARD_VALUE_UNITS_MAX + 1];
    card_value_table(1000, asks, 8, value);
    card_value_table(1000, asks, 8, again);
    expect_int("the same twice", 0, memcmp(value, again, sizeof value));
    expect_int("nothing is worth nothing", 0, value[0]);
    expect_int("less than the least request is worth nothing", 0, value[49]);
    expect_true("an empty card is worth at most a card", value[1000] <= CARD_VALUE_ONE);
    expect_true("and nearly that", value[1000] >= CARD_VALUE_ONE - 1);
    expect_true("what the most frequent leaves is worth less than it",
                value[190] < value[1000] - value[190]);
    for (int i = 1; i <= 1000; i++)
        expect_true("never falls", value[i] >= value[i - 1]);
    expect_done();
}

static void knows_nothing_yet(void **state)
{
    (void)state;
    int32_t value[16];
    card_value_table(15, NULL, 0, value);
    expect_int("an empty card", CARD_VALUE_ONE, value[15]);
    expect_int("no rest", 0, value[0]);
    expect_true("a share costs less on the fuller card",
                value[6] - value[3] < value[15] - value[12]);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(are_the_best_prices),
        cmocka_unit_test(never_falls),
        cmocka_unit_test(knows_nothing_yet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/demand.h"

#include "test/unit/lib/base/expect.h"

static struct demand_ask share(int64_t size)
{
    return (struct demand_ask){.cpu_milli = 4000, .milli_cards = size, .size = size, .shares = 1};
}

static int64_t weight_of(const struct demand *d, int64_t size)
{
    for (size_t i = 0; i < d->sizes_len; i++)
        if (d->sizes[i].size == size)
            return d->sizes[i].weight;
    return 0;
}

static void counts(void **state)
{
    (void)state;
    struct demand d = {0};
    struct demand_ask a = share(500), b = share(300), none = {.cpu_milli = 1000},
                      whole = {.cpu_milli = 8000, .milli_cards = 2000, .models = 5};
    demand_see(&d, &a);
    demand_see(&d, &b);
    demand_see(&d, &a);
    demand_see(&d, &none);
    demand_see(&d, &whole);
    expect_int("who asks for no card is not counted", 4, (int64_t)d.seen);
    expect_int("sizes are different ones", 2, (int64_t)d.sizes_len);
    expect_int("in order", 300, d.sizes[0].size);
    expect_int("twice", 2 * DEMAND_ONE, weight_of(&d, 500));
    expect_int("all CPU", 20000 * (int64_t)DEMAND_ONE, d.cpu_milli);
    expect_int("all cards", 3300 * (int64_t)DEMAND_ONE, d.milli_cards);
    expect_int("one set of models", 1, (int64_t)d.sets_len);
    expect_int("by its cards", 2000 * (int64_t)DEMAND_ONE, d.sets[0].weight);
    expect_done();
}

static void fades(void **state)
{
    (void)state;
    struct demand d = {0};
    struct demand_ask before = share(700), after = share(200);
    before.models = 1;
    for (int i = 0; i < 10000; i++)
        demand_see(&d, &before);
    int64_t full = weight_of(&d, 700);
    expect_true("no more than the window",
                full <= (int64_t)(DEMAND_FADE_PART + 1) * DEMAND_FADE_EVERY * DEMAND_ONE);
    for (int i = 0; i < 2 * DEMAND_FADE_PART * DEMAND_FADE_EVERY; i++)
        demand_see(&d, &after);
    expect_true("what was asked for once matters little two windows later",
                weight_of(&d, 700) < weight_of(&d, 200) / 5);
    for (int i = 0; i < 40 * DEMAND_FADE_PART * DEMAND_FADE_EVERY; i++)
        demand_see(&d, &after);
    expect_int("and is forgotten in the end", 0, weight_of(&d, 700));
    expect_int("with its models", 0, (int64_t)d.sets_len);
    expect_done();
}

static void is_bounded(void **state)
{
    (void)state;
    struct demand d = {0};
    struct demand_ask often = share(1), huge = {.cpu_milli = INT64_MAX,
                                                .milli_cards = INT64_MAX,
                                                .size = INT64_MAX,
                                                .shares = INT64_MAX,
                                                .models = 1};
    for (int i = 0; i < 5; i++)
        demand_see(&d, &often);
    for (int64_t i = 0; i < 200; i++) {
        struct demand_ask other = share(2 + i);
        other.models = (uint64_t)(1 + i);
        demand_see(&d, &other);
    }
    expect_int("no more sizes than there is room for", DEMAND_SIZES_MAX, (int64_t)d.sizes_len);
    expect_int("nor sets", DEMAND_SETS_MAX, (int64_t)d.sets_len);
    expect_int("the frequent one stays", 5 * DEMAND_ONE, weight_of(&d, 1));
    expect_int("and the last one", DEMAND_ONE, weight_of(&d, 201));
    for (size_t i = 1; i < d.sizes_len; i++)
        expect_true("in order", d.sizes[i - 1].size < d.sizes[i].size);
    struct demand endless = {0};
    for (int i = 0; i < 20000; i++)
        demand_see(&endless, &huge);
    expect_true("what somebody writes into a pod overflows nothing", endless.milli_cards > 0);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(fades),
        cmocka_unit_test(is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

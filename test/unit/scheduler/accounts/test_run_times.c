// SPDX-License-Identifier: Apache-2.0
/* How long pods ran: what is expected of the next one, and that the memory of it is bounded. */
#include "scheduler/accounts/run_times.h"

#include "test/unit/lib/base/expect.h"

enum { MINUTE = 60000 };

static void what_is_expected(void **state)
{
    (void)state;
    struct run_times r = {0};
    expect_int("nothing is known", 0, run_times_expect(&r, 1));
    run_times_see(&r, 1, RUN_TIMES_ONE, 10 * MINUTE);
    expect_int("what the only one took", 10 * MINUTE, run_times_expect(&r, 1));
    for (int i = 0; i < 100; i++)
        run_times_see(&r, 1, RUN_TIMES_ONE, 10 * MINUTE);
    expect_int("equal ones", 10 * MINUTE, run_times_expect(&r, 1));
    for (int i = 0; i < 100; i++)
        run_times_see(&r, 2, RUN_TIMES_ONE, i % 2 == 0 ? 5 * MINUTE : 15 * MINUTE);
    expect_true("ones that differ: on the safe side", run_times_expect(&r, 2) >= 15 * MINUTE);
    expect_true("but not far", run_times_expect(&r, 2) < 25 * MINUTE);
    for (int i = 0; i < 40; i++)
        run_times_see(&r, 1, RUN_TIMES_ONE, MINUTE);
    expect_true("the last few count", run_times_expect(&r, 1) < 2 * MINUTE);
    run_times_see(&r, 3, RUN_TIMES_ONE, INT64_MAX);
    expect_true("a century is ten years", run_times_expect(&r, 3) == RUN_TIMES_LONGEST_MS);
    run_times_deinit(&r);
    expect_done();
}

static void it_is_bounded(void **state)
{
    (void)state;
    struct run_times r = {0};
    for (uint64_t i = 1; i <= 3 * RUN_TIMES_MAX; i++) {
        run_times_see(&r, i, RUN_TIMES_ONE, RUN_TIMES_LONGEST_MS);
        run_times_see(&r, 1, RUN_TIMES_ONE, MINUTE);
    }
    expect_int("so many templates", RUN_TIMES_MAX, (int64_t)r.len);
    expect_true("the oldest are gone", run_times_expect(&r, 2) == 0);
    expect_true("the one that ends again and again is not", run_times_expect(&r, 1) != 0);
    expect_true("nor the last", run_times_expect(&r, 3 * RUN_TIMES_MAX) != 0);
    expect_true("the sums neither",
                r.weight <= RUN_TIMES_ONE * RUN_TIMES_FADE_EVERY * (RUN_TIMES_FADE_PART + 1) &&
                    r.total_ms / RUN_TIMES_LONGEST_MS <= r.weight);
    expect_int("no room for what a dump adds", -1,
               run_times_restore(&r, &(struct run_time){.template = 2, .mean_ms = 1}));
    run_times_deinit(&r);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_expected),
        cmocka_unit_test(it_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "lib/base/rate_limit.h"

#include "test/unit/lib/base/expect.h"

enum { RATE = 50, SLOW = 5 };

/* How many may go if everybody asks at each millisecond of [from, to). */
static int count(struct rate_limit *p, bool busy, int64_t from_ms, int64_t to_ms)
{
    int n = 0;
    for (int64_t ms = from_ms; ms < to_ms; ms++)
        while (rate_limit_take(p, busy, ms) == 0)
            n++;
    return n;
}

static void quiet_times(void **state)
{
    (void)state;
    struct rate_limit p;
    rate_limit_init(&p, RATE, SLOW, 0);
    expect_int("a full bucket goes at once", RATE, count(&p, false, 0, 1));
    expect_int("then one comes every 20 ms", 20, rate_limit_take(&p, false, 0));
    expect_int("not a moment before", 1, rate_limit_take(&p, false, 19));
    expect_int("but then", 0, rate_limit_take(&p, false, 20));
    expect_int("a second brings the rate", RATE, count(&p, false, 21, 1021));
    expect_int("and an hour no more than a bucket", RATE,
               count(&p, false, 3600 * 1000, 3600 * 1000 + 1));
    rate_limit_deinit(&p);
    expect_done();
}

static void busy_times(void **state)
{
    (void)state;
    struct rate_limit p;
    rate_limit_init(&p, RATE, SLOW, 0);
    expect_int("what was saved up is not spent in a busy time", 1, count(&p, true, 0, 1));
    expect_int("one every 200 ms", 200, rate_limit_take(&p, true, 0));
    expect_int("ten in two seconds", 2 * SLOW, count(&p, true, 1, 2001));
    expect_int("a busy time that ends gives the rest of the bucket at once", RATE,
               count(&p, false, 2100, 2101));
    expect_int("then a busy one begins with a token of its own", 1, count(&p, true, 2300, 2301));
    rate_limit_deinit(&p);
    expect_done();
}

static void clocks_that_go_wrong(void **state)
{
    (void)state;
    struct rate_limit p;
    rate_limit_init(&p, 1, 1, 5000);
    expect_int("the first", 0, rate_limit_take(&p, false, 5000));
    expect_int("a clock that goes back brings nothing", 1000, rate_limit_take(&p, false, 10));
    expect_int("nor does it bring anything when it comes forward again", 1000,
               rate_limit_take(&p, false, 5000));
    expect_int("only later", 0, rate_limit_take(&p, false, 6000));
    rate_limit_deinit(&p);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(quiet_times), cmocka_unit_test(busy_times),
                                       cmocka_unit_test(clocks_that_go_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

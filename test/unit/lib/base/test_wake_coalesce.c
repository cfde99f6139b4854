// SPDX-License-Identifier: Apache-2.0
#include "lib/base/wake_coalesce.h"

#include "test/unit/lib/base/expect.h"

/* Rounds every `every_us` for so long; each nap delays the next. Returns how many of the rounds of
 * the second half napped, in percent. */
static int64_t napped(struct wake_coalesce *g, int64_t every_us, int64_t for_us)
{
    int64_t naps = 0, rounds = 0;
    for (int64_t at = 1, end = for_us; at < end;) {
        int64_t nap = wake_coalesce_round(g, at);
        if (at > for_us / 2) {
            rounds++;
            naps += nap > 0;
        }
        at += every_us > nap ? every_us : nap;
    }
    return naps * 100 / rounds;
}

static void who_is_woken_often_naps(void **state)
{
    (void)state;
    static const struct {
        const char *sentence;
        int64_t every_us, percent;
    } rows[] = {
        {"all the time", 20, 100},
        {"every half millisecond", 500, 100},
        {"eight times in a window", WAKE_COALESCE_WINDOW_US / WAKE_COALESCE_ROUNDS - 1, 100},
        {"seven times", WAKE_COALESCE_WINDOW_US / (WAKE_COALESCE_ROUNDS - 1) + 1, 0},
        {"now and then", 50000, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wake_coalesce g = {0};
        expect_int(rows[i].sentence, rows[i].percent, napped(&g, rows[i].every_us, 1000000));
    }
    expect_done();
}

static void after_a_pause_the_first_round_is_prompt(void **state)
{
    (void)state;
    struct wake_coalesce g = {0};
    expect_int("busy", 100, napped(&g, 20, 1000000));
    expect_int("then nothing for a while", 0,
               wake_coalesce_round(&g, 1000000 + 2 * (int64_t)WAKE_COALESCE_WINDOW_US));
    expect_int("and the next", 0,
               wake_coalesce_round(&g, 1000000 + 2 * (int64_t)WAKE_COALESCE_WINDOW_US + 1));
    expect_int("a clock that goes back", 0, wake_coalesce_round(&g, 5));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_woken_often_naps),
        cmocka_unit_test(after_a_pause_the_first_round_is_prompt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

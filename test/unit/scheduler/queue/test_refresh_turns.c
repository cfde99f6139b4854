// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/refresh_turns.h"

#include "test/unit/lib/base/expect.h"

static struct ids ids;
static struct refresh_turns t;

static int setup(void **state)
{
    (void)state;
    ids = (struct ids){0};
    refresh_turns_init(&t);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    refresh_turns_deinit(&t);
    ids_deinit(&ids);
    return 0;
}

/* The serial of the gang whose turn it is; 0: nobody's. */
static int64_t taken(int64_t now_ms)
{
    struct refresh_turn turn;
    return refresh_turns_take(&t, now_ms, &turn) ? (int64_t)turn.gang.serial : 0;
}

static void the_band_says_how_likely_somebody_looks(void **state)
{
    (void)state;
    expect_int("young, amounts", REFRESH_YOUNG, refresh_turns_band(true, REFRESH_YOUNG_MS - 1));
    expect_int("old, amounts", REFRESH_AMOUNTS, refresh_turns_band(true, REFRESH_YOUNG_MS));
    expect_int("young, something else", REFRESH_REST, refresh_turns_band(false, 0));
    expect_done();
}

static void the_one_looked_at_longest_ago_is_next(void **state)
{
    (void)state;
    struct id a = ids_take(&ids), b = ids_take(&ids);
    expect_int("nobody waits", -1, refresh_turns_next_due(&t));
    refresh_turns_put(&t, a, REFRESH_YOUNG, 1000);
    refresh_turns_put(&t, b, REFRESH_YOUNG, 2000);
    expect_int("after a pause", 11000, refresh_turns_next_due(&t));
    expect_int("not before", 0, taken(10999));
    expect_true("in its place meanwhile", refresh_turns_has(&t, a));
    expect_int("the first", 1, taken(11000));
    expect_true("which is taken out", !refresh_turns_has(&t, a));
    expect_int("the second is not due", 0, taken(11000));
    refresh_turns_put(&t, a, REFRESH_YOUNG, 11000);
    refresh_turns_put(&t, b, REFRESH_YOUNG, 12000);
    expect_int("put again: behind the other", 1, taken(90000));
    expect_int("which follows", 2, taken(90000));
    expect_int("and nobody else", 0, taken(90000));
    expect_done();
}

static void every_band_has_its_share(void **state)
{
    (void)state;
    int64_t turns[REFRESH_BANDS] = {0};
    for (int i = 0; i < 40; i++)
        refresh_turns_put(&t, ids_take(&ids), (enum refresh_band)(i % REFRESH_BANDS), 0);
    for (int i = 0; i < 16; i++) {
        struct refresh_turn turn;
        expect_true("somebody is due", refresh_turns_take(&t, 100000, &turn));
        turns[turn.band]++;
        refresh_turns_put(&t, turn.gang, turn.band, 0);
    }
    expect_int("young: half of the turns", 8, turns[REFRESH_YOUNG]);
    expect_int("old", 2, turns[REFRESH_AMOUNTS]);
    expect_int("others", 2, turns[REFRESH_REST]);
    expect_int("members of large gangs", 4, turns[REFRESH_UNFINISHED]);
    expect_done();
}

static void an_empty_band_leaves_its_turns_to_the_others(void **state)
{
    (void)state;
    struct id rest = ids_take(&ids);
    for (int i = 0; i < 10; i++) {
        refresh_turns_put(&t, rest, REFRESH_REST, 0);
        expect_int("again", 1, taken(60000));
    }
    refresh_turns_put(&t, rest, REFRESH_UNFINISHED, 7);
    expect_int("unfinished: at once", 7, refresh_turns_next_due(&t));
    expect_int("it is", 1, taken(7));
    expect_done();
}

static void a_gang_that_is_gone_gives_its_slot_to_another(void **state)
{
    (void)state;
    struct id gone = ids_take(&ids), stays = ids_take(&ids);
    refresh_turns_put(&t, gone, REFRESH_YOUNG, 0);
    refresh_turns_put(&t, stays, REFRESH_YOUNG, 0);
    ids_give(&ids, gone);
    struct id next = ids_take(&ids);
    expect_int("the same number", gone.number, next.number);
    expect_true("not in a band", !refresh_turns_has(&t, next));
    refresh_turns_put(&t, next, REFRESH_YOUNG, 0);
    expect_int("the other one is first now", 2, taken(10000));
    expect_int("then the new one", 3, taken(10000));
    expect_int("the old one is in no band", 0, taken(10000));
    expect_done();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_band_says_how_likely_somebody_looks),
        TEST(the_one_looked_at_longest_ago_is_next),
        TEST(every_band_has_its_share),
        TEST(an_empty_band_leaves_its_turns_to_the_others),
        TEST(a_gang_that_is_gone_gives_its_slot_to_another),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}

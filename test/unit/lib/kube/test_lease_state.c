// SPDX-License-Identifier: Apache-2.0
/* The rules of the election without a server: stories of what a candidate or leader sees, and what
 * it does then. */
#include "test/unit/lib/base/expect.h"

#include "lib/base/str.h"
#include "lib/kube/lease.h"

static const struct lease_options options = {
    .enabled = true, .duration_ms = 15000, .renew_deadline_ms = 10000, .retry_ms = 2000};

static struct lease_record record(const char *holder, const char *version)
{
    struct lease_record r = {.duration_s = 15, .transitions = 1};
    str_format(r.holder, sizeof r.holder, "%s", holder);
    str_format(r.resource_version, sizeof r.resource_version, "%s", version);
    str_format(r.renew_time, sizeof r.renew_time, "t%s", version);
    return r;
}

static const char *name_of(enum lease_action a)
{
    static const char *const names[] = {"wait", "acquire", "renew", "lost"};
    return names[a];
}

/* What happens at a time; `next` is what must come out of lease_state_next then. */
struct moment {
    int64_t at_ms;
    enum { SEES, SEES_NOTHING, LEADS_SINCE, ASKS } what;
    const char *holder, *version;
    const char *next;
};

static void test_stories(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        struct moment moments[8];
    } rows[] = {
        {"without a Lease the first comer takes it", {{0, SEES_NOTHING, NULL, NULL, "acquire"}}},
        {"a released Lease is taken at once", {{5, SEES, "", "1", "acquire"}}},
        {"a held one is waited for, a whole duration from when we first saw it",
         {{100, SEES, "a", "1", "wait"},
          {15099, SEES, "a", "1", "wait"},
          {15100, SEES, "a", "1", "acquire"}}},
        {"each renewal begins the wait again",
         {{0, SEES, "a", "1", "wait"},
          {14000, SEES, "a", "2", "wait"},
          {28999, SEES, "a", "2", "wait"},
          {29000, SEES, "a", "2", "acquire"}}},
        {"another holder begins the wait again",
         {{0, SEES, "a", "1", "wait"},
          {14999, SEES, "b", "2", "wait"},
          {29998, SEES, "b", "2", "wait"},
          {29999, SEES, "b", "2", "acquire"}}},
        {"a release while waiting ends the wait",
         {{0, SEES, "a", "1", "wait"}, {3000, SEES, "", "2", "acquire"}}},
        {"our own name on it means a predecessor, who may still run",
         {{0, SEES, "me", "1", "wait"},
          {14999, SEES, "me", "1", "wait"},
          {15000, SEES, "me", "1", "acquire"}}},
        {"a deleted Lease is a change: its holder may not know yet",
         {{0, SEES, "a", "1", "wait"},
          {10000, SEES_NOTHING, NULL, NULL, "wait"},
          {24999, SEES_NOTHING, NULL, NULL, "wait"},
          {25000, SEES_NOTHING, NULL, NULL, "acquire"}}},
        {"a deleted Lease that was released is free",
         {{0, SEES, "", "1", "acquire"}, {1, SEES_NOTHING, NULL, NULL, "acquire"}}},
        {"a clock that begins negative counts the same",
         {{-20000, SEES, "a", "1", "wait"},
          {-5001, SEES, "a", "1", "wait"},
          {-5000, SEES, "a", "1", "acquire"}}},
        {"a leader renews up to the deadline",
         {{0, SEES, "me", "1", NULL},
          {0, LEADS_SINCE, NULL, NULL, "renew"},
          {9999, ASKS, NULL, NULL, "renew"},
          {10000, ASKS, NULL, NULL, "lost"}}},
        {"a leader that was paused past the deadline has lost, whatever the record says",
         {{0, SEES, "me", "1", NULL},
          {0, LEADS_SINCE, NULL, NULL, "renew"},
          {60000, SEES, "me", "1", "lost"}}},
        {"a leader that sees another holder has lost at once",
         {{0, SEES, "me", "1", NULL},
          {0, LEADS_SINCE, NULL, NULL, "renew"},
          {500, SEES, "b", "2", "lost"}}},
        {"a leader whose Lease was deleted has lost",
         {{0, SEES, "me", "1", NULL},
          {0, LEADS_SINCE, NULL, NULL, "renew"},
          {500, SEES_NOTHING, NULL, NULL, "lost"}}},
        {"a leader whose Lease was released by somebody has lost",
         {{0, SEES, "me", "1", NULL},
          {0, LEADS_SINCE, NULL, NULL, "renew"},
          {500, SEES, "", "2", "lost"}}},
        {"a renewal moves the deadline",
         {{0, SEES, "me", "1", NULL},
          {0, LEADS_SINCE, NULL, NULL, "renew"},
          {8000, LEADS_SINCE, NULL, NULL, "renew"},
          {17999, ASKS, NULL, NULL, "renew"},
          {18000, ASKS, NULL, NULL, "lost"}}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lease_state s = {0};
        bool found = true;
        for (size_t k = 0; k < 8; k++) {
            const struct moment *m = &rows[i].moments[k];
            if (!m->next && !m->holder)
                break;
            if (m->what == SEES) {
                struct lease_record r = record(m->holder, m->version);
                found = true;
                lease_state_observe(&s, &r, true, m->at_ms);
            } else if (m->what == SEES_NOTHING) {
                found = false;
                lease_state_observe(&s, NULL, false, m->at_ms);
            } else if (m->what == LEADS_SINCE) {
                s.leading = true;
                s.renewal_began_ms = m->at_ms;
            }
            if (m->next)
                expect_str(rows[i].row, m->next,
                           name_of(lease_state_next(&s, &options, "me", found, m->at_ms)));
        }
    }
    expect_done();
}

static void test_the_record_may_ask_for_longer(void **state)
{
    (void)state;
    struct lease_state s = {0};
    struct lease_record r = record("a", "1");
    r.duration_s = 60;
    lease_state_observe(&s, &r, true, 0);
    assert_int_equal(LEASE_WAIT, lease_state_next(&s, &options, "me", true, 59999));
    assert_int_equal(LEASE_ACQUIRE, lease_state_next(&s, &options, "me", true, 60000));
    s = (struct lease_state){0};
    r.duration_s = 1; /* and not for shorter */
    lease_state_observe(&s, &r, true, 0);
    assert_int_equal(LEASE_WAIT, lease_state_next(&s, &options, "me", true, 14999));
    assert_int_equal(LEASE_ACQUIRE, lease_state_next(&s, &options, "me", true, 15000));
}

/* The record's own times may be anything: only that they changed counts. */
static void test_clocks_that_differ(void **state)
{
    (void)state;
    static const char *const times[] = {"1970-01-01T00:00:00.000000Z",
                                        "2999-01-01T00:00:00.000000Z", "", "nonsense"};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct lease_state s = {0};
        struct lease_record r = record("a", "1");
        str_format(r.renew_time, sizeof r.renew_time, "%s", times[i]);
        lease_state_observe(&s, &r, true, 1000);
        expect_int(times[i], LEASE_WAIT, lease_state_next(&s, &options, "me", true, 15999));
        expect_int(times[i], LEASE_ACQUIRE, lease_state_next(&s, &options, "me", true, 16000));
    }
    expect_done();
}

static void test_not_seen_yet(void **state)
{
    (void)state;
    struct lease_state s = {0};
    assert_int_equal(LEASE_WAIT, lease_state_next(&s, &options, "me", true, 100000));
}

static void test_the_fence(void **state)
{
    (void)state;
    struct lease_state s = {.leading = true, .renewal_began_ms = 5000};
    assert_true(lease_state_may_write(&s, &options, 5000));
    assert_true(lease_state_may_write(&s, &options, 14999));
    assert_false(lease_state_may_write(&s, &options, 15000));
    assert_false(lease_state_may_write(&s, &options, 4999)); /* before it began: not our clock */
    s.leading = false;
    assert_false(lease_state_may_write(&s, &options, 5000));
}

/* Two replicas and every order of pauses: the fence of the old leader is down before the new one
 * may take over. */
static void test_fence_and_takeover_do_not_overlap(void **state)
{
    (void)state;
    for (int64_t write_ms = 0; write_ms <= 4000;
         write_ms += 500) /* how long the renewal took to reach the server */
        for (int64_t look_ms = 0; look_ms <= 2000;
             look_ms += 250) { /* when the candidate looks after that */
            struct lease_state leader = {.leading = true, .renewal_began_ms = 0}, candidate = {0};
            struct lease_record r = record("leader", "1");
            lease_state_observe(&candidate, &r, true, write_ms + look_ms);
            int64_t takeover = write_ms + look_ms;
            while (lease_state_next(&candidate, &options, "me", true, takeover) != LEASE_ACQUIRE)
                takeover++;
            int64_t last_write = 0;
            while (lease_state_may_write(&leader, &options, last_write))
                last_write++;
            if (last_write - 1 + 4000 >= takeover)
                fail_msg("a write begun at %lld may still run at %lld", (long long)last_write - 1,
                         (long long)takeover);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stories),
        cmocka_unit_test(test_the_record_may_ask_for_longer),
        cmocka_unit_test(test_clocks_that_differ),
        cmocka_unit_test(test_not_seen_yet),
        cmocka_unit_test(test_the_fence),
        cmocka_unit_test(test_fence_and_takeover_do_not_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

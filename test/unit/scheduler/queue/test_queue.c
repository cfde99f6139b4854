// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/queue.h"

#include "test/unit/lib/base/expect.h"

static struct cluster cluster;

static struct gang gang(const char *key, int32_t priority, int64_t since)
{
    static char keys[16][16];
    static size_t used;
    char *copy = keys[used++ % 16];
    strncpy(copy, key, 15);
    return (struct gang){
        .key = copy, .id = ids_take(&cluster.gang_ids), .priority = priority, .since_ns = since};
}

static struct queue_entry *entry(struct queue *q, const struct gang *g)
{
    return ids_at(&q->entries, g->id);
}

static const char *popped(struct queue *q, int64_t now)
{
    struct gang *g = queue_pop(q, now);
    return g != NULL ? g->key : "none";
}

static void the_important_then_the_old_then_by_name(void **state)
{
    (void)state;
    struct queue q;
    struct gang a = gang("a", 0, 5), b = gang("b", 0, 5), old = gang("old", 0, 1),
                high = gang("high", 9, 9);
    struct gang back = gang("back", 0, 0);
    struct gang *all[] = {&b, &a, &back, &high, &old};
    reservations_at(&cluster, &back)->lapses = 1;
    queue_init(&q, &cluster);
    for (size_t i = 0; i < 5; i++)
        queue_touch(&q, all[i], 0);
    queue_touch(&q, &a, 0);
    expect_int("touched twice is in it once", 5, (int64_t)queue_len(&q, GANG_ACTIVE));
    expect_int("something is due now", 7, queue_next_due(&q, 7));
    expect_str("the highest priority first", "high", popped(&q, 0));
    expect_str("then the oldest", "old", popped(&q, 0));
    expect_str("then by name", "a", popped(&q, 0));
    expect_str("then by name", "b", popped(&q, 0));
    expect_str("then one for which room was kept in vain", "back", popped(&q, 0));
    expect_str("then nothing", "none", popped(&q, 0));
    expect_int("nothing is due", -1, queue_next_due(&q, 7));
    queue_deinit(&q);
    expect_done();
}

static void what_was_begun_goes_first(void **state)
{
    (void)state;
    struct queue q;
    struct gang cut = gang("cut", 0, 9), high = gang("high", 9, 1), other = gang("other", 5, 1);
    queue_init(&q, &cluster);
    queue_touch(&q, &high, 0);
    queue_touch(&q, &other, 0);
    entry(&q, &cut)->ready_ms = 500; /* a backoff */
    queue_first(&q, &cut, 0);
    expect_str("before higher priorities and its backoff", "cut", popped(&q, 0));
    queue_retry(&q, &cut, 0);
    expect_str("a failed bind", "high", popped(&q, 0));
    queue_touch(&q, &high, QUEUE_BACKOFF_MIN_MS);
    expect_str("does not change that", "cut", popped(&q, QUEUE_BACKOFF_MIN_MS));
    queue_park(&q, &cut, EVENT_ALL, 0);
    entry(&q, &cut)->ready_ms = 0;
    (void)queue_wake(&q, EVENT_POD_GONE, QUEUE_BACKOFF_MIN_MS);
    expect_str("without room it is one of many", "high", popped(&q, QUEUE_BACKOFF_MIN_MS));
    queue_first(&q, &cut, 0);
    expect_str("first again", "cut", popped(&q, 0));
    queue_succeeded(&q, &cut);
    queue_touch(&q, &cut, 0);
    expect_str("until it got what it wanted", "other", popped(&q, 0));
    queue_deinit(&q);
    expect_done();
}

static void keys_may_change_while_queued(void **state)
{
    (void)state;
    struct queue q;
    struct gang a = gang("a", 1, 1), b = gang("b", 2, 1), c = gang("c", 3, 1);
    queue_init(&q, &cluster);
    queue_touch(&q, &a, 0);
    queue_touch(&q, &b, 0);
    queue_touch(&q, &c, 0);
    c.priority = 0; /* not told to the queue: the order holds as it was */
    a.priority = 9;
    queue_drop(&q, &b);
    expect_str("as queued", "c", popped(&q, 0));
    queue_touch(&q, &b, 0);
    queue_touch(&q, &a, 0); /* told */
    expect_str("as touched", "a", popped(&q, 0));
    expect_str("the rest", "b", popped(&q, 0));
    queue_deinit(&q);
    expect_done();
}

static void the_backoff_doubles_up_to_its_end(void **state)
{
    (void)state;
    struct queue q;
    struct gang a = gang("a", 0, 0);
    static const int64_t waits[] = {1000, 2000, 4000, 8000, 10000, 10000, 10000};
    int64_t now = 100;
    queue_init(&q, &cluster);
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        queue_retry(&q, &a, now);
        expect_int("due at its end", now + waits[i], queue_next_due(&q, now));
        expect_str("not a moment before", "none", popped(&q, now + waits[i] - 1));
        expect_str("then it is", "a", popped(&q, now + waits[i]));
        now += waits[i];
    }
    queue_succeeded(&q, &a);
    queue_retry(&q, &a, now);
    expect_int("afresh after a success", now + 1000, queue_next_due(&q, now));
    queue_drop(&q, &a);
    entry(&q, &a)->attempts = INT32_MAX;
    queue_retry(&q, &a, now);
    expect_int("attempts do not overflow", INT32_MAX, entry(&q, &a)->attempts);
    queue_deinit(&q);
    expect_done();
}

static void a_gang_is_tried_again_sooner(void **state)
{
    (void)state;
    struct queue q;
    struct gang g = gang("g", 0, 0);
    int64_t now = 50000;
    g.form = GANG_LABELS;
    queue_init(&q, &cluster);
    static const int64_t waits[] = {5,    5,    10,   10,   20,    20,    40,   40,   80,
                                    80,   160,  160,  320,  320,   640,   640,  1280, 1280,
                                    2560, 2560, 5120, 5120, 10000, 10000, 10000};
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        queue_park(&q, &g, EVENT_ALL, now);
        expect_int("without room, half as often after every second time", now + waits[i],
                   entry(&q, &g)->ready_ms);
        now = entry(&q, &g)->ready_ms;
    }
    queue_park(&q, &g, EVENT_ALL, now + QUEUE_BACKOFF_MIN_MS - 1);
    expect_int("not left alone", now + QUEUE_BACKOFF_MIN_MS - 1 + QUEUE_BACKOFF_MAX_MS,
               entry(&q, &g)->ready_ms);
    now = entry(&q, &g)->ready_ms + QUEUE_BACKOFF_MIN_MS;
    queue_park(&q, &g, EVENT_ALL, now);
    expect_int("left alone for long", now + 5, entry(&q, &g)->ready_ms);
    now += 5;
    entry(&q, &g)->attempts = 0;
    queue_retry(&q, &g, now);
    expect_int("a bind that failed", now + QUEUE_BACKOFF_MIN_MS, entry(&q, &g)->ready_ms);
    queue_drop(&q, &g);
    queue_deinit(&q);
    expect_done();
}

static void sleepers_wake_for_their_events_only(void **state)
{
    (void)state;
    struct queue q;
    struct gang a = gang("a", 0, 0), b = gang("b", 0, 1), c = gang("c", 0, 2), d = gang("d", 0, 3);
    queue_init(&q, &cluster);
    queue_park(&q, &a, EVENT_NODE_ADDED, 0);
    queue_park(&q, &b, EVENT_POD_GONE, 0);
    queue_park(&q, &c, EVENT_POD_GONE | EVENT_NODE_ADDED, 0);
    queue_park(&q, &d, 0, 0);
    expect_int("all sleep", 4, (int64_t)queue_len(&q, GANG_PARKED));
    expect_int("for no time at all", -1, queue_next_due(&q, 0));
    expect_int("an event that nobody named", 0, (int64_t)queue_wake(&q, EVENT_NODE_TAINTS, 5000));
    expect_int("no event", 0, (int64_t)queue_wake(&q, 0, 5000));
    expect_int("two named this one", 2, (int64_t)queue_wake(&q, EVENT_POD_GONE, 5000));
    expect_str("the backoff is long over: at once", "b", popped(&q, 5000));
    expect_str("and the other", "c", popped(&q, 5000));
    expect_int("the others sleep on", 2, (int64_t)queue_len(&q, GANG_PARKED));
    expect_int("one for every event but its own change", 1,
               (int64_t)queue_wake(&q, EVENT_ALL, 5000));
    queue_touch(&q, &d, 5000);
    expect_int("its own change wakes it", 0, (int64_t)queue_len(&q, GANG_PARKED));
    queue_deinit(&q);
    expect_done();
}

static void woken_within_the_backoff_it_waits_for_its_end(void **state)
{
    (void)state;
    struct queue q;
    struct gang a = gang("a", 0, 0);
    queue_init(&q, &cluster);
    queue_park(&q, &a, EVENT_POD_GONE, 0);
    expect_int("woken", 1, (int64_t)queue_wake(&q, EVENT_POD_GONE, 400));
    expect_str("not before the backoff ends", "none", popped(&q, 999));
    expect_int("in backoff", 1, (int64_t)queue_len(&q, GANG_BACKOFF));
    expect_int("not sleeping any more", 0, (int64_t)queue_len(&q, GANG_PARKED));
    expect_str("then", "a", popped(&q, 1000));
    queue_deinit(&q);
    expect_done();
}

static void waiting_for_pods_is_no_attempt(void **state)
{
    (void)state;
    struct queue q;
    struct gang a = gang("a", 0, 0);
    queue_init(&q, &cluster);
    queue_wait(&q, &a, EVENT_GANG);
    expect_int("it sleeps", 1, (int64_t)queue_len(&q, GANG_PARKED));
    queue_touch(&q, &a, 1);
    expect_str("the last pod came: at once", "a", popped(&q, 1));
    expect_int("nothing was counted", 0, entry(&q, &a)->attempts);
    queue_deinit(&q);
    expect_done();
}

static void a_success_does_not_lose_a_new_member(void **state)
{
    (void)state;
    struct queue q;
    struct gang a = gang("a", 0, 0);
    queue_init(&q, &cluster);
    queue_touch(&q, &a, 0);
    queue_succeeded(&q, &a);
    expect_str("touched while its bindings were on the way", "a", popped(&q, 0));
    queue_retry(&q, &a, 0);
    queue_succeeded(&q, &a);
    expect_str("the backoff is over with the success", "a", popped(&q, 0));
    queue_park(&q, &a, EVENT_POD_GONE, 0);
    queue_succeeded(&q, &a);
    expect_int("members beyond the quorum sleep on", 1, (int64_t)queue_len(&q, GANG_PARKED));
    expect_int("and wake", 1, (int64_t)queue_wake(&q, EVENT_POD_GONE, 0));
    expect_int("without a backoff", 1, (int64_t)queue_len(&q, GANG_ACTIVE));
    queue_deinit(&q);
    expect_done();
}

static void dropping_works_in_every_state(void **state)
{
    (void)state;
    struct queue q;
    struct gang a = gang("a", 0, 0), b = gang("b", 0, 0), c = gang("c", 0, 0), d = gang("d", 0, 0);
    queue_init(&q, &cluster);
    queue_touch(&q, &a, 0);
    queue_retry(&q, &b, 0);
    queue_park(&q, &c, EVENT_ALL, 0);
    queue_park(&q, &d, EVENT_ALL, 0);
    struct gang *all[] = {&c, &b, &a, &d};
    for (size_t i = 0; i < 4; i++) {
        queue_drop(&q, all[i]);
        queue_drop(&q, all[i]);
        expect_int("idle", GANG_IDLE, queue_state(&q, all[i]));
    }
    expect_int("nothing is left", 0,
               (int64_t)(queue_len(&q, GANG_ACTIVE) + queue_len(&q, GANG_BACKOFF) +
                         queue_len(&q, GANG_PARKED) + queue_len(&q, GANG_IDLE)));
    queue_deinit(&q);
    expect_done();
}

static void a_gang_inherits_nothing(void **state)
{
    (void)state;
    struct queue q;
    struct gang gone = gang("gone", 0, 0);
    queue_init(&q, &cluster);
    expect_int("before it was heard of", GANG_IDLE, queue_state(&q, &gone));
    expect_true("it was not refused", queue_why(&q, &gone)->sentence == NULL);
    queue_set_why(&q, &gone, "no room", 6, true);
    queue_set_why(&q, &gone, "still no room", 7, false);
    queue_retry(&q, &gone, 0);
    expect_str("why it waits", "still no room", queue_why(&q, &gone)->sentence);
    expect_true("all of it", queue_why(&q, &gone)->class == 7 && !queue_why(&q, &gone)->for_gang);
    queue_drop(&q, &gone);
    ids_give(&cluster.gang_ids, gone.id);
    struct gang next = gang("next", 0, 0);
    expect_int("the next one has its number", gone.id.number, next.id.number);
    expect_true("not its reason", queue_why(&q, &next)->sentence == NULL);
    queue_touch(&q, &next, 0);
    expect_str("nor its backoff", "next", popped(&q, 0));
    queue_deinit(&q);
    expect_done();
}

static int set_up(void **state)
{
    (void)state;
    cluster_init(&cluster, "test");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cluster_deinit(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_important_then_the_old_then_by_name),
        cmocka_unit_test(what_was_begun_goes_first),
        cmocka_unit_test(keys_may_change_while_queued),
        cmocka_unit_test(the_backoff_doubles_up_to_its_end),
        cmocka_unit_test(a_gang_is_tried_again_sooner),
        cmocka_unit_test(sleepers_wake_for_their_events_only),
        cmocka_unit_test(woken_within_the_backoff_it_waits_for_its_end),
        cmocka_unit_test(waiting_for_pods_is_no_attempt),
        cmocka_unit_test(a_success_does_not_lose_a_new_member),
        cmocka_unit_test(dropping_works_in_every_state),
        cmocka_unit_test(a_gang_inherits_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

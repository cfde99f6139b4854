// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/queue.h"

#include <stdio.h>

#include "test/unit/lib/base/expect.h"

static struct cluster cluster;

static struct gang gang(const char *key, int32_t priority, int64_t since)
{
    static char keys[32][24];
    static size_t used;
    char *copy = keys[used++ % 32];
    (void)str_format(copy, sizeof keys[0], "%s", key);
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
    now += QUEUE_BACKOFF_MAX_MS - 1;
    (void)queue_wake(&q, EVENT_NODE_ADDED, now);
    now += 60000; /* others had their turn before */
    expect_str("not left alone, only late", "g", popped(&q, now));
    queue_park(&q, &g, EVENT_ALL, now);
    expect_int("so it goes on as before", now + QUEUE_BACKOFF_MAX_MS, entry(&q, &g)->ready_ms);
    now = entry(&q, &g)->ready_ms + QUEUE_BACKOFF_MAX_MS;
    (void)queue_wake(&q, EVENT_NODE_ADDED, now);
    expect_str("left alone", "g", popped(&q, now));
    queue_park(&q, &g, EVENT_ALL, now);
    expect_int("it is quick again", now + 5, entry(&q, &g)->ready_ms);
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
    queue_wait(&q, &a, EVENT_GANG, 0);
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

/* ---- turns ---- */

enum { BACKLOG = 12 };

/* Gangs "pod NS/0" to "pod NS/11" that were refused, the first of them long ago, and now have their
 * turn again. */
static void put_backlog(struct queue *q, struct gang *of, const char *ns, int32_t priority)
{
    for (int64_t i = 0; i < BACKLOG; i++) {
        char key[16];
        snprintf(key, sizeof key, "pod %s/%02d", ns, (int)i);
        of[i] = gang(key, priority, 1 + i);
        queue_touch(q, &of[i], 0);
    }
    for (int i = 0; i < BACKLOG; i++) {
        struct gang *g = queue_pop(q, 0);
        queue_park(q, g, EVENT_NODE_ADDED, 0);
    }
    (void)queue_wake(q, EVENT_NODE_ADDED, 20000);
}

/* The next gang, which is refused again. */
static const char *refused(struct queue *q, int64_t now)
{
    struct gang *g = queue_pop(q, now);
    if (g != NULL)
        queue_park(q, g, EVENT_NODE_ADDED, now);
    return g != NULL ? g->key : "none";
}

static const char *placed(struct queue *q, int64_t now)
{
    struct gang *g = queue_pop(q, now);
    if (g != NULL)
        queue_succeeded(q, g);
    return g != NULL ? g->key : "none";
}

static void an_old_backlog_does_not_hold_up_what_is_new(void **state)
{
    (void)state;
    struct queue q;
    struct gang old[BACKLOG];
    queue_init(&q, &cluster);
    put_backlog(&q, old, "a", 0);
    struct gang x = gang("pod a/x", 0, 100), y = gang("pod a/y", 0, 101);
    queue_touch(&q, &x, 20000);
    queue_touch(&q, &y, 20000);
    expect_str("the oldest has its turn", "pod a/00", refused(&q, 20000));
    expect_str("in vain, so a new one is next", "pod a/x", placed(&q, 20000));
    expect_str("and by turns", "pod a/01", refused(&q, 20000));
    expect_str("and by turns", "pod a/y", placed(&q, 20000));
    expect_str("then the rest", "pod a/02", refused(&q, 20000));
    expect_str("then the rest", "pod a/03", refused(&q, 20000));
    queue_deinit(&q);
    expect_done();
}

static void the_dearer_a_retry_in_vain_the_more_is_owed(void **state)
{
    (void)state;
    struct queue q;
    struct gang old[BACKLOG];
    queue_init(&q, &cluster);
    put_backlog(&q, old, "a", 0);
    struct gang x = gang("pod a/x", 0, 100), y = gang("pod a/y", 0, 101),
                z = gang("pod a/z", 0, 102);
    struct gang *fresh[] = {&x, &y, &z};
    for (size_t i = 0; i < 3; i++)
        queue_touch(&q, fresh[i], 20000);
    struct gang *g = queue_pop(&q, 20000);
    expect_str("a large one", "pod a/00", g->key);
    queue_charge(&q, g, 2);
    queue_park(&q, g, EVENT_NODE_ADDED, 20000);
    expect_str("two small ones for it", "pod a/x", refused(&q, 20000));
    expect_str("two small ones for it", "pod a/y", refused(&q, 20000));
    expect_str("paid", "pod a/01", refused(&q, 20000));
    queue_deinit(&q);
    expect_done();
}

static void what_comes_free_goes_to_the_oldest(void **state)
{
    (void)state;
    struct queue q;
    struct gang old[BACKLOG];
    queue_init(&q, &cluster);
    put_backlog(&q, old, "a", 0);
    struct gang x = gang("pod a/x", 0, 100);
    queue_touch(&q, &x, 20000);
    expect_str("as long as they fit", "pod a/00", placed(&q, 20000));
    expect_str("as long as they fit", "pod a/01", placed(&q, 20000));
    expect_str("one does not", "pod a/02", refused(&q, 20000));
    expect_str("then it is the new one's turn", "pod a/x", placed(&q, 20000));
    queue_deinit(&q);
    expect_done();
}

static void namespaces_take_turns(void **state)
{
    (void)state;
    struct queue q;
    struct gang old[BACKLOG];
    queue_init(&q, &cluster);
    put_backlog(&q, old, "a", 0);
    struct gang x = gang("pod b/x", 0, 100), y = gang("pod b/y", 0, 101),
                z = gang("gang c/z", 0, 102);
    queue_touch(&q, &x, 20000);
    queue_touch(&q, &y, 20000);
    expect_str("equal: by age", "pod a/00", placed(&q, 20000));
    expect_str("the other's turn", "pod b/x", placed(&q, 20000));
    queue_touch(&q, &z, 20000);
    expect_str("who comes late begins where the last one began", "gang c/z", placed(&q, 20000));
    expect_str("then by age again", "pod a/01", placed(&q, 20000));
    expect_str("then by age again", "pod b/y", placed(&q, 20000));
    struct gang *g = queue_pop(&q, 20000);
    expect_str("one that costs much", "pod a/02", g->key);
    queue_charge(&q, g, 3);
    queue_succeeded(&q, g);
    struct gang more[3] = {gang("pod b/1", 0, 103), gang("pod b/2", 0, 104),
                           gang("pod b/3", 0, 105)};
    for (size_t i = 0; i < 3; i++)
        queue_touch(&q, &more[i], 20000);
    expect_str("gives the others more turns", "pod b/1", placed(&q, 20000));
    expect_str("gives the others more turns", "pod b/2", placed(&q, 20000));
    expect_str("gives the others more turns", "pod b/3", placed(&q, 20000));
    expect_str("but not for ever", "pod a/03", placed(&q, 20000));
    queue_deinit(&q);
    expect_done();
}

static void accounts_are_closed_when_nobody_waits(void **state)
{
    (void)state;
    struct queue q;
    struct gang a = gang("pod a/a", 0, 1), b = gang("pod b/b", 0, 2), c = gang("pod a/c", 0, 3);
    queue_init(&q, &cluster);
    queue_touch(&q, &a, 0);
    expect_str("alone", "pod a/a", placed(&q, 0));
    queue_touch(&q, &b, 0);
    queue_touch(&q, &c, 0);
    c.since_ns = 1;
    queue_touch(&q, &c, 0);
    expect_str("afterwards by age again", "pod a/c", placed(&q, 0));
    queue_deinit(&q);
    expect_done();
}

static void a_backlog_of_high_priority_leaves_some_turns(void **state)
{
    (void)state;
    struct queue q;
    struct gang old[BACKLOG];
    queue_init(&q, &cluster);
    put_backlog(&q, old, "a", 9);
    struct gang low = gang("pod b/low", 0, 100), high = gang("pod b/high", 9, 101);
    queue_touch(&q, &low, 20000);
    for (int i = 0; i < 4; i++) {
        struct gang *g = queue_pop(&q, 20000);
        expect_int("priority first", 9, g->priority);
        queue_charge(&q, g, QUEUE_TURNS_PATIENCE / 4);
        queue_park(&q, g, EVENT_NODE_ADDED, 20000);
    }
    expect_str("but not as long as it only fails", "pod b/low", placed(&q, 20000));
    queue_touch(&q, &low, 20000);
    expect_str("one turn", "pod a/04", refused(&q, 20000));
    queue_touch(&q, &high, 20000);
    expect_str("what is new and important needs no patience", "pod b/high", placed(&q, 20000));
    queue_deinit(&q);
    expect_done();
}

/* ---- parked ---- */

static struct cluster_node node_with(int64_t cpu, int64_t used)
{
    static struct node object;
    return (struct cluster_node){.node = &object,
                                 .allocatable = {.cpu_milli = cpu, .pods = 10},
                                 .used = {.cpu_milli = used}};
}

static void park(struct queue *q, struct gang *g, uint32_t wake, int64_t cpu)
{
    struct queue_need need = {.set = true, .cpu_milli = cpu};
    queue_set_need(q, g, &need);
    queue_park(q, g, wake, 0);
}

static void capacity_wakes_those_that_it_can_help(void **state)
{
    (void)state;
    struct queue q;
    struct gang small = gang("pod a/s", 0, 1), large = gang("pod a/l", 0, 2),
                near = gang("pod a/n", 0, 3), any = gang("pod a/any", 0, 4);
    struct cluster_node n = node_with(8000, 6000);
    queue_init(&q, &cluster);
    park(&q, &small, EVENT_POD_GONE, 2000);
    park(&q, &large, EVENT_POD_GONE, 4000);
    park(&q, &near, EVENT_POD_GONE | EVENT_POD_LEFT, 4000);
    queue_park(&q, &any, EVENT_POD_GONE, 0);
    (void)cluster_note_freed(&cluster, &n);
    expect_int("what fits, what may wait for the pod on another node, what did not say", 3,
               (int64_t)queue_wake(&q, EVENT_POD_GONE, 20000));
    expect_int("not the large one", GANG_PARKED, queue_state(&q, &large));
    n.used.cpu_milli = 4000;
    (void)cluster_note_freed(&cluster, &n);
    expect_int("nor for another event", 0, (int64_t)queue_wake(&q, EVENT_NODE_TAINTS, 20000));
    expect_int("which takes nothing away", 0, (int64_t)queue_wake(&q, EVENT_POD_LEAVING, 20000));
    expect_int("but when there is enough", 1, (int64_t)queue_wake(&q, EVENT_POD_GONE, 20000));
    park(&q, &large, EVENT_POD_GONE, 4000);
    n.used.cpu_milli = 6000;
    expect_int("nobody said where: perhaps there", 1,
               (int64_t)queue_wake(&q, EVENT_POD_GONE, 20000));
    queue_deinit(&q);
    expect_done();
}

static void who_may_preempt_counts_less_important_pods_as_gone(void **state)
{
    (void)state;
    struct queue_need need = {.set = true, .cpu_milli = 4000, .priority = 5};
    struct cluster_node n = node_with(4000, 3000);
    struct pod low = {.priority = 1}, high = {.priority = 5};
    struct cluster_pod holds = {.pod = &low, .request = {.cpu_milli = 3000}};
    struct cluster_pod *pods[] = {&holds};
    n.pods.items = pods;
    n.pods.len = 1;
    expect_true("it may not preempt", !queue_need_may_fit(&need, &n));
    need.preempts = true;
    expect_true("it may", queue_need_may_fit(&need, &n));
    holds.pod = &high;
    expect_true("not this one", !queue_need_may_fit(&need, &n));
    high.terminating = true;
    expect_true("which leaves", queue_need_may_fit(&need, &n));
    need.cpu_milli = 4001;
    expect_true("too large for the node", !queue_need_may_fit(&need, &n));
    expect_done();
}

static void needs_are_rounded_down(void **state)
{
    (void)state;
    struct queue_need n = {.set = true, .cpu_milli = 3999, .card_gib = 15, .cards = 17};
    queue_need_round(&n);
    expect_int("to four bits", 3840, n.cpu_milli);
    expect_int("small numbers stay", 15, n.card_gib);
    expect_int("just above", 16, n.cards);
    expect_done();
}

static void pods_of_one_kind_are_looked_at_once(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    struct queue q;
    static struct gang all[MANY];
    queue_init(&q, &cluster);
    for (int64_t i = 0; i < MANY; i++) {
        all[i] = gang("x", 0, i);
        park(&q, &all[i], EVENT_POD_GONE, 100);
    }
    expect_int("one bucket", 1, (int64_t)q.parked.buckets.len);
    queue_touch(&q, &all[7], 20000);
    queue_drop(&q, &all[8]);
    expect_int("the rest is woken", MANY - 2, (int64_t)queue_wake(&q, EVENT_POD_GONE, 20000));
    expect_int("and the bucket gone", 0, (int64_t)q.parked.buckets.len);
    queue_deinit(&q);
    expect_done();
}

/* It may fit in another order now: by luck, so there is no hurry. */
static void luck_is_tried_later(void **state)
{
    (void)state;
    struct queue q;
    struct gang g = gang("gang a/g", 0, 1), late = gang("gang a/late", 0, 2);
    struct cluster_node n = node_with(8000, 8000);
    g.form = late.form = GANG_LABELS;
    queue_init(&q, &cluster);
    park(&q, &g, EVENT_POD_GONE | EVENT_POD_PLACED, 1000);
    expect_int("a placement", 0, (int64_t)queue_wake(&q, EVENT_POD_PLACED, 20000));
    entry(&q, &late)->need = (struct queue_need){.set = true, .cpu_milli = 1000};
    queue_park(&q, &late, EVENT_POD_GONE | EVENT_POD_PLACED, 20001);
    expect_int("is tried later", 20000 + QUEUE_PARKED_LUCK_MS, queue_next_due(&q, 20000));
    expect_str("not now", "none", popped(&q, 20000 + QUEUE_PARKED_LUCK_MS - 1));
    expect_str("but then", "gang a/g", popped(&q, 20000 + QUEUE_PARKED_LUCK_MS));
    expect_str("not the one that was refused since", "none", popped(&q, 20000 + 60000));
    (void)cluster_note_freed(&cluster, &n);
    expect_int("capacity where it does not fit", 0, (int64_t)queue_wake(&q, EVENT_POD_GONE, 90000));
    expect_true("is luck too", queue_parked_is_lucky(entry(&q, &late)));
    n.used.cpu_milli = 0;
    (void)cluster_note_freed(&cluster, &n);
    expect_int("where it fits, it is not", 1, (int64_t)queue_wake(&q, EVENT_POD_GONE, 90001));
    queue_deinit(&q);
    expect_done();
}

static void one_that_is_due_much_later_holds_up_nobody(void **state)
{
    (void)state;
    struct queue q;
    struct gang a = gang("gang a/a", 0, 1), b = gang("gang b/b", 0, 2);
    a.form = b.form = GANG_LABELS;
    queue_init(&q, &cluster);
    park(&q, &a, EVENT_POD_PLACED, 1000);
    entry(&q, &a)->wait_ms = QUEUE_BACKOFF_MAX_MS;
    (void)queue_wake(&q, EVENT_POD_PLACED, 2000);
    expect_str("it was refused too often", "none", popped(&q, 2000 + QUEUE_PARKED_LUCK_MS));
    park(&q, &b, EVENT_POD_PLACED, 4000);
    (void)queue_wake(&q, EVENT_POD_PLACED, 5000);
    expect_str("another tenant's is tried", "gang b/b", popped(&q, 5000 + QUEUE_PARKED_LUCK_MS));
    queue_deinit(&q);
    expect_done();
}

/* Its namespace's policies are changing. */
static void a_gang_that_is_deferred_keeps_its_precedence(void **state)
{
    (void)state;
    struct queue q;
    struct gang begun = gang("gang a/begun", 0, 9), retried = gang("gang a/retried", 0, 1),
                fresh = gang("gang b/fresh", 0, 5);
    begun.form = retried.form = fresh.form = GANG_LABELS;
    queue_init(&q, &cluster);
    park(&q, &retried, EVENT_POD_GONE, 1000);
    queue_first(&q, &begun, 20000);
    queue_touch(&q, &retried, 20000);
    expect_str("the one that was begun", "gang a/begun", popped(&q, 20000));
    queue_defer(&q, &begun, 20000);
    expect_str("then the other", "gang a/retried", popped(&q, 20000));
    queue_defer(&q, &retried, 20000);
    expect_str("both wait", "none", popped(&q, 20000));
    expect_true("it was refused, and still is", entry(&q, &retried)->refused);
    queue_touch(&q, &fresh, 20000);
    queue_touch(&q, &begun, 20000);
    expect_str("before all others", "gang a/begun", popped(&q, 20000));
    queue_succeeded(&q, &begun);
    queue_deinit(&q);
    expect_done();
}

static void the_slow_flush_finds_what_no_event_woke(void **state)
{
    (void)state;
    struct queue q;
    struct gang a = gang("pod a/a", 0, 1), b = gang("pod a/b", 0, 2);
    queue_init(&q, &cluster);
    q.flush_ms = QUEUE_FLUSH_MS;
    queue_park(&q, &a, EVENT_POD_GONE, 0);
    queue_park(&q, &b, EVENT_POD_GONE, 0);
    int64_t due = queue_next_due(&q, 0);
    expect_true("after its time, spread", due >= QUEUE_FLUSH_MS && due < QUEUE_FLUSH_MS * 2);
    expect_true("not before", queue_pop(&q, due - 1) == NULL);
    struct gang *g = queue_pop(&q, due);
    expect_true("one of them", g != NULL && queue_is_flushed(&q, g));
    queue_park(&q, g, EVENT_POD_GONE, due);
    expect_int("it was not an attempt that counts", 1, entry(&q, g)->attempts);
    expect_true("nor has it a backoff", entry(&q, g)->ready_ms < due && !queue_is_flushed(&q, g));
    (void)queue_wake(&q, EVENT_POD_GONE, due);
    expect_true("an event", (g = queue_pop(&q, due)) != NULL && !queue_is_flushed(&q, g));
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
        cmocka_unit_test(an_old_backlog_does_not_hold_up_what_is_new),
        cmocka_unit_test(the_dearer_a_retry_in_vain_the_more_is_owed),
        cmocka_unit_test(what_comes_free_goes_to_the_oldest),
        cmocka_unit_test(namespaces_take_turns),
        cmocka_unit_test(accounts_are_closed_when_nobody_waits),
        cmocka_unit_test(a_backlog_of_high_priority_leaves_some_turns),
        cmocka_unit_test(capacity_wakes_those_that_it_can_help),
        cmocka_unit_test(who_may_preempt_counts_less_important_pods_as_gone),
        cmocka_unit_test(needs_are_rounded_down),
        cmocka_unit_test(pods_of_one_kind_are_looked_at_once),
        cmocka_unit_test(luck_is_tried_later),
        cmocka_unit_test(a_gang_that_is_deferred_keeps_its_precedence),
        cmocka_unit_test(one_that_is_due_much_later_holds_up_nobody),
        cmocka_unit_test(the_slow_flush_finds_what_no_event_woke),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Room that is kept for a gang: who gets it kept and until when, who may use it meanwhile. The
 * cluster is as before after each look, and the quick way to a decision says what the slow way
 * says.
 */
#include "scheduler/cycle/reservation.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/framework/equivalence.h"
#include "scheduler/cycle/cycle.h"
#include "scheduler/dump/dump.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/framework/pipeline.h"
#include "scheduler/cycle/reservation_plan.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

enum { S = 1000, MINUTE = 60 * S, NODES = 4 };

/* 2026-11-16T09:00:00Z */
#define NOW_MS INT64_C(1794819600000)

static struct cluster c;
static struct pipeline pipeline; /* on it */
static struct arena arena;
static int64_t now_ms;

static int setup(void **state)
{
    (void)state;
    cluster_init(&c, NAME_SCHEDULER);
    pipeline_init(&pipeline, &c);
    arena_init(&arena, 0);
    now_ms = NOW_MS;
    c.reservations->options = (struct reservation_options){.after_ms = 5 * MINUTE};
    for (int i = 0; i < NODES; i++)
        (void)cluster_put_node(&c,
                               NODE(.name = arena_printf(&arena, "n%d", i + 1), .cpu_milli = 8000));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    expect_int("classes and plugins agree", 0, (int64_t)pipeline.classes->disagreed);
    arena_deinit(&arena);
    pipeline_deinit(&pipeline);
    cluster_deinit(&c);
    return 0;
}

static struct cluster_pod *put(const struct fixture_pod *f, int64_t started_ms, int64_t deadline_s)
{
    struct pod *p = fixture_make_pod(f);
    const char *key = p->key;
    p->started_ns = started_ms * 1000000;
    p->active_deadline_s = deadline_s;
    (void)cluster_put_pod(&c, p, NULL);
    return cluster_find_pod(&c, key);
}

/* A pod that runs on the node and has been there since then. */
static struct cluster_pod *runs(const char *name, const char *node, int64_t cpu_milli,
                                int64_t started_ms, int64_t deadline_s)
{
    return put(
        &(struct fixture_pod){
            .name = name, .node = node, .phase = "Running", .c = {{.cpu_milli = cpu_milli}}},
        started_ms, deadline_s);
}

static void gone(const char *name)
{
    (void)cluster_remove_pod(&c, arena_printf(&arena, "d/%s", name), NULL, NULL);
}

/* A gang of so many pods of 8 CPUs, each of which needs a whole node; waiting, and not tried yet.
 * groups: the list of gangs that its pods name, or NULL. */
static struct gang *gang_in(const char *groups, const char *name, int pods, int32_t priority)
{
    const char *min = arena_printf(&arena, "%d", pods);
    struct cluster_pod *cp = NULL;
    for (int i = 0; i < pods; i++)
        cp = put(
            &(struct fixture_pod){
                .name = arena_printf(&arena, "%s-%d", name, i),
                .priority = priority,
                .labels = PAIRS(NAME_LABEL_GANG_NAME, name, NAME_LABEL_GANG_MIN, min),
                .annotations = groups != NULL ? PAIRS(NAME_ANN_GANG_GROUPS, groups) : NULL,
                .c = {{.cpu_milli = 8000}}},
            0, 0);
    return cp->gang;
}

static struct gang *gang_of(const char *name, int pods, int32_t priority)
{
    return gang_in(NULL, name, pods, priority);
}

/* One cycle, as the program does it. true: placed. */
static bool tries(struct gang *g)
{
    struct plan plan;
    struct cycle_result r;
    plan_begin(&plan, &c);
    cycle_run(&pipeline, g, &plan, &arena, &r);
    bool placed = plan.committed;
    plan_end(&plan);
    (void)reservation_follow(&c, g, &r, now_ms);
    return placed;
}

static struct reservation_news look_after(int64_t ms)
{
    now_ms += ms;
    uint64_t before = cluster_digest(&c);
    struct reservation_news news = reservation_reconcile(&pipeline, now_ms, &arena);
    expect_true("the cluster is as before", cluster_digest(&c) == before);
    return news;
}

/* What a lone pod is told that waits now; "": it fits. */
static const char *said_to(const char *name, int64_t cpu_milli, int32_t priority,
                           int64_t deadline_s)
{
    struct cluster_pod *cp = put(
        &(struct fixture_pod){.name = name, .priority = priority, .c = {{.cpu_milli = cpu_milli}}},
        0, deadline_s);
    struct pipeline_choice choice, slow;
    pipeline_choose(&pipeline, cp, &arena, &choice);
    pipeline_scan(&pipeline, cp, &arena, &slow);
    expect_true("the quick way says what the slow way says", choice.node == slow.node);
    const char *said = choice.node != NULL ? "" : reasons_sentence(&choice.why, &arena);
    gone(name);
    return said;
}

static const char kept_until[] =
    "0/4 nodes fit: 4 keep room for gang d/big until it starts, about 2026-11-16T09:20:00Z";

/* All four nodes are free but for one pod of 1 CPU on n1, which ends 20 minutes from now; the gang
 * needs all four. Room is kept after 5 minutes. */
static struct gang *big_waits(void)
{
    (void)runs("small", "n1", 1000, NOW_MS, 20 * 60);
    struct gang *g = gang_of("big", 4, 0);
    expect_true("there is no room for it", !tries(g));
    expect_true("nothing is kept yet", !look_after(5 * MINUTE - 1).made);
    expect_true("room is kept now", look_after(1).made);
    return g;
}

static void who_may_use_it(void **state)
{
    (void)state;
    struct gang *g = big_waits();
    static const struct row {
        const char *name;
        int64_t cpu_milli;
        int32_t priority;
        int64_t deadline_s;
        const char *said;
    } rows[] = {
        {"of unknown run time: nobody knows that it is over before the start", 1000, 0, 0,
         kept_until},
        {"over before the start", 1000, 0, 14 * 60 + 50, ""},
        {"over a moment too late: time passes in steps of 10 s", 1000, 0, 14 * 60 + 51, kept_until},
        {"of a lower priority, and too long", 1000, -1, 3600, kept_until},
        {"of a higher priority", 1000, 1, 3600, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_str(rows[i].name, rows[i].said,
                   said_to("p", rows[i].cpu_milli, rows[i].priority, rows[i].deadline_s));
    const struct reservation *r = reservations_of(&c, g)->kept;
    expect_int("it starts when the pod in its way ends", NOW_MS + 20 * MINUTE, r->start_ms);
    expect_str("the gang itself is told",
               "room is kept for it on 4 nodes until it starts, about 2026-11-16T09:20:00Z",
               reservation_message(&c, g, &arena));

    AUTO_STRBUF dump = {0};
    dump_cluster(&c, &dump);
    expect_true(
        "it is in the dump",
        strstr(
            strbuf_str(&dump),
            "\"reservations\":[{\"for\":\"gang d/big\",\"gangs\":[\"gang d/big\"],"
            "\"priority\":0,\"made\":"
            "\"2026-11-16T09:05:00Z\",\"planned\":\"2026-11-16T09:05:00Z\",\"start\":"
            "\"2026-11-16T09:20:00Z\",\"until\":\"2026-11-16T09:35:00Z\",\"nodes\":{\"n1\":[\"d/big-") !=
            NULL);

    (void)look_after(5 * MINUTE + S);
    expect_str("what would have been over is too long when less is left", kept_until,
               said_to("p", 1000, 0, 10 * 60));
    gone("small");
    expect_true("the gang goes the moment that there is room", tries(g));
    expect_true("and nothing is kept any more", reservations_of(&c, g)->kept == NULL);
    expect_int("nobody waits", -1, reservation_next(&c));
    expect_done();
}

static void room_beside_it(void **state)
{
    (void)state;
    (void)runs("small", "n1", 8000, NOW_MS, 20 * 60);
    (void)cluster_put_node(&c, NODE(.name = "n5", .cpu_milli = 9000));
    struct gang *g = gang_of("big", 5, 0);
    expect_true("there is no room for it", !tries(g));
    (void)look_after(5 * MINUTE);
    expect_str("beside its member on n5 there is room for 1 CPU for ever", "",
               said_to("p", 1000, 0, 36000));
    expect_str(
        "not for more",
        "0/5 nodes fit: 4 keep room for gang d/big until it starts, about 2026-11-16T09:20:00Z, 1 has too little cpu "
        "(asked: 1001m, largest free: 0 on n1)",
        said_to("p", 1001, 0, 36000));
    (void)runs("beside", "n5", 1000, now_ms, 36000);
    gone("small");
    expect_true("the gang is not delayed by it", tries(g));
    expect_done();
}

static int64_t lapses_in(const struct gang *g)
{
    return reservations_of(&c, g)->kept->until_ms - now_ms;
}

static void it_ends(void **state)
{
    (void)state;
    struct gang *g = big_waits();
    struct gang *other = gang_of("other", 4, 0);
    expect_true("there is no room for it", !tries(other));
    expect_int("one in a priority", 0, look_after(10 * MINUTE).made);
    int64_t left_ms = lapses_in(g);
    expect_int("without progress it lasts half an hour where nothing has run longer",
               30 * MINUTE - 10 * MINUTE, left_ms);
    struct reservation_news news = look_after(left_ms - 1);
    expect_int("so long it lasts", 0, news.lapsed);
    news = look_after(1);
    expect_int("not longer", 1, news.lapsed);
    expect_int("those that were refused are woken", EVENT_NODE_CAPACITY, (int64_t)news.events);
    expect_true("the next one has its turn", news.made && news.looked == other);
    expect_str("the gang is told nothing now", NULL, reservation_message(&c, g, &arena));
    (void)cluster_remove_node(&c, "n4");
    (void)look_after(RESERVATIONS_STEP_MS);
    expect_true("without a node of it there is none", reservations_of(&c, other)->kept == NULL);
    expect_str("and it says so",
               "it would not fit if the cluster were empty, so no room is kept for it",
               reservation_message(&c, other, &arena));
    expect_done();
}

/* Four pods in its way, which end one after the other, each hours late. */
static void progress_keeps_it(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        (void)runs(arena_printf(&arena, "w-%d", i), arena_printf(&arena, "n%d", i + 1), 1000,
                   NOW_MS, 20 * 60 + 60 * i);
    struct gang *g = gang_of("big", 4, 0);
    expect_true("there is no room for it", !tries(g));
    expect_true("room is kept", look_after(5 * MINUTE).made);
    int64_t made_ms = now_ms;
    for (int i = 0; i < 3; i++) {
        struct reservation_news news = look_after(lapses_in(g) - MINUTE);
        expect_true("they are past their time", news.lapsed == 0);
        expect_true("so it starts later", reservations_of(&c, g)->kept->start_ms >= now_ms);
        gone(arena_printf(&arena, "w-%d", i));
        (void)look_after(RESERVATIONS_STEP_MS);
        expect_true("one of them has ended: it goes on", lapses_in(g) > 30 * MINUTE - MINUTE);
        expect_int("it is the same one", made_ms, reservations_of(&c, g)->kept->made_ms);
    }
    gone("w-3");
    expect_true("it starts, long after half an hour", tries(g) && now_ms - made_ms > 90 * MINUTE);
    expect_done();
}

/* Pods that do not say how long they run, of which nothing was learned: a gang waits four times the
 * mean run time before it gets in the way of others. */
static void unknown_run_times(void **state)
{
    (void)state;
    (void)runs("small", "n1", 1000, NOW_MS - 10 * MINUTE, 0);
    struct gang *g = gang_of("big", 4, 0), *next = gang_of("next", 4, 0);
    expect_true("there is no room", !tries(g) && !tries(next));
    expect_true("not yet", !look_after(5 * MINUTE).made);
    expect_int("it is early", RESERVATION_EARLY, reservations_of(&c, g)->verdict);
    expect_str("and says so",
               arena_printf(&arena,
                            "no room is kept for it before it has waited about %d minutes, because "
                            "it is not known when the pods in its way end",
                            RESERVATION_PATIENCE_MEANS * 10),
               reservation_message(&c, g, &arena));
    expect_true("nor is anybody behind it looked at", look_after(0).looked == NULL);
    c.reservations->now_ms = now_ms;
    for (int i = 0; i < 1000; i++) {
        (void)runs("quick", "n2", 1000, now_ms - MINUTE, 0);
        gone("quick");
    }
    int64_t waited_ms = now_ms - NOW_MS;
    while (reservations_of(&c, g)->kept == NULL && waited_ms < 60 * MINUTE) {
        (void)look_after(MINUTE);
        waited_ms += MINUTE;
    }
    expect_true("where most take a minute, minutes are enough", waited_ms <= 15 * MINUTE);
    const struct reservation *r = reservations_of(&c, g)->kept;
    expect_int("a pod of which only the age is known runs as long again",
               now_ms + now_ms - NOW_MS + 10 * MINUTE, r != NULL ? r->start_ms : 0);
    expect_done();
}

static void who_gets_none(void **state)
{
    (void)state;
    struct gang *huge = gang_of("huge", 5, 0),
                *lone = put(&(struct fixture_pod){.name = "lone"}, 0, 0)->gang;
    struct gang *next = gang_of("next", 4, 0);
    (void)runs("small", "n1", 1000, NOW_MS, 20 * 60);
    expect_true("no room", !tries(huge) && !tries(next));
    (void)tries(lone);
    gone("lone");
    now_ms += 5 * MINUTE;
    struct reservation_news news = look_after(0);
    expect_true("one that does not fit the empty cluster", !news.made && news.looked == huge);
    news = look_after(0);
    expect_true("and it stands in nobody's way", news.made && news.looked == next);
    for (int i = 0; i < 4; i++)
        gone(arena_printf(&arena, "next-%d", i));
    expect_int("a gang that vanishes leaves nothing", 0, (int64_t)c.reservations->items.len);
    expect_str("nor is anything kept from others", "", said_to("p", 7000, 0, 36000));

    (void)runs("long", "n1", 1000, now_ms, 36 * 3600);
    struct gang *far = gang_of("far", 4, 0);
    expect_true("no room", !tries(far));
    now_ms += 5 * MINUTE;
    for (int i = 0; i < 3; i++)
        (void)look_after(0);
    expect_int("one whose start is too far away", RESERVATION_FAR,
               reservations_of(&c, far)->verdict);
    expect_str(
        "it says so",
        arena_printf(&arena,
                     "the pods in its way are not expected to end within %lld minutes, so "
                     "no room is kept for it",
                     (long long)(RESERVATION_STALL_MEANS * c.reservations->mean_ms / MINUTE)),
        reservation_message(&c, far, &arena));
    gone("long");
    gone("small");
    (void)runs("soon", "n1", 1000, now_ms, 60);
    (void)look_after(150 * MINUTE); /* at the huge one, which is older */
    (void)look_after(0);
    expect_int("it is looked at again", RESERVATION_KEPT, reservations_of(&c, far)->verdict);

    c.reservations->options.after_ms = 0;
    struct gang *off = gang_of("off", 4, 7);
    expect_true("no room", !tries(off));
    expect_int("nobody ages when it is off", 0, reservations_of(&c, off)->since_ms);
    expect_done();
}

/* A lapse puts it behind: twice the age is needed. */
static void in_vain(void **state)
{
    (void)state;
    struct gang *g = big_waits();
    expect_int("over", 1, look_after(lapses_in(g)).lapsed);
    expect_true("not after the same time again", !look_after(10 * MINUTE - 1).made);
    expect_true("but after twice", look_after(1).made);
    (void)cluster_remove_pod(&c, "d/big-0", NULL, NULL);
    (void)look_after(RESERVATIONS_STEP_MS);
    expect_true("without a quorum it waits for pods, not for room",
                reservations_of(&c, g)->kept == NULL);
    expect_done();
}

/* Whoever leads next: how long the gang has waited is told by its pods. */
static void the_next_leader(void **state)
{
    (void)state;
    static const struct row {
        const char *name, *reason;
        int64_t made_ms[3]; /* its pods, of which two are needed, before now */
        int32_t lapses;
        bool gated;
        int64_t age_ms;
    } rows[] = {
        {"nobody has refused it yet", "", {60 * MINUTE, 50 * MINUTE, 40 * MINUTE}, 0, false, 0},
        {"pods were what it lacked", "WaitingForGang", {60 * MINUTE, 50 * MINUTE, 0}, 0, false, 0},
        {"it was refused: since its quorum was complete",
         "Unschedulable",
         {60 * MINUTE, 50 * MINUTE, 40 * MINUTE},
         0,
         false,
         50 * MINUTE},
        {"in whatever order they come",
         "Unschedulable",
         {40 * MINUTE, 60 * MINUTE, 50 * MINUTE},
         0,
         false,
         50 * MINUTE},
        {"one with gates does not count",
         "Unschedulable",
         {60 * MINUTE, 50 * MINUTE, 40 * MINUTE},
         0,
         true,
         40 * MINUTE},
        {"made by a clock that goes before ours",
         "Unschedulable",
         {-60 * MINUTE, -60 * MINUTE, -60 * MINUTE},
         0,
         false,
         0},
        {"after room was kept in vain it is the youngest",
         "Unschedulable",
         {60 * MINUTE, 50 * MINUTE, 40 * MINUTE},
         1,
         false,
         0},
    };
    (void)runs("small", "n1", 5000, NOW_MS, 36000);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        struct gang *g = NULL;
        for (int k = 0; k < 3; k++) {
            struct pod *p = fixture_make_pod(&(struct fixture_pod){
                .name = arena_printf(&arena, "m-%d", k),
                .gated = row->gated && k == 0,
                .labels = PAIRS(NAME_LABEL_GANG_NAME, "g", NAME_LABEL_GANG_MIN, "2"),
                .spec = "\"nodeSelector\":{\"kubernetes.io/hostname\":\"none\"}",
                .c = {{.cpu_milli = 5000}}});
            p->created_ns = (NOW_MS - row->made_ms[k]) * 1000000;
            p->scheduled = (struct pod_condition){
                .type = "PodScheduled", .status = "False", .reason = row->reason, .message = ""};
            const char *key = p->key;
            (void)cluster_put_pod(&c, p, NULL);
            g = cluster_find_pod(&c, key)->gang;
        }
        reservations_at(&c, g)->lapses = row->lapses;
        expect_true("there is no room for it", !tries(g));
        expect_int(row->name, NOW_MS - row->age_ms, reservations_of(&c, g)->since_ms);
        for (int k = 0; k < 3; k++)
            gone(arena_printf(&arena, "m-%d", k));
    }
    expect_done();
}

static const char both[] = "[\"d/a\",\"d/b\"]";

/* Each of them would fit, the two together do not while the pod on n1 is there. */
static void bundle_waits(struct gang **a, struct gang **b, int32_t priority)
{
    (void)runs("small", "n1", 1000, NOW_MS, 20 * 60);
    *a = gang_in(both, "a", 2, priority);
    *b = gang_in(both, "b", 2, 0);
    expect_true("there is no room for both", !tries(*b) && !tries(*a));
    expect_true("nothing is kept yet", !look_after(5 * MINUTE - 1).made);
    struct reservation_news news = look_after(1);
    expect_true("room is kept now", news.made);
}

static void several_as_one(void **state)
{
    (void)state;
    struct gang *a, *b;
    bundle_waits(&a, &b, 0);
    const struct reservation *r = reservations_of(&c, a)->kept;
    expect_true("it is kept for both", r != NULL && reservations_of(&c, b)->kept == r);
    expect_int("for the quorum of each", 4, (int64_t)map_count(&r->nodes));
    expect_int("from when the pod in their way ends", NOW_MS + 20 * MINUTE, r->start_ms);
    expect_int("it is one", 1, (int64_t)c.reservations->items.len);
    expect_str("others are told",
               "0/4 nodes fit: 4 keep room for gang d/a and its group until it starts, about "
               "2026-11-16T09:20:00Z",
               said_to("p", 1000, 0, 36000));
    const char *own = "room is kept for it and its group on 4 nodes until it starts, about "
                      "2026-11-16T09:20:00Z";
    expect_str("one is told", own, reservation_message(&c, a, &arena));
    expect_str("and the other", own, reservation_message(&c, b, &arena));
    (void)look_after(RESERVATIONS_STEP_MS);
    expect_true("it goes on", reservations_of(&c, b)->kept != NULL);
    gone("small");
    expect_true("whichever is tried, both go", tries(b));
    expect_int("both", 4, gangs_count_placed(a) + gangs_count_placed(b));
    (void)tries(a);
    expect_int("nothing is kept any more", 0, (int64_t)c.reservations->items.len);
    expect_int("nobody waits", -1, reservation_next(&c));
    expect_done();
}

static void several_end_as_one(void **state)
{
    (void)state;
    struct gang *a, *b;
    bundle_waits(&a, &b, 5);
    expect_int("its priority is the least of theirs", 0, reservations_of(&c, a)->kept->priority);
    expect_str("so nothing is kept from what is more important than one of them", "",
               said_to("p", 1000, 1, 36000));
    struct reservation_news news = look_after(lapses_in(a));
    expect_int("it ends once", 1, news.lapsed);
    expect_true("for both",
                reservations_of(&c, a)->kept == NULL && reservations_of(&c, b)->kept == NULL);
    expect_true("and both are the youngest now",
                reservations_of(&c, a)->lapses == 1 && reservations_of(&c, b)->lapses == 1);
    (void)runs("again", "n1", 1000, now_ms, 12 * 60);
    gone("small");
    expect_true("twice the time is needed", !look_after(10 * MINUTE - 1).made);
    expect_true("then it is kept again", look_after(1).made);
    gone("b-0");
    expect_true("the other one is still there", reservations_of(&c, a)->kept != NULL);
    (void)look_after(RESERVATIONS_STEP_MS);
    expect_true("nothing is kept for one without the other", reservations_of(&c, a)->kept == NULL);
    gone("b-1");
    expect_int("nor when one is gone", 0, (int64_t)c.reservations->items.len);
    expect_done();
}

static void several_that_do_not_fit(void **state)
{
    (void)state;
    struct gang *a = gang_in(both, "a", 3, 0), *b = gang_in(both, "b", 2, 0);
    expect_true("there is no room", !tries(a) && !tries(b));
    struct reservation_news news = look_after(5 * MINUTE);
    expect_true("each alone would fit, both together do not fit an empty cluster",
                news.looked == a && !news.made);
    expect_int("which is known of both", RESERVATION_HOPELESS, reservations_of(&c, b)->verdict);
    expect_true("after one look", look_after(0).looked == NULL);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_may_use_it, setup, teardown),
        cmocka_unit_test_setup_teardown(room_beside_it, setup, teardown),
        cmocka_unit_test_setup_teardown(it_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(progress_keeps_it, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_run_times, setup, teardown),
        cmocka_unit_test_setup_teardown(who_gets_none, setup, teardown),
        cmocka_unit_test_setup_teardown(in_vain, setup, teardown),
        cmocka_unit_test_setup_teardown(the_next_leader, setup, teardown),
        cmocka_unit_test_setup_teardown(several_as_one, setup, teardown),
        cmocka_unit_test_setup_teardown(several_end_as_one, setup, teardown),
        cmocka_unit_test_setup_teardown(several_that_do_not_fit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A gang of two on a node for two: one member is lost, and a stranger wants its room.
 */
#include "scheduler/cache/replacement_hold.h"
#include "scheduler/model/nominations.h"

#include "scheduler/cache/gangs.h"
#include "scheduler/cycle/attempt.h"
#include "scheduler/model/rejections.h"
#include "test/unit/scheduler/model_kit.h"

#define TWO MEMBER("g", "2")

static int setup_gang(void **state)
{
    (void)setup(state);
    replacement_hold_enable(&c, true);
    (void)cluster_put_node(&c, NODE(.name = "n", .cpu_milli = 2000));
    PUT(CPU(1000), .name = "a", .labels = TWO, .node = "n");
    PUT(CPU(1000), .name = "b", .labels = TWO, .node = "n");
    return 0;
}

static bool place(const char *key)
{
    const struct cluster_pod *cp = cluster_find_pod(&c, key);
    struct queue queue;
    struct attempt attempt;
    struct attempt_result tried;
    queue_init(&queue, &c);
    attempt_init(&attempt, &pipeline, &queue, &arena, &(struct attempt_hooks){0});
    queue_touch(&queue, cp->gang, 0);
    expect_true("tried", attempt_next(&attempt, (struct attempt_time){0}, &tried));
    attempt_deinit(&attempt);
    queue_deinit(&queue);
    return cp->state == CLUSTER_ASSUMED;
}

static void lose(const char *key)
{
    (void)cluster_remove_pod(&c, key, NULL, NULL);
}

static void the_replacement_finds_its_room(void **state)
{
    (void)state;
    lose("d/b");
    expect_int("kept", 1, (int64_t)replacement_hold_count(&c));
    PUT(CPU(1000), .name = "stranger");
    expect_true("not for a stranger", !place("d/stranger"));
    PUT(CPU(1000), .name = "b2", .labels = TWO);
    expect_true("but for the new member", place("d/b2"));
    expect_int("and that is that", 0, (int64_t)replacement_hold_count(&c));
    expect_true("it has no promise left", cluster_find_pod(&c, "d/b2")->nominated == NULL);
    expect_int("nor is one on the node", 0, (int64_t)nominations_count(&c));
    expect_done();
}

static void one_of_the_same_name_finds_it_too(void **state)
{
    (void)state;
    (void)cluster_put_pod(
        &c, POD(.name = "b", .uid = "u2", .labels = TWO, .c = {{.cpu_milli = 1000}}), NULL);
    expect_int("kept", 1, (int64_t)replacement_hold_count(&c));
    PUT(CPU(1000), .name = "stranger");
    expect_true("not for a stranger", !place("d/stranger"));
    expect_true("placed", place("d/b"));
    expect_int("and that is that", 0, (int64_t)replacement_hold_count(&c));
    expect_done();
}

static void the_important_do_not_see_it(void **state)
{
    (void)state;
    lose("d/b");
    PUT(CPU(1000), .name = "stranger", .priority = 1);
    expect_true("placed", place("d/stranger"));
    PUT(CPU(1000), .name = "b2", .labels = TWO);
    expect_true("so the new member waits", !place("d/b2"));
    expect_int("and the slot with it", 1, (int64_t)replacement_hold_count(&c));
    expect_done();
}

static void time_ends_it(void **state)
{
    (void)state;
    int64_t next_ms;
    lose("d/b");
    expect_int("the first look sets the time", 0,
               (int64_t)replacement_hold_expire(&c, 1000, &next_ms));
    expect_int("a minute", 61000, next_ms);
    expect_int("not yet", 0, (int64_t)replacement_hold_expire(&c, 60999, &next_ms));
    expect_int("now there is room", EVENT_POD_GONE,
               (int64_t)replacement_hold_expire(&c, 61000, &next_ms));
    expect_int("nothing is left", -1, next_ms);
    PUT(CPU(1000), .name = "stranger");
    expect_true("for anybody", place("d/stranger"));
    expect_done();
}

static void the_pod_group_says_how_long(void **state)
{
    (void)state;
    int64_t next_ms;
    struct pod_group *g = fixture_make_group("g", 2, false);
    g->schedule_timeout_s = 5;
    (void)gangs_put_group(&c, g, NULL);
    lose("d/b");
    (void)replacement_hold_expire(&c, 1000, &next_ms);
    expect_int("five seconds", 6000, next_ms);
    expect_done();
}

static void who_leaves_no_slot(void **state)
{
    (void)state;
    static const struct row {
        const char *sentence;
        enum { SENT_AWAY, SENT_BACK, ALL_LEAVE, LONE, BELOW, NODE_GONE, SWITCHED_OFF, WAITED } why;
    } rows[] = {
        {"who was sent away for a more important pod", SENT_AWAY},
        {"who was sent back by the kubelet", SENT_BACK},
        {"whose gang is being taken down", ALL_LEAVE},
        {"who was in no gang", LONE},
        {"whose gang was below its quorum", BELOW},
        {"whose node is gone", NODE_GONE},
        {"where nobody would end it", SWITCHED_OFF},
        {"who had no place", WAITED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (i > 0)
            (void)setup_gang(state);
        const char *who = "d/b";
        switch (rows[i].why) {
        case SENT_AWAY:
            cluster_set_evicting(&c, cluster_find_pod(&c, "d/b"), true);
            break;
        case SENT_BACK: {
            struct pod *p = POD(.name = "b", .node = "n", .phase = "Failed", .labels = TWO,
                                .c = {{.cpu_milli = 1000}});
            p->status_reason = "OutOfcpu";
            rejections_note(&c, p, 0, 1000);
            pod_free(p);
            break;
        }
        case ALL_LEAVE:
            PUT(CPU(1000), .name = "a", .labels = TWO, .node = "n", .terminating = true);
            PUT(CPU(1000), .name = "b", .labels = TWO, .node = "n", .terminating = true);
            break;
        case LONE:
            PUT(CPU(1000), .name = "lone", .node = "n");
            who = "d/lone";
            break;
        case BELOW:
            PUT(CPU(1000), .name = "h", .node = "n", .labels = MEMBER("h", "2"));
            PUT(CPU(1000), .name = "h2", .labels = MEMBER("h", "2"));
            who = "d/h";
            break;
        case NODE_GONE:
            (void)cluster_remove_node(&c, "n");
            break;
        case SWITCHED_OFF:
            replacement_hold_enable(&c, false);
            break;
        case WAITED:
            PUT(CPU(1000), .name = "w", .labels = TWO);
            who = "d/w";
            break;
        }
        lose(who);
        expect_int(rows[i].sentence, 0, (int64_t)replacement_hold_count(&c));
        if (i + 1 < sizeof rows / sizeof rows[0])
            (void)teardown(state);
    }
    expect_done();
}

static void news_of_a_rejection_may_come_late(void **state)
{
    (void)state;
    lose("d/b");
    expect_int("another pod's", 0, (int64_t)replacement_hold_void(&c, "u-a"));
    expect_int("its own", EVENT_POD_GONE, (int64_t)replacement_hold_void(&c, "u-b"));
    expect_int("gone", 0, (int64_t)replacement_hold_count(&c));
    expect_done();
}

static void nothing_is_left_of_a_gang_without_pods(void **state)
{
    (void)state;
    lose("d/b");
    lose("d/a");
    expect_int("no slot", 0, (int64_t)replacement_hold_count(&c));
    PUT(CPU(1000), .name = "stranger");
    expect_true("the room is free", place("d/stranger"));
    expect_done();
}

static void a_gang_that_waits_for_another_pod_keeps_it(void **state)
{
    (void)state;
    const char *const *three = MEMBER("h", "3");
    const char *const *always = PAIRS(NAME_ANN_GANG_MATCH, "waiting-and-running");
    lose("d/a");
    lose("d/b");
    (void)cluster_put_node(&c, NODE(.name = "n", .cpu_milli = 3000));
    PUT(CPU(1000), .name = "a", .labels = three, .annotations = always, .node = "n");
    PUT(CPU(1000), .name = "b", .labels = three, .annotations = always, .node = "n");
    PUT(CPU(1000), .name = "x", .labels = three, .annotations = always, .node = "n");
    lose("d/x"); /* kept: it was one of three */
    lose("d/b"); /* not kept: it was one of two */
    expect_int("one slot", 1, (int64_t)replacement_hold_count(&c));
    PUT(CPU(1000), .name = "x2", .labels = three, .annotations = always);
    expect_true("two of three exist: nobody goes", !place("d/x2"));
    expect_int("the slot stays", 1, (int64_t)replacement_hold_count(&c));
    expect_int("on the node", 1, (int64_t)nominations_count(&c));
    PUT(CPU(1000), .name = "s1");
    PUT(CPU(1000), .name = "s2");
    expect_true("a stranger has what is free", place("d/s1"));
    expect_true("and not what is kept", !place("d/s2"));
    expect_done();
}

/* Found by the stories: the room stayed kept, and the dump named what no longer exists. */
static void nothing_is_kept_for_nobody_or_nowhere(void **state)
{
    (void)state;
    lose("d/b");
    expect_true("the last member leaves the gang, which frees the room",
                (EVENTS(.name = "a", .node = "n") & EVENT_POD_GONE) != 0);
    expect_int("no gang", 0, (int64_t)replacement_hold_count(&c));
    (void)teardown(NULL);
    (void)setup_gang(NULL);
    lose("d/b");
    expect_int("kept", 1, (int64_t)replacement_hold_count(&c));
    (void)cluster_remove_node(&c, "n");
    expect_int("no node", 0, (int64_t)replacement_hold_count(&c));
    expect_done();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_gang, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_replacement_finds_its_room),
        TEST(one_of_the_same_name_finds_it_too),
        TEST(the_important_do_not_see_it),
        TEST(time_ends_it),
        TEST(the_pod_group_says_how_long),
        TEST(who_leaves_no_slot),
        TEST(news_of_a_rejection_may_come_late),
        TEST(nothing_is_left_of_a_gang_without_pods),
        TEST(a_gang_that_waits_for_another_pod_keeps_it),
        TEST(nothing_is_kept_for_nobody_or_nowhere),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}

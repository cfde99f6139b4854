// SPDX-License-Identifier: Apache-2.0
/*
 * Room that waiting pods have a right to: what the class remembers about it is what a scan finds,
 * whatever happened to those pods meanwhile, and whatever the order in which they came.
 */
#include "scheduler/model/nominations.h"

#include "test/unit/scheduler/model_kit.h"

/* Four nodes with room. */
static int setup_nodes(void **state)
{
    static const char *const names[] = {"a1", "a2", "b1", "x"};
    (void)setup(state);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)cluster_put_node(&c, NODE(.name = names[i]));
    return 0;
}

/* The node, or the sentence; a scan says the same. */
static const char *answer(const char *sentence, struct cluster_pod *cp)
{
    struct pipeline_choice quick, slow;
    pipeline_choose(&pipeline, cp, &arena, &quick);
    pipeline_scan(&pipeline, cp, &arena, &slow);
    const char *is = quick.node != NULL ? quick.node->name : reasons_sentence(&quick.why, &arena);
    const char *should = slow.node != NULL ? slow.node->name : reasons_sentence(&slow.why, &arena);
    expect_str(sentence, should, is);
    return is;
}

static void a_nominated_pod_that_changes_is_asked_about_again(void **state)
{
    (void)state;
    const struct row {
        const char *sentence;
        int64_t cpu_milli;
        int32_t priority;
        const char *expected;
        uint32_t events;
    } rows[] = {
        {"it asks for more: less is left, which helps nobody", 7000, 5,
         "0/1 nodes fit: 1 has too little cpu (asked: 4, largest free: 1 on n1)", 0},
        {"it asks for the same", 6000, 5,
         "0/1 nodes fit: 1 has too little cpu (asked: 4, largest free: 2 on n1)", 0},
        {"it asks for less, still too much", 5000, 5,
         "0/1 nodes fit: 1 has too little cpu (asked: 4, largest free: 3 on n1)", EVENT_POD_GONE},
        {"it asks for so little that both fit", 4000, 5, "n1", EVENT_POD_GONE},
        {"it is less important than the one that asks now", 6000, -1, "n1", EVENT_POD_GONE},
        {"it is more important than before", 6000, 6,
         "0/1 nodes fit: 1 has too little cpu (asked: 4, largest free: 2 on n1)", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fresh();
        (void)cluster_put_node(&c, NODE(.name = "n1"));
        (void)PUT(.name = "first", .nominated = "n1", .priority = 5, .c = {{.cpu_milli = 6000}});
        struct cluster_pod *second = PUT(.name = "second", .c = {{.cpu_milli = 4000}});
        expect_str(rows[i].sentence,
                   "0/1 nodes fit: 1 has too little cpu (asked: 4, largest free: 2 on n1)",
                   answer(rows[i].sentence, second));
        uint32_t events =
            cluster_put_pod(&c,
                            POD(.name = "first", .nominated = "n1", .priority = rows[i].priority,
                                .c = {{.cpu_milli = rows[i].cpu_milli}}),
                            NULL);
        expect_str(rows[i].sentence, rows[i].expected, answer(rows[i].sentence, second));
        expect_int(rows[i].sentence, rows[i].events, events & EVENT_POD_GONE);
    }
    expect_done();
}

/* 5 GiB into cards of 8 and 6, then 6: 2 are left at most; the other way round 3. */
static const char *with_cards(const char *sentence, const char *const *order)
{
    fresh();
    (void)cluster_put_node(
        &c, NODE(.name = "n1", .gib = 14, .inventory = fixture_inventory(&arena, "cgpu", "8,6")));
    for (size_t i = 0; order[i] != NULL; i++) {
        bool five = order[i][0] == 'a', elsewhere = order[i][0] == 'x';
        (void)PUT(.name = order[i], .nominated = elsewhere ? "n2" : "n1",
                  .c = {{.gib = five ? 5 : 6}});
    }
    struct cluster_pod *asks = PUT(.name = "asks", .c = {{.gib = 3}});
    (void)answer(sentence, asks);
    (void)cluster_remove_pod(&c, "d/x", NULL, NULL);
    return answer(sentence, asks);
}

static void the_order_in_which_they_came_does_not_matter(void **state)
{
    (void)state;
    const struct row {
        const char *sentence;
        const char *order[4];
    } rows[] = {
        {"by name", {"a", "b"}},
        {"the other way round", {"b", "a"}},
        {"one that waits elsewhere came first and has gone", {"x", "a", "b"}},
        {"one that waits elsewhere came second and has gone", {"b", "x", "a"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect_str(rows[i].sentence,
                   "0/1 nodes fit: 1 has no card with 3 GiB free (largest free: 2 GiB on n1/GPU0)",
                   with_cards(rows[i].sentence, rows[i].order));
    }
    expect_done();
}

static void whose_nominations_count(void **state)
{
    (void)state;
    const struct row {
        const char *sentence;
        const char *scheduler;
        int32_t priority;
        const char *node;
        bool fits;
    } rows[] = {
        {"ours, more important", NULL, 1, NULL, false},
        {"ours, as important", NULL, 0, NULL, false},
        {"ours, less important", NULL, -1, NULL, true},
        {"another scheduler's, more important", "default-scheduler", 1, NULL, false},
        {"another scheduler's, as important", "default-scheduler", 0, NULL, false},
        {"another scheduler's, less important", "default-scheduler", -1, NULL, true},
        {"bound elsewhere by now: it waits no more", "default-scheduler", 1, "n2", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fresh();
        (void)cluster_put_node(&c, NODE(.name = "n1"));
        (void)PUT(.name = "first", .scheduler = rows[i].scheduler, .nominated = "n1",
                  .priority = rows[i].priority, .node = rows[i].node, .c = {{.cpu_milli = 6000}});
        struct cluster_pod *second = PUT(.name = "second", .c = {{.cpu_milli = 4000}});
        expect_int(rows[i].sentence, rows[i].fits, str_eq(answer(rows[i].sentence, second), "n1"));
    }
    expect_done();
}

static void waiting_pods_with_a_right_to_room(void **state)
{
    (void)state;
    const struct {
        const char *row;
        int32_t priority;
        struct fixture_container c;
        const char *ports, *open;
    } rows[] = {
        {"the same priority: no room beside it", 5, {.cpu_milli = 3000}, NULL, "a2 b1 x"},
        {"less: no room beside it", 4, {.cpu_milli = 3000}, NULL, "a2 b1 x"},
        {"more: it does not exist", 6, {.cpu_milli = 3000}, NULL, "a1 a2 b1 x"},
        {"room for both", 4, {.cpu_milli = 2000}, NULL, "a1 a2 b1 x"},
        {"its host port", 4, {0}, "{\"containerPort\":1,\"hostPort\":80}", "a2 b1 x"},
        {"another host port", 4, {0}, "{\"containerPort\":1,\"hostPort\":81}", "a1 a2 b1 x"},
    };
    struct cluster_pod *n =
        put(&(struct fixture_pod){.name = "n",
                                  .nominated = "a1",
                                  .priority = 5,
                                  .ports = "{\"containerPort\":1,\"hostPort\":80}",
                                  .c = {{.cpu_milli = 6000}}});
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cluster_pod *p = put(&(struct fixture_pod){.name = arena_printf(&arena, "p%zu", i),
                                                          .priority = rows[i].priority,
                                                          .ports = rows[i].ports,
                                                          .c = {rows[i].c}});
        expect_str(rows[i].row, rows[i].open, open_nodes(p));
    }
    struct cluster_pod *p = cluster_find_pod(&c, "d/p0");
    expect_str("it is not in its own way", "a1 a2 b1 x", open_nodes(n));
    uint64_t before = cluster_digest(&c);
    expect_int("placed on its node: nobody has more room", 0,
               cluster_assume(&c, n, cluster_find_node(&c, "a1"), &(struct grant){0}));
    cluster_forget(&c, n);
    expect_int("placed elsewhere: those that wait are told", EVENT_POD_GONE,
               cluster_assume(&c, n, cluster_find_node(&c, "b1"), &(struct grant){0}));
    expect_str("placed elsewhere: it waits no more", "a1 a2 x", open_nodes(p));
    cluster_forget(&c, n);
    expect_str("taken back: it waits again", "a2 b1 x", open_nodes(p));
    expect_true("as if nothing had been", cluster_digest(&c) == before);
    expect_int("another pod comes: if it does not fit there any more, others may", EVENT_POD_GONE,
               (int64_t)EVENTS(.name = "foreign", .node = "a1", .scheduler = "x", CPU(1)));
    (void)cluster_remove_pod(&c, "d/foreign", NULL, NULL);
    expect_int("waits elsewhere: room here, and less there", EVENT_POD_GONE | EVENT_POD_PLACED,
               nominations_set(&c, n, "b1"));
    expect_str("there", "a1 a2 x", open_nodes(p));
    (void)put(&(struct fixture_pod){
        .name = "n", .nominated = "a1", .priority = 5, .c = {{.cpu_milli = 6000}}});
    expect_str("an update that says nothing new", "a1 a2 x", open_nodes(p));
    (void)put(&(struct fixture_pod){.name = "n", .priority = 5, .c = {{.cpu_milli = 6000}}});
    expect_str("withdrawn", "a1 a2 b1 x", open_nodes(p));
    (void)put(&(struct fixture_pod){
        .name = "m", .nominated = "later", .priority = 5, .c = {{.cpu_milli = 6000}}});
    (void)cluster_put_node(&c, NODE(.name = "later", .labels = PAIRS("host", "later")));
    expect_str("the node came after the pod", "a1 a2 b1 x", open_nodes(p));
    (void)cluster_remove_pod(&c, "d/m", NULL, NULL);
    expect_str("gone", "a1 a2 b1 later x", open_nodes(p));
    expect_done();
}

static void cards_of_waiting_pods(void **state)
{
    (void)state;
    (void)cluster_put_node(
        &c, NODE(.name = "g", .gib = 30, .inventory = fixture_inventory(&arena, "cgpu", "15,15")));
    (void)put(
        &(struct fixture_pod){.name = "n", .nominated = "g", .priority = 5, .c = {{.gib = 12}}});
    struct cluster_pod *p = put(&(struct fixture_pod){.name = "p", .c = {{.gib = 12}}});
    struct cluster_pod *n = cluster_find_pod(&c, "d/n");
    struct cluster_pod *q =
        put(&(struct fixture_pod){.name = "q", .containers = 2, .c = {{.gib = 12}, {.gib = 12}}});
    struct pipeline_choice choice;
    expect_str("one card is left", "g", open_nodes(p));
    expect_str("not two", "", open_nodes(q));
    pipeline_choose(&pipeline, p, &arena, &choice);
    expect_int("the other card", 1, choice.grant.shares[0].card);
    pipeline_choose(&pipeline, n, &arena, &choice);
    expect_int("on its node, but perhaps on another card: those that wait are told", EVENT_POD_GONE,
               cluster_assume(&c, n, choice.node, &choice.grant));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(whose_nominations_count),
        cmocka_unit_test_setup_teardown(waiting_pods_with_a_right_to_room, setup_nodes, teardown),
        T(cards_of_waiting_pods),
        T(a_nominated_pod_that_changes_is_asked_about_again),
        T(the_order_in_which_they_came_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

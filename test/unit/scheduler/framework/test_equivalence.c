// SPDX-License-Identifier: Apache-2.0
/*
 * Which pods share a class, what is asked again after a change, and what is forgotten. That the
 * answers are right is in test_properties.
 */
#include "scheduler/framework/equivalence.h"

#include "scheduler/model/nominations.h"
#include "test/unit/scheduler/model_kit.h"

static void who_shares_a_class(void **state)
{
    (void)state;
    const struct {
        const char *row;
        struct fixture_pod pod;
        bool shares; /* with a pod of 100m CPU and 1 GiB on a card */
    } rows[] = {
        {"another name and age", {.created_s = 5, .c = {{.cpu_milli = 100, .gib = 1}}}, true},
        {"a label of its own",
         {.labels = PAIRS("job-index", "7"), .c = {{.cpu_milli = 100, .gib = 1}}},
         true},
        {"an annotation",
         {.annotations = PAIRS("a", "b"), .c = {{.cpu_milli = 100, .gib = 1}}},
         true},
        {"more CPU", {.c = {{.cpu_milli = 101, .gib = 1}}}, false},
        {"memory", {.c = {{.cpu_milli = 100, .memory_bytes = 1, .gib = 1}}}, false},
        {"another share", {.c = {{.cpu_milli = 100, .gib = 2}}}, false},
        {"the same in two containers",
         {.containers = 2, .c = {{.cpu_milli = 50}, {.cpu_milli = 50, .gib = 1}}},
         false},
        {"an extended resource",
         {.c = {{.cpu_milli = 100, .gib = 1, .other = "a.b/c", .other_amount = 1}}},
         false},
        {"none of an extended resource",
         {.c = {{.cpu_milli = 100, .gib = 1, .other = "a.b/c", .other_amount = -1}}},
         true},
        {"a selector",
         {.spec = "\"nodeSelector\":{\"a\":\"b\"}", .c = {{.cpu_milli = 100, .gib = 1}}},
         false},
        {"a toleration",
         {.spec = "\"tolerations\":[{\"operator\":\"Exists\"}]",
          .c = {{.cpu_milli = 100, .gib = 1}}},
         false},
        {"a burst",
         {.annotations = PAIRS(NAME_ANN_BURST, "eci"), .c = {{.cpu_milli = 100, .gib = 1}}},
         false},
    };
    const struct fixture_pod first = {.name = "first", .c = {{.cpu_milli = 100, .gib = 1}}};
    struct pod_class *k = equivalence_ask(&pipeline, put(&first));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture_pod f = rows[i].pod;
        f.name = arena_printf(&arena, "p%zu", i);
        expect_int(rows[i].row, rows[i].shares, equivalence_ask(&pipeline, put(&f)) == k);
    }
    expect_done();
}

static struct pod_class *class_of(const char *name, int64_t cpu_milli)
{
    return equivalence_ask(
        &pipeline, put(&(struct fixture_pod){.name = name, .c = {{.cpu_milli = cpu_milli}}}));
}

static void a_pod_is_looked_up_again_when_it_is_another_one(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1"));
    struct pod_class *k = class_of("p", 100);
    struct cluster_pod *cp = cluster_find_pod(&c, "d/p");
    expect_true("nothing changed", equivalence_ask(&pipeline, cp) == k);
    expect_true("it asks for more", class_of("p", 200) != k);
    expect_true("and for as much as before", class_of("p", 100) == k);
    (void)nominations_set(&c, cp, "n1");
    expect_true("a nominated lone pod stays", equivalence_ask(&pipeline, cp) == k);
    (void)nominations_set(&c, cp, NULL);
    expect_true("and is not any more", equivalence_ask(&pipeline, cp) == k);
    uint32_t number = cp->id.number;
    (void)cluster_remove_pod(&c, "d/p", NULL, NULL);
    expect_true("another pod asks for more", class_of("q", 200) != k);
    expect_int("and has its number", number, cluster_find_pod(&c, "d/q")->id.number);
    expect_done();
}

static void only_what_changed_is_asked_again(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++)
        (void)cluster_put_node(&c, NODE(.name = arena_printf(&arena, "n%02d", i)));
    struct cluster_pod *p = put(&(struct fixture_pod){.name = "p", .c = {{.cpu_milli = 1000}}});
    struct cluster_pod *q = put(&(struct fixture_pod){.name = "q", .c = {{.cpu_milli = 1000}}});
    expect_str("all are equal", "n00", best(p));
    expect_int("asked about all nodes", 50, (int64_t)pipeline.classes->asked);
    expect_str("nothing changed", "n00", best(p));
    expect_int("asked about none", 50, (int64_t)pipeline.classes->asked);
    (void)cluster_assume(&c, p, cluster_find_node(&c, "n00"), &(struct grant){0});
    expect_str("one is fuller", "n01", best(q));
    expect_int("asked about that one", 51, (int64_t)pipeline.classes->asked);
    (void)cluster_put_node(&c, NODE(.name = "n07"));
    expect_str("a heartbeat", "n01", best(q));
    expect_int("asked about none", 51, (int64_t)pipeline.classes->asked);
    (void)cluster_put_node(&c, NODE(.name = "n01", .unschedulable = true));
    expect_str("cordoned", "n02", best(q));
    expect_int("asked about it", 52, (int64_t)pipeline.classes->asked);
    cluster_forget(&c, p);
    (void)cluster_put_node(&c, NODE(.name = "n00", .cpu_milli = 500));
    expect_str("changed twice", "n02", best(q));
    (void)cluster_put_node(&c, NODE(.name = "a"));
    expect_str("a new node", "a", best(q));
    (void)cluster_remove_node(&c, "a");
    expect_str("gone again", "n02", best(q));
    expect_done();
}

/* Each is entitled to its own node only, which the other pods of the class are refused. */
static void nominated_lone_pods_share_their_answers(void **state)
{
    (void)state;
    enum { N = 50 };
    struct cluster_pod *pods[N];
    for (int i = 0; i < N; i++) {
        const char *node = arena_printf(&arena, "n%02d", i);
        (void)cluster_put_node(&c, NODE(.name = node, .cpu_milli = 1000));
        pods[i] = put(&(struct fixture_pod){.name = arena_printf(&arena, "p%02d", i),
                                            .nominated = node,
                                            .c = {{.cpu_milli = 1000}}});
    }
    struct cluster_pod *q = put(&(struct fixture_pod){.name = "q", .c = {{.cpu_milli = 1000}}});
    expect_str("none is left for others", NULL, best(q));
    for (int i = 0; i < N; i++)
        expect_str("its own node", pods[i]->nominated, best(pods[i]));
    expect_str("still none", NULL, best(q));
    expect_int("classes", 1, (int64_t)pipeline.classes->made);
    expect_int("built", 1, (int64_t)pipeline.classes->rebuilt);
    expect_true("asked about two nodes for each pod", pipeline.classes->asked <= N + 2 * (N + 1));
    expect_int("disagreements", 0, (int64_t)pipeline.classes->disagreed);
    const struct gang *lone = pods[0]->gang;
    expect_true("the pod of a gang is a class of its own",
                lone != NULL && equivalence_ask(&pipeline, put(&(struct fixture_pod){
                                                               .name = "m",
                                                               .labels = MEMBER("g", "1"),
                                                               .nominated = "n00",
                                                               .c = {{.cpu_milli = 1000}}})) !=
                                    equivalence_ask(&pipeline, q));
    expect_done();
}

static void a_refusal_asks_again_only_what_changed(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n", .cpu_milli = 1000));
    (void)cluster_put_node(&c, NODE(.name = "o", .cpu_milli = 500));
    (void)cluster_put_node(&c, NODE(.name = "q", .unschedulable = true));
    struct cluster_pod *p = put(&(struct fixture_pod){.name = "p", .c = {{.cpu_milli = 2000}}});
    struct pipeline_choice choice;
    pipeline_choose(&pipeline, p, &arena, &choice);
    const struct refusals *r = equivalence_ask(&pipeline, p)->refusals;
    expect_true("remembered", r != NULL && r->generation == c.table->generation);
    expect_str(
        "the words",
        "0/3 nodes fit: 2 have too little cpu even when empty (asked: 2, largest: 1 on n), 1 is "
        "cordoned",
        reasons_sentence(&choice.why, &arena));
    r->nodes[0].free = 1700; /* what is remembered, not what is */
    pipeline_choose(&pipeline, p, &arena, &choice);
    expect_str(
        "not asked again",
        "0/3 nodes fit: 2 have too little cpu even when empty (asked: 2, largest: 1700m on n), 1 "
        "is cordoned",
        reasons_sentence(&choice.why, &arena));
    (void)cluster_put_node(&c, NODE(.name = "n", .cpu_milli = 400));
    pipeline_choose(&pipeline, p, &arena, &choice);
    expect_str(
        "asked again, and another one is the best now",
        "0/3 nodes fit: 2 have too little cpu even when empty (asked: 2, largest: 500m on o), 1 is "
        "cordoned",
        reasons_sentence(&choice.why, &arena));
    (void)cluster_put_node(&c, NODE(.name = "q", .cpu_milli = 1000));
    pipeline_choose(&pipeline, p, &arena, &choice);
    expect_str(
        "a reason that nobody has any more",
        "0/3 nodes fit: 3 have too little cpu even when empty (asked: 2, largest: 1 on q); no node "
        "could ever take it",
        reasons_sentence(&choice.why, &arena));
    expect_int("nor its events", EVENT_NODE_ADDED | EVENT_NODE_CAPACITY | EVENT_POD_GONE,
               choice.wakes);
    (void)cluster_put_node(&c, NODE(.name = "n", .cpu_milli = 2000));
    expect_str("and room", "n", best(p));
    expect_done();
}

static void the_least_used_class_goes_first(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n"));
    struct cluster_pod *pods[3];
    for (int i = 0; i < 3; i++)
        pods[i] = put(&(struct fixture_pod){.name = arena_printf(&arena, "p%d", i),
                                            .c = {{.cpu_milli = 100 + i}}});
    (void)best(pods[0]);
    size_t one = pipeline.classes->bytes;
    (void)best(pods[1]);
    (void)best(pods[0]);
    pipeline.classes->budget = 2 * one + one / 2;
    (void)best(pods[2]);
    expect_int("three were made", 3, (int64_t)pipeline.classes->made);
    (void)best(pods[0]);
    expect_int("the first is still there", 3, (int64_t)pipeline.classes->made);
    (void)best(pods[1]);
    expect_int("the second had gone", 4, (int64_t)pipeline.classes->made);
    pipeline.classes->budget = 1;
    expect_str("one in use never goes", "n", best(pods[1]));
    expect_int("all others do", (int64_t)pipeline.classes->bytes,
               (int64_t)pipeline.classes->newest->bytes);
    expect_done();
}

/* Whatever is wrong with what is remembered: the plugins' word holds. */
static void a_class_that_is_wrong_does_no_harm(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "a", .unschedulable = true));
    (void)cluster_put_node(&c, NODE(.name = "b"));
    struct cluster_pod *p = put(&(struct fixture_pod){.name = "p"});
    expect_str("right", "b", best(p));
    struct pod_class *k = equivalence_ask(&pipeline, p);
    score_tree_set(&k->groups[0].tree, 0, 1 << 20);
    expect_str("it prefers a node that is closed", "b", best(p));
    expect_int("which is noticed", 1, (int64_t)pipeline.classes->disagreed);
    expect_str("once", "b", best(p));
    expect_int("and not again", 1, (int64_t)pipeline.classes->disagreed);
    score_tree_set(&equivalence_ask(&pipeline, p)->groups[0].tree, 1, SCORE_TREE_NO);
    expect_str("it says that none fits", "b", best(p));
    expect_int("which is noticed as well", 2, (int64_t)pipeline.classes->disagreed);
    expect_str("and put right", "b", best(p));
    expect_int("all is well", 2, (int64_t)pipeline.classes->disagreed);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(who_shares_a_class),
        T(a_pod_is_looked_up_again_when_it_is_another_one),
        T(only_what_changed_is_asked_again),
        T(nominated_lone_pods_share_their_answers),
        T(a_refusal_asks_again_only_what_changed),
        T(the_least_used_class_goes_first),
        T(a_class_that_is_wrong_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

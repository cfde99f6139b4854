// SPDX-License-Identifier: Apache-2.0
/*
 * When the index begins to count, what it forgets, and that numbers of nodes are given again. That
 * the counts are right after every operation is in test_properties.
 */
#include "scheduler/model/pod_counters.h"

#include "scheduler/framework/equivalence.h"
#include "test/unit/scheduler/model_kit.h"
#include "test/unit/scheduler/oracle.h"

static int setup_nodes(void **state)
{
    (void)setup(state);
    (void)cluster_put_node(&c, NODE(.name = "n1", .labels = PAIRS("host", "n1")));
    (void)cluster_put_node(&c, NODE(.name = "n2", .labels = PAIRS("host", "n2")));
    return 0;
}

static const char *anti(const char *app)
{
    return arena_printf(
        &arena,
        "\"affinity\":{\"podAntiAffinity\":{"
        "\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":\"host\","
        "\"labelSelector\":{\"matchLabels\":{\"app\":\"%s\"}}}]}}",
        app);
}

static void nothing_is_counted_until_somebody_asks(void **state)
{
    (void)state;
    struct cluster_pod *w =
        put(&(struct fixture_pod){.name = "w", .node = "n1", .labels = PAIRS("app", "web")});
    struct cluster_pod *p = put(&(struct fixture_pod){.name = "p"});
    expect_true("a pod without terms", best(p) != NULL);
    expect_true("no counting", !c.index->active && w->traits == NULL && p->traits == NULL);
    struct cluster_pod *q = put(&(struct fixture_pod){.name = "q", .spec = anti("web")});
    expect_str("a pod with terms finds those that were there before", "n2", best(q));
    expect_true("counting", c.index->active && w->traits != NULL);
    expect_true("all is counted", oracle_index(&c));
    expect_int("one counts the term's pods, one its holders", 2,
               (int64_t)map_count(&c.index->counters));
    (void)cluster_remove_pod(&c, "d/w", NULL, NULL);
    (void)cluster_remove_pod(&c, "d/q", NULL, NULL);
    (void)cluster_remove_pod(&c, "d/p", NULL, NULL);
    expect_int("no pod, no traits", 0, (int64_t)map_count(&c.index->traits));
    expect_done();
}

static void events_only_for_pods_that_count(void **state)
{
    (void)state;
    const struct cluster_hooks *none = NULL;
    struct fixture_pod w = {.name = "w", .node = "n1", .labels = PAIRS("app", "web")};
    expect_int("nobody asks", 0, cluster_put_pod(&c, fixture_make_pod(&w), none));
    (void)best(put(&(struct fixture_pod){.name = "q", .spec = anti("web")}));
    expect_int("an update of it", 0, cluster_put_pod(&c, fixture_make_pod(&w), none));
    w.labels = PAIRS("app", "db");
    expect_int("other labels", EVENT_POD_COUNTED, cluster_put_pod(&c, fixture_make_pod(&w), none));
    w.name = "x";
    w.uid = "x";
    expect_int("a pod that no term means", 0, cluster_put_pod(&c, fixture_make_pod(&w), none));
    w.name = "y";
    w.uid = "y";
    w.labels = PAIRS("app", "web");
    expect_int("one that a term means", EVENT_POD_COUNTED,
               cluster_put_pod(&c, fixture_make_pod(&w), none));
    struct cluster_pod *z = put(&(struct fixture_pod){.name = "z", .labels = PAIRS("app", "web")});
    expect_int("the same, assumed", EVENT_POD_COUNTED,
               cluster_assume(&c, z, cluster_find_node(&c, "n2"), &(struct grant){0}));
    expect_done();
}

/* Conditions are written to every pod that waits. */
static void a_status_is_no_event(void **state)
{
    (void)state;
    struct fixture_pod q = {.name = "q", .spec = anti("web")};
    struct fixture_pod r = {.name = "r", .node = "n1", .spec = anti("web")};
    (void)best(put(&q));
    (void)put(&r);
    expect_int("of one that waits", 0, put_events(&q));
    expect_int("of one that runs", 0, put_events(&r));
    q.labels = PAIRS("app", "web");
    expect_int("its labels do not count while it waits", 0, put_events(&q) & EVENT_POD_COUNTED);
    r.labels = PAIRS("app", "web");
    expect_int("those of one that runs do", EVENT_POD_COUNTED, put_events(&r));
    expect_true("all is counted", oracle_index(&c));
    expect_done();
}

/* Terms about different labels have nothing to do with each other. */
static void terms_about_other_labels_cost_nothing(void **state)
{
    (void)state;
    enum { N = 200 }; /* as many as two nodes take */
    for (int i = 0; i < N; i++) {
        const char *app = arena_printf(&arena, "a%d", i);
        struct cluster_pod *cp = put(&(struct fixture_pod){
            .name = app, .labels = PAIRS("app", app, "team", "t"), .spec = anti(app)});
        struct cluster_node *on = cluster_find_node(&c, best(cp));
        (void)cluster_assume(&c, cp, on, &(struct grant){0});
    }
    expect_true("a term is compared with the pods of its label",
                c.index->looked <= 8 * (uint64_t)N);
    expect_true("all is counted", oracle_index(&c));
    expect_done();
}

/* From a few nodes to many and back. */
static void a_term_may_be_about_many_nodes(void **state)
{
    (void)state;
    enum { N = 30 };
    struct cluster_pod *all[N];
    (void)best(put(&(struct fixture_pod){.name = "q", .spec = anti("web")}));
    for (int i = 0; i < N; i++) {
        const char *name = arena_printf(&arena, "m%d", i);
        (void)cluster_put_node(&c, NODE(.name = name, .labels = PAIRS("host", name)));
        all[i] = put(&(struct fixture_pod){.name = name, .labels = PAIRS("app", "web")});
        (void)cluster_assume(&c, all[i], cluster_find_node(&c, name), &(struct grant){0});
        expect_true("counted", oracle_index(&c));
    }
    for (int i = 0; i < N; i++) {
        cluster_forget(&c, all[i]);
        expect_true("counted no more", oracle_index(&c));
    }
    expect_done();
}

static void counters_that_nobody_uses_go(void **state)
{
    (void)state;
    enum { PODS = 1500 };
    struct cluster_pod *stays = put(&(struct fixture_pod){.name = "stays", .spec = anti("web")});
    (void)put(&(struct fixture_pod){.name = "w", .node = "n1", .labels = PAIRS("app", "web")});
    pipeline.classes->budget = 1; /* one class at a time, so one user */
    for (int i = 0; i < PODS; i++) {
        struct fixture_pod f = {.name = "p", .uid = arena_printf(&arena, "u%d", i)};
        f.spec = anti(arena_printf(&arena, "app-%d", i));
        (void)best(put(&f));
    }
    expect_true("most are gone", map_count(&c.index->counters) < PODS);
    expect_true("the others are right", oracle_index(&c));
    expect_str("and still used", "n2", best(stays));
    (void)put(&(struct fixture_pod){.name = "v", .node = "n2", .labels = PAIRS("app", "web")});
    expect_str("and follow", NULL, best(stays));
    expect_true("all are right", oracle_index(&c));
    expect_done();
}

static void a_node_that_goes_leaves_its_number(void **state)
{
    (void)state;
    struct cluster_pod *q = put(&(struct fixture_pod){.name = "q", .spec = anti("web")});
    (void)put(&(struct fixture_pod){.name = "w", .node = "n1", .labels = PAIRS("app", "web")});
    expect_str("not where the other one is", "n2", best(q));
    uint32_t number = cluster_find_node(&c, "n1")->id.number;
    (void)cluster_remove_node(&c, "n1");
    (void)cluster_remove_pod(&c, "d/w", NULL, NULL);
    (void)cluster_put_node(&c, NODE(.name = "a", .labels = PAIRS("host", "a")));
    expect_int("the number is given again", number, cluster_find_node(&c, "a")->id.number);
    expect_str("and begins at nothing", "a", best(q));
    expect_true("all is counted", oracle_index(&c));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_counted_until_somebody_asks, setup_nodes,
                                        teardown),
        cmocka_unit_test_setup_teardown(events_only_for_pods_that_count, setup_nodes, teardown),
        cmocka_unit_test_setup_teardown(a_status_is_no_event, setup_nodes, teardown),
        cmocka_unit_test_setup_teardown(terms_about_other_labels_cost_nothing, setup_nodes,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_term_may_be_about_many_nodes, setup_nodes, teardown),
        cmocka_unit_test_setup_teardown(counters_that_nobody_uses_go, setup_nodes, teardown),
        cmocka_unit_test_setup_teardown(a_node_that_goes_leaves_its_number, setup_nodes, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A story in steps: who borrows, who needs it back, what is written and when the books follow.
 */
#include "scheduler/cycle/cycle.h"
#include "scheduler/cycle/cpu_lending.h"

#include "lib/model/names.h"
#include "scheduler/model/nominations.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"
#include "scheduler/framework/pipeline.h"
#include "scheduler/framework/equivalence.h"

#define BURST "cpuset-scheduler", "true", "cpu-policy", "static-burst"
#define WHOLE "{\"c0\":{\"0\":{\"elems\":{\"0\":{},\"1\":{},\"2\":{},\"3\":{}}}}}"
#define LEFT "{\"c0\":{\"0\":{\"elems\":{\"0\":{},\"1\":{}}}}}"
#define RIGHT "{\"c0\":{\"0\":{\"elems\":{\"2\":{},\"3\":{}}}}}"
#define WANTS \
    .name = "p", .annotations = PAIRS("cpuset-scheduler", "true"), .c = {{.cpu_milli = 2000}}

static struct cluster cluster;
static struct pipeline pipeline; /* on it */
static struct arena arena, specs;
static const struct cluster_hooks *const hooks = NULL; /* nobody is told */

static int setup(void **state)
{
    (void)state;
    cluster_init(&cluster, NAME_SCHEDULER);
    pipeline_init(&pipeline, &cluster);
    arena_init(&arena, 0);
    arena_init(&specs, 0);
    /* One L3 group of four CPUs. */
    cluster_put_node(&cluster,
                     NODE(.name = "n", .topology = fixture_topology(&specs, 1, 1, 4, 1, NULL)));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pipeline_deinit(&pipeline);
    cluster_deinit(&cluster);
    arena_deinit(&arena);
    arena_deinit(&specs);
    return 0;
}

static void put_borrower(const char *cpuset, const char *applied)
{
    cluster_put_pod(
        &cluster,
        POD(.name = "b", .node = "n",
            .annotations = PAIRS(BURST, NAME_ANN_CPUSET, cpuset, NAME_ANN_CPUSET_APPLIED, applied),
            .c = {{.cpu_milli = 2000}}),
        hooks);
}

/* A pod's attempt. */
static struct cycle_result run_of(const char *key)
{
    struct plan plan;
    struct cycle_result r;
    arena_reset(&arena);
    plan_begin(&plan, &cluster);
    cycle_run(&pipeline, cluster_find_pod(&cluster, key)->gang, &plan, &arena, &r);
    plan_end(&plan);
    return r;
}

static struct cycle_result run(void)
{
    return run_of("d/p");
}

static void called_back_in_two_phases(void **state)
{
    (void)state;
    AUTO_STRBUF text = {0};
    struct cpu_grant left;
    put_borrower(WHOLE, "");
    cluster_put_pod(&cluster, POD(WANTS), hooks);
    uint64_t class = run().class;
    put_borrower(WHOLE, WHOLE);
    struct cycle_result r = run();
    expect_int("no room yet", CYCLE_NO_CAPACITY, r.verdict);
    expect_true("that somebody was asked is another sentence, which is told", r.class != class);
    expect_str("why",
               "0/1 nodes fit: 1 has CPUs to pin only when those on loan are given back (asked: 2, "
               "most free: 0 on n); waits for pod d/b to give back CPUs 2-3 on n",
               r.sentence);
    assert_int_equal(r.recalls_len, 1);
    expect_str("from", "d/b", r.recalls[0].pod->pod->key);
    cpuset_print(&r.recalls[0].cpus, &text);
    expect_str("what is beyond limits.cpu", "2-3", strbuf_str(&text));
    assert_int_equal(r.nominations_len, 1);
    expect_str("where it waits", "n", r.nominations[0].node->name);
    expect_true("it goes the moment that they are given back", r.awaits);

    struct cluster_pod *b = r.recalls[0].pod;
    cluster_grant_reclaim(b, &r.recalls[0].cpus);
    cpu_lending_left(b, &arena, &left);
    strbuf_reset(&text);
    cpu_grant_encode(&left, b->pod, &text);
    expect_str("what is written", LEFT, strbuf_str(&text));

    put_borrower(LEFT, WHOLE); /* the watch shows the first phase */
    expect_int("still not", CYCLE_NO_CAPACITY, run().verdict);
    put_borrower(LEFT, LEFT); /* and the second */
    r = run();
    expect_int("placed", CYCLE_PLACED, r.verdict);
    strbuf_reset(&text);
    struct cluster_pod *p = cluster_find_pod(&cluster, "d/p");
    cpu_grant_encode(&p->grant.cpus, p->pod, &text);
    expect_str("on those", "{\"c0\":{\"0\":{\"elems\":{\"2\":{},\"3\":{}}}}}", strbuf_str(&text));
    expect_done();
}

static void a_trial_reclaim_is_seen_and_undone(void **state)
{
    (void)state;
    struct plan plan;
    struct cpuset lent;
    struct pipeline_choice choice;
    put_borrower(WHOLE, WHOLE);
    cluster_put_pod(&cluster, POD(WANTS), hooks);
    struct cluster_pod *p = cluster_find_pod(&cluster, "d/p");
    struct cluster_node *n = cluster_find_node(&cluster, "n");
    lent = n->cpus.lent;
    pipeline_choose(&pipeline, p, &arena, &choice);
    expect_true("all CPUs are in use", choice.node == NULL);
    plan_begin(&plan, &cluster);
    plan_reclaim(&plan, n, &lent);
    pipeline_choose(&pipeline, p, &arena, &choice);
    expect_true("the cached answer follows", choice.node == n);
    plan_end(&plan);
    pipeline_choose(&pipeline, p, &arena, &choice);
    expect_true("and again", choice.node == NULL && cpuset_equal(&n->cpus.lent, &lent));
    expect_done();
}

static void what_is_not_called_back(void **state)
{
    (void)state;
    const struct {
        const char *row, *cpuset, *applied;
        struct fixture_pod pod;
    } rows[] = {
        {"nobody knows yet where the borrower is", WHOLE, "", {WANTS}},
        {"the node agent says something else", WHOLE, LEFT, {WANTS}},
        {"more than the loan",
         WHOLE,
         WHOLE,
         {.name = "p",
          .annotations = PAIRS("cpuset-scheduler", "true"),
          .c = {{.cpu_milli = 3000}}}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_borrower(rows[i].cpuset, rows[i].applied);
        cluster_put_pod(&cluster, fixture_make_pod(&rows[i].pod), hooks);
        struct cycle_result r = run();
        expect_int(rows[i].row, CYCLE_NO_CAPACITY, r.verdict);
        expect_int(rows[i].row, 0, (int64_t)r.recalls_len);
        cluster_remove_pod(&cluster, "d/p", NULL, hooks);
        cluster_remove_pod(&cluster, "d/b", NULL, hooks);
    }
    expect_done();
}

/* pods/resize to less than a CPU, where no webhook refused it. */
static void a_resized_borrower_is_not_left_without_any(void **state)
{
    (void)state;
    const struct {
        const char *row;
        int64_t milli;
        const char *called_back;
    } rows[] = {
        {"two of its own", 2000, "2-3"},
        {"one of its own now", 1000, "1-2"},
        {"nothing that can be told", 250, NULL},
        {"more than it has", 5000, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF text = {0};
        cluster_put_pod(
            &cluster,
            POD(.name = "b", .node = "n",
                .annotations = PAIRS(BURST, NAME_ANN_CPUSET, WHOLE, NAME_ANN_CPUSET_APPLIED, WHOLE),
                .c = {{.cpu_milli = rows[i].milli}}),
            hooks);
        cluster_put_pod(&cluster, POD(WANTS), hooks);
        struct cycle_result r = run();
        expect_int(rows[i].row, rows[i].called_back != NULL, (int64_t)r.recalls_len);
        if (r.recalls_len > 0)
            cpuset_print(&r.recalls[0].cpus, &text);
        expect_str(rows[i].row, rows[i].called_back, r.recalls_len > 0 ? strbuf_str(&text) : NULL);
        cluster_remove_pod(&cluster, "d/p", NULL, hooks);
        cluster_remove_pod(&cluster, "d/b", NULL, hooks);
    }
    expect_done();
}

static void after_a_restart_edited_cpus_are_not_given_twice(void **state)
{
    (void)state;
    static const struct {
        const char *row, *cpuset, *applied;
        bool room;
    } rows[] = {
        {"the node agent has never confirmed any: what is written counts", LEFT, "", true},
        {"as it was confirmed", LEFT, LEFT, true},
        {"edited since: the container is on the other two", LEFT, RIGHT, false},
        {"taken away since, and not let go yet", "", WHOLE, false},
        {"made unreadable since", "{", WHOLE, false},
        {"what cannot be read is nothing", LEFT, "x", true},
        {"let go of", "", "", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cluster_put_pod(
            &cluster,
            POD(.name = "b", .node = "n",
                .annotations = PAIRS("cpuset-scheduler", "true", NAME_ANN_CPUSET, rows[i].cpuset,
                                     NAME_ANN_CPUSET_APPLIED, rows[i].applied),
                .c = {{.cpu_milli = 2000}}),
            hooks);
        cluster_put_pod(&cluster, POD(WANTS), hooks);
        expect_int(rows[i].row, rows[i].room ? CYCLE_PLACED : CYCLE_NO_CAPACITY, run().verdict);
        cluster_remove_pod(&cluster, "d/p", NULL, hooks);
        cluster_remove_pod(&cluster, "d/b", NULL, hooks);
    }
    expect_done();
}

static void after_a_restart_unconfirmed_cpus_are_still_taken(void **state)
{
    (void)state;
    put_borrower(LEFT, WHOLE); /* first seen in the middle of it */
    cluster_put_pod(&cluster, POD(WANTS), hooks);
    struct cycle_result r = run();
    expect_int("not yet", CYCLE_NO_CAPACITY, r.verdict);
    for (size_t i = 0; i < r.recalls_len; i++) {
        struct cpu_grant left;
        AUTO_STRBUF text = {0};
        cluster_grant_reclaim(r.recalls[i].pod, &r.recalls[i].cpus);
        cpu_lending_left(r.recalls[i].pod, &arena, &left);
        cpu_grant_encode(&left, r.recalls[i].pod->pod, &text);
        expect_str("nothing is given back to it", LEFT, strbuf_str(&text));
    }
    put_borrower(LEFT, LEFT);
    expect_int("confirmed", CYCLE_PLACED, run().verdict);
    expect_done();
}

static void an_edited_annotation_moves_nobody(void **state)
{
    (void)state;
    put_borrower(LEFT, LEFT);
    uint64_t before = cpu_accounts_digest(&cluster_find_node(&cluster, "n")->cpus);
    put_borrower("{\"c0\":{\"0\":{\"elems\":{\"2\":{},\"3\":{}}}}}", LEFT);
    expect_true("elsewhere",
                cpu_accounts_digest(&cluster_find_node(&cluster, "n")->cpus) == before);
    put_borrower(WHOLE, LEFT);
    expect_true("more", cpu_accounts_digest(&cluster_find_node(&cluster, "n")->cpus) == before);
    put_borrower(WHOLE, WHOLE);
    expect_true("more, confirmed",
                cpu_accounts_digest(&cluster_find_node(&cluster, "n")->cpus) == before);
    expect_done();
}

/* b has CPUs 0 and 1; the annotation gets away in two steps, and the request with or without it. */
static void cpus_are_free_when_the_node_agent_has_let_go(void **state)
{
    (void)state;
    static const struct {
        const char *row, *asks, *cpuset, *applied;
        bool room;
    } rows[] = {
        {"bound to two of four", "true", LEFT, LEFT, false},
        {"the request is taken away: that is for new pods", "false", LEFT, LEFT, false},
        {"the annotation too", "false", "", LEFT, false},
        {"a request again", "true", "", LEFT, false},
        {"the node agent has let go", "true", "", "", true},
    };
    cluster_put_pod(&cluster,
                    POD(.name = "p", .annotations = PAIRS("cpuset-scheduler", "true"),
                        .c = {{.cpu_milli = 4000}}),
                    hooks);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cluster_put_pod(
            &cluster,
            POD(.name = "b", .node = "n",
                .annotations = PAIRS("cpuset-scheduler", rows[i].asks, NAME_ANN_CPUSET,
                                     rows[i].cpuset, NAME_ANN_CPUSET_APPLIED, rows[i].applied),
                .c = {{.cpu_milli = 2000}}),
            hooks);
        expect_int(rows[i].row, rows[i].room ? CYCLE_PLACED : CYCLE_NO_CAPACITY, run().verdict);
    }
    expect_done();
}

/* What is free and what is called back are enough together: nobody else takes the one meanwhile. */
static void what_is_free_is_kept_beside_what_is_called_back(void **state)
{
    (void)state;
    static const char lent[] = "{\"c0\":{\"0\":{\"elems\":{\"0\":{},\"1\":{},\"2\":{}}}}}";
    put_borrower(lent, lent);
    cluster_put_pod(&cluster, POD(WANTS), hooks);
    struct cycle_result r = run();
    assert_int_equal(r.recalls_len, 1);
    nominations_set(&cluster, r.nominations[0].pod, r.nominations[0].node->name);
    cluster_put_pod(&cluster,
                    POD(.name = "small", .annotations = PAIRS("cpuset-scheduler", "true"),
                        .c = {{.cpu_milli = 1000}}),
                    hooks);
    expect_int("one that comes later", CYCLE_NO_CAPACITY, run_of("d/small").verdict);
    put_borrower(LEFT, LEFT);
    expect_int("and when they are given back", CYCLE_NO_CAPACITY, run_of("d/small").verdict);
    expect_int("the one that they were called back for", CYCLE_PLACED, run().verdict);
    expect_done();
}

/* A node agent that is away keeps a pod waiting for as long as there is nothing better. */
static void whoever_does_not_answer_is_asked_last(void **state)
{
    (void)state;
    put_borrower(WHOLE, WHOLE);
    cluster_put_node(&cluster,
                     NODE(.name = "o", .topology = fixture_topology(&specs, 1, 1, 4, 1, NULL)));
    cluster_put_pod(
        &cluster,
        POD(.name = "other", .node = "o",
            .annotations = PAIRS(BURST, NAME_ANN_CPUSET, WHOLE, NAME_ANN_CPUSET_APPLIED, WHOLE),
            .c = {{.cpu_milli = 2000}}),
        hooks);
    cluster_put_pod(&cluster, POD(WANTS, .priority = 10), hooks);
    static const struct {
        const char *row, *from;
    } rows[] = {
        {"the first time", "d/b"},
        {"it may have been lost", "d/b"},
        {"and lost again", "d/b"},
        {"nobody is there: the next", "d/other"},
        {"it may have been lost", "d/other"},
        {"and lost again", "d/other"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cycle_result r = run();
        expect_str(rows[i].row, rows[i].from,
                   r.recalls_len == 1 ? r.recalls[0].pod->pod->key : NULL);
        expect_int(rows[i].row, 0, (int64_t)r.victims_len);
        for (size_t k = 0; k < r.recalls_len; k++)
            cluster_grant_reclaim(r.recalls[k].pod, &r.recalls[k].cpus);
    }
    struct cycle_result r = run();
    expect_int("both are away, but are less important: one of them goes", 1,
               (int64_t)r.victims_len);
    expect_int("and nobody is asked", 0, (int64_t)r.recalls_len);
    cluster_put_pod(&cluster, POD(WANTS), hooks);
    r = run();
    expect_int("nobody is less important", 0, (int64_t)r.victims_len);
    expect_int("then it waits for one of them", 1, (int64_t)r.recalls_len);
    put_borrower(LEFT, LEFT);
    expect_int("who is back", CYCLE_PLACED, run().verdict);
    expect_done();
}

/* Found by the stories: the CPUs alone are not enough while the spread refuses the node too. It
 * slept when the node got its label, which the refusal for CPUs does not mention. */
static void what_else_refused_it_wakes_it_too(void **state)
{
    (void)state;
    put_borrower(WHOLE, WHOLE);
    cluster_put_pod(
        &cluster,
        POD(WANTS, .spec = "\"topologySpreadConstraints\":[{\"topologyKey\":\"zone\",\"maxSkew\":1,"
                           "\"whenUnsatisfiable\":\"DoNotSchedule\",\"labelSelector\":{}}]"),
        hooks);
    struct cycle_result r = run();
    expect_int("nobody is asked", 0, (int64_t)r.recalls_len);
    expect_true("a label may help", (r.wakes & EVENT_NODE_LABELS) != 0);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(called_back_in_two_phases, setup, teardown),
        cmocka_unit_test_setup_teardown(a_trial_reclaim_is_seen_and_undone, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_called_back, setup, teardown),
        cmocka_unit_test_setup_teardown(after_a_restart_edited_cpus_are_not_given_twice, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(after_a_restart_unconfirmed_cpus_are_still_taken, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_resized_borrower_is_not_left_without_any, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_edited_annotation_moves_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(cpus_are_free_when_the_node_agent_has_let_go, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_else_refused_it_wakes_it_too, setup, teardown),
        cmocka_unit_test_setup_teardown(whoever_does_not_answer_is_asked_last, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_free_is_kept_beside_what_is_called_back, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

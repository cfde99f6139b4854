// SPDX-License-Identifier: Apache-2.0
/*
 * Who is sent away for whom. Rows for the rules; then random clusters: the arithmetic for plain
 * pods and the trial on the model choose the same, the model is as before, and the victims are
 * enough and none too many.
 */
#include "scheduler/cycle/node_victims.h"
#include "scheduler/cycle/preempt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "scheduler/model/nominations.h"
#include "test/unit/scheduler/model_kit.h"

static struct preempt_choice choose(struct cluster_pod *cp)
{
    struct preempt_choice out;
    uint64_t before = cluster_digest(&c);
    preempt_choose(&pipeline, cp, &arena, &out);
    expect_true("the cluster is as before", cluster_digest(&c) == before);
    return out;
}

/* "n1: a b", or "-". */
static const char *said(const struct preempt_choice *choice)
{
    AUTO_STRBUF b = {0};
    strbuf_addf(&b, "%s", choice->node != NULL ? choice->node->name : "-");
    for (size_t i = 0; i < choice->victims_len; i++)
        strbuf_addf(&b, "%s%s", i == 0 ? ": " : " ", choice->victims[i]->pod->name);
    return arena_strdup(&arena, strbuf_str(&b));
}

static void the_rules(void **state)
{
    (void)state;
    const struct row {
        const char *sentence;
        struct fixture_pod placed[5];
        const char *budget; /* for app=guarded */
        int allowed;
        struct fixture_pod pod;
        bool cordoned; /* n2 */
        const char *expected;
    } rows[] = {
        {"nobody is less important",
         {{.name = "a", .node = "n1", .priority = 5, CPU(8000)},
          {.name = "b", .node = "n2", .priority = 5, CPU(8000)}},
         NULL,
         0,
         {.name = "p", .priority = 5, CPU(1000)},
         false,
         "-"},
        {"only as many as needed, the least important",
         {{.name = "a", .node = "n1", .priority = 1, CPU(4000)},
          {.name = "b", .node = "n1", .priority = 2, CPU(4000)},
          {.name = "c", .node = "n2", .priority = 10, CPU(8000)}},
         NULL,
         0,
         {.name = "p", .priority = 5, CPU(3000)},
         false,
         "n1: a"},
        {"the node whose most important victim is the least important",
         {{.name = "a", .node = "n1", .priority = 3, CPU(8000)},
          {.name = "b", .node = "n2", .priority = 2, CPU(4000)},
          {.name = "c", .node = "n2", .priority = 2, CPU(4000)}},
         NULL,
         0,
         {.name = "p", .priority = 5, CPU(8000)},
         false,
         "n2: c b"},
        {"fewer victims of the same importance cost less in sum",
         {{.name = "a", .node = "n1", .priority = 2, CPU(8000)},
          {.name = "b", .node = "n2", .priority = 2, CPU(4000)},
          {.name = "c", .node = "n2", .priority = 2, CPU(4000)}},
         NULL,
         0,
         {.name = "p", .priority = 5, CPU(8000)},
         false,
         "n1: a"},
        {"a disruption budget is kept, if it can be, at the price of importance",
         {{.name = "a", .node = "n1", .priority = 1, .labels = PAIRS("app", "guarded"), CPU(8000)},
          {.name = "b", .node = "n2", .priority = 4, CPU(8000)}},
         "guarded",
         0,
         {.name = "p", .priority = 5, CPU(8000)},
         false,
         "n2: b"},
        {"a budget that allows one",
         {{.name = "a", .node = "n1", .priority = 1, .labels = PAIRS("app", "guarded"), CPU(8000)},
          {.name = "b", .node = "n2", .priority = 4, CPU(8000)}},
         "guarded",
         1,
         {.name = "p", .priority = 5, CPU(8000)},
         false,
         "n1: a"},
        {"on one node the guarded one is brought back first",
         {{.name = "a", .node = "n1", .priority = 1, .labels = PAIRS("app", "guarded"), CPU(4000)},
          {.name = "b", .node = "n1", .priority = 3, CPU(4000)},
          {.name = "c", .node = "n2", .priority = 10, CPU(8000)}},
         "guarded",
         0,
         {.name = "p", .priority = 5, CPU(4000)},
         false,
         "n1: b"},
        {"a broken budget is better than no place",
         {{.name = "a", .node = "n1", .priority = 1, .labels = PAIRS("app", "guarded"), CPU(8000)},
          {.name = "c", .node = "n2", .priority = 10, CPU(8000)}},
         "guarded",
         0,
         {.name = "p", .priority = 5, CPU(8000)},
         false,
         "n1: a"},
        {"a node that refuses for itself is not worth a victim",
         {{.name = "a", .node = "n1", .priority = 4, CPU(8000)},
          {.name = "b", .node = "n2", .priority = 1, CPU(8000)}},
         NULL,
         0,
         {.name = "p", .priority = 5, CPU(8000)},
         true,
         "n1: a"},
        {"somebody is leaving already: nobody else has to",
         {{.name = "a", .node = "n1", .priority = 1, CPU(8000)},
          {.name = "b", .node = "n2", .priority = 9, .terminating = true, CPU(8000)}},
         NULL,
         0,
         {.name = "p", .priority = 5, CPU(8000)},
         false,
         "n2"},
        {"who is leaving makes some of the room",
         {{.name = "a", .node = "n1", .priority = 1, CPU(4000)},
          {.name = "b", .node = "n1", .priority = 1, .terminating = true, CPU(4000)},
          {.name = "c", .node = "n2", .priority = 10, CPU(8000)}},
         NULL,
         0,
         {.name = "p", .priority = 5, CPU(8000)},
         false,
         "n1: a"},
        {"more than any node has",
         {{.name = "a", .node = "n1", .priority = 1, CPU(8000)}},
         NULL,
         0,
         {.name = "p", .priority = 5, CPU(8001)},
         false,
         "-"},
        {"a host port is freed",
         {{.name = "a", .node = "n1", .priority = 1, .ports = "{\"hostPort\":80}"},
          {.name = "b", .node = "n1", .priority = 1, CPU(7000)},
          {.name = "c", .node = "n2", .priority = 9, .ports = "{\"hostPort\":80}"}},
         NULL,
         0,
         {.name = "p", .priority = 5, .ports = "{\"hostPort\":80}"},
         false,
         "n1: a"},
        {"whom it does not want near it",
         {{.name = "a", .node = "n1", .priority = 1, .labels = PAIRS("app", "noisy")},
          {.name = "b", .node = "n1", .priority = 1},
          {.name = "c", .node = "n2", .priority = 9, .labels = PAIRS("app", "noisy")}},
         NULL,
         0,
         {.name = "p",
          .priority = 5,
          .spec =
              "\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{"
              "\"topologyKey\":\"host\",\"labelSelector\":{\"matchLabels\":{\"app\":\"noisy\"}}}]}}"},
         false,
         "n1: a"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        (void)cluster_put_node(&c, NODE(.name = "n1", .labels = PAIRS("host", "n1")));
        (void)cluster_put_node(
            &c, NODE(.name = "n2", .labels = PAIRS("host", "n2"), .unschedulable = r->cordoned));
        for (size_t k = 0; k < 5 && r->placed[k].name != NULL; k++)
            (void)put(&r->placed[k]);
        if (r->budget != NULL)
            put_budget("b", r->budget, r->allowed);
        struct preempt_choice choice = choose(put(&r->pod));
        expect_str(r->sentence, r->expected, said(&choice));
        fresh();
    }
    expect_done();
}

/* What is remembered of a node's pods is forgotten with the first change there is. */
static void the_first_change_counts(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1"));
    PUT(.name = "a", .node = "n1", .priority = 1, CPU(4000));
    PUT(.name = "b", .node = "n1", .priority = 2, CPU(4000));
    struct cluster_pod *p = PUT(.name = "p", .priority = 5, CPU(8000));
    struct preempt_choice choice = choose(p);
    expect_str("both have to go", "n1: a b", said(&choice));
    (void)cluster_remove_pod(&c, "d/a", NULL, NULL);
    choice = choose(p);
    expect_str("one has gone", "n1: b", said(&choice));
    expect_done();
}

static void who_is_more_important(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1"));
    struct cluster_pod *a = PUT(.name = "a", .node = "n1", .priority = 1);
    struct cluster_pod *b = PUT(.name = "b", .node = "n1", .priority = 1);
    expect_true("equals: by name",
                node_victims_compare(a, b) < 0 && node_victims_compare(b, a) > 0);
    b->pod->started_ns = 2;
    expect_true("one that runs goes after one that the kubelet has not begun",
                node_victims_compare(b, a) < 0 && node_victims_compare(a, b) > 0);
    a->pod->started_ns = 1;
    expect_true("one that runs longer goes later", node_victims_compare(a, b) < 0);
    b->pod->priority = 2;
    expect_true("priority counts first", node_victims_compare(b, a) < 0);
    expect_done();
}

static void whom_it_awaits(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1"));
    struct cluster_pod *p = PUT(.name = "p", .priority = 5);
    (void)PUT(.name = "b", .node = "n1", .priority = 4);
    (void)nominations_set(&c, p, "n1");
    expect_true("on the node that it was promised nobody leaves", !preempt_awaits(&c, p));
    (void)PUT(.name = "b", .node = "n1", .priority = 4, .terminating = true);
    expect_true("one is leaving for it", preempt_awaits(&c, p));
    struct cluster_pod *b = PUT(.name = "b", .uid = "again", .node = "n1", .priority = 4);
    expect_true("and is there no more", !preempt_awaits(&c, p));
    cluster_set_evicting(&c, b, true);
    expect_true("another one was told to go", preempt_awaits(&c, p));
    (void)nominations_set(&c, p, "n9");
    expect_true("the node that it was promised is gone", !preempt_awaits(&c, p));
    expect_done();
}

/* ---- random ---- */

static uint64_t seed;

static int64_t roll(int64_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((seed >> 33) % (uint64_t)n);
}

static void make_world(void)
{
    char name[16];
    int64_t nodes = 1 + roll(6), pods = roll(30);
    for (int64_t i = 0; i < nodes; i++) {
        (void)snprintf(name, sizeof name, "n%d", (int)i);
        (void)cluster_put_node(&c,
                               NODE(.name = name, .cpu_milli = 1000 * (1 + roll(8)),
                                    .pods = roll(3) == 0 ? 3 : 0, .unschedulable = roll(6) == 0,
                                    .other = roll(2) ? "a.b/c" : NULL, .other_amount = roll(6)));
    }
    for (int64_t i = 0; i < pods; i++) {
        (void)snprintf(name, sizeof name, "p%d", (int)i);
        char on[16];
        (void)snprintf(on, sizeof on, "n%d", (int)roll(nodes));
        struct cluster_pod *cp = PUT(.name = name, .node = on, .priority = (int32_t)roll(6),
                                     .terminating = roll(12) == 0,
                                     .labels = roll(2) ? PAIRS("app", "a") : PAIRS("app", "b"),
                                     .c = {{.cpu_milli = roll(4) * 500,
                                            .memory_bytes = roll(1000),
                                            .other = roll(2) ? "a.b/c" : NULL,
                                            .other_amount = 1 + roll(2)}});
        cp->pod->started_ns = roll(5);
    }
    for (int64_t i = roll(4); i-- > 0;) {
        (void)snprintf(name, sizeof name, "w%d", (int)i);
        char on[16];
        (void)snprintf(on, sizeof on, "n%d", (int)roll(nodes));
        PUT(.name = name, .nominated = on, .priority = (int32_t)roll(8),
            .c = {{.cpu_milli = roll(6) * 500,
                   .other = roll(2) ? "a.b/c" : NULL,
                   .other_amount = 1}});
    }
    for (int64_t i = roll(3); i-- > 0;)
        put_budget(i == 0 ? "x" : "y", roll(2) ? "a" : "b", (int)roll(3));
}

static bool fits_now(struct cluster_pod *cp, const struct cluster_node *n)
{
    struct plugin_ask ask = pipeline_ask(&pipeline, cp);
    return plugin_refusing(&ask, n, &arena, NULL) == NULL;
}

/* Enough, and each of them is needed. */
static void check_victims(struct cluster_pod *cp, const struct preempt_choice *choice)
{
    struct cluster_node *n = choice->node;
    size_t *steps = arena_new(&arena, size_t, choice->victims_len);
    struct plan plan;
    plan_begin(&plan, &c);
    for (size_t i = n->pods.len; i-- > 0;)
        if (n->pods.items[i]->pod->terminating)
            (void)plan_evict(&plan, n->pods.items[i]); /* the last, seen before, is at i now */
    for (size_t i = 0; i < choice->victims_len; i++) {
        expect_true("of lower priority", choice->victims[i]->pod->priority < cp->pod->priority);
        steps[i] = plan_evict(&plan, choice->victims[i]);
    }
    expect_true("they are enough", fits_now(cp, n));
    for (size_t i = 0; i < choice->victims_len; i++) {
        size_t mark = plan_mark(&plan);
        plan_restore(&plan, steps[i]);
        expect_true("none is too many", !fits_now(cp, n));
        plan_rollback(&plan, mark);
    }
    plan_end(&plan);
}

static void random_clusters(void **state)
{
    (void)state;
    const char *text = getenv("COSCHED_SEED");
    seed = text != NULL ? str_hash(text, strlen(text)) : UINT64_C(20260301);
    int found = 0;
    for (int round = 0; round < 400; round++) {
        make_world();
        struct fixture_container want = {.cpu_milli = 500 + roll(8) * 500,
                                         .other = roll(3) == 0 ? "a.b/c" : NULL,
                                         .other_amount = 1};
        int32_t priority = (int32_t)roll(8);
        /* The same pod twice; a host port that nobody has takes the second one the long way. */
        struct cluster_pod *plain =
            PUT(.name = "plain", .uid = "u", .priority = priority, .c = {want});
        struct cluster_pod *other = PUT(.name = "other", .uid = "u", .priority = priority,
                                        .c = {want}, .ports = "{\"hostPort\":9999}");
        struct preempt_choice a = choose(plain), b = choose(other);
        expect_str("both ways lead to the same", said(&b), said(&a));
        if (a.node != NULL && !fits_now(plain, a.node)) {
            check_victims(plain, &a);
            found++;
        }
        fresh();
    }
    expect_true("somebody was sent away now and then", found > 50);
    expect_done();
}

/* What was tried in vain is tried again when it may have changed. */
static void a_node_tried_in_vain_is_passed_over_until_it_changes(void **state)
{
    (void)state;
    enum { N = 200 };
    for (int i = 0; i < N; i++) {
        const char *node = arena_printf(&arena, "n%03d", i);
        (void)cluster_put_node(&c, NODE(.name = node, .cpu_milli = 1000));
        PUT(.name = arena_printf(&arena, "v%03d", i), .node = node, .priority = 9, CPU(1000));
    }
    struct cluster_pod *p = PUT(.name = "p", .priority = 5, CPU(1000));
    struct preempt_choice choice = choose(p);
    expect_str("none is less important", "-", said(&choice));
    const struct pod_class *k = equivalence_ask(&pipeline, p);
    expect_int("nothing is left to try", N, (int64_t)equivalence_next(k, 0, N));
    PUT(.name = "v070", .node = "n070", .priority = 1, CPU(1000));
    k = equivalence_ask(&pipeline, p);
    expect_int("one changed", 70, (int64_t)equivalence_next(k, 0, N));
    expect_int("no other", N, (int64_t)equivalence_next(k, 71, N));
    choice = choose(p);
    expect_str("it will do", "n070: v070", said(&choice));
    PUT(.name = "q", .nominated = "n070", .priority = 5, CPU(1000));
    choice = choose(p);
    expect_str("it is another pod's now", "-", said(&choice));
    (void)nominations_set(&c, p, "n070");
    struct cluster_pod *twin = PUT(.name = "r", .priority = 5, CPU(1000));
    choice = choose(twin);
    expect_str("not for its twin either", "-", said(&choice));
    (void)cluster_remove_pod(&c, "d/q", NULL, NULL);
    choice = choose(twin);
    expect_str("p waits for it", "-", said(&choice));
    choice = choose(p);
    expect_str("which is its own", "n070: v070", said(&choice));
    expect_done();
}

/* Its eviction failed, or a finalizer keeps it. */
static void a_pod_that_stays_is_no_victim(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1", .cpu_milli = 1000));
    (void)cluster_put_node(&c, NODE(.name = "n2", .cpu_milli = 1000));
    struct cluster_pod *a = PUT(.name = "a", .node = "n1", .priority = 1, CPU(1000));
    struct cluster_pod *b = PUT(.name = "b", .node = "n2", .priority = 2, CPU(1000));
    struct cluster_pod *p = PUT(.name = "p", .priority = 5, CPU(1000));
    struct preempt_choice choice = choose(p);
    expect_str("the least important", "n1: a", said(&choice));
    (void)cluster_set_staying(&c, a, true);
    choice = choose(p);
    expect_str("the next one", "n2: b", said(&choice));
    (void)cluster_set_staying(&c, b, true);
    choice = choose(p);
    expect_str("none", "-", said(&choice));
    a = PUT(.name = "a", .node = "n1", .priority = 1, .terminating = true, CPU(1000));
    choice = choose(p);
    expect_str("nobody waits for it", "-", said(&choice));
    expect_true("nor did before", !preempt_awaits(&c, p));
    expect_int("it may go after all", EVENT_POD_GONE, cluster_set_staying(&c, a, false));
    choice = choose(p);
    expect_str("it is leaving", "n1", said(&choice));
    (void)cluster_remove_pod(&c, "d/b", NULL, NULL);
    expect_int("what is gone does not stay", 0, (int64_t)c.staying.len);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {T(the_rules),
                                       T(the_first_change_counts),
                                       T(whom_it_awaits),
                                       T(who_is_more_important),
                                       T(a_node_tried_in_vain_is_passed_over_until_it_changes),
                                       T(a_pod_that_stays_is_no_victim),
                                       T(random_clusters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

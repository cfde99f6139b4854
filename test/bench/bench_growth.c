// SPDX-License-Identifier: Apache-2.0
/*
 * bench_growth - how the cost of n things that happen grows with n, in process, on one thread: the
 * members of a gang are read, lone pods preempt, small pods are placed beside parked gangs, pods
 * with anti-affinity of their own are placed, nodes come for nominated pods, policies are made.
 *
 * Each is measured at three sizes, each the double of the one before: the thread's CPU time, the
 * median of the repeats, without decoding. The exponent is the slope of a straight line through the
 * logarithms. n log n has one of 1.1 at these sizes, n * n has 2; the goal is 1.2. Beside each
 * size stands, as its baseline, the smallest size's time times n log n.
 *
 *     bench_growth [CASE [REPEATS]]
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"
#include "scheduler/cycle/attempt.h"
#include "test/bench/result.h"

enum { SIZES = 3, REPEATS_MAX = 100, NODES = 200 };

#define GOAL 1.2

/* ---- one cluster with its queue ---- */

struct rig {
    struct cluster cluster;
    struct pipeline pipeline;
    struct queue queue;
    struct arena arena;
    struct attempt attempt;
    int64_t now_ms;
    size_t placed;
    struct VEC(char *) victims; /* keys */
};

static void gang_changed(void *arg, struct gang *g)
{
    struct rig *r = arg;
    queue_touch(&r->queue, g, r->now_ms);
}

static void gang_vanishing(void *arg, struct gang *g)
{
    struct rig *r = arg;
    queue_drop(&r->queue, g);
}

static void evict_for(void *arg, struct gang *g, const struct cycle_result *result)
{
    struct rig *r = arg;
    (void)g;
    for (size_t i = 0; i < result->victims_len; i++) {
        AUTO_STRBUF key = {0};
        strbuf_adds(&key, result->victims[i].pod->pod->key);
        vec_push(&r->victims, strbuf_take(&key));
    }
}

static void rig_init(struct rig *r)
{
    *r = (struct rig){.now_ms = 1};
    cluster_init(&r->cluster, NAME_SCHEDULER);
    pipeline_init(&r->pipeline, &r->cluster);
    queue_init(&r->queue, &r->cluster);
    arena_init(&r->arena, 64 * 1024);
    attempt_init(&r->attempt, &r->pipeline, &r->queue, &r->arena,
                 &(struct attempt_hooks){.evict_for = evict_for, .arg = r});
}

static void rig_deinit(struct rig *r)
{
    for (size_t i = 0; i < r->victims.len; i++)
        free(r->victims.items[i]);
    vec_deinit(&r->victims);
    attempt_deinit(&r->attempt);
    queue_deinit(&r->queue);
    pipeline_deinit(&r->pipeline);
    cluster_deinit(&r->cluster);
    arena_deinit(&r->arena);
}

/* Tries what is due. */
static void try_all(struct rig *r)
{
    struct attempt_result tried;
    const int64_t ns_per_ms = 1000000;
    struct attempt_time now = {r->now_ms, r->now_ms, r->now_ms * ns_per_ms};
    while (attempt_next(&r->attempt, now, &tried))
        r->placed += tried.placed;
}

static void expect(const char *what, size_t expected, size_t is)
{
    if (expected == is)
        return;
    fprintf(stderr, "bench_growth: %s: expected %zu, is %zu\n", what, expected, is);
    exit(1);
}

/* ---- objects ---- */

static struct node *node_of(unsigned i, unsigned cpu)
{
    AUTO_STRBUF b = {0};
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = NULL;
    struct node *n = NULL;
    strbuf_addf(&b,
                "{\"metadata\":{\"name\":\"node-%05u\",\"uid\":\"%u\",\"labels\":{"
                "\"kubernetes.io/hostname\":\"node-%05u\"}},\"status\":{\"allocatable\":{"
                "\"cpu\":\"%u\",\"memory\":\"256Gi\",\"pods\":\"1000\"}}}",
                i, i, i, cpu);
    if (json_parse(&doc, strbuf_str(&b), b.len, &err) < 0 ||
        decode_node(json_root(doc), &n, &err) < 0)
        result_fail("node", err.text);
    return n;
}

struct shape {
    const char *name;
    unsigned i;
    const char *labels; /* members of metadata.labels, or "" */
    const char *spec;   /* members of spec, each with a comma behind it, or "" */
    unsigned cpu_milli;
    const char *node, *nominated; /* or NULL */
    int priority;
};

static struct pod *pod_of(const struct shape *s)
{
    AUTO_STRBUF b = {0};
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = NULL;
    struct pod *p = NULL;
    strbuf_addf(&b,
                "{\"metadata\":{\"namespace\":\"team\",\"name\":\"%s-%u\",\"uid\":\"%s-%u\","
                "\"creationTimestamp\":\"2026-01-01T%02u:%02u:%02uZ\",\"labels\":{%s}},\"spec\":{",
                s->name, s->i, s->name, s->i, s->i / 3600 % 24, s->i / 60 % 60, s->i % 60,
                s->labels);
    if (s->node != NULL)
        strbuf_addf(&b, "\"nodeName\":\"%s\",", s->node);
    strbuf_addf(&b,
                "%s\"schedulerName\":\"%s\",\"priority\":%d,\"containers\":[{\"name\":\"c\","
                "\"image\":\"registry/app:v1\",\"resources\":{\"requests\":{\"cpu\":\"%um\"}}}]},"
                "\"status\":{\"phase\":\"%s\"",
                s->spec, NAME_SCHEDULER, s->priority, s->cpu_milli,
                s->node != NULL ? "Running" : "Pending");
    if (s->nominated != NULL)
        strbuf_addf(&b, ",\"nominatedNodeName\":\"%s\"", s->nominated);
    strbuf_adds(&b, "}}");
    if (json_parse(&doc, strbuf_str(&b), b.len, &err) < 0 ||
        decode_pod(json_root(doc), &p, &err) < 0)
        result_fail("pod", err.text);
    return p;
}

static void put_pod(struct rig *r, struct pod *p)
{
    struct cluster_hooks hooks = {gang_changed, gang_vanishing, r};
    queue_wake(&r->queue, cluster_put_pod(&r->cluster, p, &hooks), r->now_ms);
}

static void remove_pod(struct rig *r, const char *key)
{
    struct cluster_hooks hooks = {gang_changed, gang_vanishing, r};
    queue_wake(&r->queue, cluster_remove_pod(&r->cluster, key, NULL, &hooks), r->now_ms);
}

static void put_nodes(struct rig *r, unsigned n, unsigned cpu)
{
    for (unsigned i = 0; i < n; i++)
        (void)cluster_put_node(&r->cluster, node_of(i, cpu));
}

static const char *name_of(char (*text)[16], unsigned node)
{
    (void)str_format(*text, sizeof *text, "node-%05u", node);
    return *text;
}

/* Decodes n pods before the clock starts. */
struct pods {
    struct pod **items;
    unsigned len;
};

static struct pods pods_new(unsigned n)
{
    struct pods all = {.items = calloc(n, sizeof *all.items), .len = n};
    if (all.items == NULL)
        abort();
    return all;
}

static void put_all(struct rig *r, struct pods *all)
{
    for (unsigned i = 0; i < all->len; i++)
        put_pod(r, all->items[i]);
    free(all->items);
}

/* ---- the cases: each returns the microseconds for n ---- */

/* The members of one gang come, are bound one by one, and go, the oldest first. */
static int64_t read_gang(unsigned n)
{
    struct rig r;
    char text[16], labels[128];
    struct pods waiting = pods_new(n), bound = pods_new(n);
    rig_init(&r);
    put_nodes(&r, NODES, 64);
    (void)str_format(labels, sizeof labels, "\"%s\":\"g\",\"%s\":\"%u\"", NAME_LABEL_GANG_NAME,
                     NAME_LABEL_GANG_MIN, n);
    for (unsigned i = 0; i < n; i++) {
        struct shape s = {.name = "m", .i = i, .labels = labels, .spec = "", .cpu_milli = 1};
        waiting.items[i] = pod_of(&s);
        s.node = name_of(&text, i % NODES);
        bound.items[i] = pod_of(&s);
    }
    int64_t from = result_cpu_us();
    put_all(&r, &waiting);
    put_all(&r, &bound);
    for (unsigned i = 0; i < n; i++) {
        char key[32];
        (void)str_format(key, sizeof key, "team/m-%u", i);
        remove_pod(&r, key);
    }
    int64_t took = result_cpu_us() - from;
    rig_deinit(&r);
    return took;
}

/* n nodes, each full with a pod that is less important: n pods preempt, one each. */
static int64_t preempt(unsigned n)
{
    struct rig r;
    char text[16];
    struct pods all = pods_new(n);
    rig_init(&r);
    put_nodes(&r, n, 4);
    for (unsigned i = 0; i < n; i++) {
        struct shape old = {.name = "old",
                            .i = i,
                            .labels = "",
                            .spec = "",
                            .cpu_milli = 4000,
                            .node = name_of(&text, i)};
        struct shape new = {
            .name = "new", .i = i, .labels = "", .spec = "", .cpu_milli = 4000, .priority = 10};
        put_pod(&r, pod_of(&old));
        all.items[i] = pod_of(&new);
    }
    int64_t from = result_cpu_us();
    put_all(&r, &all);
    try_all(&r);
    expect("victims", n, r.victims.len);
    for (size_t i = 0; i < r.victims.len; i++)
        remove_pod(&r, r.victims.items[i]);
    try_all(&r);
    int64_t took = result_cpu_us() - from;
    expect("preemptors placed", n, r.placed);
    rig_deinit(&r);
    return took;
}

/* n gangs are parked, each of another size; then n small pods that fit come one after the other. */
static int64_t park(unsigned n)
{
    struct rig r;
    struct pods all = pods_new(n);
    rig_init(&r);
    put_nodes(&r, NODES, 64);
    for (unsigned i = 0; i < n; i++) {
        char labels[128];
        (void)str_format(labels, sizeof labels, "\"%s\":\"g%u\",\"%s\":\"2\"", NAME_LABEL_GANG_NAME,
                         i, NAME_LABEL_GANG_MIN);
        struct shape big = {
            .name = "a", .i = i, .labels = labels, .spec = "", .cpu_milli = 65000 + i % 16};
        put_pod(&r, pod_of(&big));
        big.name = "b";
        put_pod(&r, pod_of(&big));
        struct shape small = {.name = "s", .i = i, .labels = "", .spec = "", .cpu_milli = 1};
        all.items[i] = pod_of(&small);
    }
    try_all(&r);
    expect("parked gangs", n, queue_len(&r.queue, GANG_PARKED));
    int64_t from = result_cpu_us();
    for (unsigned i = 0; i < n; i++) {
        put_pod(&r, all.items[i]);
        try_all(&r);
    }
    int64_t took = result_cpu_us() - from;
    expect("small pods placed", n, r.placed);
    free(all.items);
    rig_deinit(&r);
    return took;
}

/* n pods, none of which stands beside another of its own application. */
static int64_t anti_affinity(unsigned n)
{
    struct rig r;
    struct pods all = pods_new(n);
    rig_init(&r);
    put_nodes(&r, NODES, 64);
    for (unsigned i = 0; i < n; i++) {
        char labels[32], spec[512];
        (void)str_format(labels, sizeof labels, "\"app\":\"a%u\"", i);
        (void)str_format(
            spec, sizeof spec,
            "\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":"
            "[{\"topologyKey\":\"kubernetes.io/hostname\",\"labelSelector\":{\"matchLabels\":{"
            "\"app\":\"a%u\"}}}]}},",
            i);
        struct shape s = {.name = "x", .i = i, .labels = labels, .spec = spec, .cpu_milli = 1};
        all.items[i] = pod_of(&s);
    }
    int64_t from = result_cpu_us();
    put_all(&r, &all);
    try_all(&r);
    int64_t took = result_cpu_us() - from;
    expect("pods with anti-affinity placed", n, r.placed);
    rig_deinit(&r);
    return took;
}

/* n pods, each nominated to a node of its own, are there before the n nodes; then all change. */
static int64_t nominate(unsigned n)
{
    struct rig r;
    char text[16];
    struct pods all = pods_new(n), again = pods_new(n);
    struct node **nodes = calloc(n, sizeof(struct node *));
    if (nodes == NULL)
        abort();
    rig_init(&r);
    for (unsigned i = 0; i < n; i++) {
        struct shape s = {.name = "x",
                          .i = i,
                          .labels = "",
                          .spec = "",
                          .cpu_milli = 4000,
                          .nominated = name_of(&text, i)};
        all.items[i] = pod_of(&s);
        s.nominated = name_of(&text, (i + 1) % n);
        again.items[i] = pod_of(&s);
        nodes[i] = node_of(i, 4);
    }
    int64_t from = result_cpu_us();
    put_all(&r, &all);
    for (unsigned i = 0; i < n; i++)
        (void)cluster_put_node(&r.cluster, nodes[i]);
    put_all(&r, &again);
    try_all(&r);
    int64_t took = result_cpu_us() - from;
    expect("nominated pods placed", n, r.placed);
    free(nodes);
    rig_deinit(&r);
    return took;
}

/* n policies are made after n pods, each for one of them. */
static int64_t make_policies(unsigned n)
{
    struct rig r;
    struct policy **policies = calloc(n, sizeof(struct policy *));
    if (policies == NULL)
        abort();
    rig_init(&r);
    put_nodes(&r, NODES, 64);
    for (unsigned i = 0; i < n; i++) {
        AUTO_STRBUF b = {0};
        AUTO_JSON *doc = NULL;
        struct error err = ERROR_INIT;
        char labels[32];
        (void)str_format(labels, sizeof labels, "\"app\":\"a%u\"", i);
        struct shape s = {.name = "x", .i = i, .labels = labels, .spec = "", .cpu_milli = 1};
        put_pod(&r, pod_of(&s));
        strbuf_addf(&b,
                    "{\"metadata\":{\"namespace\":\"team\",\"name\":\"p%u\",\"uid\":\"p%u\","
                    "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"selector\":{"
                    "\"app\":\"a%u\"},\"units\":[{\"resource\":\"ecs\",\"max\":10}]}}",
                    i, i, i);
        if (json_parse(&doc, strbuf_str(&b), b.len, &err) < 0 ||
            decode_resource_policy(json_root(doc), &policies[i], &err) < 0)
            result_fail("policy", err.text);
        if (policies[i]->invalid != NULL)
            result_fail("policy", policies[i]->invalid);
    }
    int64_t from = result_cpu_us();
    for (unsigned i = 0; i < n; i++)
        queue_wake(&r.queue, policies_put(&r.cluster, policies[i]), r.now_ms);
    try_all(&r);
    int64_t took = result_cpu_us() - from;
    expect("pods with a policy placed", n, r.placed);
    free(policies);
    rig_deinit(&r);
    return took;
}

struct bench_case {
    const char *name;
    int64_t (*run)(unsigned n);
    unsigned least; /* the smallest size */
};

static const struct bench_case cases[] = {
    {"gang-reading", read_gang, 8000},
    {"lone-preemptors", preempt, 800},
    {"parked", park, 2000},
    {"anti-affinity", anti_affinity, 4000},
    {"nominations", nominate, 2000},
    {"policies", make_policies, 250},
};

static double n_log_n(double n)
{
    return n * log2(n);
}

/* The slope of the straight line that is nearest to the logarithms. */
static double exponent_of(const double *n, const double *us)
{
    double x = 0, y = 0, xx = 0, xy = 0;
    for (size_t i = 0; i < SIZES; i++) {
        x += log(n[i]);
        y += log(us[i]);
        xx += log(n[i]) * log(n[i]);
        xy += log(n[i]) * log(us[i]);
    }
    return (SIZES * xy - x * y) / (SIZES * xx - x * x);
}

static void measure(const struct bench_case *k, int64_t repeats)
{
    double n[SIZES], us[SIZES];
    char name[64];
    for (size_t i = 0; i < SIZES; i++) {
        int64_t took[REPEATS_MAX];
        n[i] = k->least << i;
        for (int64_t t = 0; t < repeats; t++)
            took[t] = k->run(k->least << i);
        us[i] = (double)num_max(quantile(took, repeats, 50), 1);
        (void)str_format(name, sizeof name, "growth-%s-%u", k->name, k->least << i);
        result_print(&(struct result){.name = name,
                                      .unit = "ms",
                                      .places = 1,
                                      .value = us[i] / 1000,
                                      .baseline = us[0] / 1000 * n_log_n(n[i]) / n_log_n(n[0])},
                     "%s", "");
    }
    (void)str_format(name, sizeof name, "growth-%s", k->name);
    double exponent = exponent_of(n, us);
    result_print(&(struct result){.name = name,
                                  .unit = "exponent",
                                  .places = 2,
                                  .value = exponent,
                                  .goal = GOAL,
                                  .met = result_met(exponent <= GOAL)},
                 "%s", "");
}

int main(int argc, char **argv)
{
    int64_t repeats = 3;
    struct error err = ERROR_INIT;
    const char *only = argc > 1 ? argv[1] : "all";
    if (argc > 2 && num_parse_range(argv[2], 1, REPEATS_MAX, &repeats, &err) < 0) {
        fprintf(stderr, "bench_growth: %s\n", err.text);
        return 2;
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (str_eq(only, "all") || str_eq(only, cases[i].name))
            measure(&cases[i], repeats);
    return 0;
}

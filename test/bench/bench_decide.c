// SPDX-License-Identifier: Apache-2.0
/*
 * bench_decide - decisions per second in process, on one thread: where does this pod go, and assume
 * it there.
 *
 * A cluster of 1,000, 5,000 and 15,000 nodes is filled to one half with running pods; then new pods
 * are decided one after the other, for each of the cases of issue 4. The pods are decoded before
 * the clock starts; what a decision costs from there on is in the figure, the class of a pod that
 * was never seen before included. After a repeat everything is forgotten again (not timed), so that
 * all repeats begin with the same cluster; the median of the repeats is printed.
 *
 * The baseline is the same decision by the full scan that asks every plugin about every node,
 * measured in the same run between the repeats (on fewer pods: it is slow). For preemption it is
 * that scan and then the same search on the model itself: on each of as many candidates the less
 * important pods are lifted and brought back one by one, and all plugins are asked after each. Both
 * must find as many victims.
 *
 * The goals are for 5,000 nodes; that 15,000 reach half of what 5,000 did is a line of its own.
 * What kube-scheduler's own CI asks for in the like (pods/s of a whole system, API server and all)
 * is printed beside for orientation: it is not the same work.
 *
 *     bench_decide [CASE [REPEATS [DECISIONS]]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"
#include "scheduler/framework/equivalence.h"
#include "scheduler/framework/pipeline.h"
#include "scheduler/cycle/preempt.h"
#include "test/bench/result.h"

/* VICTIMS: a pod of 40 CPUs on a node of 64 with 32 free, in pieces of 2. */
enum {
    GOAL_NODES = 5000,
    SCANNED = 32,
    VICTIMS = 4,
    ZONES = 9,
    FILL_PER_NODE = 16,
    SHAPES = 200,
    APPS = 40
};

struct bench_case {
    const char *name;
    int64_t goal;                              /* decisions/s at 5,000 nodes */
    void (*pod)(struct strbuf *b, unsigned i); /* more members of spec, with a comma behind each */
    unsigned shapes;
    unsigned apps;        /* different labels */
    const char *upstream; /* pods/s that kube-scheduler's own CI asks for in the like */
};

static void important(struct strbuf *b, unsigned i);

/* ---- the cluster ---- */

static void put_node(struct cluster *c, unsigned i)
{
    struct strbuf b = {0};
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = NULL;
    struct node *n = NULL;
    strbuf_addf(&b,
                "{\"metadata\":{\"name\":\"node-%05u\",\"uid\":\"%u\",\"labels\":{"
                "\"kubernetes.io/hostname\":\"node-%05u\",\"kubernetes.io/arch\":\"amd64\","
                "\"topology.kubernetes.io/zone\":\"zone-%u\",\"pool\":\"pool-%u\"}},\"spec\":{",
                i, i, i, i % ZONES, i % 5);
    if (i % 10 == 0)
        strbuf_adds(&b,
                    "\"taints\":[{\"key\":\"team\",\"value\":\"a\",\"effect\":\"NoSchedule\"}]");
    strbuf_adds(&b, "},\"status\":{\"allocatable\":{\"cpu\":\"64\",\"memory\":\"256Gi\","
                    "\"ephemeral-storage\":\"1Ti\",\"pods\":\"110\"}}}");
    if (json_parse(&doc, strbuf_str(&b), b.len, &err) < 0 ||
        decode_node(json_root(doc), &n, &err) < 0)
        result_fail("node", err.text);
    (void)cluster_put_node(c, n);
    strbuf_deinit(&b);
}

static void put_pod(struct cluster *c, const struct bench_case *k, unsigned i, const char *node)
{
    struct strbuf b = {0};
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = NULL;
    struct pod *p = NULL;
    unsigned apps = k != NULL && k->apps > 0 ? k->apps : 1, shape = k == NULL ? 0 : i % k->shapes;
    strbuf_addf(&b,
                "{\"metadata\":{\"namespace\":\"team\",\"name\":\"%s-%u\",\"uid\":\"%s-%u\","
                "\"labels\":{\"app\":\"%s-%u\"}},\"spec\":{",
                node != NULL ? "old" : "new", i, node != NULL ? "old" : "new", i,
                node != NULL ? "other" : "web", i % apps);
    if (node != NULL)
        strbuf_addf(&b, "\"nodeName\":\"%s\",", node);
    if (k != NULL && k->pod != NULL)
        k->pod(&b, i);
    strbuf_addf(
        &b,
        "\"schedulerName\":\"%s\",%s\"tolerations\":[{\"key\":"
        "\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":\"NoExecute\"},"
        "{\"key\":\"node.kubernetes.io/unreachable\",\"operator\":\"Exists\",\"effect\":"
        "\"NoExecute\"}%s],\"containers\":[{\"name\":\"c\",\"image\":\"registry/app:v1\","
        "\"resources\":{\"requests\":{\"cpu\":\"%um\",\"memory\":\"%uMi\"}}}]},"
        "\"status\":{\"phase\":\"%s\"}}",
        NAME_SCHEDULER, k != NULL && k->pod == important ? "" : "\"priority\":0,",
        k != NULL && str_eq(k->name, "affinity") ? ",{\"key\":\"team\",\"operator\":\"Exists\"}"
                                                 : "",
        node != NULL          ? 2000
        : k->pod == important ? 40000
                              : 100 + 10 * shape,
        node != NULL ? 8192 : 256 + 16 * shape, node != NULL ? "Running" : "Pending");
    if (json_parse(&doc, strbuf_str(&b), b.len, &err) < 0 ||
        decode_pod(json_root(doc), &p, &err) < 0)
        result_fail("pod", err.text);
    (void)cluster_put_pod(c, p, NULL);
    strbuf_deinit(&b);
}

/* Half of all CPU and memory, in pods of one size. */
static void fill(struct cluster *c, unsigned nodes)
{
    for (unsigned i = 0; i < nodes; i++)
        put_node(c, i);
    for (unsigned i = 0; i < nodes * FILL_PER_NODE; i++) {
        char node[16];
        (void)str_format(node, sizeof node, "node-%05u", i % nodes);
        put_pod(c, NULL, i, node);
    }
}

/* ---- the cases ---- */

static void with_affinity(struct strbuf *b, unsigned i)
{
    strbuf_addf(b,
                "\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\""
                ":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"pool\",\"operator\":"
                "\"In\",\"values\":[\"pool-%u\",\"pool-%u\"]},{\"key\":\"kubernetes.io/arch\","
                "\"operator\":\"NotIn\",\"values\":[\"arm64\"]}]}]},"
                "\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":10,"
                "\"preference\":{\"matchExpressions\":[{\"key\":\"topology.kubernetes.io/zone\","
                "\"operator\":\"In\",\"values\":[\"zone-%u\"]}]}}]}},",
                i % 5, (i + 1) % 5, i % ZONES);
}

static void with_spread(struct strbuf *b, unsigned i)
{
    (void)i;
    strbuf_adds(b,
                "\"topologySpreadConstraints\":[{\"topologyKey\":\"topology.kubernetes.io/zone\","
                "\"maxSkew\":1,\"whenUnsatisfiable\":\"DoNotSchedule\",\"labelSelector\":"
                "{\"matchLabels\":{\"app\":\"web-0\"}}}],");
}

/* As many applications as it takes for each to have a node for each of its pods. */
static void with_anti_affinity(struct strbuf *b, unsigned i)
{
    strbuf_addf(
        b,
        "\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution"
        "\":[{\"topologyKey\":\"kubernetes.io/hostname\",\"labelSelector\":{\"matchLabels\":"
        "{\"app\":\"web-%u\"}}}]}},",
        i % APPS);
}

/* More than is free anywhere, less than a node has: needs preemption. */
static void important(struct strbuf *b, unsigned i)
{
    (void)i;
    strbuf_adds(b, "\"priority\":1000,");
}

static const struct bench_case cases[] = {
    {"equal", 100000, NULL, 1, 1, "680"},
    {"shapes", 50000, NULL, SHAPES, 1, "540"},
    {"affinity", 50000, with_affinity, 20, 1, "460"},
    {"spread", 20000, with_spread, 1, 1, "180"},
    {"anti-affinity", 20000, with_anti_affinity, 1, APPS, "570"},
    {"preemption", 5000, important, 1, 1, "none"},
};

/* ---- measuring ---- */

struct bench {
    struct cluster cluster;
    struct pipeline pipeline; /* on it */
    struct arena arena;
    struct VEC(struct cluster_pod *) pods;
};

static int64_t decide(struct bench *b, size_t n, bool by_scan)
{
    struct pipeline_choice *choice = malloc(sizeof *choice);
    if (choice == NULL)
        abort();
    int64_t began = result_cpu_us();
    for (size_t i = 0; i < n; i++) {
        if (by_scan)
            pipeline_scan(&b->pipeline, b->pods.items[i], &b->arena, choice);
        else
            pipeline_choose(&b->pipeline, b->pods.items[i], &b->arena, choice);
        if (choice->node == NULL) {
            fprintf(stderr, "bench_decide: pod %zu: %s\n", i,
                    reasons_sentence(&choice->why, &b->arena));
            exit(1);
        }
        cluster_assume(&b->cluster, b->pods.items[i], choice->node, &choice->grant);
        arena_reset(&b->arena);
    }
    int64_t took = result_cpu_us() - began;
    for (size_t i = 0; i < n; i++) {
        cluster_forget(&b->cluster, b->pods.items[i]);
        b->pods.items[i]->version++; /* the next repeat has never seen it */
    }
    free(choice);
    return took;
}

static bool fits(struct bench *b, struct cluster_pod *pod, const struct cluster_node *node)
{
    struct plugin_ask ask = pipeline_ask(&b->pipeline, pod);
    return plugin_refusing(&ask, node, &b->arena, NULL) == NULL;
}

/* Number of victims on this node; 0: preemption does not help or is not needed. All pods of the
 * bench have the same low priority. */
static size_t count_on(struct bench *b, struct cluster_pod *pod, struct cluster_node *node)
{
    size_t n = node->pods.len, victims = 0;
    struct cluster_pod **pods = arena_new(&b->arena, struct cluster_pod *, n);
    memcpy(pods, node->pods.items, n * sizeof(struct cluster_pod *));
    for (size_t i = 0; i < n; i++)
        cluster_lift(&b->cluster, pods[i]);
    bool helps = fits(b, pod, node);
    for (size_t i = 0; i < n; i++) {
        cluster_set_down(&b->cluster, pods[i], node);
        if (!helps || fits(b, pod, node))
            continue;
        cluster_lift(&b->cluster, pods[i]);
        pods[victims++] = pods[i];
    }
    for (size_t i = 0; i < victims; i++)
        cluster_set_down(&b->cluster, pods[i], node);
    return victims;
}

/* Without what is kept of nodes and pods: the baseline. */
static size_t count_victims(struct bench *b, struct cluster_pod *pod,
                            struct pipeline_choice *choice)
{
    size_t least = 0;
    pipeline_scan(&b->pipeline, pod, &b->arena, choice);
    if (choice->node != NULL)
        return 0;
    uint32_t candidates = 0;
    for (uint32_t i = 0; i < b->cluster.table->len && candidates < PREEMPT_CANDIDATES; i++) {
        size_t victims = count_on(b, pod, b->cluster.table->rows[i].node);
        candidates += victims > 0;
        if (victims > 0 && (least == 0 || victims < least))
            least = victims;
    }
    return least;
}

static size_t choose_victims(struct bench *b, struct cluster_pod *pod,
                             struct pipeline_choice *choice)
{
    struct preempt_choice victims;
    pipeline_choose(&b->pipeline, pod, &b->arena, choice);
    preempt_choose(&b->pipeline, pod, &b->arena, &victims);
    return choice->node == NULL && victims.node != NULL ? victims.victims_len : 0;
}

/* Chooses victims for a pod that fits on no node. They are not evicted: every decision sees the
 * same cluster. */
static int64_t decide_victims(struct bench *b, size_t n, bool by_scan)
{
    struct pipeline_choice *choice = malloc(sizeof *choice);
    if (choice == NULL)
        abort();
    int64_t began = result_cpu_us();
    for (size_t i = 0; i < n; i++) {
        size_t victims = (by_scan ? count_victims : choose_victims)(b, b->pods.items[i], choice);
        if (victims != VICTIMS) {
            fprintf(stderr, "bench_decide: pod %zu: %zu victims, not %d\n", i, victims, VICTIMS);
            exit(1);
        }
        arena_reset(&b->arena);
    }
    int64_t took = result_cpu_us() - began;
    free(choice);
    return took;
}

static int64_t measure(const struct bench_case *k, unsigned nodes, int64_t repeats,
                       int64_t decisions)
{
    static struct bench b;
    int64_t quick[100], slow[100];
    memset(&b, 0, sizeof b);
    cluster_init(&b.cluster, NAME_SCHEDULER);
    pipeline_init(&b.pipeline, &b.cluster);
    arena_init(&b.arena, 0);
    fill(&b.cluster, nodes);
    for (unsigned i = 0; i < (unsigned)decisions; i++) {
        char key[32];
        put_pod(&b.cluster, k, i, NULL);
        (void)str_format(key, sizeof key, "team/new-%u", i);
        vec_push(&b.pods, cluster_find_pod(&b.cluster, key));
    }
    bool victims = k->pod == important;
    size_t n = victims ? b.pods.len / 10 : b.pods.len;
    int64_t (*run)(struct bench *, size_t, bool) = victims ? decide_victims : decide;
    (void)run(&b, n, false); /* warm */
    for (int64_t r = 0; r < repeats; r++) {
        int64_t scan_us = run(&b, SCANNED, true), us = run(&b, n, false);
        slow[r] = SCANNED * INT64_C(1000000) / num_max(scan_us, 1);
        quick[r] = (int64_t)n * 1000000 / num_max(us, 1);
    }
    int64_t median = quantile(quick, repeats, 50);
    char name[64];
    (void)str_format(name, sizeof name, "decide-%s-%u", k->name, nodes);
    struct result result = {.name = name,
                            .unit = "decisions/s",
                            .value = (double)median,
                            .baseline = (double)quantile(slow, repeats, 50)};
    if (nodes == GOAL_NODES) {
        result.goal = (double)k->goal;
        result.met = result_met(median >= k->goal);
    }
    result_print(&result,
                 "min=%" PRId64 " max=%" PRId64 " repeats=%" PRId64
                 " upstream-ci=%s(not-the-same-work)",
                 quick[0], quick[repeats - 1], repeats, k->upstream);
    vec_deinit(&b.pods);
    pipeline_deinit(&b.pipeline);
    cluster_deinit(&b.cluster);
    arena_deinit(&b.arena);
    return median;
}

int main(int argc, char **argv)
{
    enum { SIZES = 3 };
    static const unsigned sizes[SIZES] = {1000, GOAL_NODES, 15000};
    int64_t repeats = 5, decisions = 20000;
    struct error err = ERROR_INIT;
    const char *only = argc > 1 ? argv[1] : "all";
    if ((argc > 2 && num_parse_range(argv[2], 1, 100, &repeats, &err) < 0) ||
        (argc > 3 && num_parse_range(argv[3], SCANNED, 1000000, &decisions, &err) < 0)) {
        fprintf(stderr, "bench_decide: %s\n", err.text);
        return 2;
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t rate[SIZES];
        if (!str_eq(only, "all") && !str_eq(only, cases[i].name))
            continue;
        for (size_t k = 0; k < SIZES; k++)
            rate[k] = measure(&cases[i], sizes[k], repeats, decisions);
        char name[64];
        (void)str_format(name, sizeof name, "decide-%s-15000-of-5000", cases[i].name);
        result_print(&(struct result){.name = name,
                                      .unit = "decisions/s",
                                      .value = (double)rate[2],
                                      .baseline = (double)rate[1],
                                      .goal = (double)rate[1] / 2,
                                      .met = result_met(rate[2] * 2 >= rate[1])},
                     "%s", "");
    }
    return 0;
}

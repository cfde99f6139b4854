// SPDX-License-Identifier: Apache-2.0
/*
 * pod_verdict - does a pod change the fate of its neighbours? For fuzzers over whole pods.
 *
 *     pod_verdict < PODS
 *
 * Input: one JSON object on each line, {"pod": {...}}, a pod as the API server shows it. Output:
 * one line for each, flushed:
 *
 *     ok|unreadable DIGEST MICROSECONDS
 *
 * ok: decode_pod read it. DIGEST (16 hexadecimal digits) is that of the bystanders' verdicts while
 * the pod is in the cluster: it must be that of every other line. MICROSECONDS is the CPU time of
 * decoding it, scheduling it if it waits for us, asking for the bystanders, and removing it.
 *
 * The cluster is fixed: nodes n0 (plain), n1 (CPU topology) and n2 (two cards of 15 GiB), with the
 * label kubernetes.io/hostname, at most half used. Put "nodeName": "n0", "n1" or "n2" into a pod to
 * have it run there. The bystanders, in namespace bystanders, wait for one node each: for CPU, for
 * pinned CPUs, for a share of a card. What a pod may take of its own node by honest means (half of
 * an amount, anti-affinity, CPUs of its own, cards) is left out of the digest.
 *
 * Exits 1 if a line is no JSON, or if removing the pod did not leave the cluster as it was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/arena.h"
#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cycle/cycle.h"
#include "scheduler/framework/pipeline.h"

#define NODE(name, more, annotations)                                                          \
    "{\"metadata\":{\"name\":\"" name "\",\"uid\":\"" name "\",\"labels\":{"                   \
    "\"kubernetes.io/hostname\":\"" name "\"},\"annotations\":{" annotations "}},\"status\":{" \
    "\"allocatable\":{\"cpu\":\"8\",\"memory\":\"64Gi\",\"ephemeral-storage\":\"100Gi\","      \
    "\"pods\":\"110\"" more "},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}"
#define CARD(i)                                                                                   \
    "{\\\"i\\\":" i ",\\\"uuid\\\":\\\"GPU-" i "\\\",\\\"model\\\":\\\"T4\\\",\\\"mib\\\":15360," \
    "\\\"numa\\\":0,\\\"health\\\":\\\"ok\\\"}"

static const char *const nodes[] = {
    NODE("n0", "", ""),
    NODE("n1", "",
         "\"" NAME_ANN_CPU_TOPOLOGY "\":\"{\\\"v\\\":1,\\\"sockets\\\":[\\\"0-7\\\"],"
         "\\\"numa\\\":[\\\"0-7\\\"],\\\"l3\\\":[\\\"0-7\\\"],\\\"cores\\\":\\\"smt1:8\\\","
         "\\\"offline\\\":\\\"\\\",\\\"reserved\\\":\\\"\\\"}\""),
    NODE("n2", ",\"" NAME_RES_GPU_MEM "\":\"30\"",
         "\"" NAME_ANN_GPU_INVENTORY
         "\":\"{\\\"v\\\":1,\\\"mode\\\":\\\"cgpu\\\",\\\"cards\\\":[" CARD("0") "," CARD(
             "1") "],\\\"links\\\":[[\\\"X\\\",\\\"PIX\\\"],[\\\"PIX\\\","
                  "\\\"X\\\"]]}\""),
};

#define POD(name, on, annotations, amounts)                                                      \
    "{\"metadata\":{\"namespace\":\"bystanders\",\"name\":\"" name "\",\"uid\":\"" name "\","    \
    "\"labels\":{\"app\":\"bystander\"},\"annotations\":{" annotations "}},\"spec\":{"           \
    "\"schedulerName\":\"" NAME_SCHEDULER "\"," on ",\"containers\":[{\"name\":\"c\",\"image\":" \
    "\"i\",\"resources\":{\"requests\":{" amounts "},\"limits\":{" amounts "}}}]},\"status\":{}}"
#define WAITS_FOR(node) "\"nodeSelector\":{\"kubernetes.io/hostname\":\"" node "\"}"
#define RUNS_ON(node) "\"nodeName\":\"" node "\""

enum kind { PLAIN, PINNED, SHARED };
static const struct bystander {
    const char *name, *node, *text;
    enum kind kind;
} bystanders[] = {
    {"r0", NULL, POD("r0", RUNS_ON("n0"), "", "\"cpu\":\"1\",\"memory\":\"1Gi\""), PLAIN},
    {"r1", NULL, POD("r1", RUNS_ON("n1"), "", "\"cpu\":\"1\",\"memory\":\"1Gi\""), PLAIN},
    {"r2", NULL, POD("r2", RUNS_ON("n2"), "", "\"cpu\":\"1\",\"memory\":\"1Gi\""), PLAIN},
    {"w0", "n0", POD("w0", WAITS_FOR("n0"), "", "\"cpu\":\"3\",\"memory\":\"31Gi\""), PLAIN},
    {"w1", "n1",
     POD("w1", WAITS_FOR("n1"), "\"" NAME_ANN_CPUSET_SCHEDULER "\":\"true\"",
         "\"cpu\":\"3\",\"memory\":\"31Gi\""),
     PINNED},
    {"w2", "n2",
     POD("w2", WAITS_FOR("n2"), "",
         "\"cpu\":\"3\",\"memory\":\"31Gi\",\"" NAME_RES_GPU_MEM "\":\"6\""),
     SHARED},
};
enum { BYSTANDERS = sizeof bystanders / sizeof *bystanders };

static struct cluster cluster;
static struct pipeline pipeline;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "pod_verdict: %s: %s\n", what, why);
    exit(1);
}

static struct json_doc *parse(const char *text, size_t n)
{
    struct json_doc *doc = NULL;
    struct error err = ERROR_INIT;
    if (json_parse(&doc, text, n, &err) < 0)
        fail("input", err.text);
    return doc;
}

static void fill_cluster(void)
{
    struct error err = ERROR_INIT;
    cluster_init(&cluster, NAME_SCHEDULER);
    pipeline_init(&pipeline, &cluster);
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        AUTO_JSON *doc = parse(nodes[i], strlen(nodes[i]));
        struct node *n = NULL;
        if (decode_node(json_root(doc), &n, &err) < 0)
            fail("node", err.text);
        (void)cluster_put_node(&cluster, n);
    }
    for (size_t i = 0; i < BYSTANDERS; i++) {
        AUTO_JSON *doc = parse(bystanders[i].text, strlen(bystanders[i].text));
        struct pod *p = NULL;
        if (decode_pod(json_root(doc), &p, &err) < 0)
            fail("bystander", err.text);
        (void)cluster_put_pod(&cluster, p, NULL);
    }
}

/* Whether the pod holds so much of the bystander's node by honest means that it may wait. */
static bool may_take(const struct cluster_pod *cp, const struct bystander *b)
{
    if (cp == NULL || cp->on == NULL || !str_eq(cp->on->name, b->node))
        return false;
    const struct resource_vector *total = &cp->on->allocatable, *r = &cp->request;
    return r->cpu_milli > total->cpu_milli / 2 || r->memory_bytes > total->memory_bytes / 2 ||
           r->ephemeral_bytes > total->ephemeral_bytes / 2 ||
           (cp->pod->terms != NULL && cp->pod->terms->anti_affinity_len > 0) ||
           (b->kind == PINNED && cp->cpu != NULL) || (b->kind == SHARED && cp->gpu.any);
}

static uint64_t verdicts(const struct cluster_pod *guest)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < BYSTANDERS; i++) {
        const struct bystander *b = &bystanders[i];
        struct pipeline_choice choice;
        struct arena a;
        AUTO_STRBUF text = {0};
        strbuf_addf(&text, "bystanders/%s", b->name);
        struct cluster_pod *cp = cluster_find_pod(&cluster, strbuf_str(&text));
        strbuf_addf(&text, "@%s ", cp->on != NULL ? cp->on->name : "-");
        if (b->node != NULL && may_take(guest, b)) {
            strbuf_adds(&text, b->node);
        } else if (b->node != NULL) {
            arena_init(&a, 0);
            pipeline_choose(&pipeline, cp, &a, &choice);
            strbuf_adds(&text, choice.node != NULL ? choice.node->name : "-");
            arena_deinit(&a);
        }
        h = (h ^ str_hash(strbuf_str(&text), text.len)) * 1099511628211u;
    }
    return h;
}

/* Without a guest every bystander has its node, or the digest would say nothing. */
static void check_bystanders(void)
{
    for (size_t i = 0; i < BYSTANDERS; i++) {
        const struct bystander *b = &bystanders[i];
        struct pipeline_choice choice;
        struct arena a;
        AUTO_STRBUF key = {0};
        strbuf_addf(&key, "bystanders/%s", b->name);
        arena_init(&a, 0);
        if (b->node != NULL) {
            pipeline_choose(&pipeline, cluster_find_pod(&cluster, strbuf_str(&key)), &a, &choice);
            if (choice.node == NULL)
                fail(b->name, "fits nowhere");
        }
        arena_deinit(&a);
    }
}

/* One cycle of the pod's gang, if it waits for us. */
static void schedule(const struct cluster_pod *cp)
{
    struct cycle_result result;
    struct plan plan;
    struct arena a;
    if (cp == NULL || cp->gang == NULL || cp->state != CLUSTER_PENDING)
        return;
    arena_init(&a, 0);
    plan_begin(&plan, &cluster);
    cycle_run(&pipeline, cp->gang, &plan, &a, &result);
    plan_end(&plan);
    arena_deinit(&a);
}

static int64_t cpu_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void judge(const char *line, size_t n)
{
    AUTO_JSON *doc = parse(line, n);
    json *j = json_get(json_root(doc), "pod");
    struct error err = ERROR_INIT;
    struct pod *p = NULL;
    uint64_t before = cluster_digest(&cluster), digest;
    int64_t began_us = cpu_us();
    bool ok = decode_pod(j, &p, &err) == 0;
    if (ok) {
        AUTO_STRBUF key = {0};
        strbuf_adds(&key, p->key);
        if (str_starts(p->key, "bystanders/"))
            fail(p->key, "is in the bystanders' namespace");
        (void)cluster_put_pod(&cluster, p, NULL);
        schedule(cluster_find_pod(&cluster, strbuf_str(&key)));
        digest = verdicts(cluster_find_pod(&cluster, strbuf_str(&key)));
        (void)cluster_remove_pod(&cluster, strbuf_str(&key), NULL, NULL);
        if (cluster_digest(&cluster) != before)
            fail(strbuf_str(&key), "its removal does not leave the cluster as it was");
    } else {
        digest = verdicts(NULL);
    }
    printf("%s %016llx %lld\n", ok ? "ok" : "unreadable", (unsigned long long)digest,
           (long long)(cpu_us() - began_us));
    (void)fflush(stdout);
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    fill_cluster();
    check_bystanders();
    while ((n = getline(&line, &room, stdin)) > 0)
        judge(line, (size_t)n);
    free(line);
    pipeline_deinit(&pipeline);
    cluster_deinit(&cluster);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * bench_gang - (a) of issue 5: how long it takes from a gang's last pod to its plan, in process, on
 * one thread.
 *
 * 5,000 nodes are filled to one half with running pods; 1,000 pods of one gang exist but for the
 * last. Then the clock starts: the last pod comes (decoded before), the cycle runs, the plan is
 * committed. After a repeat everything is forgotten (not timed), and the pods are as new as in the
 * first one; the median of the repeats is printed, in CPU time of this thread.
 *
 * The baseline, in the same run, places the same pods one by one by a scan that asks every plugin
 * about every node: what a scheduler does that does not know that pods are equal. It is measured on
 * some of them and scaled up.
 *
 * (c) is the case `trace`: the job trace ../shared/data/gang/muri_trace1.csv (or FILE, or what
 * COSCHED_GANG_TRACE names) in simulated time on 128 cards, without and with
 * activeDeadlineSeconds; in the same run strict FIFO, EASY backfill that knows all run times, and a
 * scheduler that reserves and waits (gang_trace.h). No clock of this machine plays a part: the
 * figures are the same everywhere.
 *
 * (b) and (d) are the cases `local` and `real`: whole programs on a cluster, see gang_local.h and
 * gang_real.h.
 *
 *     make bench-gang [ARGS='CASE [REPEATS]' | ARGS='trace [FILE]']
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/options.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"
#include "scheduler/cycle/cycle.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/framework/pipeline.h"
#include "test/bench/simulate/gang_trace.h"
#include "scheduler/cycle/reservation.h"
#include "test/bench/gang_local.h"
#include "test/bench/gang_real.h"

enum { NODES = 5000, MEMBERS = 1000, SCANNED = 20, ZONES = 9, OLD_PER_NODE = 16, REPEATS_MAX = 99 };

/* What the members ask for. A node has 64 CPUs, of which 32 are free. */
struct bench_case {
    const char *name;
    int64_t goal_us; /* 0: none */
    unsigned members;
    unsigned (*cpu_milli)(unsigned i);
    const char *spec; /* more members of spec */
    int32_t priority; /* of the running ones: 0 */
    enum cycle_verdict verdict;
};

static unsigned same(unsigned i)
{
    (void)i;
    return 4000;
}

static unsigned kinds(unsigned i)
{
    return i == 0 ? 1000 : i < 9 ? 16000 : 4000;
}

static unsigned shapes(unsigned i)
{
    return 1000 + i % 100 * 10;
}

/* The last one is too large for any node: everything is placed in vain, in every way that is worth
 * a try. */
static unsigned too_large(unsigned i)
{
    return i == MEMBERS - 1 ? 33000 : 4000;
}

static unsigned larger_than_free(unsigned i)
{
    (void)i;
    return 40000;
}

#define TOGETHER                                                                             \
    "\"affinity\":{\"podAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{"   \
    "\"topologyKey\":\"topology.kubernetes.io/zone\",\"labelSelector\":{\"matchLabels\":{\"" \
    "job\":\"g\"}}}]}},"

static const struct bench_case cases[] = {
    {"equal", 20000, MEMBERS, same, "", 0, CYCLE_PLACED},
    {"kinds", 20000, MEMBERS, kinds, "", 0, CYCLE_PLACED},
    {"shapes", 0, MEMBERS, shapes, "", 0, CYCLE_PLACED},
    {"together", 0, MEMBERS, same, TOGETHER, 0, CYCLE_PLACED},
    {"no-room", 0, MEMBERS, too_large, "", 0, CYCLE_NO_CAPACITY},
    {"victims", 0, 100, larger_than_free, "", 1000, CYCLE_NO_CAPACITY},
};

/* ---- the cluster ---- */

static void put_node(struct cluster *c, unsigned i)
{
    AUTO_STRBUF b = {0};
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = NULL;
    struct node *n = NULL;
    strbuf_addf(&b,
                "{\"metadata\":{\"name\":\"node-%05u\",\"uid\":\"%u\",\"labels\":{"
                "\"kubernetes.io/hostname\":\"node-%05u\",\"topology.kubernetes.io/zone\":"
                "\"zone-%u\"}},\"spec\":{},\"status\":{\"allocatable\":{\"cpu\":\"64\","
                "\"memory\":\"256Gi\",\"ephemeral-storage\":\"1Ti\",\"pods\":\"110\"}}}",
                i, i, i, i % ZONES);
    if (json_parse(&doc, strbuf_str(&b), b.len, &err) < 0 ||
        decode_node(json_root(doc), &n, &err) < 0)
        result_fail("node", err.text);
    (void)cluster_put_node(c, n);
}

static struct pod *make_pod(const char *name, unsigned i, unsigned cpu_milli, const char *labels,
                            const char *spec, const char *phase, int32_t priority)
{
    AUTO_STRBUF b = {0};
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = NULL;
    struct pod *p = NULL;
    strbuf_addf(&b,
                "{\"metadata\":{\"namespace\":\"team\",\"name\":\"%s-%05u\",\"uid\":\"%s-%u\","
                "\"labels\":{%s}},\"spec\":{%s\"schedulerName\":\"%s\",\"priority\":%d,"
                "\"containers\":[{\"name\":\"c\",\"image\":\"registry/app:v1\",\"resources\":{"
                "\"requests\":{\"cpu\":\"%um\",\"memory\":\"%uMi\"}}}]},\"status\":{\"phase\":"
                "\"%s\"}}",
                name, i, name, i, labels, spec, NAME_SCHEDULER, priority, cpu_milli, cpu_milli * 2,
                phase);
    if (json_parse(&doc, strbuf_str(&b), b.len, &err) < 0 ||
        decode_pod(json_root(doc), &p, &err) < 0)
        result_fail("pod", err.text);
    return p;
}

static struct pod *make_member(const struct bench_case *k, unsigned i)
{
    AUTO_STRBUF labels = {0};
    strbuf_addf(&labels, "\"%s\":\"g\",\"%s\":\"%u\",\"job\":\"g\"", NAME_LABEL_GANG_NAME,
                NAME_LABEL_GANG_MIN, k->members);
    return make_pod("member", i, k->cpu_milli(i), strbuf_str(&labels), k->spec, "Pending",
                    k->priority);
}

static void fill(struct cluster *c, const struct bench_case *k)
{
    for (unsigned i = 0; i < NODES; i++)
        put_node(c, i);
    for (unsigned i = 0; i < NODES * OLD_PER_NODE; i++) {
        AUTO_STRBUF node = {0};
        strbuf_addf(&node, "\"nodeName\":\"node-%05u\",", i % NODES);
        (void)cluster_put_pod(c, make_pod("old", i, 2000, "", strbuf_str(&node), "Running", 0),
                              NULL);
    }
    for (unsigned i = 0; i + 1 < k->members; i++)
        (void)cluster_put_pod(c, make_member(k, i), NULL);
}

/* ---- measuring ---- */

static int64_t plan_gang(const struct pipeline *p, const struct bench_case *k, struct arena *a)
{
    struct cluster *c = p->cluster;
    struct pod *last = make_member(k, k->members - 1);
    char key[64];
    struct plan plan;
    struct cycle_result result;
    (void)str_format(key, sizeof key, "%s", last->key);
    arena_reset(a);
    int64_t began = result_cpu_us();
    (void)cluster_put_pod(c, last, NULL);
    struct gang *g = cluster_find_pod(c, key)->gang;
    plan_begin(&plan, c);
    cycle_run(p, g, &plan, a, &result);
    int64_t took = result_cpu_us() - began;
    if (result.verdict != k->verdict || (k->priority > 0) != (result.victims_len > 0) ||
        (k->priority > 0 && result.nominations_len != k->members))
        result_fail(k->name, result.sentence != NULL ? result.sentence : "placed");
    for (size_t i = 0; i < plan.steps.len; i++)
        cluster_forget(c, plan.steps.items[i].pod);
    for (size_t i = 0; i < g->members.len; i++)
        g->members.items[i]->version++; /* as new */
    plan_end(&plan);
    (void)cluster_remove_pod(c, key, NULL, NULL);
    return took;
}

/* Places some members one by one, each by a scan; by what all would take. */
static int64_t scan_members(const struct pipeline *p, const struct bench_case *k, struct arena *a)
{
    struct cluster *c = p->cluster;
    struct pipeline_choice *choice = malloc(sizeof *choice);
    struct plan plan;
    if (choice == NULL)
        abort();
    plan_begin(&plan, c);
    int64_t began = result_cpu_us();
    for (unsigned i = 0; i < SCANNED; i++) {
        char key[64];
        (void)str_format(key, sizeof key, "team/member-%05u", i);
        struct cluster_pod *cp = cluster_find_pod(c, key);
        pipeline_scan(p, cp, a, choice);
        if (choice->node != NULL)
            plan_place(&plan, cp, choice->node, &choice->grant);
    }
    int64_t took = result_cpu_us() - began;
    plan_end(&plan);
    free(choice);
    arena_reset(a);
    return took * k->members / SCANNED;
}

static void measure(const struct bench_case *k, int64_t repeats)
{
    static struct cluster c;
    struct pipeline p;
    struct arena a;
    int64_t quick[REPEATS_MAX], slow[REPEATS_MAX];
    cluster_init(&c, NAME_SCHEDULER);
    pipeline_init(&p, &c);
    arena_init(&a, 1 << 20);
    fill(&c, k);
    for (int64_t i = 0; i < repeats; i++) {
        slow[i] = scan_members(&p, k, &a);
        quick[i] = plan_gang(&p, k, &a);
    }
    int64_t median = quantile(quick, repeats, 50);
    char name[64];
    (void)str_format(name, sizeof name, "gang-plan-%s-%u-of-%u", k->name, k->members,
                     (unsigned)NODES);
    struct result result = {.name = name,
                            .unit = "us",
                            .value = (double)median,
                            .baseline = (double)quantile(slow, repeats, 50),
                            .goal = (double)k->goal_us};
    if (k->goal_us > 0)
        result.met = result_met(median <= k->goal_us);
    result_print(&result, "min=%" PRId64 " max=%" PRId64 " repeats=%" PRId64, quick[0],
                 quick[repeats - 1], repeats);
    pipeline_deinit(&p);
    cluster_deinit(&c);
    arena_deinit(&a);
}

/* ---- (c) ---- */

static void warn(void *arg, const char *text)
{
    (void)arg;
    fprintf(stderr, "bench_gang: %s\n", text);
}

/* Goals in thousandths of strict FIFO's; mean 0: EASY's. */
struct trace_goals {
    const char *name;
    bool tells_time;
    int64_t mean, p99, longest, end;
};

static const struct trace_goals trace_goals[] = {
    {"gang-trace", false, 700, 1000, 1050, 1010},
    {"gang-trace-deadlines", true, 0, 970, 990, 1000},
};

static void print_ratio(const struct trace_goals *k, const char *what, int64_t value_ms,
                        int64_t fifo_ms, int64_t easy_ms, double goal_ms)
{
    char name[64];
    (void)str_format(name, sizeof name, "%s-%s", k->name, what);
    result_print(&(struct result){.name = name,
                                  .unit = "ms",
                                  .value = (double)value_ms,
                                  .baseline = (double)fifo_ms,
                                  .goal = goal_ms,
                                  .met = result_met((double)value_ms <= goal_ms)},
                 "easy=%" PRId64, easy_ms);
}

static void print_trace(const struct trace_goals *k, const struct gang_trace *t)
{
    const struct gang_trace_outcome *our = &t->cosched, *fifo = &t->fifo, *easy = &t->easy;
    const double part = 1000;
    AUTO_STRBUF table = {0};
    gang_trace_print(t, &table);
    printf("%s%s", k->tells_time ? "with activeDeadlineSeconds: " : "", strbuf_str(&table));
    print_ratio(k, "mean-wait", our->mean_ms, fifo->mean_ms, easy->mean_ms,
                k->mean > 0 ? (double)(fifo->mean_ms * k->mean) / part : (double)easy->mean_ms);
    print_ratio(k, "p99-wait", our->p99_ms, fifo->p99_ms, easy->p99_ms,
                (double)(fifo->p99_ms * k->p99) / part);
    print_ratio(k, "longest-wait", our->longest_ms, fifo->longest_ms, easy->longest_ms,
                (double)(fifo->longest_ms * k->longest) / part);
    print_ratio(k, "end", our->last_end_ms, fifo->last_end_ms, easy->last_end_ms,
                (double)(fifo->last_end_ms * k->end) / part);
    char name[64];
    (void)str_format(name, sizeof name, "%s-incomplete", k->name);
    result_print(&(struct result){.name = name,
                                  .unit = "card-ms",
                                  .value = (double)our->incomplete_ms,
                                  .baseline = (double)t->wait.incomplete_ms,
                                  .met = result_met(our->incomplete_ms == 0)},
                 "%s", "");
}

static void measure_trace(const char *path)
{
    for (size_t i = 0; i < sizeof trace_goals / sizeof trace_goals[0]; i++) {
        struct error err = ERROR_INIT;
        struct gang_trace t = {
            .options = {.nodes = 16,
                        .cards = 8,
                        .timeout_ms = 60000,
                        .tells_time = trace_goals[i].tells_time,
                        .reservation = {.after_ms = RESERVATION_AFTER_S * INT64_C(1000)}}};
        if (gang_trace_read(&t, path, (struct csv_warn){warn, NULL}, &err) < 0)
            printf("SKIPPED name=%s why=\"%s; such a trace is simulator/trace-data/trace1_pr.csv "
                   "in the repository Rivendile/Muri\"\n",
                   trace_goals[i].name, err.text);
        else if (gang_trace_run(&t, &err) < 0)
            result_fail("trace", err.text);
        else
            print_trace(&trace_goals[i], &t);
        gang_trace_deinit(&t);
    }
}

/* `trace FILE`, COSCHED_GANG_TRACE, or the one we have. */
static const char *trace_path(const char *only, const char *file)
{
    const char *said = getenv("COSCHED_GANG_TRACE");
    if (str_eq(only, "trace") && file != NULL)
        return file;
    return said != NULL ? said : "../shared/data/gang/muri_trace1.csv";
}

/* Programs on a cluster. */
static void measure_cluster(void (*run)(void))
{
    static const struct option_program program = {.name = "bench_gang", .summary = "gangs"};
    const struct option_table tables[] = {{kube_option_rows, &real.options}, {NULL, NULL}};
    char *no_arguments[] = {(char[]){"bench_gang"}, NULL};
    struct error err = ERROR_INIT;
    if (options_parse(&program, tables, 1, no_arguments, NULL, &err) != OPTIONS_RUN)
        result_fail("options", err.text);
    process_init();
    run();
}

int main(int argc, char **argv)
{
    int64_t repeats = 9;
    struct error err = ERROR_INIT;
    const char *only = argc > 1 ? argv[1] : "all";
    bool any = false;
    kube_http_global_init();
    if (argc > 2 && !str_eq(only, "trace") &&
        num_parse_range(argv[2], 1, REPEATS_MAX, &repeats, &err) < 0) {
        fprintf(stderr, "bench_gang: %s\n", err.text);
        return 2;
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (str_eq(only, "all") || str_eq(only, cases[i].name)) {
            measure(&cases[i], repeats);
            any = true;
        }
    if (str_eq(only, "all") || str_eq(only, "trace")) {
        measure_trace(trace_path(only, argc > 2 ? argv[2] : NULL));
        any = true;
    }
    if (str_eq(only, "all") || str_eq(only, "local")) {
        measure_cluster(gang_local_run);
        any = true;
    }
    if (str_eq(only, "all") || str_eq(only, "real")) {
        measure_cluster(gang_real_run);
        any = true;
    }
    if (!any)
        result_fail(only, "no such case");
    return 0;
}

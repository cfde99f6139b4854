// SPDX-License-Identifier: Apache-2.0
/*
 * bench_simulate - traces of GPU clusters, by hand: how long the jobs of a trace wait in simulated
 * time (gang_trace.h), or an openb trace as a cluster that cosched-replay reads (openb_cluster.h).
 *
 * The same input gives the same bytes on standard output. What is measured against a goal is in
 * bench_gang and bench_openb, which read the same files.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/options.h"
#include "scheduler/reservation_timer.h"
#include "test/bench/simulate/gang_trace.h"
#include "test/bench/simulate/openb_cluster.h"

enum { EXIT_USAGE = 2 };

struct simulate_options {
    int64_t nodes, cards, timeout_s;
    bool deadlines;
    const char *openb, *openb_nodes, *openb_pods, *data;
};

static const struct option_row rows[] = {
    {.section = "JOBS"},
    {.name = "nodes",
     .kind = OPTION_INT,
     .offset = offsetof(struct simulate_options, nodes),
     .fallback = "16",
     .min = 1,
     .max = GANG_TRACE_NODES_MAX,
     .meta = "N",
     .help = "Nodes."},
    {.name = "cards",
     .kind = OPTION_INT,
     .offset = offsetof(struct simulate_options, cards),
     .fallback = "8",
     .min = 1,
     .max = GANG_TRACE_CARDS_MAX,
     .meta = "N",
     .help = "Cards of each of them."},
    {.name = "timeout",
     .kind = OPTION_INT,
     .offset = offsetof(struct simulate_options, timeout_s),
     .fallback = "60",
     .min = 1,
     .max = 86400,
     .meta = "SECONDS",
     .help =
         "After which the scheduler to compare with gives the cards of an incomplete gang back."},
    {.name = "deadlines",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct simulate_options, deadlines),
     .help = "The pods have their run time as activeDeadlineSeconds."},
    {.section = "OPENB"},
    {.name = "openb",
     .kind = OPTION_STRING,
     .offset = offsetof(struct simulate_options, openb),
     .meta = "NAME",
     .help = "Print the openb trace of that name as a List for cosched-replay: "
             "DATA/openb/openb_pod_list_NAME.csv on the nodes of "
             "DATA/openb/openb_node_list_gpu_node.csv. NAME is default, gpushare40, multigpu30..."},
    {.name = "openb-nodes",
     .kind = OPTION_STRING,
     .offset = offsetof(struct simulate_options, openb_nodes),
     .meta = "FILE",
     .help = "The same of these nodes: sn,cpu_milli,memory_mib,gpu,model."},
    {.name = "openb-pods",
     .kind = OPTION_STRING,
     .offset = offsetof(struct simulate_options, openb_pods),
     .meta = "FILE",
     .help = "The same of these pods: "
             "name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec][,creation_time]."},
    {.name = "data",
     .kind = OPTION_STRING,
     .offset = offsetof(struct simulate_options, data),
     .fallback = "../shared/data",
     .meta = "DATA",
     .help = "Where --openb looks."},
    {0},
};

static const struct option_program program = {
    .name = "bench_simulate",
    .summary = "traces of GPU clusters, for the scheduler's core",
    .synopsis = "[OPTION]... [JOBS]",
    .description =
        "JOBS is a trace as CSV: job_id,num_gpu,submit_time,duration (milliseconds). Each job is a "
        "gang of pods with one card, replayed in simulated time: how long they wait, with the core of "
        "cosched-scheduler, with strict FIFO, and with a scheduler that keeps cards for incomplete "
        "gangs until a timeout. Without JOBS a small example is taken. With --openb, --openb-nodes or "
        "--openb-pods a cluster is printed instead.",
    .max_operands = 1,
};

static const char example[] = "test/bench/simulate/jobs.csv";

static void warn(void *arg, const char *text)
{
    (void)arg;
    (void)fprintf(stderr, "%s: warning: %s\n", program.name, text);
}

static const struct csv_warn warnings = {warn, NULL};

static int print_cluster(const struct simulate_options *o, struct strbuf *out, struct error *err)
{
    AUTO_STRBUF nodes = {0};
    AUTO_STRBUF pods = {0};
    struct json_writer w;
    if (o->openb_nodes != NULL)
        strbuf_adds(&nodes, o->openb_nodes);
    else if (o->openb != NULL)
        strbuf_addf(&nodes, "%s/openb/openb_node_list_gpu_node.csv", o->data);
    if (o->openb_pods != NULL)
        strbuf_adds(&pods, o->openb_pods);
    else if (o->openb != NULL)
        strbuf_addf(&pods, "%s/openb/openb_pod_list_%s.csv", o->data, o->openb);
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "apiVersion", "v1");
    json_kv_str(&w, "kind", "List");
    json_key(&w, "items");
    json_array_begin(&w);
    if ((nodes.len > 0 && openb_cluster_nodes(&w, strbuf_str(&nodes), warnings, err) < 0) ||
        (pods.len > 0 && openb_cluster_pods(&w, strbuf_str(&pods), warnings, err) < 0)) {
        if (err->code == ERROR_NOT_FOUND && o->openb != NULL)
            return error_set(
                err, ERROR_NOT_FOUND,
                "%s; the traces are openb_*.csv of cluster-trace-gpu-v2023 in the repository "
                "alibaba/clusterdata: put them into DIR/openb and say --data DIR",
                err->text);
        return -1;
    }
    json_array_end(&w);
    json_object_end(&w);
    strbuf_addc(out, '\n');
    return 0;
}

static int simulate(const struct simulate_options *o, const struct reservation_timer_options *keep,
                    const char *path, struct strbuf *out, struct error *err)
{
    struct gang_trace t = {.options = {.nodes = o->nodes,
                                       .cards = o->cards,
                                       .timeout_ms = o->timeout_s * 1000,
                                       .tells_time = o->deadlines,
                                       .reservation = {.after_ms = keep->after_s * 1000}}};
    int rc = gang_trace_read(&t, path, warnings, err);
    if (rc < 0 && err->code == ERROR_NOT_FOUND)
        rc = error_set(err, ERROR_NOT_FOUND,
                       "%s; such a trace is simulator/trace-data/trace1_pr.csv in the repository "
                       "Rivendile/Muri",
                       err->text);
    if (rc == 0)
        rc = gang_trace_run(&t, err);
    if (rc == 0)
        gang_trace_print(&t, out);
    gang_trace_deinit(&t);
    return rc;
}

int main(int argc, char **argv)
{
    static struct simulate_options o;
    static struct reservation_timer_options keep;
    struct error err = ERROR_INIT;
    struct options_operands jobs = {0};
    const struct option_table tables[] = {
        {rows, &o}, {reservation_timer_option_rows, &keep}, {NULL, NULL}};
    AUTO_STRBUF out = {0};
    switch (options_parse(&program, tables, argc, argv, &jobs, &err)) {
    case OPTIONS_EXIT:
        return EXIT_SUCCESS;
    case OPTIONS_ERROR:
        (void)fprintf(stderr, "%s: %s (try --help)\n", program.name, err.text);
        return EXIT_USAGE;
    case OPTIONS_RUN:
        break;
    }
    bool openb = o.openb != NULL || o.openb_nodes != NULL || o.openb_pods != NULL;
    const char *path = jobs.len > 0 ? jobs.items[0] : example;
    int rc = openb ? print_cluster(&o, &out, &err) : simulate(&o, &keep, path, &out, &err);
    if (rc < 0) {
        (void)fprintf(stderr, "%s: %s\n", program.name, err.text);
        return EXIT_USAGE;
    }
    return fwrite(strbuf_str(&out), 1, out.len, stdout) == out.len && fflush(stdout) == 0
               ? EXIT_SUCCESS
               : EXIT_USAGE;
}

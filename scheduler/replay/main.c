// SPDX-License-Identifier: Apache-2.0
/*
 * cosched-replay: the scheduler's core on a file instead of a cluster.
 *
 *     dump, kubectl's List, YAML ─┐
 *     openb CSVs ─────────────────┼─► cluster ─► queue ─► cycle ─► plan ─► placements, reasons ─► text or JSON
 *     --add job.yaml ─────────────┘
 *     --gang-trace jobs.csv ─► the same core in simulated time, beside two others (replay_trace.h) ─► waiting times
 *
 * No clock, no threads, no network: the same input gives the same bytes on standard output (I4). Timings, which never are the same, go to standard error, and so do
 * warnings.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/options.h"
#include "lib/model/names.h"
#include "scheduler/dump/dump.h"
#include "scheduler/replay/replay_add.h"
#include "scheduler/replay/replay_explain.h"
#include "scheduler/replay/replay_load.h"
#include "scheduler/replay/replay_openb.h"
#include "scheduler/replay/replay_report.h"
#include "scheduler/replay/replay_run.h"
#include "scheduler/replay/replay_trace.h"
#include "scheduler/reserving.h"

enum { EXIT_WAITING = 1, EXIT_USAGE = 2, FILES_MAX = 64, OUTPUT_TEXT = 0, OUTPUT_JSON = 1 };

struct replay_options {
    const char *add;
    const char *ns;
    const char *scheduler;
    bool any_scheduler;
    bool preempt;
    int scoring;
    int64_t max_input;
    const char *openb;
    const char *openb_nodes, *openb_pods;
    const char *data;
    const char *explain;
    int output;
    bool summary;
    bool timings;
    const char *save;
    const char *gang_trace;
    int64_t trace_nodes, trace_cards, trace_timeout_s;
    bool trace_deadlines;
};

static const struct option_row rows[] = {
    {.section = "INPUT"},
    {.name = "add",
     .kind = OPTION_STRING,
     .offset = offsetof(struct replay_options, add),
     .meta = "FILE[,FILE]...",
     .help =
         "Would this fit, and where? Adds the pods of the manifest (YAML or JSON): Pod, Deployment, "
         "ReplicaSet, StatefulSet, Job, TFJob and its like; PodGroup. The lists and the exit status are then "
         "about these pods."},
    {.name = "namespace",
     .kind = OPTION_STRING,
     .offset = offsetof(struct replay_options, ns),
     .fallback = "default",
     .meta = "NS",
     .help = "Of objects, and of the pod in --explain, that name none."},
    {.name = "scheduler-name",
     .kind = OPTION_STRING,
     .offset = offsetof(struct replay_options, scheduler),
     .meta = "NAME",
     .help =
         "Pods with this spec.schedulerName are placed. What the dump says, else " NAME_SCHEDULER
         "."},
    {.name = "any-scheduler",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct replay_options, any_scheduler),
     .help = "Place all waiting pods, whatever their spec.schedulerName."},
    {.name = "preempt",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct replay_options, preempt),
     .fallback = "true",
     .help = "Pods that are less important leave for those that find no room. Without it everybody "
             "stays, and the sentence of the waiting pod says who would have to go."},
    {.name = "scoring",
     .kind = OPTION_CHOICE,
     .offset = offsetof(struct replay_options, scoring),
     .fallback = "dump",
     .choices = "dump|" CLUSTER_EMPTIEST_NAME "|" CLUSTER_FULLEST_NAME,
     .meta = "HOW",
     .help =
         "Which of the nodes with room are filled first. What the dump says, else " CLUSTER_EMPTIEST_NAME
         "."},
    {.name = "max-input",
     .kind = OPTION_SIZE,
     .offset = offsetof(struct replay_options, max_input),
     .fallback = "1GiB",
     .min = 1,
     .max = INT64_C(1) << 40,
     .meta = "SIZE",
     .help = "Larger files are refused."},
    {.section = "TRACES"},
    {.name = "openb",
     .kind = OPTION_STRING,
     .offset = offsetof(struct replay_options, openb),
     .meta = "NAME",
     .help = "The openb trace of that name: DATA/openb/openb_pod_list_NAME.csv on the nodes of "
             "DATA/openb/openb_node_list_gpu_node.csv. NAME is default, gpushare40, multigpu30..."},
    {.name = "openb-nodes",
     .kind = OPTION_STRING,
     .offset = offsetof(struct replay_options, openb_nodes),
     .meta = "FILE",
     .help = "Nodes as CSV: sn,cpu_milli,memory_mib,gpu,model."},
    {.name = "openb-pods",
     .kind = OPTION_STRING,
     .offset = offsetof(struct replay_options, openb_pods),
     .meta = "FILE",
     .help =
         "Pods as CSV: name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec][,creation_time]."},
    {.name = "data",
     .kind = OPTION_STRING,
     .offset = offsetof(struct replay_options, data),
     .fallback = "../shared/data",
     .meta = "DATA",
     .help = "Where --openb looks."},
    {.name = "gang-trace",
     .kind = OPTION_STRING,
     .offset = offsetof(struct replay_options, gang_trace),
     .meta = "FILE",
     .help =
         "Jobs as CSV: job_id,num_gpu,submit_time,duration (milliseconds), each a gang of pods with "
         "one card, replayed in simulated time: how long they wait, here and with strict FIFO and "
         "with a scheduler that keeps cards for incomplete gangs until a timeout."},
    {.name = "trace-nodes",
     .kind = OPTION_INT,
     .offset = offsetof(struct replay_options, trace_nodes),
     .fallback = "16",
     .min = 1,
     .max = REPLAY_TRACE_NODES_MAX,
     .meta = "N",
     .help = "Nodes for --gang-trace."},
    {.name = "trace-cards",
     .kind = OPTION_INT,
     .offset = offsetof(struct replay_options, trace_cards),
     .fallback = "8",
     .min = 1,
     .max = REPLAY_TRACE_CARDS_MAX,
     .meta = "N",
     .help = "Cards of each of them."},
    {.name = "trace-timeout",
     .kind = OPTION_INT,
     .offset = offsetof(struct replay_options, trace_timeout_s),
     .fallback = "60",
     .min = 1,
     .max = 86400,
     .meta = "SECONDS",
     .help =
         "After which the scheduler to compare with gives the cards of an incomplete gang back."},
    {.name = "trace-deadlines",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct replay_options, trace_deadlines),
     .help = "The pods of the trace have their run time as activeDeadlineSeconds."},
    {.section = "OUTPUT"},
    {.name = "explain",
     .kind = OPTION_STRING,
     .offset = offsetof(struct replay_options, explain),
     .meta = "[NS/]POD",
     .help =
         "For every node why this pod can or cannot go there, the score, and which one is chosen."},
    {.name = "output",
     .kind = OPTION_CHOICE,
     .offset = offsetof(struct replay_options, output),
     .fallback = "text",
     .choices = "text|json",
     .meta = "FORM",
     .help = "Form of the result."},
    {.name = "summary",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct replay_options, summary),
     .help = "Only how many were placed, and how full the nodes are."},
    {.name = "timings",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct replay_options, timings),
     .help = "How long reading and deciding took, on standard error."},
    {.name = "save",
     .kind = OPTION_STRING,
     .offset = offsetof(struct replay_options, save),
     .meta = "FILE",
     .help = "Write the cluster as it is afterwards, as a dump for the next replay."},
    {0},
};

static const struct option_program program = {
    .name = "cosched-replay",
    .summary = "the scheduler on a file: what goes where, what waits, and why",
    .synopsis = "[OPTION]... [FILE]...",
    .description =
        "Runs the core of cosched-scheduler on a copy of a cluster, without one, and changes nothing anywhere. FILE is what "
        "the scheduler serves at /debug/cluster, or what kubectl prints, in JSON or YAML; - is standard input. Several files "
        "are one cluster.\n\n"
        "    kubectl get nodes,pods -A -o json >cluster.json\n"
        "    cosched-replay cluster.json\n\n"
        "Waiting pods are placed by priority, then age, as the scheduler does it, until nothing more can be placed. Standard "
        "output depends on the input alone: the same input gives the same bytes.",
    .trailer = "EXIT STATUS\n"
               "    0   all pods in question were placed\n"
               "    1   some wait\n"
               "    2   wrong usage, or an input that is of no use\n\n"
               "EXAMPLES\n"
               "    Would this job fit, and where?\n"
               "        cosched-replay cluster.json --add job.yaml\n"
               "    Why does this pod wait?\n"
               "        cosched-replay cluster.json --explain team/train-0\n"
               "    Straight from the scheduler:\n"
               "        curl -s http://SCHEDULER:8080/debug/cluster | cosched-replay -\n"
               "    A trace:\n"
               "        cosched-replay --openb default --summary --timings\n"
               "    How long gangs wait:\n"
               "        cosched-replay --gang-trace ../shared/data/gang/muri_trace1.csv\n",
    .max_operands = FILES_MAX,
};

struct replay {
    struct replay_options options;
    struct reserving_options reserving;
    struct cluster cluster;
    struct replay_run run;
    struct replay_load load;
    struct replay_add add;
    struct replay_explain explain;
    int64_t loaded_us, decided_us;
};

static void warn(void *arg, const char *text)
{
    (void)arg;
    (void)fprintf(stderr, "%s: warning: %s\n", program.name, text);
}

/* ---- input ---- */

static int load_openb(struct replay *r, struct error *err)
{
    const struct replay_options *o = &r->options;
    AUTO_STRBUF nodes = {0};
    AUTO_STRBUF pods = {0};
    if (o->openb_nodes != NULL)
        strbuf_adds(&nodes, o->openb_nodes);
    else if (o->openb != NULL)
        strbuf_addf(&nodes, "%s/openb/openb_node_list_gpu_node.csv", o->data);
    if (o->openb_pods != NULL)
        strbuf_adds(&pods, o->openb_pods);
    else if (o->openb != NULL)
        strbuf_addf(&pods, "%s/openb/openb_pod_list_%s.csv", o->data, o->openb);
    if ((nodes.len > 0 && replay_openb_nodes(&r->load, strbuf_str(&nodes), err) < 0) ||
        (pods.len > 0 && replay_openb_pods(&r->load, strbuf_str(&pods), err) < 0)) {
        if (err->code == ERROR_NOT_FOUND && o->openb != NULL)
            return error_set(
                err, ERROR_NOT_FOUND,
                "%s; the traces are openb_*.csv of cluster-trace-gpu-v2023 in the repository "
                "alibaba/clusterdata: put them into DIR/openb and say --data DIR",
                err->text);
        return -1;
    }
    return 0;
}

static int load_added(struct replay *r, struct error *err)
{
    AUTO_STRBUF list = {0};
    strbuf_adds(&list, r->options.add);
    for (char *at = list.ptr, *next; at != NULL; at = next) {
        next = strchr(at, ',');
        if (next != NULL)
            *next++ = '\0';
        if (replay_add_file(&r->add, at, err) < 0)
            return error_wrap(err, "--add");
    }
    return replay_add_finish(&r->add, err) < 0 ? error_wrap(err, "--add") : 0;
}

static int load_all(struct replay *r, const struct options_operands *files, struct error *err)
{
    const struct replay_options *o = &r->options;
    for (size_t i = 0; i < files->len; i++)
        if (replay_load_file(&r->load, files->items[i], err) < 0)
            return -1;
    if (load_openb(r, err) < 0)
        return -1;
    replay_load_finish(&r->load);
    if (r->load.objects == 0)
        return error_set(err, ERROR_INVALID, "the input has no object that plays a part%s%s",
                         replay_load_skipped(&r->load) != NULL ? ": only " : "",
                         str_or_empty(replay_load_skipped(&r->load)));
    if (o->add != NULL && load_added(r, err) < 0)
        return -1;
    const char *skipped = replay_load_skipped(&r->load);
    if (skipped != NULL)
        (void)fprintf(stderr, "%s: of kinds that play no part: %s\n", program.name, skipped);
    return 0;
}

/* ---- run ---- */

static void after(void *arg, struct gang *g)
{
    struct replay *r = arg;
    replay_explain_placed(&r->explain, &r->run.pipeline, g);
}

static void makes_room(void *arg, struct gang *g, const struct cycle_result *result)
{
    struct replay *r = arg;
    replay_explain_makes_room(&r->explain, &r->run.pipeline, g, result);
}

static int prepare_explain(struct replay *r, struct error *err)
{
    const char *pod = r->options.explain;
    if (pod == NULL)
        return 0;
    const char *key =
        strchr(pod, '/') != NULL ? pod : arena_printf(&r->load.arena, "%s/%s", r->options.ns, pod);
    replay_explain_init(&r->explain, key);
    r->run.after = after;
    r->run.makes_room = makes_room;
    r->run.arg = r;
    if (!replay_explain_prepare(&r->explain, &r->run.pipeline, &r->run.hooks))
        return error_set(err, ERROR_NOT_FOUND,
                         "--explain: the input has no pod %s, or it is finished", key);
    return 0;
}

static int write_file(const char *path, const struct strbuf *text, struct error *err)
{
    FILE *f = str_eq(path, "-") ? stdout : fopen(path, "we");
    if (f == NULL)
        return error_errno(err, errno, "%s", path);
    bool written = fwrite(strbuf_str(text), 1, text->len, f) == text->len && fflush(f) == 0;
    int why = errno;
    if (f != stdout && fclose(f) != 0 && written) {
        written = false;
        why = errno;
    }
    return written ? 0 : error_errno(err, why, "%s", str_eq(path, "-") ? "standard output" : path);
}

static int report(struct replay *r, int *status, struct error *err)
{
    struct replay_report report = {.run = &r->run,
                                   .explain = r->options.explain != NULL ? &r->explain : NULL,
                                   .only = r->options.add != NULL ? &r->add.keys : NULL,
                                   .summary = r->options.summary};
    AUTO_STRBUF out = {0};
    if (r->options.output == OUTPUT_JSON)
        replay_report_json(&report, &out);
    else
        replay_report_text(&report, &out);
    if (write_file("-", &out, err) < 0)
        return -1;
    *status = replay_report_count(&report).waiting > 0 ? EXIT_WAITING : EXIT_SUCCESS;
    if (r->options.save == NULL)
        return 0;
    AUTO_STRBUF dump = {0};
    int64_t began_us = clock_mono_us();
    dump_cluster(&r->cluster, &dump);
    if (r->options.timings)
        (void)fprintf(stderr, "%s: %zu bytes of dump printed in %lld ms\n", program.name, dump.len,
                      (long long)(clock_mono_us() - began_us) / 1000);
    return write_file(r->options.save, &dump, err);
}

static void print_timings(const struct replay *r)
{
    int64_t us = r->decided_us > 0 ? r->decided_us : 1;
    (void)fprintf(
        stderr,
        "%s: %zu objects read in %lld ms; %zu cycles in %lld ms, %zu pods placed, %lld placements/s\n",
        program.name, r->load.objects, (long long)r->loaded_us / 1000, r->run.cycles,
        (long long)r->decided_us / 1000, r->run.placed.len,
        (long long)((int64_t)r->run.placed.len * 1000000 / us));
}

static int run(struct replay *r, const struct options_operands *files, int *status,
               struct error *err)
{
    int64_t began = clock_mono_us();
    if (load_all(r, files, err) < 0 || prepare_explain(r, err) < 0)
        return -1;
    r->loaded_us = clock_mono_us() - began;
    began = clock_mono_us();
    replay_run_all(&r->run);
    r->decided_us = clock_mono_us() - began;
    if (r->options.explain != NULL)
        replay_explain_waiting(&r->explain, &r->run.pipeline);
    if (r->options.timings)
        print_timings(r);
    return report(r, status, err);
}

/* ---- a trace of gangs ---- */

static int run_trace(struct replay *r, struct error *err)
{
    const struct replay_options *o = &r->options;
    const struct reserving_options *keep = &r->reserving;
    struct replay_trace t = {.options = {.nodes = o->trace_nodes,
                                         .cards = o->trace_cards,
                                         .timeout_ms = o->trace_timeout_s * 1000,
                                         .tells_time = o->trace_deadlines,
                                         .reservation = {.after_ms = keep->after_s * 1000,
                                                         .for_ms = keep->for_s * 1000,
                                                         .assume_ms = keep->assume_s * 1000}}};
    AUTO_STRBUF out = {0};
    int64_t began_us = clock_mono_us();
    int rc = replay_trace_read(&t, &r->load, o->gang_trace, err);
    if (rc < 0 && err->code == ERROR_NOT_FOUND)
        rc = error_set(err, ERROR_NOT_FOUND,
                       "%s; such a trace is simulator/trace-data/trace1_pr.csv in the repository "
                       "Rivendile/Muri",
                       err->text);
    if (rc == 0)
        rc = replay_trace_run(&t, err);
    if (rc == 0) {
        if (o->output == OUTPUT_JSON)
            replay_trace_print_json(&t, &out);
        else
            replay_trace_print(&t, &out);
        rc = write_file("-", &out, err);
    }
    if (rc == 0 && o->timings)
        (void)fprintf(stderr, "%s: %zu jobs, %lld cycles in %lld ms\n", program.name, t.len,
                      (long long)t.cycles, (long long)(clock_mono_us() - began_us) / 1000);
    replay_trace_deinit(&t);
    return rc;
}

static int replay(struct replay *r, const struct options_operands *files)
{
    const struct replay_options *o = &r->options;
    struct error err = ERROR_INIT;
    int status = EXIT_USAGE;
    if (files->len == 0 && o->openb == NULL && o->openb_nodes == NULL && o->gang_trace == NULL) {
        (void)fprintf(stderr,
                      "%s: nothing to read: name a FILE, -, --openb or --gang-trace (try --help)\n",
                      program.name);
        return EXIT_USAGE;
    }
    cluster_init(&r->cluster, o->scheduler != NULL ? o->scheduler : NAME_SCHEDULER);
    replay_run_init(&r->run, &r->cluster);
    replay_load_init(&r->load, &r->cluster, &r->run.hooks);
    replay_add_init(&r->add, &r->load);
    r->load.warn = warn;
    r->load.ns = o->ns;
    r->load.named = o->scheduler != NULL;
    r->load.any_scheduler = o->any_scheduler;
    r->run.preempts = o->preempt;
    r->load.scored = o->scoring > 0;
    if (o->scoring > 0)
        r->cluster.packing = o->scoring == 1 ? CLUSTER_EMPTIEST_FIRST : CLUSTER_FULLEST_FIRST;
    r->load.max_bytes = (size_t)o->max_input;
    int rc = o->gang_trace != NULL ? run_trace(r, &err) : run(r, files, &status, &err);
    if (o->gang_trace != NULL)
        status = EXIT_SUCCESS;
    if (rc < 0) {
        (void)fprintf(stderr, "%s: %s\n", program.name, err.text);
        status = EXIT_USAGE;
    }
    if (o->explain != NULL)
        replay_explain_deinit(&r->explain);
    replay_add_deinit(&r->add);
    replay_run_deinit(&r->run);
    cluster_deinit(&r->cluster);
    replay_load_deinit(&r->load);
    return status;
}

int main(int argc, char **argv)
{
    static struct replay r;
    struct error err = ERROR_INIT;
    struct options_operands files = {0};
    const struct option_table tables[] = {
        {rows, &r.options}, {reserving_option_rows, &r.reserving}, {NULL, NULL}};
    switch (options_parse(&program, tables, argc, argv, &files, &err)) {
    case OPTIONS_EXIT:
        return EXIT_SUCCESS;
    case OPTIONS_ERROR:
        (void)fprintf(stderr, "%s: %s (try --help)\n", program.name, err.text);
        return EXIT_USAGE;
    case OPTIONS_RUN:
        break;
    }
    return replay(&r, &files);
}

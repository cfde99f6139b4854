// SPDX-License-Identifier: Apache-2.0
/*
 * cosched-replay: the scheduler's core on a file instead of a cluster.
 *
 *     dump, kubectl's List, YAML ─┐
 *     --add job.yaml ─────────────┴─► cluster ─► queue ─► cycle ─► plan ─► placements, reasons
 *
 * No clock, no threads, no network: the same input gives the same bytes on standard output (I4).
 * Timings, which vary, and warnings go to standard error.
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
#include "scheduler/replay/replay_report.h"
#include "scheduler/replay/replay_run.h"

enum { EXIT_WAITING = 1, EXIT_USAGE = 2, FILES_MAX = 64, OUTPUT_TEXT = 0, OUTPUT_JSON = 1 };

struct replay_options {
    const char *add;
    const char *ns;
    const char *scheduler;
    bool any_scheduler;
    bool preempt;
    int scoring;
    int64_t max_input;
    const char *explain;
    int output;
    bool summary;
    bool timings;
    const char *save;
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
     .help = "Pods that fit nowhere preempt less important ones. Without it everybody stays, "
             "and the waiting pod's reason says who would have to leave."},
    {.name = "scoring",
     .kind = OPTION_CHOICE,
     .offset = offsetof(struct replay_options, scoring),
     .fallback = "dump",
     .choices = "dump|" CLUSTER_EMPTIEST_NAME "|" CLUSTER_FULLEST_NAME,
     .meta = "HOW",
     .help = "Which of the nodes that fit are filled first. What the dump says, "
             "else " CLUSTER_EMPTIEST_NAME "."},
    {.name = "max-input",
     .kind = OPTION_SIZE,
     .offset = offsetof(struct replay_options, max_input),
     .fallback = "1GiB",
     .min = 1,
     .max = INT64_C(1) << 40,
     .meta = "SIZE",
     .help = "Larger files are refused."},
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
               "    2   wrong usage, or unusable input\n\n"
               "EXAMPLES\n"
               "    Would this job fit, and where?\n"
               "        cosched-replay cluster.json --add job.yaml\n"
               "    Why does this pod wait?\n"
               "        cosched-replay cluster.json --explain team/train-0\n"
               "    Straight from the scheduler:\n"
               "        curl -s http://SCHEDULER:8080/debug/cluster | cosched-replay -\n",
    .max_operands = FILES_MAX,
};

struct replay {
    struct replay_options options;
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

static void after(void *arg, struct gang *g)
{
    struct replay *r = arg;
    replay_explain_placed(&r->explain, &r->run.pipeline, g);
}

static void will_evict(void *arg, struct gang *g, const struct cycle_result *result)
{
    struct replay *r = arg;
    replay_explain_preempts(&r->explain, &r->run.pipeline, g, result);
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
    r->run.will_evict = will_evict;
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

static int replay(struct replay *r, const struct options_operands *files)
{
    const struct replay_options *o = &r->options;
    struct error err = ERROR_INIT;
    int status = EXIT_USAGE;
    if (files->len == 0) {
        (void)fprintf(stderr, "%s: nothing to read: name a FILE or - (try --help)\n", program.name);
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
    r->run.attempt.all_stay = !o->preempt;
    r->load.scored = o->scoring > 0;
    if (o->scoring > 0)
        r->cluster.packing = o->scoring == 1 ? CLUSTER_EMPTIEST_FIRST : CLUSTER_FULLEST_FIRST;
    r->load.documents.max_bytes = (size_t)o->max_input;
    if (run(r, files, &status, &err) < 0) {
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

/* Options of earlier versions. */
static bool is_for_traces(int argc, char **argv)
{
    static const char *const gone[] = {"--openb", "--data", "--gang-", "--trace-", "--backfill-"};
    for (int i = 1; i < argc && !str_eq(argv[i], "--"); i++)
        for (size_t k = 0; k < sizeof gone / sizeof *gone; k++)
            if (str_starts(argv[i], gone[k]))
                return true;
    return false;
}

int main(int argc, char **argv)
{
    static struct replay r;
    struct error err = ERROR_INIT;
    struct options_operands files = {0};
    const struct option_table tables[] = {{rows, &r.options}, {NULL, NULL}};
    switch (options_parse(&program, tables, argc, argv, &files, &err)) {
    case OPTIONS_EXIT:
        return EXIT_SUCCESS;
    case OPTIONS_ERROR:
        if (is_for_traces(argc, argv))
            error_set(&err, ERROR_UNSUPPORTED,
                      "traces are read by test/bench/bench_simulate in the sources of cosched now: "
                      "make bench-simulate, docs/benchmarks.md");
        (void)fprintf(stderr, "%s: %s (try --help)\n", program.name, err.text);
        return EXIT_USAGE;
    case OPTIONS_RUN:
        break;
    }
    return replay(&r, &files);
}

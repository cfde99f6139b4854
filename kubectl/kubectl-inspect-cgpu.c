// SPDX-License-Identifier: Apache-2.0
/*
 * `kubectl inspect cgpu`: the cluster's cards and the pods that hold them.
 *
 * kubectl runs any kubectl-inspect-cgpu in PATH. This program lists nodes and pods, prints, and
 * writes nothing to the cluster. It uses only POSIX, to build where the other programs do not, so
 * --watch polls.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kubectl/doctor.h"
#include "kubectl/facts.h"
#include "kubectl/grid.h"
#include "kubectl/load.h"
#include "kubectl/report.h"
#include "kubectl/view.h"
#include "lib/base/options.h"
#include "lib/kube/http.h"
#include "lib/model/names.h"

#define PROGRAM "kubectl-inspect-cgpu"

enum { ARGS_MAX = 256, OUTPUT_TABLE = 0, OUTPUT_JSON = 1 };

struct main_options {
    bool details;
    bool watch;
    int output;
    int64_t interval_ms;
    const char *ns;
};

static const struct option_row main_rows[] = {
    {.name = "details",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct main_options, details),
     .help = "Lists each node's pods with their share of each card. Short form: -d."},
    {.name = "output",
     .kind = OPTION_CHOICE,
     .offset = offsetof(struct main_options, output),
     .fallback = "table",
     .choices = "table|json",
     .meta = "FORMAT",
     .help = "json has all nodes with cards, in every mode, and their pods. Short form: -o."},
    {.name = "watch",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct main_options, watch),
     .help =
         "Asks again after the interval, prints when something changed, and goes on until it is "
         "interrupted. Short form: -w."},
    {.name = "interval",
     .kind = OPTION_DURATION,
     .offset = offsetof(struct main_options, interval_ms),
     .fallback = "2s",
     .min = 200,
     .max = 3600 * 1000,
     .meta = "TIME",
     .help = "Time between two requests of --watch."},
    {.name = "namespace",
     .kind = OPTION_STRING,
     .offset = offsetof(struct main_options, ns),
     .meta = "NAME",
     .help = "Of the pod for `why`; otherwise that of the kubeconfig's context. Short form: -n."},
    {0},
};

static const struct option_program program = {
    .name = PROGRAM,
    .summary = "shared GPU cards of a cluster, and who holds them",
    .synopsis = "[-d] [-o json] [-w] [NODE]\n    " PROGRAM " why POD\n    " PROGRAM
                " topology NODE\n    " PROGRAM " doctor",
    .description =
        "With this program in PATH, `kubectl inspect cgpu` prints each node in a shared mode (cgpu, "
        "core_mem, share, mps) with what is allocated of each card, in GiB, and the sum of the "
        "cluster. With NODE, of that node alone. Columns grow to the node with most cards; a node "
        "with fewer shows 0/0. PENDING(Allocated) appears when a pod on a node holds memory and no "
        "card is known for it.\n"
        "\n"
        "`why POD` prints the scheduler's sentence about a pod that waits, and for each card of each "
        "node why the pod cannot have it. POD is a name or NAMESPACE/NAME.\n"
        "\n"
        "`topology NODE` prints how the node's cards are linked, as nvidia-smi names the links, and "
        "which pod holds which card.\n"
        "\n"
        "`doctor` checks the whole installation (programs, rights, webhook, policies, nodes, "
        "grants) and prints what is wrong and how to fix it. It has the rights of the kubeconfig's "
        "user, and says what it may not read. It changes nothing: the pod that tests the webhook "
        "is created with dryRun=All.\n"
        "\n"
        "Nodes and pods are listed once each. Colours are used on a terminal only, and not when "
        "NO_COLOR is set. Characters that a terminal could take for a command are shown as '?'. A "
        "node whose inventory cannot be read is named on standard error.",
    .trailer = "EXIT STATUS\n"
               "    0  printed\n"
               "    1  the cluster could not be asked, there is no such node or pod, or doctor has "
               "findings\n"
               "    2  wrong options\n"
               "\n"
               "EXAMPLES\n"
               "    kubectl inspect cgpu\n"
               "    kubectl inspect cgpu -d gpu-node-1\n"
               "    kubectl inspect cgpu why team-a/train-0\n"
               "    kubectl inspect cgpu topology gpu-node-1\n"
               "    kubectl inspect cgpu doctor\n"
               "    kubectl inspect cgpu -o json --context=production\n",
    .max_operands = 2,
};

struct app {
    struct main_options main;
    struct kube_options kube;
    struct kube_config *config;
    struct kube_client *client;
    const char *command; /* "why", "topology", "doctor" or NULL */
    const char *subject; /* NODE, POD or NULL */
    bool colours;
};

static volatile sig_atomic_t stopped;

static void on_signal(int signo)
{
    (void)signo;
    stopped = 1;
}

static int complain(const char *text, int status)
{
    struct arena a;
    arena_init(&a, 0);
    (void)fprintf(stderr, PROGRAM ": %s\n", grid_clean(text, &a));
    arena_deinit(&a);
    return status;
}

/* ---- one report: -1 on failure, 1 if there are findings ---- */

static const struct pod *find_pod(const struct load *l, const char *key)
{
    for (size_t i = 0; i < l->pods.len; i++)
        if (str_eq(l->pods.items[i]->key, key))
            return l->pods.items[i];
    return NULL;
}

static int explain(const struct app *app, const struct load *l, const struct report *r,
                   struct strbuf *out, struct error *err)
{
    AUTO_STRBUF key = {0};
    const char *subject = str_or_empty(app->subject);
    if (strchr(subject, '/') == NULL)
        strbuf_addf(&key, "%s/",
                    app->main.ns != NULL ? app->main.ns : kube_config_namespace(app->config));
    strbuf_adds(&key, subject);
    const struct pod *p = find_pod(l, strbuf_str(&key));
    if (p == NULL)
        return error_set(err, ERROR_NOT_FOUND, "pod %s does not exist", strbuf_str(&key));
    report_why(r, p, out);
    return 0;
}

static int diagnose(const struct app *app, const struct load *l, const struct view *v,
                    struct arena *a, struct strbuf *out, struct error *err)
{
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    if (facts_fetch(app->client, &app->kube, l, &text, err) < 0 ||
        json_parse(&doc, strbuf_str(&text), text.len, err) < 0)
        return -1;
    struct doctor d = {.facts = json_root(doc), .view = v, .arena = a};
    doctor_examine(&d);
    doctor_print(&d, out);
    int found = d.findings.len > 0;
    vec_deinit(&d.findings);
    return found;
}

static int answer(const struct app *app, const struct load *l, struct arena *a, struct strbuf *out,
                  struct error *err)
{
    struct view v;
    view_build(&v, l->nodes.items, l->nodes.len, l->pods.items, l->pods.len, a);
    struct report r = {.view = &v, .colours = app->colours, .arena = a};
    if (str_eq(app->command, "doctor"))
        return diagnose(app, l, &v, a, out, err);
    for (size_t i = 0; i < v.nodes_len; i++)
        if (v.nodes[i].problem != NULL)
            (void)fprintf(stderr, PROGRAM ": node %s: %s%s\n", grid_clean(v.nodes[i].node->name, a),
                          grid_clean(v.nodes[i].problem, a),
                          v.nodes[i].guessed ? "; its cards are shown as of equal size" : "");
    if (str_eq(app->command, "why"))
        return explain(app, l, &r, out, err);
    r.node = app->subject;
    if (str_eq(app->command, "topology"))
        return report_topology(&r, out, err);
    if (app->main.output == OUTPUT_JSON)
        return report_json(&r, out, err);
    return app->main.details ? report_details(&r, out, err) : report_table(&r, out, err);
}

static int ask(const struct app *app, struct strbuf *out, struct error *err)
{
    struct load l;
    struct arena a;
    if (load_all(&l, app->client, &app->kube, err) < 0)
        return -1;
    arena_init(&a, 0);
    if (l.unreadable > 0)
        (void)fprintf(stderr, PROGRAM ": %zu objects could not be read and are left out: %s\n",
                      l.unreadable, grid_clean(l.first_problem.text, &a));
    int result = answer(app, &l, &a, out, err);
    arena_deinit(&a);
    load_free(&l);
    return result;
}

/* ---- printing, once or repeatedly ---- */

static int print(const struct strbuf *text, struct error *err)
{
    if (fwrite(strbuf_str(text), 1, text->len, stdout) != text->len || fflush(stdout) != 0)
        return error_set(err, ERROR_IO, "cannot write to standard output");
    return 0;
}

static void pause_ms(int64_t ms)
{
    const struct timespec t = {.tv_sec = (time_t)(ms / 1000),
                               .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&t, NULL); /* a signal ends it early; the loop checks stopped */
}

static int watch(const struct app *app, struct error *err)
{
    AUTO_STRBUF last = {0};
    bool terminal = isatty(STDOUT_FILENO) == 1;
    for (; !stopped; pause_ms(app->main.interval_ms)) {
        AUTO_STRBUF now = {0};
        if (ask(app, &now, err) < 0)
            return stopped ? 0 : -1;
        if (last.len > 0 && str_eq(strbuf_str(&last), strbuf_str(&now)))
            continue;
        if (terminal)
            (void)fputs("\033[H\033[2J", stdout);
        else if (last.len > 0)
            (void)fputs("\n", stdout);
        if (print(&now, err) < 0)
            return -1;
        strbuf_reset(&last);
        strbuf_adds(&last, strbuf_str(&now));
    }
    return 0;
}

static int run(struct app *app, struct error *err)
{
    AUTO_STRBUF out = {0};
    if (kube_config_load(&app->config, &app->kube, err) < 0 ||
        kube_client_new(&app->client, app->config, &app->kube, PROGRAM, err) < 0)
        return -1;
    if (app->main.watch)
        return watch(app, err);
    int result = ask(app, &out, err);
    return result < 0 || print(&out, err) < 0 ? -1 : result;
}

/* ---- command line ---- */

/* Expands kubectl's short options. */
static int lengthen(int argc, char **argv, char **out, struct arena *a, struct error *err)
{
    static const struct {
        const char *shorter, *longer;
        bool value;
    } forms[] = {{"-d", "--details", false},
                 {"-w", "--watch", false},
                 {"-h", "--help", false},
                 {"-o", "--output", true},
                 {"-n", "--namespace", true}};
    bool flags = true;
    if (argc > ARGS_MAX)
        return error_set(err, ERROR_INVALID, "more than %d arguments", ARGS_MAX);
    for (int i = 0; i < argc; i++) {
        out[i] = argv[i];
        flags = flags && strcmp(argv[i], "--") != 0;
        for (size_t k = 0; flags && i > 0 && k < sizeof forms / sizeof forms[0]; k++) {
            if (strcmp(argv[i], forms[k].shorter) == 0)
                out[i] = arena_strdup(a, forms[k].longer);
            else if (forms[k].value && str_starts(argv[i], forms[k].shorter) && argv[i][1] != '-')
                out[i] =
                    arena_printf(a, "%s=%s", forms[k].longer, argv[i] + 2 + (argv[i][2] == '='));
        }
    }
    out[argc] = NULL;
    return 0;
}

static int take_operands(struct app *app, const struct options_operands *o, struct error *err)
{
    const char *first = o->len > 0 ? o->items[0] : NULL;
    bool command = o->len == 2;
    if (o->len == 1 && str_eq(first, "doctor")) {
        app->command = first;
        return app->main.output == OUTPUT_JSON
                   ? error_set(err, ERROR_INVALID, "doctor: has no output json")
                   : 0;
    }
    if (command && !str_eq(first, "why") && !str_eq(first, "topology"))
        return error_set(err, ERROR_INVALID,
                         "'%.64s' is no command; there are why, topology and doctor", first);
    if (!command && (str_eq(first, "why") || str_eq(first, "topology")))
        return error_set(err, ERROR_INVALID, "%s: needs the name of a %s", first,
                         str_eq(first, "why") ? "pod" : "node");
    if (command && app->main.output == OUTPUT_JSON)
        return error_set(err, ERROR_INVALID, "%s: has no output json", first);
    app->command = command ? first : NULL;
    app->subject = command ? o->items[1] : first;
    return 0;
}

static enum options_result parse(struct app *app, int argc, char **argv, struct arena *a,
                                 struct error *err)
{
    const struct option_table tables[] = {
        {main_rows, &app->main}, {kube_option_rows, &app->kube}, {0}};
    struct options_operands operands = {0};
    char **args = arena_new(a, char *, ARGS_MAX + 1);
    if (lengthen(argc, argv, args, a, err) < 0)
        return OPTIONS_ERROR;
    enum options_result result = options_parse(&program, tables, argc, args, &operands, err);
    if (result == OPTIONS_RUN && take_operands(app, &operands, err) < 0)
        return OPTIONS_ERROR;
    return result;
}

static bool wants_colours(void)
{
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) == 1 && str_or_empty(getenv("NO_COLOR"))[0] == '\0' &&
           term != NULL && !str_eq(term, "dumb");
}

int main(int argc, char **argv)
{
    struct app app = {.colours = wants_colours()};
    struct error err = ERROR_INIT;
    struct arena args;
    int status = 0;
    arena_init(&args, 0);
    enum options_result parsed = parse(&app, argc, argv, &args, &err);
    if (parsed == OPTIONS_ERROR) {
        complain(err.text, 2);
        status = complain("try --help", 2);
    } else if (parsed == OPTIONS_RUN) {
        const struct sigaction ends = {.sa_handler = on_signal};
        (void)sigaction(SIGINT, &ends, NULL);
        (void)sigaction(SIGTERM, &ends, NULL);
        kube_http_global_init();
        int result = run(&app, &err);
        status = result < 0 ? complain(err.text, 1) : result;
        kube_client_free(app.client);
        kube_config_free(app.config);
        kube_http_global_cleanup();
    }
    arena_deinit(&args);
    return status;
}

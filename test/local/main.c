// SPDX-License-Identifier: Apache-2.0
/*
 * cosched-local: a Kubernetes cluster in one process, for demos, tests and load.
 *
 *   cosched-local [serve]   API server, controllers, and nodes: simulated ones (--nodes) with the
 *                           real device plugin, hollow ones (--hollow) for scale
 *   cosched-local nodes     the simulated nodes alone, against any API server
 *
 *   server ──► on_call ──► faults ──► api ──► store ◄── controllers, hollow
 *                                                ▲
 *   nodes (a thread, over HTTP as from outside) ─┘
 */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/loop.h"
#include "lib/base/metrics.h"
#include "lib/base/options.h"
#include "lib/kube/config.h"
#include "lib/kube/http.h"
#include "test/local/admission/admission.h"
#include "test/local/api/api.h"
#include "test/local/controllers/controllers.h"
#include "test/local/kinds/discovery.h"
#include "test/local/store/expiry.h"
#include "test/local/faults/faults.h"
#include "test/local/faults/faults_pods.h"
#include "test/local/gauges.h"
#include "test/local/nodes/hollow.h"
#include "test/local/server/kubeconfig.h"
#include "test/local/memory.h"
#include "test/local/nodes/nodes.h"
#include "test/local/nodes/nodes_host.h"
#include "test/local/server/server.h"
#include "test/local/store/store.h"

enum {
    EXIT_USAGE = 2,
    STOP_MS = 8000 /* for nodes to end, each with its plugin */,
    FILE_MAX = 64 * 1024 * 1024
};

struct local_options {
    const char *address, *state_dir, *nodes, *plugin, *fault_script, *hollow_template;
    const char *webhook_services;
    int64_t port, history, hollow, hollow_cpu, hollow_memory, hollow_pods;
    int64_t max_body, max_unsent, event_ttl_ms;
    bool insecure, keep_state;
};

struct local {
    struct local_options options;
    struct kube_options kube_options;
    struct log_options log_options;
    struct loop *loop;
    struct store *store;
    struct kubeconfig files;
    struct admission *admission;
    struct api *api;
    struct expiry *expiry[2]; /* of Events, by both their names */
    struct controllers *controllers;
    struct hollow *hollow;
    struct faults *faults;
    struct faults_pods faults_pods;
    struct server *server;
    struct kube_config *kube;
    struct nodes_host *nodes_host;
    char *plugin;
    struct loop_timer stop_timer;
    bool stopping, nodes_stopped;
    int exit_code;
};

#define ROW(n, k, field) .name = n, .kind = k, .offset = offsetof(struct local_options, field)

static const struct option_row serve_rows[] = {
    {.section = "API SERVER"},
    {ROW("address", OPTION_STRING, address), .fallback = "127.0.0.1", .meta = "ADDRESS",
     .help = "Where the API is served; an address in digits."},
    {ROW("port", OPTION_INT, port), .fallback = "0", .max = 65535, .meta = "N",
     .help = "0 takes a free one."},
    {ROW("insecure", OPTION_BOOL, insecure),
     .help = "Plain HTTP and no token: for load tests on loopback."},
    {ROW("state-dir", OPTION_STRING, state_dir), .meta = "DIR",
     .help = "Certificates, token, kubeconfig and the nodes' directories; unless given a temporary "
             "directory, which is removed at the end (not with --keep-state)."},
    {ROW("keep-state", OPTION_BOOL, keep_state),
     .help = "The objects are written to the state directory at the end and read from it at the "
             "start."},
    {ROW("history", OPTION_INT, history), .fallback = "50000", .min = 1, .max = 10000000,
     .meta = "N", .help = "Changes of each kind that a watch can resume over; older ones are 410."},
    {ROW("event-ttl", OPTION_DURATION, event_ttl_ms), .fallback = "1h", .max = 8760LL * 3600 * 1000,
     .meta = "DURATION",
     .help = "How long an Event lives after it was written last; 0: until someone deletes it."},
    {ROW("max-body-bytes", OPTION_SIZE, max_body), .fallback = "3MiB", .min = 1024, .max = 1 << 30,
     .meta = "SIZE", .help = "Of a request; more is 413."},
    {ROW("max-unsent-bytes", OPTION_SIZE, max_unsent), .fallback = "256MiB", .min = 1024,
     .max = 1LL << 40, .meta = "SIZE", .help = "Of one watch; a slower watcher is dropped."},
    {ROW("webhook-services", OPTION_STRING, webhook_services), .meta = "LIST",
     .help = "Where webhooks' services are: NAMESPACE/NAME=HOST:PORT,..."},
    {ROW("fault-script", OPTION_STRING, fault_script), .meta = "FILE",
     .help = "Faults with their times, one per line; see test/local/faults/faults.c."},
    {.section = "NODES"},
    {ROW("nodes", OPTION_STRING, nodes), .meta = "FILE",
     .help = "Simulated nodes (JSON), each with the real device plugin."},
    {ROW("plugin", OPTION_STRING, plugin), .meta = "PATH",
     .help = "cosched-device-plugin; beside this program unless given."},
    {ROW("hollow", OPTION_INT, hollow), .fallback = "0", .max = 1000000, .meta = "N",
     .help = "Nodes that are only API objects; pods bound to them go Running by themselves."},
    {ROW("hollow-cpu", OPTION_INT, hollow_cpu), .fallback = "64", .min = 1, .max = 100000,
     .meta = "N", .help = "CPUs of a hollow node."},
    {ROW("hollow-memory", OPTION_SIZE, hollow_memory), .fallback = "256GiB", .min = 1024,
     .max = 1LL << 50, .meta = "SIZE", .help = "Memory of a hollow node."},
    {ROW("hollow-pods", OPTION_INT, hollow_pods), .fallback = "110", .min = 1, .max = 100000,
     .meta = "N", .help = "Pods that fit on a hollow node."},
    {ROW("hollow-template", OPTION_STRING, hollow_template), .meta = "FILE",
     .help = "A Node (JSON) to make them from instead; $NAME and $INDEX are replaced."},
    {0}};

static const struct option_row nodes_rows[] = {
    {.section = "NODES"},
    {ROW("nodes", OPTION_STRING, nodes), .meta = "FILE", .required = true,
     .help = "Simulated nodes (JSON), each with the real device plugin."},
    {ROW("plugin", OPTION_STRING, plugin), .meta = "PATH",
     .help = "cosched-device-plugin; beside this program unless given."},
    {ROW("state-dir", OPTION_STRING, state_dir), .meta = "DIR",
     .help = "The nodes' directories; a new temporary directory unless given."},
    {0}};

static const struct option_program serve_program = {
    .name = "cosched-local",
    .summary = "a Kubernetes cluster in one process",
    .synopsis = "[serve] [OPTION]...",
    .description =
        "Serves a Kubernetes API from memory, with the controllers, simulated nodes and faults that\n"
        "cosched's demos, tests and benchmarks need. When it is ready it prints the line\n"
        "`export KUBECONFIG=...` for kubectl.\n\n"
        "`cosched-local nodes` runs the simulated nodes alone, against any API server.",
    .trailer = "FILES\n  STATE_DIR/kubeconfig  for kubectl, readable by the owner\n\n"
               "PATHS OF ITS OWN\n  /metrics          Prometheus\n  /cosched/faults   POST, GET, "
               "DELETE: faults on demand\n  /cosched/dump     every object, one per line\n\n"
               "SIGNALS\n  SIGTERM, SIGINT end it within 2 s.\n",
};

static const struct option_program nodes_program = {
    .name = "cosched-local nodes",
    .summary = "simulated nodes for any API server",
    .synopsis = "--nodes FILE [--kubeconfig FILE] [OPTION]...",
    .description = "Each node that is not virtual runs the real cosched-device-plugin.",
};

/* ---- calls ---- */

/* What everyone may ask without a token. */
static bool is_public(const char *path)
{
    return str_starts(path, "/healthz") || str_starts(path, "/livez") ||
           str_starts(path, "/readyz") || str_eq(path, "/version");
}

static void handle_api(void *arg, struct call *c)
{
    struct local *l = arg;
    if (is_public(call_path(c)) && discovery_handle(c))
        return;
    if (!str_eq(call_path(c), "/cosched/dump")) {
        api_handle(l->api, c);
        return;
    }
    struct strbuf body = {0};
    bool known = call_authenticated(c);
    if (known)
        store_dump(l->store, &body);
    call_reply(c, known ? 200 : 401, "application/jsonl", NULL, &body);
}

static void on_call(void *arg, struct call *c)
{
    struct local *l = arg;
    if (!str_eq(call_path(c), "/metrics")) {
        faults_handle(l->faults, c);
        return;
    }
    struct strbuf body = {0};
    metrics_render(&body);
    call_reply(c, 200, "text/plain; version=0.0.4; charset=utf-8", NULL, &body);
}

static void on_restarting(void *arg)
{
    struct local *l = arg;
    api_close_watches(l->api);
}

static int on_node_fault(void *arg, const struct faults_node *what, struct error *err)
{
    struct local *l = arg;
    if (!l->nodes_host)
        return error_set(err, ERROR_UNSUPPORTED, "there are no simulated nodes here");
    return nodes_host_fault(l->nodes_host, what, err);
}

/* ---- stopping ---- */

static void end(void *arg)
{
    struct local *l = arg;
    loop_stop(l->loop);
}

static void begin_stop(struct local *l)
{
    if (l->stopping) /* a second signal does not wait */
        end(l);
    l->stopping = true;
    if (!l->nodes_host) {
        end(l);
        return;
    }
    nodes_host_ask_stop(l->nodes_host);
    loop_timer_set(l->loop, &l->stop_timer, STOP_MS, end, l);
}

static void on_signal(void *arg, int signo)
{
    struct local *l = arg;
    log_info("stopping", kv("signal", signo));
    begin_stop(l);
}

static void announce(const struct local *l)
{
    printf("export KUBECONFIG=%s\n", l->files.path);
    fflush(stdout);
}

static void on_nodes_started(void *arg, const struct error *err)
{
    struct local *l = arg;
    if (!err) {
        announce(l);
        return;
    }
    log_error("nodes", kv("error", err->text));
    l->exit_code = EXIT_FAILURE;
    begin_stop(l);
}

static void on_nodes_stopped(void *arg)
{
    struct local *l = arg;
    l->nodes_stopped = true;
    end(l);
}

/* ---- starting ---- */

/* A program that lies beside this one. */
static char *sibling(const char *name)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    struct strbuf path = {0};
    if (n > 0) {
        self[n] = '\0';
        char *slash = strrchr(self, '/');
        strbuf_add(&path, self, slash ? (size_t)(slash - self) + 1 : 0);
    }
    strbuf_adds(&path, name);
    return strbuf_take(&path);
}

static int start_nodes(struct local *l, struct error *err)
{
    l->kube_options.kubeconfig = l->files.path;
    if (kube_config_load(&l->kube, &l->kube_options, err) < 0)
        return -1;
    l->plugin = l->options.plugin ? NULL : sibling("cosched-device-plugin");
    struct nodes_config c = {.kube = l->kube,
                             .kube_options = &l->kube_options,
                             .kubeconfig_path = l->files.path,
                             .file = l->options.nodes,
                             .directory = l->files.directory,
                             .plugin_binary = l->plugin ? l->plugin : l->options.plugin};
    struct nodes_host_events events = {
        .started = on_nodes_started, .stopped = on_nodes_stopped, .arg = l};
    return nodes_host_start(&l->nodes_host, l->loop, &c, &events, err);
}

static char *state_path(const struct local *l)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/objects", l->files.directory);
    return strbuf_take(&path);
}

static int load_state(struct local *l, struct error *err)
{
    if (!l->options.keep_state)
        return 0;
    char *path = state_path(l);
    struct strbuf text = {0};
    int rc = kubeconfig_read_file(path, SIZE_MAX, &text, err);
    if (rc < 0 && err->code == ERROR_NOT_FOUND)
        rc = 0; /* the first start */
    else if (rc == 0 && (rc = store_load(l->store, strbuf_str(&text), text.len, err)) < 0)
        error_wrap(err, "%s", path);
    strbuf_deinit(&text);
    free(path);
    return rc;
}

static void save_state(struct local *l)
{
    if (!l->options.keep_state)
        return;
    struct error err = ERROR_INIT;
    char *path = state_path(l);
    struct strbuf text = {0};
    store_dump(l->store, &text);
    if (kubeconfig_write_file(path, strbuf_str(&text), text.len, &err) < 0) {
        log_error("state", kv("error", err.text));
        l->exit_code = EXIT_FAILURE;
    }
    strbuf_deinit(&text);
    free(path);
}

static int start_hollow(struct local *l, struct error *err)
{
    const struct local_options *o = &l->options;
    if (o->hollow == 0)
        return 0;
    struct strbuf text = {0};
    struct hollow_config c = {.count = o->hollow,
                              .cpu = o->hollow_cpu,
                              .memory_bytes = o->hollow_memory,
                              .pods = o->hollow_pods};
    int rc = 0;
    if (o->hollow_template &&
        (rc = kubeconfig_read_file(o->hollow_template, FILE_MAX, &text, err)) == 0)
        c.template_text = strbuf_str(&text);
    if (rc == 0)
        rc = hollow_start(&l->hollow, l->loop, l->store, &c, err);
    strbuf_deinit(&text);
    return rc;
}

static int start_server(struct local *l, struct error *err)
{
    const struct local_options *o = &l->options;
    const char *tokens[] = {l->files.token, NULL};
    struct server_config c = {.address = o->address,
                              .port = (uint16_t)o->port,
                              .cert_pem = l->files.pki.cert_pem,
                              .key_pem = l->files.pki.key_pem,
                              .tokens = o->insecure ? NULL : tokens,
                              .max_body_bytes = (size_t)o->max_body,
                              .max_unsent_bytes = (size_t)o->max_unsent,
                              .handle = on_call,
                              .arg = l};
    if (server_start(&l->server, l->loop, &c, err) < 0)
        return -1;
    faults_set_server(l->faults, l->server);
    return kubeconfig_write(&l->files, o->address, server_port(l->server), o->insecure, err);
}

static void start_faults(struct local *l)
{
    l->faults_pods = (struct faults_pods){.api = l->api, .store = l->store};
    struct faults_config c = {.loop = l->loop,
                              .store = l->store,
                              .handle = handle_api,
                              .handle_arg = l,
                              .restarting = on_restarting,
                              .restarting_arg = l,
                              .node = on_node_fault,
                              .node_arg = l,
                              .recreate = faults_pods_recreate,
                              .recreate_arg = &l->faults_pods};
    l->faults = faults_new(&c);
}

static int start_script(struct local *l, struct error *err)
{
    if (!l->options.fault_script)
        return 0;
    struct strbuf text = {0};
    int rc = kubeconfig_read_file(l->options.fault_script, FILE_MAX, &text, err);
    if (rc == 0 && (rc = faults_script(l->faults, strbuf_str(&text), text.len, err)) < 0)
        error_wrap(err, "%s", l->options.fault_script);
    strbuf_deinit(&text);
    return rc;
}

static void start_expiry(struct local *l)
{
    const struct kind *kinds[] = {&kind_events, kinds_by_name("events.k8s.io/v1", "Event")};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && l->options.event_ttl_ms > 0; i++) {
        struct expiry_config c = {.loop = l->loop,
                                  .store = l->store,
                                  .kind = kinds[i],
                                  .ttl_ms = l->options.event_ttl_ms,
                                  .now_ms = clock_mono_ms};
        l->expiry[i] = expiry_start(&c);
    }
}

static int start(struct local *l, struct error *err)
{
    const struct local_options *o = &l->options;
    if (loop_new(&l->loop, err) < 0 || loop_on_signal(l->loop, SIGTERM, on_signal, l, err) < 0 ||
        loop_on_signal(l->loop, SIGINT, on_signal, l, err) < 0 ||
        kubeconfig_open(&l->files, o->state_dir, o->insecure, err) < 0)
        return -1;
    l->store = store_new((size_t)o->history);
    gauges_register(&l->server, l->store);
    memory_register();
    if (load_state(l, err) < 0 || admission_new(&l->admission, l->loop, l->store, err) < 0 ||
        (o->webhook_services && admission_add_services(l->admission, o->webhook_services, err) < 0))
        return -1;
    struct api_config api = {
        .loop = l->loop, .store = l->store, .admission = l->admission, .now_ns = clock_wall_ns};
    l->api = api_new(&api);
    start_expiry(l);
    if (controllers_start(&l->controllers, l->loop, l->api, l->store, err) < 0)
        return -1;
    controllers_use_admission(l->controllers, l->admission);
    start_faults(l);
    if (start_hollow(l, err) < 0 || start_server(l, err) < 0 || start_script(l, err) < 0)
        return -1;
    log_info("serving", kv("address", o->address), kv("port", server_port(l->server)),
             kv("state", l->files.directory));
    if (o->nodes)
        return start_nodes(l, err);
    announce(l);
    return 0;
}

static void stop(struct local *l)
{
    if (l->nodes_host && !l->nodes_stopped) {
        /* Its thread is still in the nodes' hands: nothing that it may use is freed. */
        log_warn("the nodes did not end in time");
        save_state(l);
        exit(EXIT_FAILURE);
    }
    nodes_host_free(l->nodes_host);
    faults_free(l->faults);
    if (l->api)
        api_close_watches(l->api);
    server_stop(l->server);
    hollow_stop(l->hollow);
    if (l->controllers)
        controllers_stop(l->controllers);
    for (size_t i = 0; i < sizeof l->expiry / sizeof *l->expiry; i++)
        expiry_stop(l->expiry[i]);
    if (l->api)
        api_free(l->api);
    admission_free(l->admission);
    if (l->store)
        save_state(l);
    store_free(l->store);
    kube_config_free(l->kube);
    if (!l->options.keep_state)
        kubeconfig_discard(&l->files);
    kubeconfig_deinit(&l->files);
    free(l->plugin);
    loop_free(l->loop);
    metrics_reset();
}

static int serve(int argc, char **argv)
{
    static struct local l;
    struct error err = ERROR_INIT;
    const struct option_table tables[] = {
        {serve_rows, &l.options}, {log_option_rows, &l.log_options}, {NULL, NULL}};
    const struct option_table kube_defaults[] = {{kube_option_rows, &l.kube_options}, {NULL, NULL}};
    char *none[] = {argv[0], NULL};
    enum options_result got = options_parse(&serve_program, tables, argc, argv, NULL, &err);
    if (got == OPTIONS_RUN) /* the nodes' client, as it is by default */
        got = options_parse(&serve_program, kube_defaults, 1, none, NULL, &err);
    if (got == OPTIONS_EXIT)
        return EXIT_SUCCESS;
    if (got == OPTIONS_ERROR) {
        fprintf(stderr, "cosched-local: %s\nTry --help.\n", err.text);
        return EXIT_USAGE;
    }
    options_apply_log(&l.log_options, "cosched-local");
    kube_http_global_init();
    if (start(&l, &err) < 0) {
        log_error("start", kv("error", err.text));
        l.exit_code = EXIT_FAILURE;
        l.stopping = true;
    } else {
        loop_run(l.loop);
    }
    stop(&l);
    log_info("stopped", kv("status", l.exit_code));
    kube_http_global_cleanup();
    return l.exit_code;
}

/* ---- nodes alone ---- */

struct alone {
    struct local_options options;
    struct kube_options kube_options;
    struct log_options log_options;
};

static int run_nodes(struct alone *a, struct kubeconfig *files, struct error *err)
{
    struct kube_config *kube = NULL;
    struct nodes *nodes = NULL;
    if (kube_config_load(&kube, &a->kube_options, err) < 0)
        return -1;
    char *plugin = a->options.plugin ? NULL : sibling("cosched-device-plugin");
    struct nodes_config c = {.kube = kube,
                             .kube_options = &a->kube_options,
                             .kubeconfig_path = a->kube_options.kubeconfig,
                             .file = a->options.nodes,
                             .directory = files->directory,
                             .plugin_binary = plugin ? plugin : a->options.plugin};
    int rc = nodes_start(&nodes, &c, err);
    if (rc == 0) {
        printf("nodes are running\n");
        fflush(stdout);
        sigset_t set;
        int signo;
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigwait(&set, &signo);
        nodes_stop(nodes);
    }
    kube_config_free(kube);
    free(plugin);
    return rc;
}

static int nodes_alone(int argc, char **argv)
{
    static struct alone a;
    struct error err = ERROR_INIT;
    const struct option_table tables[] = {{nodes_rows, &a.options},
                                          {kube_option_rows, &a.kube_options},
                                          {log_option_rows, &a.log_options},
                                          {NULL, NULL}};
    switch (options_parse(&nodes_program, tables, argc, argv, NULL, &err)) {
    case OPTIONS_EXIT:
        return EXIT_SUCCESS;
    case OPTIONS_ERROR:
        fprintf(stderr, "cosched-local nodes: %s\nTry --help.\n", err.text);
        return EXIT_USAGE;
    case OPTIONS_RUN:
        break;
    }
    options_apply_log(&a.log_options, "cosched-local");
    kube_http_global_init();
    struct kubeconfig files = {0};
    int rc = kubeconfig_open(&files, a.options.state_dir, true, &err);
    if (rc == 0)
        rc = run_nodes(&a, &files, &err);
    if (rc < 0)
        log_error("nodes", kv("error", err.text));
    kubeconfig_discard(&files);
    kubeconfig_deinit(&files);
    kube_http_global_cleanup();
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    loop_block_signals();
    /* Memory of large replies comes back soon: giving it to the kernel between costs page
     * faults. */
    mallopt(M_TRIM_THRESHOLD, 128 * 1024 * 1024);
    mallopt(M_MMAP_THRESHOLD, 64 * 1024 * 1024);
    if (argc > 1 && str_eq(argv[1], "nodes")) {
        argv[1] = argv[0];
        return nodes_alone(argc - 1, argv + 1);
    }
    if (argc > 1 && str_eq(argv[1], "serve")) {
        argv[1] = argv[0];
        return serve(argc - 1, argv + 1);
    }
    return serve(argc, argv);
}

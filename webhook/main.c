// SPDX-License-Identifier: Apache-2.0
/*
 * cosched-webhook: options and wiring.
 *
 *   API server ──HTTPS──► server (its threads) ──► review → rules → patch (pure)
 *                            ▲ certificate        ▲ labels
 *   cert_rotator (thread) ───┘     informer_cache (threads) ◄── watches
 *   loop (this thread): signals, and the timer behind /healthz
 */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/log.h"
#include "lib/base/loop.h"
#include "lib/base/metrics.h"
#include "lib/base/options.h"
#include "lib/base/probes.h"
#include "lib/base/rss_trim.h"
#include "lib/kube/api.h"
#include "lib/kube/config.h"
#include "lib/kube/http.h"
#include "lib/model/names.h"
#include "webhook/check.h"
#include "webhook/cert_rotator.h"
#include "webhook/review.h"
#include "webhook/server.h"
#include "webhook/informer_cache.h"

#define PROGRAM "cosched-webhook"
enum { DRAIN_MS = 1000, HEAPS = 4, LARGE_BYTES = 512 * 1024 };

struct main_options {
    const char *scheduler;
    bool inject_nvidia;
    bool guard_variables, guard_nvidia;
    const char *workloads;
    bool check;
};

static const struct option_row main_rows[] = {
    {.section = "RULES"},
    {.name = "scheduler-name",
     .kind = OPTION_STRING,
     .offset = offsetof(struct main_options, scheduler),
     .fallback = NAME_SCHEDULER,
     .meta = "NAME",
     .help = "schedulerName given to pods that ask for anything of ours and name none."},
    {.name = "inject-nvidia",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct main_options, inject_nvidia),
     .help = "Also take over pods that ask for nvidia.com/gpu only. Without it this happens in "
             "namespaces labelled " NAME_INJECT "=enabled. The API server must ask about them: the "
             "chart's webhook.options sees to that."},
    {.name = "guard-variables",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct main_options, guard_variables),
     .help = "Refuse NVIDIA_VISIBLE_DEVICES (except void and none) in every pod, not only in those "
             "that ask for our GPU resources: for clusters whose container runtime gives cards to "
             "every container that names them."},
    {.name = "guard-nvidia",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct main_options, guard_nvidia),
     .fallback = "true",
     .help = "Refuse NVIDIA_VISIBLE_DEVICES (except void and none) in pods that ask for "
             "nvidia.com/gpu, with any scheduler. --no-guard-nvidia: where NVIDIA's own plugin "
             "serves it and pods rely on the variable."},
    {.name = "workloads",
     .kind = OPTION_STRING,
     .offset = offsetof(struct main_options, workloads),
     .fallback = "kubeflow.org/TFJob=spec.tfReplicaSpecs.*.template,"
                 "kubeflow.org/PyTorchJob=spec.pytorchReplicaSpecs.*.template,"
                 "kubeflow.org/MPIJob=spec.mpiReplicaSpecs.*.template",
     .meta = "GROUP/KIND=PATH,...",
     .help = "Custom resources with pod templates, and where those are; beside each is its number "
             "of replicas. Deployments, StatefulSets, ReplicaSets, DaemonSets, Jobs and CronJobs "
             "are known."},
    {.name = "check",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct main_options, check),
     .help =
         "Judge the manifests in the files named (YAML or JSON; of a directory those in it; - is "
         "standard input) by the same rules, print the sentences, and exit: 0 when nothing would be refused, 1 when "
         "something would, 2 when something cannot be read. Needs no cluster."},
    {0}};

static const struct option_program program = {
    .name = PROGRAM,
    .summary = "admission webhook: sends pods to the scheduler, refuses what cannot work",
    .synopsis = "[OPTION]... | --check FILE...",
    .max_operands = 1000,
    .description =
        "Answers the API server's questions about new pods, workloads, PodGroups, ResourcePolicies "
        "and node labels (admission.k8s.io/v1): POST /mutate, which also changes pods, and POST "
        "/validate, which changes nothing.\n"
        "\n"
        "A pod that asks for shared or topology-aware GPUs, belongs to a gang, wants pinned CPUs or "
        "may burst to virtual nodes, and names no scheduler, gets ours. Annotations that only the "
        "scheduler may write are removed from new pods, with a warning. A pod of ours that cannot work "
        "as written is refused with a message that says what to write. All other pods are left "
        "alone.\n"
        "\n"
        "Never given our scheduler: pods of DaemonSets, pods with a nodeName, pods in kube-system and "
        "in our own namespace, pods with annotation " NAME_INJECT ": \"false\", and pods in "
        "namespaces labelled " NAME_INJECT "=disabled.",
    .trailer =
        "SIGNALS\n"
        "    SIGTERM, SIGINT  go on for a second, in which every answer ends its connection; then finish\n"
        "                     running requests and exit, within 2 seconds altogether\n"
        "\n"
        "EXAMPLES\n"
        "    In a cluster, as deploy/manifests/webhook.yaml runs it:\n"
        "        " PROGRAM " --webhook-config=cosched-webhook\n"
        "    On a laptop against a test cluster, reached by URL instead of a Service:\n"
        "        " PROGRAM " --kubeconfig=$KUBECONFIG --namespace=default --address=127.0.0.1 \\\n"
        "            --san=127.0.0.1 --webhook-config=cosched-webhook\n"
        "    With certificates from elsewhere:\n"
        "        " PROGRAM " --cert-file=tls.crt --key-file=tls.key --ca-file=ca.crt\n"
        "    In a pipeline, before anything reaches a cluster:\n"
        "        " PROGRAM " --check manifests/*.yaml\n",
};

struct app {
    struct main_options main;
    struct server_options server;
    struct cert_rotator_options rotator;
    struct kube_options kube;
    struct probes_options probe;
    struct log_options log;
    struct loop *loop;
    struct probes probes;
    unsigned need_certificate, need_bundle, need_namespaces, need_serving;
    struct loop_timer end;
    struct rss_trim trim;
    struct kube_config *config;
    struct arena arena; /* owns the parsed options */
    struct rules_config rules;
    struct informer_cache *cache;
    struct server *http;
    struct cert_rotator *certs;
};

static void end(void *arg)
{
    struct app *app = arg;
    loop_stop(app->loop);
}

/* The API server keeps connections open, and closing one during a request fails a pod's creation.
 * So for DRAIN_MS each reply closes its connection. */
static void on_signal(void *arg, int signo)
{
    struct app *app = arg;
    log_info("stopping", kv("signal", strsignal(signo)));
    probes_met(&app->probes, app->need_serving, false);
    if (app->http)
        server_drain(app->http);
    loop_timer_set(app->loop, &app->end, DRAIN_MS, end, app);
}

static void on_namespaces(void *arg)
{
    struct app *app = arg;
    probes_met(&app->probes, app->need_namespaces, true);
}

static int install_certificate(void *arg, const char *cert_pem, const char *key_pem,
                               struct error *err)
{
    struct app *app = arg;
    return server_set_certificate(app->http, cert_pem, key_pem, err);
}

static void on_certificates(void *arg, bool usable, bool published)
{
    struct app *app = arg;
    probes_met(&app->probes, app->need_certificate, usable);
    probes_met(&app->probes, app->need_bundle, published);
}

static int start_probes(struct app *app, struct error *err)
{
    probes_init(&app->probes, app->loop);
    app->need_certificate = probes_need(&app->probes, "certificate usable");
    app->need_bundle = probes_need(&app->probes, "caBundle written");
    app->need_namespaces = probes_need(&app->probes, "namespaces listed");
    app->need_serving = probes_need(&app->probes, "not stopping");
    probes_met(&app->probes, app->need_serving, true);
    return probes_start(&app->probes, &app->probe, NULL, NULL, err);
}

static int start_certs(struct app *app, const char *ns, struct error *err)
{
    struct kube_client *client = NULL;
    struct cert_rotator_callbacks cb = {
        .install = install_certificate, .state = on_certificates, .arg = app};
    if (kube_client_new(&client, app->config, &app->kube, PROGRAM, err) < 0)
        return -1;
    return cert_rotator_start(&app->certs, &app->rotator, ns, client, &cb, err);
}

/* Starts everything but the loop. On failure the caller runs stop(). */
static int start(struct app *app, struct error *err)
{
    if (kube_config_load(&app->config, &app->kube, err) < 0)
        return -1;
    const char *ns = app->rotator.ns ? app->rotator.ns : kube_config_namespace(app->config);
    if (loop_new(&app->loop, err) < 0 ||
        loop_on_signal(app->loop, SIGTERM, on_signal, app, err) < 0 ||
        loop_on_signal(app->loop, SIGINT, on_signal, app, err) < 0 || start_probes(app, err) < 0 ||
        informer_cache_start(&app->cache, app->config, &app->kube, on_namespaces, app, err) < 0)
        return -1;
    app->rules.own_ns = ns;
    struct review_config review = {.rules = app->rules,
                                   .enter = informer_cache_enter,
                                   .leave = informer_cache_leave,
                                   .arg = app->cache};
    if (server_start(&app->http, &app->server, &review, err) < 0 || start_certs(app, ns, err) < 0)
        return -1;
    rss_trim_start(&app->trim, app->loop);
    log_info("started", kv("version", options_version()), kv("address", app->server.address),
             kv("port", server_port(app->http)), kv("namespace", ns));
    return 0;
}

static void stop(struct app *app)
{
    rss_trim_stop(&app->trim);
    cert_rotator_stop(app->certs);
    server_stop(app->http);
    informer_cache_stop(app->cache);
    if (app->probes.loop)
        probes_stop(&app->probes);
    if (app->loop)
        loop_free(app->loop);
    kube_config_free(app->config);
    metrics_reset();
}

static int complain(const char *text, int status)
{
    (void)fprintf(stderr, PROGRAM ": %s\n", text);
    return status;
}

static int complain_of(const char *file)
{
    (void)fprintf(stderr, PROGRAM ": '%s': files go with --check; try --help\n", file);
    return 2;
}

static int read_rules(struct app *app, struct error *err)
{
    struct rules_crd *crds = NULL;
    size_t len = 0;
    if (rules_crds_parse(app->main.workloads, &app->arena, &crds, &len, err) < 0)
        return error_wrap(err, "--workloads");
    app->rules = (struct rules_config){.scheduler = app->main.scheduler,
                                       .inject_nvidia = app->main.inject_nvidia,
                                       .guard_variables = app->main.guard_variables,
                                       .spare_nvidia = !app->main.guard_nvidia,
                                       .crds = crds,
                                       .crds_len = len};
    return 0;
}

static int check(const struct app *app, const struct options_operands *files)
{
    AUTO_STRBUF out = {0};
    struct check_summary sum;
    if (files->len == 0)
        return complain("--check needs files", 2);
    check_files(&app->rules, app->rotator.ns ? app->rotator.ns : "default", files->items,
                files->len, &out, &sum);
    (void)fputs(strbuf_str(&out), stdout);
    (void)printf("%zu objects, %zu refused, %zu warnings", sum.objects, sum.refused, sum.warnings);
    (void)(sum.errors > 0 ? printf(", %zu errors\n", sum.errors) : puts(""));
    return sum.errors > 0 ? 2 : sum.refused > 0 ? 1 : 0;
}

static int serve(struct app *app)
{
    struct error err = ERROR_INIT;
    int status = 0;
    options_apply_log(&app->log, PROGRAM);
    kube_http_global_init();
    if (start(app, &err) < 0) {
        log_error("cannot start", kv("error", err.text));
        status = 1;
    } else {
        loop_run(app->loop);
    }
    stop(app);
    log_info("stopped", kv("status", status));
    kube_http_global_cleanup();
    return status;
}

int main(int argc, char **argv)
{
    struct app app = {.loop = NULL};
    struct options_operands files = {0};
    struct error err = ERROR_INIT;
    const struct option_table tables[] = {{main_rows, &app.main},
                                          {server_option_rows, &app.server},
                                          {cert_rotator_option_rows, &app.rotator},
                                          {kube_option_rows, &app.kube},
                                          {probes_option_rows, &app.probe},
                                          {log_option_rows, &app.log},
                                          {0}};
    loop_block_signals();
    rss_trim_init();
    /* rss_trim configures one heap, on which server threads would contend, and returns large blocks
     * at once, which each request would reallocate. */
    (void)mallopt(M_ARENA_MAX, HEAPS);
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, 2 * LARGE_BYTES);
    switch (options_parse(&program, tables, argc, argv, &files, &err)) {
    case OPTIONS_EXIT:
        return 0;
    case OPTIONS_ERROR:
        complain(err.text, 2);
        return complain("try --help", 2);
    case OPTIONS_RUN:
        break;
    }
    int status = 0;
    arena_init(&app.arena, 0);
    if (read_rules(&app, &err) < 0)
        status = complain(err.text, 2);
    else if (app.main.check)
        status = check(&app, &files);
    else if (files.len > 0)
        status = complain_of(files.items[0]);
    else
        status = serve(&app);
    arena_deinit(&app.arena);
    return status;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * cosched-device-plugin: options and wiring.
 *
 *   this machine's CPUs ──processors──publish; its pinner keeps containers on their granted CPUs
 *   backend ──scan (thread)──mailbox──monitor──┐
 *   own Node ──reflector──mailbox──────────────┴─► loop: agent ─┬─► service, register ─► kubelet
 *                                                               └─► publish (thread) ─► API server
 *   pods bound here ──reflector──mailbox──podcache: service, monitor and pinner subscribe
 *   kubelet ──gRPC (threads of each server)──► service ──► pod resources, one GET when the watch
 *                                                         is behind
 *
 * The loop owns all decisions; the transport's threads read what it left in the service and the pod
 * cache under one lock.
 */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device-plugin/agent.h"
#include "device-plugin/kubelet/checkpoint.h"
#include "device-plugin/monitor/context_probe.h"
#include "device-plugin/monitor/hardware.h"
#include "device-plugin/cpu/processors.h"
#include "device-plugin/node/podcache.h"
#include "device-plugin/node/publish.h"
#include "device-plugin/kubelet/rpc.h"
#include "device-plugin/runtime.h"
#include "device-plugin/kubelet/service.h"
#include "device-plugin/settings.h"
#include "lib/base/rss_trim.h"
#include "device-plugin/kubelet/reconciler.h"
#include "device-plugin/kubelet/sweeper.h"
#include "lib/base/log.h"
#include "lib/base/loop.h"
#include "lib/base/metrics.h"
#include "lib/base/options.h"
#include "lib/base/probes.h"
#include "lib/kube/api.h"
#include "lib/kube/config.h"
#include "lib/kube/decode.h"
#include "lib/kube/events.h"
#include "lib/kube/http.h"
#include "lib/kube/reflector.h"
#include "lib/model/names.h"

#define PROGRAM SETTINGS_PROGRAM

enum { MAILBOX = 256, DRAIN_MS = 200 };

struct app {
    struct settings main;
    struct hardware_options cards;
    struct processors_options cpu;
    struct runtime_options runtime;
    struct kube_options kube;
    struct events_options event;
    struct probes_options probe;
    struct log_options log;

    struct loop *loop;
    _Atomic bool ending;
    struct probes probes;
    bool probing;
    unsigned need_cards, need_mode, need_registered, need_pods;
    struct kube_config *config;
    struct events *events;
    struct publish *publish;
    struct service *service;
    struct agent *agent;
    struct reconciler *reconciler;
    struct sweeper *sweeper;
    struct rss_trim rss_trim;
    struct kube_client *getter;
    pthread_mutex_t getter_lock;
    struct podcache cache;
    struct mailbox *nodes, *pods; /* messages of the watches */
    struct hardware *hardware;
    struct processors *processors;
    struct reflector *node_watch, *pod_watch;
    _Atomic int32_t contexts[GPU_CARDS_MAX]; /* context size of each card */
    char node_uid[64];                       /* loop only */
    int status;
};

static void on_signal(void *arg, int signo)
{
    struct app *app = arg;
    log_info("stopping", kv("signal", strsignal(signo)));
    atomic_store(&app->ending, true);
    loop_stop(app->loop);
}

/* Checked during Register and pod resources calls, in which a hanging kubelet blocks the loop. */
static bool is_ending(void *arg)
{
    struct app *app = arg;
    return atomic_load(&app->ending) || loop_signal_waits(app->loop);
}

/* ---- hooks of the service, on transport threads ---- */

static int get_pod(void *arg, const char *ns, const char *name, int64_t timeout_ms,
                   struct pod **out, struct error *err)
{
    struct app *app = arg;
    struct pod *p = NULL;
    AUTO_JSON *doc = NULL;
    pthread_mutex_lock(&app->getter_lock);
    kube_client_set_timeout(app->getter, timeout_ms);
    int result = kube_get(app->getter, &kube_pods, ns, name, &doc, err);
    pthread_mutex_unlock(&app->getter_lock);
    if (result < 0 || decode_pod(json_root(doc), &p, err) < 0)
        return -1;
    if (!str_eq(p->node, app->main.node)) { /* another pod of that name, elsewhere */
        pod_free(p);
        return error_set(err, ERROR_NOT_FOUND, "pod %s/%s is not on this node", ns, name);
    }
    *out = p;
    return 0;
}

static void on_starting(void *arg, const char *ns, const char *name, const struct pod *pod,
                        bool placed)
{
    struct app *app = arg;
    if (pod == NULL)
        publish_assigned(app->publish, ns, name, "", false);
    else if ((placed && !str_eq(labels_get(&pod->annotations, NAME_ANN_ASSIGNED), "true")) ||
             str_eq(labels_get(&pod->annotations, NAME_ANN_ASSIGNED), "false") ||
             str_eq(labels_get(&pod->annotations, NAME_ANN_OLD_ASSIGNED), "false"))
        publish_assigned(app->publish, ns, name, pod->uid,
                         str_eq(labels_get(&pod->annotations, NAME_ANN_OLD_ASSIGNED), "false"));
}

static void on_record(void *arg, const struct pod *pod, const struct grant *grant,
                      const struct gpu_inventory *inv)
{
    struct app *app = arg;
    publish_grant(app->publish, pod, grant, inv);
}

static void on_pod_event(void *arg, const struct pod *pod, bool warning, const char *reason,
                         const char *message)
{
    struct app *app = arg;
    struct events_object o = {
        .api_version = "v1", .kind = "Pod", .ns = pod->ns, .name = pod->name, .uid = pod->uid};
    events_emit(app->events, &o, warning, reason, message);
}

static void on_refused(void *arg, const struct pod *pod, const char *why)
{
    log_warn("container refused", kv("pod", pod != NULL ? pod->key : "(unknown)"), kv("why", why));
    if (pod != NULL)
        on_pod_event(arg, pod, true, "GpuRefused", why);
}

static void on_unheld(void *arg, const struct pod *pod, const char *why)
{
    log_warn("container is not held to its share", kv("pod", pod->key), kv("why", why));
    on_pod_event(arg, pod, true, "GpuLimitFailed", why);
}

static void on_changed(void *arg)
{
    const struct app *app = arg;
    if (app->reconciler != NULL)
        reconciler_poke(app->reconciler);
}

/* ---- hooks of the agent, on the loop ---- */

static void on_publish(void *arg, const struct publish_wanted *w)
{
    struct app *app = arg;
    publish_want(app->publish, w);
}

static void on_cpus(void *arg, const char *topology)
{
    struct app *app = arg;
    publish_cpus(app->publish, topology);
}

static void on_applied(void *arg, const struct pod *pod, const char *cpuset)
{
    struct app *app = arg;
    publish_applied(app->publish, pod, cpuset);
}

static void on_event(void *arg, bool warning, const char *reason, const char *message)
{
    struct app *app = arg;
    struct events_object o = {.api_version = "v1",
                              .kind = "Node",
                              .ns = "",
                              .name = app->main.node,
                              .uid = app->node_uid};
    events_emit(app->events, &o, warning, reason, message);
}

static void on_in_force(void *arg, enum gpu_mode mode, const struct isolation_engine *engine)
{
    struct app *app = arg;
    if (app->hardware != NULL)
        monitor_mode(hardware_monitor(app->hardware), mode, engine != NULL ? engine->name : NULL);
}

static void on_offered(void *arg, enum mode_resource r, const struct inventory_devices *d)
{
    struct app *app = arg;
    if (app->hardware != NULL)
        monitor_offered(hardware_monitor(app->hardware), r, d);
}

static void on_ready(void *arg, bool cards, bool mode, bool registered)
{
    struct app *app = arg;
    probes_met(&app->probes, app->need_cards, cards);
    probes_met(&app->probes, app->need_mode, mode);
    probes_met(&app->probes, app->need_registered, registered);
}

/* ---- hooks of the monitor, on the loop ---- */

static void on_cards(void *arg, const struct gpu_inventory *inv)
{
    struct app *app = arg;
    agent_cards(app->agent, inv);
}

static void on_pod_used(void *arg, const struct pod *pod, const struct gpuuse *use)
{
    struct app *app = arg;
    publish_use(app->publish, pod, use);
}

static void on_evict(void *arg, const struct pod *pod)
{
    struct app *app = arg;
    publish_evict(app->publish, pod);
}

static void on_no_cards(void *arg)
{
    struct app *app = arg;
    app->status = 1;
    loop_stop(app->loop);
}

/* ---- messages of the watches ---- */

static void on_node(void *arg, void *msg)
{
    struct app *app = arg;
    struct reflector_message *l = msg;
    if (l->event == REFLECTOR_DELETE || l->len == 0) {
        log_warn("there is no such Node; what was offered stays", kv("node", app->main.node));
        publish_seen(app->publish, NULL);
    } else {
        struct node *n = l->objects[0];
        l->objects[0] = NULL;
        (void)str_format(app->node_uid, sizeof app->node_uid, "%s", str_or_empty(n->uid));
        if (app->agent != NULL)
            agent_node(app->agent, n);
        publish_seen(app->publish, n);
    }
    reflector_message_free(l);
}

static void on_pods_told(void *arg, bool all)
{
    struct app *app = arg;
    if (all)
        probes_met(&app->probes, app->need_pods, true);
}

static int decode_any_node(json *j, void **out, struct error *err)
{
    struct node *n;
    if (decode_node(j, &n, err) < 0)
        return -1;
    *out = n;
    return 0;
}

static void free_any_node(void *n)
{
    node_free(n);
}

static bool post(void *mailbox, struct reflector_message *l)
{
    return mailbox_post(mailbox, l);
}

/* ---- start and stop ---- */

static int start_watches(struct app *app, struct error *err)
{
    AUTO_STRBUF by_name;
    AUTO_STRBUF by_node;
    strbuf_init(&by_name);
    strbuf_init(&by_node);
    strbuf_addf(&by_name, "metadata.name=%s", app->main.node);
    strbuf_addf(&by_node, "spec.nodeName=%s", app->main.node);
    struct reflector_config node = {.kind = &kube_nodes,
                                    .field_selector = strbuf_str(&by_name),
                                    .type = {.decode = decode_any_node, .free = free_any_node},
                                    .deliver = post,
                                    .arg = app->nodes};
    struct reflector_config pods = {.kind = &kube_pods,
                                    .field_selector = strbuf_str(&by_node),
                                    .type = podcache_type,
                                    .deliver = post,
                                    .arg = app->pods};
    if (reflector_start(&app->node_watch, app->config, &app->kube, &node, err) < 0)
        return -1;
    return reflector_start(&app->pod_watch, app->config, &app->kube, &pods, err);
}

static int start_devices(struct app *app, struct error *err)
{
    char checkpoint[PATH_MAX];
    if (!str_format(checkpoint, sizeof checkpoint, "%s/%s", app->main.plugin_path, CHECKPOINT_FILE))
        return error_set(err, ERROR_INVALID, "%s: too long", app->main.plugin_path);
    struct service_hooks hooks = {.get_pod = get_pod,
                                  .starting = on_starting,
                                  .record = on_record,
                                  .refused = on_refused,
                                  .unheld = on_unheld,
                                  .changed = on_changed,
                                  .pods = &app->cache,
                                  .checkpoint = checkpoint,
                                  .arg = app};
    if (service_new(&app->service, app->main.pod_resources_path, &hooks, err) < 0)
        return -1;
    struct agent_config agent = {.loop = app->loop,
                                 .service = app->service,
                                 .plugin_dir = app->main.plugin_path,
                                 .state_dir = app->main.state_dir,
                                 .exclusive = app->main.exclusive == SETTINGS_EXCLUSIVE_ON,
                                 .publish = on_publish,
                                 .in_force = on_in_force,
                                 .offered = on_offered,
                                 .event = on_event,
                                 .ready = on_ready,
                                 .arg = app};
    runtime_apply(&app->runtime, &agent);
    agent.isolation.cgroup_mount = app->cpu.cgroup_mount;
    agent.isolation.contexts = app->contexts;
    agent.isolation.cgroup_root = processors_cgroup_root(app->processors);
    if (agent_new(&app->agent, &agent, err) < 0)
        return -1;
    if (reconciler_new(&app->reconciler, app->loop, app->service, &app->cache, app->main.state_dir,
                       err) < 0)
        return -1;
    app->sweeper =
        sweeper_new(&(struct sweeper_config){.loop = app->loop,
                                             .service = app->service,
                                             .shares = app->runtime.shares,
                                             .cgroup_mount = agent.isolation.cgroup_mount,
                                             .cgroup_root = agent.isolation.cgroup_root});
    struct monitor_hooks watch = {.cards = on_cards,
                                  .event = on_event,
                                  .pod_event = on_pod_event,
                                  .pod_used = on_pod_used,
                                  .program = "/proc/self/exe",
                                  .cuda_library = app->runtime.cuda_library,
                                  .contexts =
                                      app->runtime.context_bytes == 0 ? app->contexts : NULL,
                                  .evict = runtime_evicts(&app->runtime) ? on_evict : NULL,
                                  .state_dir = app->main.state_dir,
                                  .shares = app->runtime.shares,
                                  .pods = &app->cache,
                                  .arg = app};
    return hardware_start(&app->hardware, app->loop, &app->cards, app->main.kubelet_dir, &watch,
                          on_no_cards, err);
}

static int start_processors(struct app *app, struct error *err)
{
    struct processors_config c = {.options = &app->cpu,
                                  .kubelet_dir = app->main.kubelet_dir,
                                  .sysfs = app->cards.sysfs,
                                  .publish = on_cpus,
                                  .pinner = {.loop = app->loop,
                                             .pods = &app->cache,
                                             .cpu_manager_state = app->cards.cpu_manager_state,
                                             .state_dir = app->main.state_dir,
                                             .proc = app->cards.proc,
                                             .pod_event = on_pod_event,
                                             .applied = on_applied,
                                             .arg = app}};
    return processors_start(&app->processors, &c, err);
}

/* On failure the caller calls stop(). */
static int start(struct app *app, struct error *err)
{
    if (kube_config_load(&app->config, &app->kube, err) < 0 || loop_new(&app->loop, err) < 0 ||
        loop_on_signal(app->loop, SIGTERM, on_signal, app, err) < 0 ||
        loop_on_signal(app->loop, SIGINT, on_signal, app, err) < 0)
        return -1;
    rpc_abandon_when(is_ending, app);
    probes_init(&app->probes, app->loop);
    bool cards = hardware_has_cards(&app->cards);
    if (cards) {
        app->need_cards = probes_need(&app->probes, "cards found");
        app->need_mode = probes_need(&app->probes, "mode known");
        app->need_registered = probes_need(&app->probes, "registered with the kubelet");
    }
    app->need_pods = probes_need(&app->probes, "pods listed");
    podcache_subscribe(&app->cache,
                       &(struct podcache_subscriber){.told = on_pods_told, .arg = app});
    if (probes_start(&app->probes, &app->probe, NULL, NULL, err) < 0)
        return -1;
    app->probing = true;
    app->event.host = app->main.node; /* cosched-plugin-events lets it write in no other name */
    if (mailbox_new(&app->nodes, app->loop, MAILBOX, on_node, reflector_message_free, app, err) <
            0 ||
        mailbox_new(&app->pods, app->loop, MAILBOX, podcache_message, reflector_message_free,
                    &app->cache, err) < 0 ||
        events_start(&app->events, app->config, &app->kube, &app->event, PROGRAM, err) < 0 ||
        publish_start(&app->publish, app->config, &app->kube, app->main.node,
                      app->main.publish_interval_ms, err) < 0 ||
        kube_client_new(&app->getter, app->config, &app->kube, PROGRAM, err) < 0 ||
        start_processors(app, err) < 0 || (cards && start_devices(app, err) < 0) ||
        start_watches(app, err) < 0)
        return -1;
    rss_trim_start(&app->rss_trim, app->loop);
    log_info("started", kv("version", options_version()), kv("node", app->main.node),
             kv("plugins", app->main.plugin_path),
             kv("backend", hardware_backend_name(&app->cards)));
    return 0;
}

static void stop_watch(struct reflector *r, struct mailbox *mb)
{
    if (mb != NULL)
        mailbox_close(mb);
    if (r != NULL)
        reflector_stop(r);
    if (mb != NULL)
        mailbox_free(mb);
}

/* false: a hanging or waiting backend still uses its mailbox, and with it the loop. */
static bool stop(struct app *app)
{
    atomic_store(&app->ending, true);
    if (app->getter != NULL)
        kube_client_cancel(app->getter);
    rss_trim_stop(&app->rss_trim);
    agent_free(app->agent);
    sweeper_free(app->sweeper);
    reconciler_free(app->reconciler);
    app->reconciler = NULL; /* the watches still deliver pods */
    bool clean = hardware_stop(app->hardware);
    stop_watch(app->node_watch, app->nodes);
    stop_watch(app->pod_watch, app->pods);
    service_free(app->service); /* the metrics still show pods: the cache stays */
    publish_stop(app->publish);
    if (app->events != NULL)
        events_stop(app->events, DRAIN_MS);
    kube_client_free(app->getter);
    if (app->probing)
        probes_stop(&app->probes);
    if (!clean)
        return false;
    hardware_free(app->hardware);
    processors_stop(app->processors);
    podcache_deinit(&app->cache);
    loop_free(app->loop);
    kube_config_free(app->config);
    metrics_reset();
    return true;
}

static int complain(const char *text, int status)
{
    (void)fprintf(stderr, PROGRAM ": %s\n", text);
    return status;
}

int main(int argc, char **argv)
{
    struct app app = {.getter_lock = PTHREAD_MUTEX_INITIALIZER};
    struct error err = ERROR_INIT;
    const struct option_table tables[] = {{settings_rows, &app.main},
                                          {hardware_option_rows, &app.cards},
                                          {processors_option_rows, &app.cpu},
                                          {runtime_option_rows, &app.runtime},
                                          {kube_option_rows, &app.kube},
                                          {events_option_rows, &app.event},
                                          {probes_option_rows, &app.probe},
                                          {log_option_rows, &app.log},
                                          {0}};
    podcache_init(&app.cache);
    if (argc == 4 && str_eq(argv[1], CONTEXT_PROBE_PROBE)) /* our child process */
        return context_probe_run(argv[2], argv[3]);
    loop_block_signals(); /* before gRPC starts its threads */
    rss_trim_init();
    enum options_result parsed = options_parse(&settings_program, tables, argc, argv, NULL, &err);
    if (parsed == OPTIONS_EXIT)
        return 0;
    if (parsed != OPTIONS_ERROR && app.runtime.mount_only) {
        options_apply_log(&app.log, PROGRAM);
        runtime_mount(&app.runtime);
        return 0;
    }
    if (parsed == OPTIONS_ERROR || settings_settle(&app.main, &err) < 0 ||
        processors_check(&app.cpu, &err) < 0) {
        complain(err.text, 2);
        return complain("try --help", 2);
    }
    options_apply_log(&app.log, PROGRAM);
    hardware_settle(&app.cards);
    kube_http_global_init();
    rpc_init();
    if (start(&app, &err) < 0) {
        log_error("cannot start", kv("error", err.text));
        app.status = 1;
    } else {
        loop_run(app.loop);
    }
    bool clean = stop(&app);
    log_info("stopped", kv("status", app.status));
    if (!clean)
        _exit(app.status);
    rpc_shutdown();
    kube_http_global_cleanup();
    return app.status;
}

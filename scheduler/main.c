// SPDX-License-Identifier: Apache-2.0
/*
 * cosched-scheduler: options, lease, threads, wiring.
 *
 *   options ─► standing by ── lease: we lead ─► listing ── all listed ─► scheduling
 *                  │                                             lease lost │    │ SIGTERM
 *                  └──── SIGTERM ──► end                     _exit at once ◄┘    ▼
 *                                      end ◄── binds answered, lease released ── draining
 *
 * A standby keeps no copy of the cluster: a new leader lists from etcd before its first bind
 * anyway, and an unused copy costs the API server a watch per replica.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/loop.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/options.h"
#include "lib/base/probes.h"
#include "lib/kube/config.h"
#include "lib/kube/events.h"
#include "lib/kube/http.h"
#include "lib/kube/lease.h"
#include "lib/model/names.h"
#include "scheduler/binding/binder.h"
#include "scheduler/sched_loop.h"
#include "scheduler/http.h"
#include "scheduler/intake.h"
#include "scheduler/binding/pod_writer.h"

/* SIGTERM ends the process within 2 s even if the API server hangs: binds, then status, then at
 * most 1 s for the lease. */
enum { EXIT_USAGE = 2, DRAIN_MS = 600, DRAIN_STEP_MS = 10, STATUS_DRAIN_MS = 100 };

struct scheduler_options {
    const char *name;
    int packing;
    int64_t bind_workers;
    int stale_gang; /* keep, evict */
    bool gang_dry_run;
    bool debug_cluster;
    const char *virtual_labels, *virtual_taints;
    int gang_pools;
};

struct scheduler {
    struct scheduler_options options;
    struct kube_options kube_options;
    struct lease_options lease_options;
    struct events_options events_options;
    struct probes_options probes_options;
    struct log_options log_options;
    struct reservation_timer_options reservation_timer_options;

    struct kube_config *kube;
    struct loop *loop;
    struct probes probes;
    struct http http;
    unsigned need_synced;
    struct mailbox *control; /* from the lease's thread */
    struct lease *lease;
    struct sched_loop sched;
    struct intake intake;
    struct binder *binder;
    struct pod_writer *pod_writer;
    struct evictor *evictor;
    struct volumes *volumes;
    struct bind_dryrun *dryrun;
    struct loop_timer drain;
    int64_t drain_until_ms;
    bool leading;
    bool stopping;
    int exit_code;
};

static const struct option_row rows[] = {
    {.section = "SCHEDULING"},
    {.name = "scheduler-name",
     .kind = OPTION_STRING,
     .offset = offsetof(struct scheduler_options, name),
     .fallback = NAME_SCHEDULER,
     .meta = "NAME",
     .help = "Pods with this spec.schedulerName are ours."},
    {.name = "scoring",
     .kind = OPTION_CHOICE,
     .offset = offsetof(struct scheduler_options, packing),
     .fallback = CLUSTER_EMPTIEST_NAME,
     .choices = CLUSTER_EMPTIEST_NAME "|" CLUSTER_FULLEST_NAME,
     .meta = "HOW",
     .help = "Of the nodes that fit, the emptiest first, or the fullest (which keeps whole "
             "nodes free for large pods). For both rules run two instances of this program, "
             "each with its own scheduler name and lease name."},
    {.name = "bind-workers",
     .kind = OPTION_INT,
     .offset = offsetof(struct scheduler_options, bind_workers),
     .fallback = "16",
     .min = 1,
     .max = 256,
     .meta = "N",
     .help = "Bindings that are posted at the same time, each on its own connection."},
    {.name = "gang-dry-run",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct scheduler_options, gang_dry_run),
     .fallback = "false",
     .help = "Post all Bindings of a gang with dryRun=All before the first real one, so that a "
             "member that the API server refuses is found before any is bound. Doubles the "
             "requests."},
    {.name = "stale-gang",
     .kind = OPTION_CHOICE,
     .offset = offsetof(struct scheduler_options, stale_gang),
     .fallback = "keep",
     .choices = "keep|evict",
     .help = "What happens to the members of a gang that fell below its minMember and did not "
             "recover within scheduleTimeoutSeconds: they stay, or they are evicted so that the "
             "gang starts over. An Event reports either."},
    {.name = "virtual-node-labels",
     .kind = OPTION_STRING,
     .offset = offsetof(struct scheduler_options, virtual_labels),
     .fallback = VIRTUALS_LABELS,
     .meta = "KEY=VALUE,...",
     .help = "Nodes with any of these labels are virtual: only pods that burst go there."},
    {.name = "virtual-node-taints",
     .kind = OPTION_STRING,
     .offset = offsetof(struct scheduler_options, virtual_taints),
     .fallback = VIRTUALS_TAINTS,
     .meta = "KEY=VALUE,...",
     .help = "The NoSchedule taints of virtual nodes that pods that burst need not tolerate."},
    {.name = "gang-burst",
     .kind = OPTION_CHOICE,
     .offset = offsetof(struct scheduler_options, gang_pools),
     .fallback = CLUSTER_GANG_TOGETHER_NAME,
     .choices = CLUSTER_GANG_TOGETHER_NAME "|" CLUSTER_GANG_WHOLE_NAME "|" CLUSTER_GANG_MEMBER_NAME,
     .meta = "HOW",
     .help = "Where a gang that may burst goes: together on real nodes, else together on "
             "virtual ones, else on both; or whole, and never on both; or each member by itself."},
    {.name = "debug-cluster",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct scheduler_options, debug_cluster),
     .fallback = "true",
     .help =
         "Serve /debug/cluster to whoever reaches the port: names, labels and requests of all "
         "pods and nodes, but no environment and no other annotations than the scheduler's own."},
    {0},
};

static const struct option_program program = {
    .name = "cosched-scheduler",
    .summary = "place pods and gangs on nodes, GPU cards included",
    .synopsis = "[OPTION]...",
    .description =
        "Binds the pods whose spec.schedulerName is ours. A pod that does not fit says why in its PodScheduled condition\n"
        "and in an Event, and is tried again when something changes that can help. Several replicas may run: one leads.",
    .trailer =
        "SIGNALS\n"
        "    SIGTERM, SIGINT   finish the Bindings under way, release the lease, end.\n\n"
        "ENDPOINTS\n"
        "    /healthz          the program's loop is alive\n"
        "    /readyz           standing by, or leading with every collection listed\n"
        "    /metrics          Prometheus text\n"
        "    /debug/cluster    what the scheduler knows, as JSON: input for cosched-replay\n",
};

static void model_changed(void *arg)
{
    struct scheduler *s = arg;
    if (s->stopping)
        return;
    if (!s->sched.running && s->leading && intake_is_synced(&s->intake)) {
        log_info("scheduling", kv("nodes", map_count(&s->sched.cluster.nodes)),
                 kv("pods", map_count(&s->sched.cluster.pods)));
        probes_met(&s->probes, s->need_synced, true);
        http_serve(&s->http, true);
        s->sched.options.evict_stale = s->options.stale_gang == 1;
        sched_loop_start(&s->sched, s->binder, s->pod_writer, s->evictor, s->volumes);
    }
    sched_loop_poke(&s->sched);
}

static void node_gone(void *arg, const char *node)
{
    const struct scheduler *s = arg;
    binder_node_gone(s->binder, node);
}

/* Any thread. */
static bool is_binding(void *arg)
{
    const struct scheduler *s = arg;
    return binder_pending(s->binder) > 0;
}

static int start_volumes(struct scheduler *s, struct error *err)
{
    struct volumes_config c = sched_loop_volumes_config(&s->sched, s->binder);
    c.lease = s->lease;
    return volumes_start(&s->volumes, s->kube, &s->kube_options, &c, err);
}

static int start_dryrun(struct scheduler *s, struct error *err)
{
    struct bind_dryrun_config c = {.threads = (unsigned)s->options.bind_workers,
                                   .results = s->sched.dryrun_done};
    if (s->options.gang_dry_run &&
        bind_dryrun_start(&s->dryrun, s->kube, &s->kube_options, &c, err) < 0)
        return -1;
    s->sched.dryrun = s->dryrun;
    return 0;
}

static int start_leading(struct scheduler *s, struct error *err)
{
    s->leading = true;
    probes_met(&s->probes, s->need_synced, false);
    log_info("leading, listing the cluster", kv("scheduler", s->options.name));
    struct binder_config binder = {.threads = (unsigned)s->options.bind_workers,
                                   .lease = s->lease,
                                   .results = s->sched.results};
    struct evictor_config evictor = {.lease = s->lease, .results = s->sched.evictions};
    struct pod_writer_config status = {.events = s->events_options,
                                       .lease = s->lease,
                                       .trace = &s->sched.trace,
                                       .is_busy = is_binding,
                                       .arg = s};
    if (binder_start(&s->binder, s->kube, &s->kube_options, &binder, err) < 0 ||
        pod_writer_start(&s->pod_writer, s->kube, &s->kube_options, &status, err) < 0 ||
        evictor_start(&s->evictor, s->kube, &s->kube_options, &evictor, err) < 0 ||
        start_volumes(s, err) < 0 || start_dryrun(s, err) < 0 ||
        intake_start(&s->intake, s->kube, &s->kube_options, err) < 0)
        return -1;
    return 0;
}

static void take_control(void *arg, void *msg)
{
    struct scheduler *s = arg;
    (void)msg; /* the only message: we lead */
    struct error err = ERROR_INIT;
    if (s->stopping || start_leading(s, &err) == 0)
        return;
    log_error("cannot lead", kv("error", err.text));
    s->exit_code = EXIT_FAILURE;
    loop_stop(s->loop);
}

static void control_dispose(void *msg)
{
    (void)msg;
}

static void lease_started(void *arg)
{
    struct scheduler *s = arg;
    (void)mailbox_post(s->control, s);
}

/* Fencing: nothing may be written from here on, so there is no cleanup. */
static void lease_lost(void *arg)
{
    (void)arg;
    log_error("lease lost, ending at once");
    _exit(EXIT_FAILURE);
}

static void drain_step(void *arg)
{
    struct scheduler *s = arg;
    if (s->binder != NULL && binder_pending(s->binder) > 0 && clock_mono_ms() < s->drain_until_ms)
        loop_timer_set(s->loop, &s->drain, DRAIN_STEP_MS, drain_step, s);
    else
        loop_stop(s->loop);
}

static void on_signal(void *arg, int signo)
{
    struct scheduler *s = arg;
    if (s->stopping)
        return;
    log_info("ending", kv("signal", signo));
    s->stopping = true;
    sched_loop_pause(&s->sched);
    s->drain_until_ms = clock_mono_ms() + DRAIN_MS;
    drain_step(s);
}

static void tear_down(struct scheduler *s)
{
    http_close(&s->http);
    bool drained = s->binder == NULL || binder_pending(s->binder) == 0;
    mailbox_close(s->sched.evictions);
    mailbox_close(s->sched.dryrun_done);
    mailbox_close(s->sched.results); /* its reader stopped: no worker may block on a full mailbox */
    intake_deinit(&s->intake);
    pod_writer_stop(s->pod_writer, STATUS_DRAIN_MS); /* before the binder, which it queries */
    evictor_stop(s->evictor);
    bind_dryrun_stop(s->dryrun);
    volumes_stop(s->volumes); /* before the binder, to which it passes Bindings */
    binder_stop(s->binder);
    /* An unanswered Binding may still be executed; then the lease must expire by itself. */
    lease_stop(s->lease, drained);
    mailbox_free(s->control);
    if (s->probes.loop != NULL)
        probes_stop(&s->probes);
    http_deinit(&s->http);
    if (s->sched.loop != NULL)
        sched_loop_deinit(&s->sched);
    loop_free(s->loop);
    kube_config_free(s->kube);
}

static void settle(void *arg)
{
    struct scheduler *s = arg;
    intake_settle(&s->intake);
}

static int set_up(struct scheduler *s, struct error *err)
{
    if (kube_config_load(&s->kube, &s->kube_options, err) < 0 || loop_new(&s->loop, err) < 0)
        return -1;
    probes_init(&s->probes, s->loop);
    s->need_synced = probes_need(&s->probes, "nodes, pods and PodGroups listed");
    if (sched_loop_init(&s->sched, s->loop, s->options.name, err) < 0 ||
        intake_init(&s->intake, s->loop, &s->sched.cluster, &s->sched.queue, &s->sched.trace,
                    &s->sched.failures, model_changed, s, err) < 0 ||
        loop_on_signal(s->loop, SIGTERM, on_signal, s, err) < 0 ||
        loop_on_signal(s->loop, SIGINT, on_signal, s, err) < 0 ||
        http_init(&s->http, s->loop, &s->sched.cluster, err) < 0 ||
        probes_start(&s->probes, &s->probes_options, s->options.debug_cluster ? http_answer : NULL,
                     &s->http, err) < 0 ||
        mailbox_new(&s->control, s->loop, 4, take_control, control_dispose, s, err) < 0)
        return -1;
    s->sched.cluster.packing = (enum cluster_packing)s->options.packing;
    s->sched.cluster.gang_pools = (enum cluster_gang_pools)s->options.gang_pools;
    s->intake.node_gone = node_gone;
    s->http.settle = settle;
    s->http.settle_arg = s;
    if (cluster_set_virtuals(&s->sched.cluster, s->options.virtual_labels,
                             s->options.virtual_taints, err) < 0)
        return -1;
    reservation_timer_configure(&s->sched.reserving, &s->reservation_timer_options);
    if (!s->lease_options.enabled)
        return start_leading(s, err);
    probes_met(&s->probes, s->need_synced, true); /* a standby is ready */
    struct lease_callbacks cb = {.started = lease_started, .lost = lease_lost, .arg = s};
    return lease_start(&s->lease, s->kube, &s->kube_options, &s->lease_options, &cb, err);
}

int main(int argc, char **argv)
{
    static struct scheduler s;
    struct error err = ERROR_INIT;
    const struct option_table tables[] = {
        {rows, &s.options},
        {reservation_timer_option_rows, &s.reservation_timer_options},
        {lease_option_rows, &s.lease_options},
        {kube_option_rows, &s.kube_options},
        {events_option_rows, &s.events_options},
        {probes_option_rows, &s.probes_options},
        {log_option_rows, &s.log_options},
        {NULL, NULL}};
    switch (options_parse(&program, tables, argc, argv, NULL, &err)) {
    case OPTIONS_EXIT:
        return EXIT_SUCCESS;
    case OPTIONS_ERROR:
        fprintf(stderr, "%s: %s (try --help)\n", program.name, err.text);
        return EXIT_USAGE;
    case OPTIONS_RUN:
        break;
    }
    options_apply_log(&s.log_options, program.name);
    mem_expect_many();
    loop_block_signals();
    kube_http_global_init();
    s.exit_code = EXIT_SUCCESS;
    if (set_up(&s, &err) == 0) {
        loop_run(s.loop);
    } else {
        log_error("cannot start", kv("error", err.text));
        s.exit_code = EXIT_FAILURE;
    }
    tear_down(&s);
    log_info("stopped", kv("status", s.exit_code));
    metrics_reset();
    kube_http_global_cleanup();
    return s.exit_code;
}

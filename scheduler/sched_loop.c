// SPDX-License-Identifier: Apache-2.0
#include "scheduler/sched_loop.h"

#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "scheduler/binding/binding_content.h"
#include "scheduler/binding/loop_time.h"
#include "scheduler/framework/equivalence.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cycle/cpu_lending.h"

enum {
    SCHED_LOOP_RESULTS = 4096,
    SCHED_LOOP_SLICE_MS = 20, /* of cycles in a row, before the loop reads its mailboxes */
    NS_PER_MS = 1000000
};

static struct metric attempts = {
    .kind = METRIC_COUNTER,
    .name = "cosched_scheduler_attempts_total",
    .help = "Scheduling attempts of gangs (a lone pod is a gang of one) by result.",
    .label = "result"};
static struct metric cycle_seconds = {.kind = METRIC_HISTOGRAM,
                                      .name = "cosched_scheduler_cycle_duration_seconds",
                                      .help = "Time of one scheduling cycle."};
static struct metric e2e_seconds = {
    .kind = METRIC_HISTOGRAM,
    .name = "cosched_scheduler_watch_to_bind_seconds",
    .help = "Time from first seeing a pod to its Binding being answered."};
static struct metric pods_gauge = {.kind = METRIC_GAUGE,
                                   .name = "cosched_scheduler_cached_pods",
                                   .help = "Unfinished pods in the model."};
static struct metric nodes_gauge = {
    .kind = METRIC_GAUGE, .name = "cosched_scheduler_cached_nodes", .help = "Nodes in the model."};
static struct metric queue_gauge = {.kind = METRIC_GAUGE,
                                    .name = "cosched_scheduler_queue_gangs",
                                    .help = "Gangs that wait, by state.",
                                    .label = "state"};

static struct metric preemptions = {.kind = METRIC_COUNTER,
                                    .name = "cosched_scheduler_preemptions_total",
                                    .help = "Times that a pod preempted less important pods."};

static struct metric recalls = {.kind = METRIC_COUNTER,
                                .name = "cosched_scheduler_cpu_recalls_total",
                                .help = "Times that lent CPUs were reclaimed from a pod."};

static struct metric missed = {
    .kind = METRIC_COUNTER,
    .name = "cosched_scheduler_missed_wakes_total",
    .help = "Gangs that were placed although no event had woken them, but the check every 5 "
            "minutes: 0, unless there is a mistake in the program."};

static struct metric disagreed = {
    .kind = METRIC_GAUGE,
    .name = "cosched_scheduler_class_disagreements",
    .help = "Times that what was remembered of nodes was not what the plugins said: 0, unless "
            "there is a mistake in the program. The plugins' word held."};

static const char *verdict_name(enum cycle_verdict v)
{
    static const char *const names[] = {[CYCLE_PLACED] = "placed",
                                        [CYCLE_PARTLY] = "partly placed",
                                        [CYCLE_WAITING] = "waiting for gang",
                                        [CYCLE_NO_CAPACITY] = "unschedulable",
                                        [CYCLE_NOTHING] = "nothing to do"};
    return names[v];
}

static void submit_one(struct sched_loop *d, const struct gang_bind_member *m)
{
    if (m->pod->volumes != NULL)
        volumes_submit(d->volumes, m->pod, &m->binding, m->ticket);
    else
        binder_submit(d->binder, &m->binding, m->ticket);
}

/* Members of a gang go together: none is posted before the claims of its quorum are bound. */
static void submit(struct sched_loop *d, const struct plan *plan)
{
    struct gang_bind_member *members =
        arena_new(&d->arena, struct gang_bind_member, plan->steps.len);
    bool hold = d->dryrun != NULL;
    for (size_t i = 0; i < plan->steps.len; i++) {
        struct cluster_pod *cp = plan->steps.items[i].pod;
        const struct cluster_node *node = plan->steps.items[i].node;
        cp->grant.assume_time_ns = clock_wall_ns();
        members[i] = (struct gang_bind_member){
            .pod = cp,
            .binding = {.ns = cp->pod->ns,
                        .pod = cp->pod->name,
                        .uid = cp->pod->uid,
                        .node = node->name,
                        .labels = policies_labels(cp, &d->arena),
                        .annotations = binding_content_annotations(cp, node, &d->arena)},
            .ticket = pod_trace_give_ticket(&d->trace, cp)};
        hold |= cp->volumes != NULL;
    }
    if (hold && plan->steps.len > 1) {
        gang_bind_submit(d->gang_bind, members, plan->steps.len);
        return;
    }
    for (size_t i = 0; i < plan->steps.len; i++)
        submit_one(d, &members[i]);
}

static void bind(void *arg, struct gang *g, const struct plan *plan, const struct cycle_result *r)
{
    struct sched_loop *d = arg;
    (void)g;
    submit(d, plan);
    for (size_t i = 0; i < r->virtuals_len; i++)
        pod_writer_report_pod(d->pod_writer, r->virtuals[i].pod->pod, false, "Bursting",
                              r->virtuals[i].sentence);
}

/* The queue knows a new reason for the gang. */
static void tell_soon(void *arg, struct gang *g)
{
    struct sched_loop *d = arg;
    teller_note(&d->teller, g);
}

static void refused(void *arg, struct gang *g, const struct cycle_result *r)
{
    struct sched_loop *d = arg;
    teller_note(&d->teller, g);
    refresher_note(&d->refresher, g, r);
    policy_writer_refused(d->policy_writer, g);
    if (r->awaits)
        victims_await(&d->victims, g);
    log_debug("gang waits", kv("gang", g->key), kv("why", r->sentence));
}

static void tell_nominated(void *arg, struct cluster_pod *cp, const char *node)
{
    struct sched_loop *d = arg;
    pod_writer_report_nominated(d->pod_writer, cp->pod, node);
}

static void nominate(struct sched_loop *d, struct cluster_pod *cp, const char *node)
{
    attempt_nominate(&d->attempt, cp, node, loop_now_ms(d->loop));
}

/* The nomination tells others where a pod goes that waits for its claims. */
static void waits_long(void *arg, struct cluster_pod *cp)
{
    nominate(arg, cp, cp->on->name);
}

static void claims_ready(void *arg, const struct kube_binding *binding, uint64_t ticket)
{
    struct sched_loop *d = arg;
    gang_bind_ready(d->gang_bind, binding, ticket);
}

struct volumes_config sched_loop_volumes_config(struct sched_loop *d, struct binder *b)
{
    return (struct volumes_config){.loop = d->loop,
                                   .cluster = &d->cluster,
                                   .trace = &d->trace,
                                   .binder = b,
                                   .results = d->results,
                                   .ready = claims_ready,
                                   .waits_long = waits_long,
                                   .arg = d};
}

/* The write may have been lost: retrying the gangs reclaims CPUs that are still needed. */
static void retry_reclaim(void *arg)
{
    struct sched_loop *d = arg;
    queue_wake(&d->queue, cluster_note_freed(&d->cluster, NULL), loop_now_ms(d->loop));
    sched_loop_poke(d);
}

static void reclaim(void *arg, const struct cycle_recall *recall, const struct cycle_result *r)
{
    struct sched_loop *d = arg;
    const struct cluster_pod *cp = recall->pod;
    struct cpu_grant left;
    AUTO_STRBUF text = {0};
    (void)r;
    cpu_lending_left(cp, &d->arena, &left);
    cpu_grant_encode(&left, cp->pod, &text);
    log_info("reclaiming lent CPUs", kv("pod", cp->pod->key), kv("left", strbuf_str(&text)));
    metrics_inc(&recalls, NULL);
    pod_writer_write_cpuset(d->pod_writer, cp->pod, strbuf_str(&text));
    loop_timer_set(d->loop, &d->cpu_lending, ATTEMPT_RECALL_MS, retry_reclaim, d);
}

static void evict_for(void *arg, struct gang *g, const struct cycle_result *r)
{
    struct sched_loop *d = arg;
    if (r->victims_len == 0)
        return;
    metrics_inc(&preemptions, NULL);
    log_info("preempting", kv("gang", g->key), kv("victims", r->victims_len));
    for (size_t i = 0; i < r->victims_len; i++) {
        const struct cycle_victim *v = &r->victims[i];
        pod_writer_report_preempted(d->pod_writer, v->pod->pod, v->for_pod->pod, v->pod->on->name);
        evictor_submit(d->evictor, v->pod->pod, v->for_pod->pod);
        victims_sent(&d->victims, v->pod);
    }
}

/* All or nothing: a gang that loses one of its nominated nodes cannot use the others. */
static void take_back_promises(struct sched_loop *d, struct cluster_pod *cp)
{
    nominate(d, cp, NULL);
    for (size_t i = 0; cp->gang != NULL && i < cp->gang->members.len; i++)
        if (cp->gang->members.items[i]->state == CLUSTER_PENDING)
            nominate(d, cp->gang->members.items[i], NULL);
}

static void give_up(void *arg, struct cluster_pod *cp)
{
    struct sched_loop *d = arg;
    take_back_promises(d, cp);
    if (cp->gang != NULL)
        queue_retry(&d->queue, cp->gang, loop_now_ms(d->loop));
    sched_loop_poke(d);
}

static void take_eviction(void *arg, void *msg)
{
    struct sched_loop *d = arg;
    struct evictor_result *r = msg;
    struct cluster_pod *victim = cluster_find_pod(&d->cluster, r->victim);
    struct cluster_pod *cp = cluster_find_pod(&d->cluster, r->pod);
    if (!r->gone) {
        log_warn("pod not preempted", kv("pod", r->victim), kv("for", r->pod),
                 kv("error", r->error.text));
        if (victim != NULL && str_eq(victim->pod->uid, r->victim_uid))
            victims_failed(&d->victims, victim);
        if (cp != NULL && str_eq(cp->pod->uid, r->pod_uid) && cp->state == CLUSTER_PENDING)
            give_up(d, cp);
    }
    evictor_result_free(r);
}

static void time_has_come(void *arg)
{
    struct sched_loop *d = arg;
    d->policies_due_ms = 0;
    queue_wake(&d->queue, EVENT_UNIT, loop_now_ms(d->loop));
    sched_loop_poke(d);
}

/* One timer, for the gang that is due first. */
static void await_time(void *arg, int64_t due_ns)
{
    struct sched_loop *d = arg;
    int64_t in_ms = num_max(num_sub_sat(due_ns, clock_wall_ns()) / NS_PER_MS + 1, 1);
    int64_t due_ms = num_add_sat(clock_mono_ms(), in_ms);
    if (d->policies_due_ms != 0 && d->policies_due_ms <= due_ms)
        return;
    d->policies_due_ms = due_ms;
    loop_timer_set(d->loop, &d->policies, in_ms, time_has_come, d);
}

static void decided(void *arg, const struct cycle_result *r)
{
    struct sched_loop *d = arg;
    metrics_observe_us(&cycle_seconds, NULL, clock_mono_us() - d->began_us);
    metrics_inc(&attempts, verdict_name(r->verdict));
}

/* A plugin does not name an event that it depends on, or an event is not raised. */
static void report_missed(struct sched_loop *d, const struct gang *g)
{
    metrics_inc(&missed, NULL);
    log_warn("no event woke a gang that fits: please report it", kv("gang", g->key),
             kv("refused", str_or_empty(queue_why(&d->queue, g)->sentence)));
}

static bool try_next(struct sched_loop *d)
{
    struct attempt_result tried;
    size_t kept = d->cluster.reservations->items.len;
    int64_t wall_ns = clock_wall_ns();
    struct attempt_time now = {clock_mono_ms(), wall_ns / NS_PER_MS, wall_ns};
    d->began_us = clock_mono_us();
    if (!attempt_next(&d->attempt, now, &tried))
        return false;
    reservation_timer_follow(&d->reserving, kept, &tried);
    if (tried.missed)
        report_missed(d, tried.gang);
    return true;
}

/* Records for the next leader which gangs have their quorum. */
static void record_satisfied(struct sched_loop *d)
{
    struct cluster_pod *cp;
    while ((cp = gangs_take_unrecorded(&d->cluster)) != NULL)
        pod_writer_record_satisfied(d->pod_writer, cp->pod, cp->said.name);
}

static void tick(void *arg)
{
    struct sched_loop *d = arg;
    if (!d->running)
        return;
    int64_t began_us = clock_mono_us();
    volumes_reconcile(d->volumes);
    gang_bind_reconcile(d->gang_bind);
    record_satisfied(d);
    loop_time_add(LOOP_TIME_OTHER, began_us);
    began_us = clock_mono_us();
    int64_t slice_end = clock_mono_ms() + SCHED_LOOP_SLICE_MS;
    while (try_next(d) && clock_mono_ms() < slice_end)
        ;
    loop_time_add(LOOP_TIME_ATTEMPTS, began_us);
    podgroups_reconcile(d->podgroups);
    policy_writer_reconcile(d->policy_writer);
    metrics_set(&pods_gauge, NULL, (int64_t)map_count(&d->cluster.pods));
    metrics_set(&nodes_gauge, NULL, (int64_t)map_count(&d->cluster.nodes));
    metrics_set(&disagreed, NULL, (int64_t)d->pipeline.classes->disagreed);
    metrics_set(&queue_gauge, "active", (int64_t)queue_len(&d->queue, GANG_ACTIVE));
    metrics_set(&queue_gauge, "backoff", (int64_t)queue_len(&d->queue, GANG_BACKOFF));
    metrics_set(&queue_gauge, "parked", (int64_t)queue_len(&d->queue, GANG_PARKED));
    int64_t now = clock_mono_ms(), due = queue_next_due(&d->queue, now);
    if (due >= 0)
        loop_timer_set(d->loop, &d->tick, num_max(due - now, 0), tick, d);
}

void sched_loop_poke(struct sched_loop *d)
{
    if (d->running)
        loop_timer_set(d->loop, &d->tick, 0, tick, d);
}

static void poke(void *arg)
{
    sched_loop_poke(arg);
}

static void note_bound(struct sched_loop *d, struct cluster_pod *cp, const struct binder_result *r)
{
    int64_t ended_us = r->ended_us > 0 ? r->ended_us : clock_mono_us();
    int64_t seen_us = cp != NULL ? pod_trace_seen_us(&d->trace, cp) : 0;
    int64_t took_us = seen_us > 0 ? ended_us - seen_us : 0;
    log_info("pod bound", kv("pod", r->pod), kv("node", r->node), kv("ms", took_us / 1000));
    if (cp == NULL)
        return;
    metrics_observe_us(&e2e_seconds, NULL, took_us);
    pod_writer_report_bound(d->pod_writer, cp->pod, r->node);
    if (d->policy_writer != NULL)
        policy_writer_bound(d->policy_writer, cp);
}

static void take_back(struct sched_loop *d, struct cluster_pod *cp, const struct binder_result *r)
{
    int64_t now_ms = loop_now_ms(d->loop);
    log_warn("pod not bound", kv("pod", r->pod), kv("node", r->node), kv("error", r->error.text));
    if (cp == NULL || cp->state != CLUSTER_ASSUMED)
        return;
    if (r->outcome == BINDER_FAILED)
        pod_writer_report_bind_failed(d->pod_writer, cp->pod, r->node, r->error.text);
    uint32_t events = cluster_note_freed(&d->cluster, cp->on);
    if (cp->volumes != NULL) { /* its volumes may not be available there */
        nominate(d, cp, NULL);
        events |= EVENT_VOLUME;
    }
    cluster_forget(&d->cluster, cp);
    if (cp->gang != NULL &&
        queue_state(&d->queue, cp->gang) != GANG_BACKOFF) /* one attempt, however many members */
        queue_retry(&d->queue, cp->gang, now_ms);
    queue_wake(&d->queue, events, now_ms);
    sched_loop_poke(d);
}

/* The pod may have been deleted, recreated and even placed again since. The ticket ensures that
 * only the assumption of this Binding is undone. */
static void take_result(void *arg, void *msg)
{
    struct sched_loop *d = arg;
    struct binder_result *r = msg;
    int64_t began_us = clock_mono_us();
    struct cluster_pod *cp = cluster_find_pod(&d->cluster, r->pod);
    if (cp != NULL && pod_trace_ticket(&d->trace, cp) != r->ticket)
        cp = NULL;
    if (r->outcome == BINDER_BOUND)
        note_bound(d, cp, r);
    else
        take_back(d, cp, r);
    binder_result_free(r);
    loop_time_add(LOOP_TIME_OTHER, began_us);
}

static void take_dryrun(void *arg, void *msg)
{
    struct sched_loop *d = arg;
    gang_bind_dryrun_done(d->gang_bind, msg);
    bind_dryrun_result_free(msg);
}

static void poked(void *arg)
{
    sched_loop_poke(arg);
}

int sched_loop_init(struct sched_loop *d, struct loop *loop, const char *scheduler_name,
                    struct error *err)
{
    *d = (struct sched_loop){.loop = loop};
    cluster_init(&d->cluster, scheduler_name);
    pipeline_init(&d->pipeline, &d->cluster);
    replacement_hold_enable(&d->cluster, true);
    queue_init(&d->queue, &d->cluster);
    d->queue.flush_ms = QUEUE_FLUSH_MS;
    victims_init(&d->victims, loop, &d->cluster, &d->queue);
    d->victims.give_up = give_up;
    d->victims.changed = poked;
    d->victims.arg = d;
    pod_trace_init(&d->trace);
    failures_init(&d->failures);
    teller_init(&d->teller, loop, &d->queue);
    reservation_timer_init(&d->reserving, loop, &d->pipeline, &d->queue, poked, d);
    arena_init(&d->arena, 64 * 1024);
    attempt_init(&d->attempt, &d->pipeline, &d->queue, &d->arena,
                 &(struct attempt_hooks){.decided = decided,
                                         .bind = bind,
                                         .await_time = await_time,
                                         .refused = refused,
                                         .evict_for = evict_for,
                                         .nominate = tell_nominated,
                                         .recall = reclaim,
                                         .arg = d});
    refresher_init(&d->refresher, loop, &d->attempt, &d->queue, tell_soon, d);
    struct metric *all[] = {&attempts,    &cycle_seconds, &e2e_seconds, &pods_gauge, &nodes_gauge,
                            &queue_gauge, &preemptions,   &disagreed,   &recalls,    &missed};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        metrics_register(all[i]);
    loop_time_register();
    if (mailbox_new(&d->evictions, loop, SCHED_LOOP_RESULTS, take_eviction, evictor_result_free, d,
                    err) < 0 ||
        mailbox_new(&d->dryrun_done, loop, SCHED_LOOP_RESULTS, take_dryrun, bind_dryrun_result_free,
                    d, err) < 0)
        return -1;
    return mailbox_new(&d->results, loop, SCHED_LOOP_RESULTS, take_result, binder_result_free, d,
                       err);
}

/* Whether the gang, or its bundle, is placed only in part. */
static bool was_begun(struct sched_loop *d, struct gang *g)
{
    const char *why;
    struct gang **bundle;
    if (gangs_is_lone(g) || queue_state(&d->queue, g) == GANG_IDLE || gangs_count_missing(g) == 0)
        return false;
    if (gangs_count_placed(g) > 0)
        return true;
    arena_reset(&d->arena);
    if (!gangs_has_quorum(&d->cluster, g, &d->arena, &why))
        return false;
    size_t n = gangs_bundle(&d->cluster, g, &d->arena, &bundle);
    for (size_t i = 0; i < n; i++)
        if (gangs_count_placed(bundle[i]) > 0)
            return true;
    return false;
}

/* Before other gangs take their capacity. */
static void finish_what_was_begun(struct sched_loop *d)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&d->cluster.gangs, &i, &key, &value);) {
        struct gang *g = value;
        if (!was_begun(d, g))
            continue;
        log_info("gang was bound in part", kv("gang", g->key),
                 kv("missing", gangs_count_missing(g)));
        queue_first(&d->queue, g, clock_mono_ms());
    }
}

void sched_loop_start(struct sched_loop *d, struct binder *b, struct pod_writer *s,
                      struct evictor *e, struct volumes *v)
{
    d->binder = b;
    d->pod_writer = s;
    d->evictor = e;
    d->volumes = v;
    d->gang_bind = gang_bind_new(&(struct gang_bind_config){.loop = d->loop,
                                                            .cluster = &d->cluster,
                                                            .trace = &d->trace,
                                                            .binder = b,
                                                            .volumes = v,
                                                            .dryrun = d->dryrun,
                                                            .results = d->results});
    d->podgroups = podgroups_new(&(struct podgroups_config){.loop = d->loop,
                                                            .cluster = &d->cluster,
                                                            .failures = &d->failures,
                                                            .queue = &d->queue,
                                                            .pod_writer = s,
                                                            .evictor = e,
                                                            .evict_stale = d->options.evict_stale,
                                                            .changed = poke,
                                                            .arg = d});
    d->policy_writer = policy_writer_new(&(struct policy_writer_config){
        .loop = d->loop, .cluster = &d->cluster, .pipeline = &d->pipeline, .pod_writer = s});
    refresher_start(&d->refresher, s);
    teller_start(&d->teller, s);
    d->running = true;
    finish_what_was_begun(d);
    sched_loop_poke(d);
}

void sched_loop_pause(struct sched_loop *d)
{
    d->running = false;
    loop_timer_cancel(d->loop, &d->tick);
    refresher_pause(&d->refresher);
    teller_pause(&d->teller);
    loop_timer_cancel(d->loop, &d->cpu_lending);
    loop_timer_cancel(d->loop, &d->policies);
    loop_timer_cancel(d->loop, &d->victims.timer);
    d->policies_due_ms = 0;
    podgroups_free(d->podgroups);
    d->podgroups = NULL;
    policy_writer_free(d->policy_writer);
    d->policy_writer = NULL;
    reservation_timer_pause(&d->reserving);
}

void sched_loop_deinit(struct sched_loop *d)
{
    sched_loop_pause(d);
    mailbox_free(d->results);
    mailbox_free(d->evictions);
    mailbox_free(d->dryrun_done);
    gang_bind_free(d->gang_bind);
    reservation_timer_deinit(&d->reserving);
    victims_deinit(&d->victims);
    queue_deinit(&d->queue);
    pod_trace_deinit(&d->trace);
    failures_deinit(&d->failures);
    attempt_deinit(&d->attempt);
    refresher_deinit(&d->refresher);
    teller_deinit(&d->teller);
    pipeline_deinit(&d->pipeline);
    cluster_deinit(&d->cluster);
    arena_deinit(&d->arena);
}

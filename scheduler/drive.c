// SPDX-License-Identifier: Apache-2.0
#include "scheduler/drive.h"

#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/framework/classes.h"
#include "scheduler/cycle/cycle.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cycle/loans.h"
#include "scheduler/cache/nominations.h"
#include "scheduler/cycle/plan.h"

enum {
    DRIVE_RESULTS = 4096,
    DRIVE_LOANS_MS = 5000, /* then CPUs are called back again that were not given back */
    DRIVE_SLICE_MS = 20    /* of cycles in a row, then the loop looks at its letters again */
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
                                    .help =
                                        "Times that less important pods were sent away for a pod."};

static struct metric recalls = {.kind = METRIC_COUNTER,
                                .name = "cosched_scheduler_cpu_recalls_total",
                                .help = "Times that CPUs on loan were called back from a pod."};

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
                                        [CYCLE_NO_ROOM] = "unschedulable",
                                        [CYCLE_NOTHING] = "nothing to do"};
    return names[v];
}

/* Result keys are never input: a pod that gets no claim and brought such keys along has them blanked, since a Binding cannot delete; other pods without a claim are
 * left as they are. */
static struct labels claim_of(struct drive *d, const struct cluster_pod *cp,
                              const struct cluster_node *node)
{
    struct labels out = {0};
    if (!claim_is_empty(&cp->claim)) {
        int64_t dev_gib =
            cp->claim.shares_len > 0 ? ledger_card_gib(&node->ledger, cp->claim.shares[0].card) : 0;
        claim_encode(&cp->claim, cp->pod, dev_gib, &d->arena, &out);
        return out;
    }
    const struct labels *given = &cp->pod->annotations;
    bool pinned = cp->claim.cpus.len > 0;
    out.items = arena_new(&d->arena, struct label, given->len + 1);
    for (size_t i = 0; i < given->len; i++)
        if (claim_is_result_key(given->items[i].key) && given->items[i].value[0] != '\0' &&
            !(pinned && str_eq(given->items[i].key, NAME_ANN_CPUSET)))
            out.items[out.len++] = (struct label){.key = given->items[i].key, .value = ""};
    if (pinned) {
        AUTO_STRBUF text = {0};
        cpuclaim_encode(&cp->claim.cpus, cp->pod, &text);
        out.items[out.len++] = (struct label){
            .key = NAME_ANN_CPUSET, .value = arena_strndup(&d->arena, text.ptr, text.len)};
    }
    return out;
}

static bool has_key(const struct labels *l, const char *key)
{
    for (size_t i = 0; i < l->len; i++)
        if (str_eq(l->items[i].key, key))
            return true;
    return false;
}

/* What the Binding writes into the pod: its claim, its unit, its gang. A key that the claim only blanks is the others'. */
static struct labels annotations_of(struct drive *d, struct cluster_pod *cp,
                                    const struct cluster_node *node)
{
    struct labels claim = claim_of(d, cp, node);
    struct labels unit = policies_annotations(cp, &d->arena);
    const char *gang = gangs_record_of(cp);
    if (gang == NULL && unit.len == 0)
        return claim;
    struct labels out = {.items = arena_new(&d->arena, struct label, claim.len + unit.len + 1)};
    for (size_t i = 0; i < claim.len; i++)
        if (!(gang != NULL && str_eq(claim.items[i].key, NAME_ANN_GANG_SATISFIED)) &&
            !has_key(&unit, claim.items[i].key))
            out.items[out.len++] = claim.items[i];
    for (size_t i = 0; i < unit.len; i++)
        out.items[out.len++] = unit.items[i];
    if (gang != NULL)
        out.items[out.len++] = (struct label){.key = NAME_ANN_GANG_SATISFIED, .value = gang};
    return out;
}

static void submit_one(struct drive *d, const struct bursts_member *m)
{
    if (m->pod->volumes != NULL)
        volumes_submit(d->volumes, m->pod, &m->binding, m->ticket);
    else
        binder_submit(d->binder, &m->binding, m->ticket);
}

/* The members of a gang go together: none is posted before the claims of its quorum are bound. */
static void submit(struct drive *d, const struct plan *plan)
{
    struct bursts_member *members = arena_new(&d->arena, struct bursts_member, plan->steps.len);
    bool hold = d->rehearsal != NULL;
    for (size_t i = 0; i < plan->steps.len; i++) {
        struct cluster_pod *cp = plan->steps.items[i].pod;
        const struct cluster_node *node = plan->steps.items[i].node;
        cp->claim.assume_time_ns = clock_wall_ns();
        cp->bind_ticket = ++d->tickets;
        members[i] = (struct bursts_member){.pod = cp,
                                            .binding = {.ns = cp->pod->ns,
                                                        .pod = cp->pod->name,
                                                        .uid = cp->pod->uid,
                                                        .node = node->name,
                                                        .labels = policies_labels(cp, &d->arena),
                                                        .annotations = annotations_of(d, cp, node)},
                                            .ticket = cp->bind_ticket};
        hold |= cp->volumes != NULL;
    }
    if (hold && plan->steps.len > 1) {
        bursts_submit(d->bursts, members, plan->steps.len);
        return;
    }
    for (size_t i = 0; i < plan->steps.len; i++)
        submit_one(d, &members[i]);
}

/* Parked gangs whose members may be told by now; the timer is set for the next one. */
static void tell_waiting(void *arg)
{
    struct drive *d = arg;
    int64_t now_ms = clock_mono_ms(), next_ms = -1;
    if (!d->running)
        return;
    for (size_t i = 0; i < d->queue.parked.len; i++) {
        struct gang *g = d->queue.parked.items[i];
        if (g->why.due_ms >= 0 && g->why.due_ms <= now_ms)
            g->why.due_ms = status_tell_waiting(d->status, g, now_ms);
        if (g->why.due_ms >= 0 && (next_ms < 0 || g->why.due_ms < next_ms))
            next_ms = g->why.due_ms;
    }
    if (next_ms >= 0)
        loop_timer_set(d->loop, &d->tell, next_ms - now_ms, tell_waiting, d);
}

static void note_why(struct drive *d, struct gang *g, const struct cycle_result *r)
{
    free(g->why.sentence);
    g->why = (struct gang_why){.sentence = mem_strdup(r->sentence),
                               .class = r->class,
                               .for_gang = r->verdict == CYCLE_WAITING,
                               .due_ms = clock_mono_ms()};
    if (!heap_has(&d->tell.node) || d->tell.due_ms > g->why.due_ms)
        loop_timer_set(d->loop, &d->tell, 0, tell_waiting, d);
}

/* The pod has a right to the room on that node from now on; NULL: on none. */
static void nominate(struct drive *d, struct cluster_pod *cp, const char *node)
{
    if (str_eq(cp->nominated, node))
        return;
    status_tell_nominated(d->status, cp->pod, node);
    uint32_t events = nominations_set(&d->cluster, cp, node);
    queue_wake(&d->queue, events, loop_now_ms(d->loop));
}

/* Others should know where a pod goes that waits for its claims. */
static void waits_long(void *arg, struct cluster_pod *cp)
{
    nominate(arg, cp, cp->on->name);
}

static void claims_ready(void *arg, const struct kube_binding *binding, uint64_t ticket)
{
    struct drive *d = arg;
    bursts_ready(d->bursts, binding, ticket);
}

struct volumes_config drive_volumes_config(struct drive *d, struct binder *b)
{
    return (struct volumes_config){.loop = d->loop,
                                   .cluster = &d->cluster,
                                   .binder = b,
                                   .results = d->results,
                                   .ready = claims_ready,
                                   .waits_long = waits_long,
                                   .arg = d};
}

/* A write may have been lost: what is still needed is then called back again. */
static void look_at_loans(void *arg)
{
    struct drive *d = arg;
    queue_wake(&d->queue, EVENT_POD_GONE, loop_now_ms(d->loop));
    drive_poke(d);
}

static void call_back(struct drive *d, const struct cycle_result *r)
{
    int64_t now_ms = loop_now_ms(d->loop);
    for (size_t i = 0; i < r->recalls_len; i++) {
        struct cluster_pod *cp = r->recalls[i].pod;
        struct cpuclaim left;
        AUTO_STRBUF text = {0};
        bool known = cp->giving != NULL && cpuset_is_subset(&r->recalls[i].cpus, cp->giving);
        if (known && now_ms - cp->giving_ms < DRIVE_LOANS_MS)
            continue;
        cluster_claim_call_back(cp, &r->recalls[i].cpus);
        cp->giving_ms = now_ms;
        loans_left(cp, &d->arena, &left);
        cpuclaim_encode(&left, cp->pod, &text);
        log_info("CPUs on loan are called back", kv("pod", cp->pod->key),
                 kv("left", strbuf_str(&text)));
        metrics_inc(&recalls, NULL);
        status_write_cpuset(d->status, cp->pod, strbuf_str(&text));
        loop_timer_set(d->loop, &d->loans, DRIVE_LOANS_MS, look_at_loans, d);
    }
}

/* Sends away whom the cycle chose. A promise that nobody's leaving can keep any more is taken back. */
static void make_room(struct drive *d, const struct gang *g, const struct cycle_result *r)
{
    for (size_t i = 0; i < r->nominations_len; i++) {
        const struct cycle_nomination *n = &r->nominations[i];
        nominate(d, n->pod, n->node != NULL ? n->node->name : NULL);
    }
    call_back(d, r);
    if (r->victims_len == 0)
        return;
    metrics_inc(&preemptions, NULL);
    log_info("making room", kv("gang", g->key), kv("victims", r->victims_len));
    for (size_t i = 0; i < r->victims_len; i++) {
        const struct cycle_victim *v = &r->victims[i];
        cluster_send_away(&d->cluster, v->pod, true);
        status_tell_preempted(d->status, v->pod->pod, v->for_pod->pod, v->pod->on->name);
        evictor_submit(d->evictor, v->pod->pod, v->for_pod->pod);
    }
}

/* All or nothing: a gang that does not get one of its places has no use for the others. */
static void take_back_promises(struct drive *d, struct cluster_pod *cp)
{
    nominate(d, cp, NULL);
    for (size_t i = 0; cp->gang != NULL && i < cp->gang->members.len; i++)
        if (cp->gang->members.items[i]->state == CLUSTER_PENDING)
            nominate(d, cp->gang->members.items[i], NULL);
}

static void take_eviction(void *arg, void *msg)
{
    struct drive *d = arg;
    struct evictor_result *r = msg;
    struct cluster_pod *victim = cluster_find_pod(&d->cluster, r->victim);
    struct cluster_pod *cp = cluster_find_pod(&d->cluster, r->pod);
    if (!r->gone) {
        log_warn("pod not sent away", kv("pod", r->victim), kv("for", r->pod),
                 kv("error", r->error.text));
        if (victim != NULL && str_eq(victim->pod->uid, r->victim_uid))
            cluster_send_away(&d->cluster, victim, false);
        if (cp != NULL && str_eq(cp->pod->uid, r->pod_uid) && cp->state == CLUSTER_PENDING) {
            take_back_promises(d, cp);
            if (cp->gang != NULL)
                queue_retry(&d->queue, cp->gang, loop_now_ms(d->loop));
            drive_poke(d);
        }
    }
    evictor_result_free(r);
}

static void time_has_come(void *arg)
{
    struct drive *d = arg;
    d->policies_due_ms = 0;
    queue_wake(&d->queue, EVENT_UNIT, loop_now_ms(d->loop));
    drive_poke(d);
}

/* Whom time alone may help is woken then: one timer, for the first of them. */
static void await_time(struct drive *d, const struct gang *g)
{
    int64_t due_ns = policies_due_ns(&d->cluster, g);
    if (due_ns == 0)
        return;
    int64_t in_ms = num_max(num_sub_sat(due_ns, clock_wall_ns()) / 1000000 + 1, 1);
    int64_t due_ms = num_add_sat(clock_mono_ms(), in_ms);
    if (d->policies_due_ms != 0 && d->policies_due_ms <= due_ms)
        return;
    d->policies_due_ms = due_ms;
    loop_timer_set(d->loop, &d->policies, in_ms, time_has_come, d);
}

static void park(struct drive *d, struct gang *g, const struct cycle_result *r)
{
    await_time(d, g);
    /* Who waits for pods to leave goes the moment they are gone. */
    if (r->awaits || r->verdict == CYCLE_WAITING)
        queue_wait(&d->queue, g, r->wakes | (r->awaits ? EVENT_POD_GONE : 0));
    else
        queue_park(&d->queue, g, r->wakes, loop_now_ms(d->loop));
}

static void try_gang(struct drive *d, struct gang *g)
{
    struct plan plan;
    struct cycle_result r;
    int64_t began_us = clock_mono_us();
    arena_reset(&d->arena);
    plan_begin(&plan, &d->cluster);
    slots_lend(&d->cluster, g);
    policies_set_now(&d->cluster, clock_wall_ns());
    cycle_run(&d->pipeline, g, &plan, &d->arena, &r);
    slots_settle(&d->cluster, g);
    metrics_observe_us(&cycle_seconds, NULL, clock_mono_us() - began_us);
    metrics_inc(&attempts, verdict_name(r.verdict));

    if (plan.committed) {
        submit(d, &plan);
        for (size_t i = 0; i < r.bursts_len; i++)
            status_tell_pod(d->status, r.bursts[i].pod->pod, false, "Bursting",
                            r.bursts[i].sentence);
        queue_wake(&d->queue, plan.events,
                   loop_now_ms(d->loop)); /* affinity may have waited for this */
    }
    plan_end(&plan);
    for (size_t i = 0; i < r.others_len; i++)
        queue_touch(&d->queue, r.others[i], loop_now_ms(d->loop));
    reserving_follow(&d->reserving, g, &r, &d->arena);
    switch (r.verdict) {
    case CYCLE_PLACED:
    case CYCLE_NOTHING:
        queue_succeeded(&d->queue, g);
        make_room(d, g, &r);
        break;
    case CYCLE_PARTLY:
    case CYCLE_WAITING:
    case CYCLE_NO_ROOM:
        park(d, g, &r);
        note_why(d, g, &r);
        policing_refused(d->policing, g);
        make_room(d, g, &r);
        log_debug("gang waits", kv("gang", g->key), kv("why", r.sentence));
        break;
    }
}

/* What the next leader must know of gangs that have their quorum. */
static void record_satisfied(struct drive *d)
{
    struct cluster_pod *cp;
    while ((cp = gangs_take_unrecorded(&d->cluster)) != NULL)
        status_record_satisfied(d->status, cp->pod, cp->said.name);
}

static void tick(void *arg)
{
    struct drive *d = arg;
    if (!d->running)
        return;
    volumes_look(d->volumes);
    bursts_look(d->bursts);
    record_satisfied(d);
    int64_t slice_end = clock_mono_ms() + DRIVE_SLICE_MS;
    struct gang *g;
    while ((g = queue_pop(&d->queue, clock_mono_ms())) != NULL) {
        try_gang(d, g);
        if (clock_mono_ms() >= slice_end)
            break;
    }
    podgroups_look(d->podgroups);
    policing_look(d->policing);
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

void drive_poke(struct drive *d)
{
    if (d->running)
        loop_timer_set(d->loop, &d->tick, 0, tick, d);
}

static void poke(void *arg)
{
    drive_poke(arg);
}

static void note_bound(struct drive *d, struct cluster_pod *cp, const struct binder_result *r)
{
    int64_t ended_us = r->ended_us > 0 ? r->ended_us : clock_mono_us();
    int64_t took_us = cp != NULL && cp->seen_us > 0 ? ended_us - cp->seen_us : 0;
    log_info("pod bound", kv("pod", r->pod), kv("node", r->node), kv("ms", took_us / 1000));
    if (cp == NULL)
        return;
    metrics_observe_us(&e2e_seconds, NULL, took_us);
    status_tell_bound(d->status, cp->pod, r->node);
    if (d->policing != NULL)
        policing_bound(d->policing, cp);
}

static void take_back(struct drive *d, struct cluster_pod *cp, const struct binder_result *r)
{
    int64_t now_ms = loop_now_ms(d->loop);
    log_warn("pod not bound", kv("pod", r->pod), kv("node", r->node), kv("error", r->error.text));
    if (cp == NULL || cp->state != CLUSTER_ASSUMED)
        return;
    if (r->outcome == BINDER_FAILED)
        status_tell_bind_failed(d->status, cp->pod, r->node, r->error.text);
    uint32_t events = EVENT_POD_GONE;
    if (cp->volumes != NULL) { /* they may not be had there */
        nominate(d, cp, NULL);
        events |= EVENT_VOLUME;
    }
    cluster_forget(&d->cluster, cp);
    if (cp->gang != NULL && cp->gang->state != GANG_BACKOFF) /* one attempt, however many members */
        queue_retry(&d->queue, cp->gang, now_ms);
    queue_wake(&d->queue, events, now_ms);
    drive_poke(d);
}

/* The pod may have changed a lot since: gone, made again and even placed again, confirmed by the watch. Only the assumption that this Binding was for
 * is taken back, which the ticket tells. */
static void take_result(void *arg, void *msg)
{
    struct drive *d = arg;
    struct binder_result *r = msg;
    struct cluster_pod *cp = cluster_find_pod(&d->cluster, r->pod);
    if (cp != NULL && cp->bind_ticket != r->ticket)
        cp = NULL;
    if (r->outcome == BINDER_BOUND)
        note_bound(d, cp, r);
    else
        take_back(d, cp, r);
    binder_result_free(r);
}

static void take_rehearsed(void *arg, void *msg)
{
    struct drive *d = arg;
    bursts_rehearsed(d->bursts, msg);
    rehearsal_result_free(msg);
}

static void poked(void *arg)
{
    drive_poke(arg);
}

int drive_init(struct drive *d, struct loop *loop, const char *scheduler_name, struct error *err)
{
    *d = (struct drive){.loop = loop};
    cluster_init(&d->cluster, scheduler_name);
    pipeline_init(&d->pipeline, &d->cluster);
    d->cluster.slots->kept = true; /* podgroups.c ends them */
    queue_init(&d->queue);
    reserving_init(&d->reserving, loop, &d->pipeline, &d->queue, poked, d);
    arena_init(&d->arena, 64 * 1024);
    struct metric *all[] = {&attempts,    &cycle_seconds, &e2e_seconds, &pods_gauge, &nodes_gauge,
                            &queue_gauge, &preemptions,   &disagreed,   &recalls};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        metrics_register(all[i]);
    if (mailbox_new(&d->evictions, loop, DRIVE_RESULTS, take_eviction, evictor_result_free, d,
                    err) < 0 ||
        mailbox_new(&d->rehearsed, loop, DRIVE_RESULTS, take_rehearsed, rehearsal_result_free, d,
                    err) < 0)
        return -1;
    return mailbox_new(&d->results, loop, DRIVE_RESULTS, take_result, binder_result_free, d, err);
}

/* Whether some of its members, or of the gangs that it goes with, are placed and the rest is not. */
static bool was_begun(struct drive *d, struct gang *g)
{
    const char *why;
    struct gang **bundle;
    if (gangs_is_lone(g) || g->state == GANG_IDLE || gangs_count_missing(g) == 0)
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

/* Before anybody else takes their room. */
static void finish_what_was_begun(struct drive *d)
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

void drive_start(struct drive *d, struct binder *b, struct status *s, struct evictor *e,
                 struct volumes *v)
{
    d->binder = b;
    d->status = s;
    d->evictor = e;
    d->volumes = v;
    d->bursts = bursts_new(&(struct bursts_config){.loop = d->loop,
                                                   .cluster = &d->cluster,
                                                   .binder = b,
                                                   .volumes = v,
                                                   .rehearsal = d->rehearsal,
                                                   .results = d->results});
    d->podgroups = podgroups_new(&(struct podgroups_config){.loop = d->loop,
                                                            .cluster = &d->cluster,
                                                            .queue = &d->queue,
                                                            .status = s,
                                                            .evictor = e,
                                                            .evict_stale = d->options.evict_stale,
                                                            .changed = poke,
                                                            .arg = d});
    d->policing = policing_new(&(struct policing_config){
        .loop = d->loop, .cluster = &d->cluster, .pipeline = &d->pipeline, .status = s});
    d->running = true;
    finish_what_was_begun(d);
    drive_poke(d);
}

void drive_pause(struct drive *d)
{
    d->running = false;
    loop_timer_cancel(d->loop, &d->tick);
    loop_timer_cancel(d->loop, &d->tell);
    loop_timer_cancel(d->loop, &d->loans);
    loop_timer_cancel(d->loop, &d->policies);
    d->policies_due_ms = 0;
    podgroups_free(d->podgroups);
    d->podgroups = NULL;
    policing_free(d->policing);
    d->policing = NULL;
    reserving_pause(&d->reserving);
}

void drive_deinit(struct drive *d)
{
    drive_pause(d);
    mailbox_free(d->results);
    mailbox_free(d->evictions);
    mailbox_free(d->rehearsed);
    bursts_free(d->bursts);
    reserving_deinit(&d->reserving);
    queue_deinit(&d->queue);
    pipeline_deinit(&d->pipeline);
    cluster_deinit(&d->cluster);
    arena_deinit(&d->arena);
}

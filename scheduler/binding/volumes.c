// SPDX-License-Identifier: Apache-2.0
/*
 * One pod whose claims must be bound first:
 *
 *      volumes_submit ─► WRITING ── all written (take_entry) ───► WAITING ── the watch shows all
 *                           │                                        │    bound (inspect) ─► binder
 *                           │ a write failed                         │ 600 s are over; the pod, a
 *                           │                                        │ claim, a volume or the node
 *                           │                                        │ is gone; the controller or
 *                           ▼                                        ▼ provisioner gave up
 *                        UNDOING ◄───────────────────────────────────┘
 *                           └── undoes what was written, unless others rely on it (give_up)
 *                               ─► FAILED, to the loop
 *
 * A worker handles WRITING and UNDOING. The loop handles WAITING: it checks the cluster's objects
 * each time one changes. The pod stays assumed to the end, so no other pod is given its volumes
 * before they are free again. A claim that another pod relies on is not undone.
 *
 * Nothing is kept beyond the process: the volume's claimRef and the claim's annotation are in the
 * API server, and a retried pod follows them.
 */
#include "scheduler/binding/volumes.h"

#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/num.h"
#include "scheduler/binding/volumes_write.h"
#include "scheduler/binding/workers.h"

enum { THREADS = 4, MAILBOX = 256 };

static struct metric binds_total = {
    .kind = METRIC_COUNTER,
    .name = "cosched_scheduler_volume_binds_total",
    .help = "Pods whose volume claims had to be bound first, by outcome.",
    .label = "outcome"};
static struct metric bind_seconds = {
    .kind = METRIC_HISTOGRAM,
    .name = "cosched_scheduler_volume_bind_duration_seconds",
    .help = "Time from the placement of a pod to all of its volume claims being bound."};

enum state { WRITING, WAITING, UNDOING };

struct entry {
    struct arena arena;
    enum state state;
    struct kube_binding binding;
    const char *pod; /* "ns/name" */
    uint64_t ticket;
    struct volumes_item *items;
    size_t items_len;
    int64_t began_us, until_ms, long_ms; /* long_ms -1: reported */
    struct error error;                  /* why it is undone */
};

struct volumes {
    struct volumes_config config;
    struct mailbox *mailbox; /* entries that workers have finished */
    struct workers *workers;
    struct kube_client *clients[THREADS];
    struct VEC(struct entry *) waiting;
    size_t pending;
    uint64_t version; /* of the storage, at the last check */
    struct loop_timer timer;
};

static void entry_free(void *p)
{
    struct entry *e = p;
    arena_deinit(&e->arena);
    free(e);
}

static void worker_run(void *arg, unsigned thread, void *p)
{
    struct volumes *v = arg;
    struct entry *e = p;
    struct kube_client *client = v->clients[thread];
    for (size_t i = 0; i < e->items_len && e->state == WRITING; i++)
        if (volumes_write_do(client, v->config.lease, &e->items[i], &e->error) < 0)
            break;
    for (size_t i = 0; i < e->items_len && e->state == UNDOING; i++) {
        struct error err = ERROR_INIT;
        if (volumes_write_undo(client, v->config.lease, &e->items[i], &err) < 0)
            log_warn("the choice for a volume claim could not be undone", kv("pod", e->pod),
                     kv("error", err.text));
    }
    (void)mailbox_post(v->mailbox, e);
}

/* The entry's pod, or NULL if it is no longer assumed for it. */
static struct cluster_pod *pod_of(const struct volumes *v, const struct entry *e)
{
    struct cluster_pod *cp = cluster_find_pod(v->config.cluster, e->pod);
    bool same = cp != NULL && pod_trace_ticket(v->config.trace, cp) == e->ticket &&
                cp->state == CLUSTER_ASSUMED && str_eq(cp->pod->uid, e->binding.uid);
    return same ? cp : NULL;
}

static void finish(struct volumes *v, struct entry *e, const char *outcome)
{
    metrics_inc(&binds_total, outcome);
    v->pending--;
    entry_free(e);
}

static void bind(struct volumes *v, struct entry *e)
{
    metrics_observe_us(&bind_seconds, NULL, clock_mono_us() - e->began_us);
    log_debug("claims bound", kv("pod", e->pod), kv("node", e->binding.node));
    if (v->config.ready != NULL)
        v->config.ready(v->config.arg, &e->binding, e->ticket);
    else
        binder_submit(v->config.binder, &e->binding, e->ticket);
    finish(v, e, "bound");
}

static void give_up(struct volumes *v, struct entry *e)
{
    struct binder_result *r = mem_new(struct binder_result, 1);
    *r = (struct binder_result){.outcome = BINDER_FAILED,
                                .ticket = e->ticket,
                                .pod = mem_strdup(e->pod),
                                .node = mem_strdup(e->binding.node),
                                .error = e->error};
    (void)mailbox_post(v->config.results, r);
    finish(v, e, "failed");
}

/* Leaves claims that were assumed for other pods too. */
static void undo(struct volumes *v, struct entry *e)
{
    size_t mine = pod_of(v, e) != NULL;
    for (size_t i = 0; i < e->items_len; i++) {
        struct volumes_item *it = &e->items[i];
        const char *key = arena_printf(&e->arena, "%s/%s", it->ns, it->claim);
        const struct volumes_promise *p = map_get(&v->config.cluster->volumes->by_claim, key);
        it->others_count = p != NULL && p->pods > mine;
    }
    e->state = UNDOING;
    (void)workers_submit(v->workers, e);
}

enum verdict { BOUND, NOT_YET, FAILED };

static enum verdict failed(struct entry *e, const struct volumes_item *it, const char *why)
{
    (void)error_set(&e->error, ERROR_CONFLICT, "claim %s/%s %s", it->ns, it->claim, why);
    return FAILED;
}

/* Whether the watch has reached our write. */
static bool has_caught_up(const struct object *o, const struct volumes_item *it)
{
    int64_t version;
    return it->version >= 0 && o->resource_version != NULL &&
           num_parse(o->resource_version, strlen(o->resource_version), &version, NULL) == 0 &&
           version >= it->version;
}

static bool is_reserved(const struct pv *volume, const struct volumes_item *it)
{
    return str_eq(volume->claim_uid, it->claim_uid);
}

static enum verdict inspect_unbound(struct entry *e, const struct volumes_item *it,
                                    const struct pvc *claim, const struct pv *volume)
{
    if (it->volume == NULL && has_caught_up(&claim->object, it) &&
        !str_eq(claim->selected_node, it->node))
        return failed(e, it, "got no volume: the provisioner gave the node back");
    if (it->volume != NULL && volume == NULL)
        return failed(e, it, "was to get a volume that is gone");
    if (it->volume != NULL && has_caught_up(&volume->object, it) && !is_reserved(volume, it))
        return failed(e, it, "was not given the volume that was reserved for it");
    return NOT_YET;
}

static enum verdict inspect_item(const struct volumes *v, struct entry *e,
                                 const struct volumes_item *it, const struct node *node)
{
    const struct api_objects *o = v->config.cluster->objects;
    const struct pvc *claim = api_objects_find_pvc(o, it->ns, it->claim);
    if (claim == NULL || !str_eq(claim->object.uid, it->claim_uid) || claim->object.terminating)
        return failed(e, it, "is gone");
    if (claim->phase == PVC_LOST)
        return failed(e, it, "has lost its volume");
    const struct pv *volume =
        api_objects_find_pv(o, it->volume != NULL ? it->volume : claim->volume);
    if (claim->volume == NULL || !claim->bind_completed)
        return inspect_unbound(e, it, claim, volume);
    if (it->volume != NULL && !str_eq(claim->volume, it->volume))
        return failed(e, it, "was bound to another volume");
    if (volume == NULL || !is_reserved(volume, it))
        return NOT_YET; /* the two watches are independent */
    if (volume->has_node_affinity &&
        !node_selector_matches(&volume->node_affinity, &node->labels, ""))
        return failed(e, it, "got a volume that the node cannot reach");
    return BOUND;
}

static enum verdict inspect(const struct volumes *v, struct entry *e, int64_t now_ms)
{
    const struct cluster_node *on = cluster_find_node(v->config.cluster, e->binding.node);
    enum verdict all = BOUND;
    if (pod_of(v, e) == NULL || on == NULL || on->node == NULL) {
        (void)error_set(&e->error, ERROR_NOT_FOUND, "%s while its claims were being bound",
                        on == NULL || on->node == NULL ? "the node went" : "the pod went");
        return FAILED;
    }
    for (size_t i = 0; i < e->items_len; i++) {
        enum verdict one = inspect_item(v, e, &e->items[i], on->node);
        if (one == FAILED)
            return FAILED;
        if (one == NOT_YET && now_ms >= e->until_ms) {
            (void)failed(e, &e->items[i], "was not bound in time");
            return FAILED;
        }
        all = one == NOT_YET ? NOT_YET : all;
    }
    return all;
}

static void say_if_long(struct volumes *v, struct entry *e, int64_t now_ms)
{
    struct cluster_pod *cp = pod_of(v, e);
    if (e->long_ms < 0 || now_ms < e->long_ms || cp == NULL)
        return;
    e->long_ms = -1;
    v->config.waits_long(v->config.arg, cp);
}

static void on_time(void *arg);

static void inspect_all(struct volumes *v)
{
    int64_t now_ms = clock_mono_ms(), next_ms = INT64_MAX;
    v->version = volumes_held_version(v->config.cluster);
    for (size_t i = 0; i < v->waiting.len;) {
        struct entry *e = v->waiting.items[i];
        enum verdict verdict = inspect(v, e, now_ms);
        if (verdict == NOT_YET) {
            say_if_long(v, e, now_ms);
            next_ms = num_min(next_ms, e->until_ms);
            if (e->long_ms >= 0)
                next_ms = num_min(next_ms, e->long_ms);
            i++;
            continue;
        }
        vec_remove_swap(&v->waiting, i);
        if (verdict == BOUND)
            bind(v, e);
        else
            undo(v, e);
    }
    if (next_ms < INT64_MAX)
        loop_timer_set(v->config.loop, &v->timer, num_max(next_ms - now_ms, 0), on_time, v);
}

static void on_time(void *arg)
{
    inspect_all(arg);
}

/* The storage's version does not cover nodes. */
static bool lost_a_node(const struct volumes *v)
{
    for (size_t i = 0; i < v->waiting.len; i++) {
        const char *name = v->waiting.items[i]->binding.node;
        const struct cluster_node *on = cluster_find_node(v->config.cluster, name);
        if (on == NULL || on->node == NULL)
            return true;
    }
    return false;
}

void volumes_reconcile(struct volumes *v)
{
    if (v->waiting.len > 0 &&
        (v->version != volumes_held_version(v->config.cluster) || lost_a_node(v)))
        inspect_all(v);
}

static void take_entry(void *arg, void *msg)
{
    struct volumes *v = arg;
    struct entry *e = msg;
    if (e->state == UNDOING) {
        give_up(v, e);
    } else if (e->error.code != ERROR_NONE) {
        undo(v, e);
    } else {
        e->state = WAITING;
        vec_push(&v->waiting, e);
        inspect_all(v);
    }
}

static void fill_item(const struct volumes *v, struct volumes_item *it,
                      const struct volumes_promise *p, struct arena *a)
{
    const struct api_objects *o = v->config.cluster->objects;
    const struct pvc *claim = (const void *)api_objects_find(o, API_OBJECTS_CLAIMS, p->claim);
    const struct pv *volume = api_objects_find_pv(o, p->volume);
    *it = (struct volumes_item){
        .ns = arena_strdup(a, claim->object.ns),
        .claim = arena_strdup(a, claim->object.name),
        .claim_uid = arena_strdup(a, claim->object.uid),
        .volume = volume != NULL ? arena_strdup(a, volume->object.name) : NULL,
        .volume_uid = volume != NULL ? arena_strdup(a, volume->object.uid) : NULL,
        .node = arena_strdup(a, p->node),
        .version = -1};
}

void volumes_submit(struct volumes *v, const struct cluster_pod *cp,
                    const struct kube_binding *binding, uint64_t ticket)
{
    struct entry *e = mem_new(struct entry, 1);
    struct arena *a = &e->arena;
    int64_t now_ms = clock_mono_ms();
    arena_init(a, 1024);
    e->state = WRITING;
    e->pod = arena_strdup(a, cp->pod->key);
    e->ticket = ticket;
    e->binding = kube_binding_copy(binding, a);
    e->items_len = cp->volumes->len;
    e->items = arena_new(a, struct volumes_item, e->items_len);
    for (size_t i = 0; i < e->items_len; i++)
        fill_item(v, &e->items[i], cp->volumes->items[i], a);
    e->began_us = clock_mono_us();
    e->until_ms = now_ms + v->config.timeout_ms;
    e->long_ms = now_ms + v->config.long_ms;
    v->pending++;
    (void)workers_submit(v->workers, e);
}

size_t volumes_pending(const struct volumes *v)
{
    return v->pending;
}

size_t volumes_waiting(const struct volumes *v)
{
    return v->waiting.len;
}

int volumes_start(struct volumes **out, struct kube_config *kube, const struct kube_options *o,
                  const struct volumes_config *c, struct error *err)
{
    metrics_register(&binds_total);
    metrics_register(&bind_seconds);
    struct volumes *v = mem_new(struct volumes, 1);
    v->config = *c;
    if (v->config.timeout_ms == 0)
        v->config.timeout_ms = VOLUMES_TIMEOUT_MS;
    if (v->config.long_ms == 0)
        v->config.long_ms = VOLUMES_LONG_MS;
    int rc = mailbox_new(&v->mailbox, c->loop, MAILBOX, take_entry, entry_free, v, err);
    for (unsigned i = 0; i < THREADS && rc == 0; i++) {
        rc = kube_client_new(&v->clients[i], kube, o, "cosched-scheduler/volumes", err);
        if (rc == 0)
            kube_client_set_timeout(v->clients[i], BINDER_TIMEOUT_MS);
    }
    struct workers_config workers = {
        .threads = THREADS, .run = worker_run, .dispose = entry_free, .arg = v};
    if (rc < 0 || workers_start(&v->workers, &workers, err) < 0) {
        volumes_stop(v);
        return error_wrap(err, "volumes");
    }
    *out = v;
    return 0;
}

void volumes_stop(struct volumes *v)
{
    if (v == NULL)
        return;
    loop_timer_cancel(v->config.loop, &v->timer);
    mailbox_close(v->mailbox);
    for (unsigned i = 0; i < THREADS; i++)
        if (v->clients[i] != NULL)
            kube_client_cancel(v->clients[i]);
    workers_stop(v->workers);
    for (unsigned i = 0; i < THREADS; i++)
        if (v->clients[i] != NULL)
            kube_client_free(v->clients[i]);
    mailbox_free(v->mailbox);
    for (size_t i = 0; i < v->waiting.len; i++)
        entry_free(v->waiting.items[i]);
    vec_deinit(&v->waiting);
    free(v);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * States of a pod in the model, and the function behind each arrow:
 *
 *            put_pod, no nodeName        assume             put_pod, same nodeName
 *   (absent) ──────────────────► PENDING ───────► ASSUMED ─────────────────────────────► BOUND
 *     ▲  │                        │   ▲            │  │                                    │
 *     │  │ put_pod with nodeName  │   │  forget    │  │ put_pod with another nodeName      │
 *     │  └────────────────────────┼───┼────────────┼──┼──────────────► BOUND there ────────┤
 *     │                           │   └────────────┘  │                                    │
 *     ├───────────────────────────┴───────────────────┴────────────────────────────────────┤
 *     │    remove_pod, or put_pod that is Failed or Succeeded: holds nothing any more      │
 *     │                                                                                    ▼
 *     └──────────────────── remove_pod, put_pod that is Failed ──────────────────────── FINISHED
 *                                                 (put_pod that is Succeeded, of a gang of ours)
 *
 * ASSUMED and BOUND hold capacity on their node; a terminating pod holds it until it is gone. An
 * update of an ASSUMED pod without nodeName (a condition, a label) leaves it ASSUMED: the binder
 * knows the state of the Binding, the watch does not yet.
 *
 * A grant is read once, when a pod is first seen bound, even if we assumed it there: the Binding
 * that won may be another leader's, with other cards. Later edits of the annotation are ignored.
 *
 * An unreadable version (pod.unreadable) changes nothing: the old object stays until a readable
 * version comes or the pod goes. A pod that was never readable is not there.
 *
 * A cluster_node stays as long as the API server has the node or a pod is on it. Keys of the pod
 * map lie in the pod objects, so a new version enters the map before the old one is freed.
 */
#include "scheduler/cache/cluster.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/cache/cluster_internal.h"
#include "scheduler/cache/expected_end.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cache/gangs_bundle.h"
#include "scheduler/model/gpu_prices.h"
#include "scheduler/model/nominations.h"
#include "scheduler/cache/pods.h"
#include "scheduler/model/rejections.h"
#include "scheduler/model/volumes_attached.h"
#include "scheduler/model/volumes_view.h"

void cluster_init(struct cluster *c, const char *scheduler_name)
{
    *c = (struct cluster){.scheduler_name = scheduler_name};
    virtuals_init(&c->virtuals);
    c->reservations = mem_new(struct reservations, 1);
    reservations_init(c);
    c->holds = mem_new(struct replacement_hold, 1);
    map_init(&c->nodes);
    map_init(&c->pods);
    map_init(&c->gangs);
    map_init(&c->pod_groups);
    map_init(&c->gangs_named);
    map_init(&c->nominated);
    resource_vector_names_init(&c->names);
    c->objects = mem_new(struct api_objects, 1);
    api_objects_init(c->objects);
    c->policies = mem_new(struct policies, 1);
    policies_init(c->policies);
    c->volumes = mem_new(struct volumes_held, 1);
    volumes_held_init(c->volumes);
    c->volumes_index = volumes_attached_index_new();
    cpu_shapes_init(&c->cpu_shapes);
    c->index = mem_new(struct pod_counters, 1);
    pod_counters_init(c->index);
    c->table = mem_new(struct node_table, 1);
    node_table_init(c->table);
    c->topologies = mem_new(struct topologies, 1);
    topologies_init(c->topologies);
    c->gpu_prices = gpu_prices_new(&c->names);
}

void cluster_deinit(struct cluster *c)
{
    const char *key;
    void *value;
    replacement_hold_deinit(c);
    nominations_deinit(c);
    for (size_t i = 0; map_next(&c->pods, &i, &key, &value);)
        pods_free(c, value);
    for (size_t i = 0; map_next(&c->nodes, &i, &key, &value);)
        cluster_nodes_delete(value);
    gangs_deinit(c);
    map_deinit(&c->pods);
    map_deinit(&c->nodes);
    virtuals_deinit(&c->virtuals);
    vec_deinit(&c->placed);
    vec_deinit(&c->freed);
    vec_deinit(&c->staying);
    rejections_deinit(c);
    reservations_deinit(c);
    free(c->reservations);
    resource_vector_names_deinit(&c->names);
    policies_deinit(c->policies);
    free(c->policies);
    api_objects_deinit(c->objects);
    free(c->objects);
    volumes_held_deinit(c->volumes);
    volumes_attached_index_free(c->volumes_index);
    free(c->volumes);
    topologies_deinit(c->topologies);
    free(c->topologies);
    gpu_prices_free(c->gpu_prices);
    cpu_shapes_deinit(&c->cpu_shapes);
    pod_counters_deinit(c->index);
    free(c->index);
    node_table_deinit(c->table);
    free(c->table);
    free(c->holds);
    ids_deinit(&c->node_ids);
    ids_deinit(&c->pod_ids);
    ids_deinit(&c->gang_ids);
    ids_deinit(&c->group_ids);
}

static void hold_ports(struct cluster_node *cn, const struct cluster_pod *cp,
                       const struct container *c, size_t len, bool sidecars_only)
{
    for (size_t i = 0; i < len; i++)
        for (size_t k = 0; k < c[i].ports_len && (c[i].sidecar || !sidecars_only); k++) {
            struct cluster_port held = {.port = &c[i].ports[k], .owner = cp};
            vec_push(&cn->ports, held);
        }
}

static int by_number(const void *a, const void *b)
{
    const struct cluster_port *x = a, *y = b;
    return (int)x->port->host_port - (int)y->port->host_port;
}

static void release_ports(struct cluster_node *cn, const struct cluster_pod *cp)
{
    size_t kept = 0;
    for (size_t i = 0; i < cn->ports.len; i++)
        if (cn->ports.items[i].owner != cp)
            cn->ports.items[kept++] = cn->ports.items[i];
    cn->ports.len = kept;
}

/* A cluster has a handful of priorities. */
static void count_priority(struct cluster *c, int32_t priority, int sign)
{
    size_t i = 0;
    while (i < c->placed.len && c->placed.items[i].priority != priority)
        i++;
    if (i == c->placed.len) {
        struct cluster_placed none = {.priority = priority};
        vec_push(&c->placed, none);
    }
    c->placed.items[i].pods += sign;
    if (c->placed.items[i].pods == 0)
        vec_remove_swap(&c->placed, i);
}

bool cluster_has_placed_below(const struct cluster *c, int32_t priority)
{
    for (size_t i = 0; i < c->placed.len; i++)
        if (c->placed.items[i].priority < priority)
            return true;
    return false;
}

/* Returns whether affinity or spread of any pod counts this one. */
static bool hold(struct cluster *c, struct cluster_node *cn, struct cluster_pod *cp)
{
    bool counted = pod_counters_hold(c, cp, cn);
    count_priority(c, cp->pod->priority, 1);
    cp->on = cn;
    cp->on_place = cn->pods.len;
    vec_push(&cn->pods, cp);
    if (cp->pod->volumes_len > 0)
        volumes_held_use(c, cp->pod);
    resource_vector_account_offered(&cn->used, &cp->request, &cn->allocatable, 1);
    gpu_accounts_account(&cn->gpu_accounts, &cp->grant, cp->grant_trusted, &cp->gpu, 1);
    cpu_accounts_account(&cn->cpus, &cp->grant.cpus, cp->cpu, 1);
    if (cp->has_ports) {
        hold_ports(cn, cp, cp->pod->containers, cp->pod->containers_len, false);
        hold_ports(cn, cp, cp->pod->init_containers, cp->pod->init_containers_len, true);
        qsort(cn->ports.items, cn->ports.len, sizeof cn->ports.items[0], by_number);
    }
    policies_hold(c, cp);
    gpu_prices_pod_moved(c->gpu_prices, cp);
    node_table_touch(c->table, cn, false);
    nominations_touch(c, cp);
    return counted;
}

static void release(struct cluster *c, struct cluster_pod *cp)
{
    struct cluster_node *cn = cp->on;
    (void)pod_counters_release(c, cp, cn);
    policies_release(c, cp);
    count_priority(c, cp->pod->priority, -1);
    gpu_accounts_account(&cn->gpu_accounts, &cp->grant, cp->grant_trusted, &cp->gpu, -1);
    cpu_accounts_account(&cn->cpus, &cp->grant.cpus, cp->cpu, -1);
    if (cp->has_ports)
        release_ports(cn, cp);
    if (cp->pod->volumes_len > 0)
        volumes_held_leave(c, cp->pod);
    vec_remove_swap(&cn->pods, cp->on_place);
    if (cp->on_place < cn->pods.len)
        cn->pods.items[cp->on_place]->on_place = cp->on_place;
    cp->on = NULL;
    if (cn->used.saturated)
        cluster_nodes_recount(cn);
    else
        resource_vector_account_offered(&cn->used, &cp->request, &cn->allocatable, -1);
    gpu_prices_pod_moved(c->gpu_prices, cp);
    node_table_touch(c->table, cn, false);
    nominations_touch(c, cp);
}

/* A pod has come to the node. A nominated pod that does not fit there any more takes less from
 * others than before. */
static uint32_t crowd_out(struct cluster *c, const struct cluster_pod *cp)
{
    bool own = cp->nominated != NULL && str_eq(cp->nominated, cp->on->name);
    return cp->on->nominated && !own ? cluster_note_freed(c, cp->on) : 0;
}

static bool is_ours(const struct cluster *c, const struct pod *p)
{
    return str_eq(p->scheduler, c->scheduler_name);
}

static uint32_t pod_add(struct cluster *c, struct pod *p, const struct cluster_hooks *hooks)
{
    struct cluster_pod *cp = pods_new(c, p);
    uint32_t events = 0;
    map_put(&c->pods, p->key, cp);
    policies_join(c, cp);
    if (pod_is_finished(p)) {
        cp->state = CLUSTER_FINISHED;
    } else if (p->node != NULL) {
        struct cluster_node *on = cluster_nodes_get(c, p->node);
        cp->state = CLUSTER_BOUND;
        cluster_grant_read(cp);
        policies_read(cp, on);
        events = hold(c, on, cp) ? EVENT_POD_COUNTED : 0;
        events |= crowd_out(c, cp);
    }
    events |= policies_take_events(c);
    if (cp->state != CLUSTER_FINISHED)
        gpu_prices_see(c, cp);
    events |= nominations_follow(c, cp, NULL, NULL);
    return is_ours(c, p) ? events | gangs_join(c, cp, hooks) : events;
}

static bool same_terms(const struct podterms *a, const struct podterms *b)
{
    AUTO_STRBUF x = {0};
    AUTO_STRBUF y = {0};
    if (a == NULL || b == NULL)
        return a == b;
    pod_counters_print_terms(a, &x);
    pod_counters_print_terms(b, &y);
    return x.len == y.len && memcmp(strbuf_str(&x), strbuf_str(&y), x.len) == 0;
}

/* Whether affinity and spread see the same pod. */
static bool same_traits(const struct pod *a, const struct pod *b)
{
    return a->terminating == b->terminating && cluster_labels_equal(&a->labels, &b->labels) &&
           same_terms(a->terms, b->terms);
}

static uint32_t pod_replace(struct cluster *c, struct cluster_pod *cp, struct pod *p,
                            const struct cluster_hooks *hooks)
{
    struct pod *old = cp->pod;
    struct cluster_node *was_on = cp->on;
    struct resource_vector held = cp->request; /* borrows names from the old object */
    uint64_t claimed = cluster_digest_grant(cp), membership = policies_digest(cp);
    uint32_t events = 0;

    bool counted = false, as_before = same_traits(old, p);
    AUTO_STRBUF gang = {0}; /* which may vanish when its last member leaves it */
    if (cp->gang != NULL && replacement_hold_count(c) > 0)
        strbuf_adds(&gang, cp->gang->key);
    if (was_on != NULL && pod_is_finished(p))
        expected_end_learn(c, cp);
    if (was_on != NULL)
        release(c, cp);
    if (!as_before)
        pod_counters_forget_traits(c->index, cp);
    pods_set_object(c, cp, p);
    map_put(&c->pods, p->key, cp);
    policies_join(c, cp);

    if (pod_is_finished(p) || p->node != NULL)
        volumes_held_withdraw(c, cp);
    if (pod_is_finished(p)) {
        c->reservations->departures += was_on != NULL;
        cluster_grant_clear(cp);
        cp->state = CLUSTER_FINISHED;
    } else if (p->node != NULL) {
        bool known = cp->state == CLUSTER_BOUND && was_on != NULL && str_eq(was_on->name, p->node);
        if (!known)
            cluster_grant_read(cp);
        else
            cluster_grant_follow(cp);
        cp->state = CLUSTER_BOUND;
        struct cluster_node *on = cluster_nodes_get(c, p->node);
        policies_read(cp, on);
        counted = hold(c, on, cp);
        events |= on != was_on ? crowd_out(c, cp) : 0;
    } else if (was_on != NULL) {
        policies_read(cp, was_on);
        counted = hold(c, was_on, cp); /* still ASSUMED */
    }
    policies_note_moved(c, cp, membership);
    events |= policies_take_events(c);
    /* A pod that waits is counted by nobody. */
    if ((counted || (!as_before && was_on != NULL)) && (cp->on != was_on || !as_before) &&
        c->index->active)
        events |= EVENT_POD_COUNTED;
    /* The pod moved, got other cards, finished, or shrank by a resize: capacity is free. */
    if (was_on != NULL && (cp->on != was_on || cluster_digest_grant(cp) != claimed ||
                           resource_vector_grew(&cp->request, &held)))
        events |= cluster_note_freed(c, was_on);
    /* CPUs can be reclaimed only from pods that the node agent has confirmed. */
    if (cp->on != NULL && cp->cpu != NULL && cp->cpu->burst &&
        !str_eq(labels_get(&old->annotations, NAME_ANN_CPUSET_APPLIED),
                labels_get(&p->annotations, NAME_ANN_CPUSET_APPLIED)))
        events |= cluster_note_freed(c, cp->on);
    if (was_on != NULL && cp->pod->terminating && !old->terminating) {
        (void)cluster_note_freed(c, was_on);
        events |= EVENT_POD_LEAVING; /* those that may preempt need not wait until it is gone */
    }
    if (was_on != NULL && cp->on != was_on)
        cluster_nodes_drop_if_unused(c, was_on);
    events |= nominations_follow(c, cp, old, &held);
    events |= gangs_member_changed(c, cp, old, hooks);
    if (gang.len > 0 && map_get(&c->gangs, strbuf_str(&gang)) == NULL)
        events |= replacement_hold_drop(c, strbuf_str(&gang));
    pod_free(old);
    return events;
}

/* Version p cannot be read: the known object stays, whatever it holds. */
static uint32_t pod_keep(struct cluster *c, struct cluster_pod *cp, bool terminating,
                         const struct cluster_hooks *hooks)
{
    uint32_t events = 0;
    if (cp->pod->terminating != terminating && cp->on != NULL) {
        (void)pod_counters_release(c, cp, cp->on);
        pod_counters_forget_traits(c->index, cp);
        policies_release(c, cp);
        cp->pod->terminating = terminating;
        policies_hold(c, cp);
        events = pod_counters_hold(c, cp, cp->on) ? EVENT_POD_COUNTED : 0;
        events |= policies_take_events(c) | (terminating ? EVENT_POD_LEAVING : 0);
        (void)cluster_note_freed(c, cp->on);
        node_table_touch(c->table, cp->on, false);
    }
    cp->pod->terminating = terminating;
    if (cp->gang == NULL)
        return events;
    gangs_bundle_count(cp);
    return events | gangs_refresh(c, cp, hooks);
}

/* A finished pod is kept only because its gang counts it. */
static bool is_remembered(const struct cluster *c, const struct pod *p)
{
    struct gang_ref ref;
    struct error err = ERROR_INIT;
    return !pod_is_finished(p) || (p->phase == POD_SUCCEEDED && !p->terminating && is_ours(c, p) &&
                                   gang_of_pod(p, &ref, &err) == 0 && ref.form != GANG_NONE);
}

uint32_t cluster_remove_pod(struct cluster *c, const char *key, const char *uid,
                            const struct cluster_hooks *hooks)
{
    struct cluster_pod *cp = cluster_find_pod(c, key);
    if (cp == NULL || (uid != NULL && !str_eq(cp->pod->uid, uid)))
        return 0;
    uint32_t events = 0;
    bool keeps = replacement_hold_wants(c, cp);
    AUTO_STRBUF gang = {0}, node = {0};
    strbuf_adds(&gang, cp->gang != NULL ? cp->gang->key : "");
    strbuf_adds(&node, keeps ? cp->on->name : "");
    if (cp->on != NULL) {
        struct cluster_node *cn = cp->on;
        expected_end_learn(c, cp);
        c->reservations->departures++;
        release(c, cp);
        events = cluster_note_freed(c, cn);
        cluster_nodes_drop_if_unused(c, cn);
    }
    const struct reservation *kept = cp->gang != NULL ? reservations_of(c, cp->gang)->kept : NULL;
    if (kept != NULL && cp->state == CLUSTER_PENDING) { /* its part of the reserved room is free */
        reservations_touch_nodes(c, kept);
        events |= EVENT_NODE_CAPACITY;
    }
    if (cp->gang != NULL)
        events |= gangs_leave(c, cp, hooks);
    events |= nominations_set(c, cp, NULL);
    (void)cluster_set_staying(c, cp, false);
    map_remove(&c->pods, key);
    policies_leave(c, cp);
    events |= cp->volumes != NULL ? EVENT_VOLUME : 0; /* its promised volumes are free again */
    volumes_held_withdraw(c, cp);
    pod_counters_forget_traits(c->index, cp);
    if (keeps)
        replacement_hold_keep(c, cp, strbuf_str(&gang), strbuf_str(&node));
    else
        pods_free(c, cp);
    if (gang.len > 0 && map_get(&c->gangs, strbuf_str(&gang)) == NULL)
        events |= replacement_hold_drop(c, strbuf_str(&gang));
    return events;
}

uint32_t cluster_put_pod(struct cluster *c, struct pod *p, const struct cluster_hooks *hooks)
{
    struct cluster_pod *cp = cluster_find_pod(c, p->key);
    uint32_t events = 0;
    if (cp != NULL &&
        !str_eq(cp->pod->uid, p->uid)) { /* deleted and recreated while the watch was interrupted */
        events = cluster_remove_pod(c, p->key, NULL, hooks);
        cp = NULL;
    }
    if (!is_remembered(c, p)) {
        events |= cluster_remove_pod(c, p->key, NULL, hooks);
        pod_free(p);
        return events;
    }
    if (p->unreadable != NULL) {
        events |= cp != NULL ? pod_keep(c, cp, p->terminating, hooks) : 0;
        pod_free(p);
        return events;
    }
    return events | (cp == NULL ? pod_add(c, p, hooks) : pod_replace(c, cp, p, hooks));
}

uint32_t cluster_assume(struct cluster *c, struct cluster_pod *cp, struct cluster_node *on,
                        const struct grant *grant)
{
    assert(cp->state == CLUSTER_PENDING);
    cluster_grant_copy(cp, grant);
    volumes_view_promise(c, cp, on);
    policies_assume(c, cp, on);
    cp->state = CLUSTER_ASSUMED;
    gangs_retally(cp);
    uint32_t events = hold(c, on, cp) ? EVENT_POD_COUNTED : 0;
    events |= policies_take_events(c) | crowd_out(c, cp);
    /* The capacity that it was nominated for is free; on the same node only cards or CPUs can
     * differ. */
    if (cp->nominated != NULL &&
        (cp->gpu.any || cp->cpu != NULL || !str_eq(cp->nominated, on->name))) {
        struct cluster_node *promised = cluster_find_node(c, cp->nominated);
        events |= promised != NULL ? cluster_note_freed(c, promised) : EVENT_POD_GONE;
    }
    return events;
}

void cluster_forget(struct cluster *c, struct cluster_pod *cp)
{
    struct cluster_node *cn = cp->on;
    assert(cp->state == CLUSTER_ASSUMED);
    release(c, cp);
    cluster_grant_clear(cp);
    volumes_held_withdraw(c, cp);
    policies_forget(cp);
    cp->state = CLUSTER_PENDING;
    gangs_retally(cp);
    cluster_nodes_drop_if_unused(c, cn);
}

void cluster_lift(struct cluster *c, struct cluster_pod *cp)
{
    assert(cp->on != NULL);
    release(c, cp);
}

void cluster_set_evicting(struct cluster *c, struct cluster_pod *cp, bool away)
{
    cp->evicting = away;
    if (cp->on != NULL)
        node_table_touch(c->table, cp->on, false);
}

uint32_t cluster_set_staying(struct cluster *c, struct cluster_pod *cp, bool stays)
{
    if (cp->stays == stays)
        return 0;
    for (size_t i = 0; !stays && i < c->staying.len; i++)
        if (c->staying.items[i] == cp) {
            vec_remove_swap(&c->staying, i);
            break;
        }
    if (stays)
        vec_push(&c->staying, cp);
    cp->stays = stays;
    cluster_set_evicting(c, cp, false);
    return stays ? 0 : cluster_note_freed(c, cp->on); /* it may be evicted after all */
}

void cluster_set_down(struct cluster *c, struct cluster_pod *cp, struct cluster_node *on)
{
    uint32_t events = c->policies->events;
    assert(cp->on == NULL);
    (void)hold(c, on, cp);
    c->policies->events = events; /* it is counted as before: wake no pod */
}

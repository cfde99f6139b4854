// SPDX-License-Identifier: Apache-2.0
/*
 * The nodes of the model, and what a new version of a Node affects.
 *
 * A heartbeat changes nothing. A new size, label, taint, image or inventory is an event for waiting
 * pods and makes classes evaluate this node again. Adding or removing a node starts a new
 * generation of the node table.
 */
#include "scheduler/cache/cluster.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/model/topologies.h"
#include "scheduler/cache/cluster_internal.h"
#include "scheduler/model/gpu_prices.h"
#include "scheduler/model/nominations.h"
#include "scheduler/model/rejections.h"

void cluster_nodes_delete(struct cluster_node *cn)
{
    gpu_accounts_deinit(&cn->gpu_accounts);
    cpu_accounts_deinit(&cn->cpus);
    node_free(cn->node);
    resource_vector_deinit(&cn->used);
    vec_deinit(&cn->pods);
    vec_deinit(&cn->ports);
    free(cn->name);
    free(cn);
}

struct cluster_node *cluster_nodes_get(struct cluster *c, const char *name)
{
    struct cluster_node *cn = map_get(&c->nodes, name);
    if (cn != NULL)
        return cn;
    cn = mem_new(struct cluster_node, 1);
    cn->name = mem_strdup(name);
    cn->place = NODE_TABLE_NOWHERE;
    cn->id = ids_take(&c->node_ids);
    cn->nominated = nominations_of(c, name);
    cn->rejections = rejections_count(c, name);
    cn->reserved = reservations_count(c, name);
    gpu_accounts_init(&cn->gpu_accounts);
    map_put(&c->nodes, cn->name, cn);
    return cn;
}

void cluster_nodes_drop_if_unused(struct cluster *c, struct cluster_node *cn)
{
    if (cn->node != NULL || cn->pods.len > 0)
        return;
    map_remove(&c->nodes, cn->name);
    for (size_t i = c->freed.len; i-- > 0;)
        if (c->freed.items[i] == cn)
            vec_remove_swap(&c->freed, i);
    ids_give(&c->node_ids, cn->id);
    cluster_nodes_delete(cn);
}

static bool taints_equal(const struct node *a, const struct node *b)
{
    if (a->unschedulable != b->unschedulable || a->taints_len != b->taints_len)
        return false;
    for (size_t i = 0; i < a->taints_len; i++)
        if (a->taints[i].effect != b->taints[i].effect ||
            !str_eq(a->taints[i].key, b->taints[i].key) ||
            !str_eq(a->taints[i].value, b->taints[i].value))
            return false;
    return true;
}

static const char *inventory_of(const struct node *n)
{
    return labels_get(&n->annotations, NAME_ANN_GPU_INVENTORY);
}

static const char *placement_of(const struct node *n)
{
    return labels_get(&n->labels, NAME_LABEL_GPU_PLACEMENT);
}

static void accounts_rebuild(struct cluster_node *cn)
{
    gpu_accounts_set_inventory(&cn->gpu_accounts, cn->node ? inventory_of(cn->node) : NULL,
                               cn->node ? placement_of(cn->node) : NULL);
    for (size_t i = 0; i < cn->pods.len; i++) {
        struct cluster_pod *cp = cn->pods.items[i];
        gpu_accounts_account(&cn->gpu_accounts, &cp->grant, cp->grant_trusted, &cp->gpu, 1);
    }
}

static const char *topology_of(const struct node *n)
{
    return n != NULL ? labels_get(&n->annotations, NAME_ANN_CPU_TOPOLOGY) : NULL;
}

static void cpus_rebuild(struct cluster *c, struct cluster_node *cn)
{
    const struct cpu_shape *old = cn->cpus.shape;
    cpu_accounts_set_shape(&cn->cpus, cpu_shapes_take(&c->cpu_shapes, topology_of(cn->node)));
    cpu_shapes_give(&c->cpu_shapes, old);
    for (size_t i = 0; i < cn->pods.len; i++)
        cpu_accounts_account(&cn->cpus, &cn->pods.items[i]->grant.cpus, cn->pods.items[i]->cpu, 1);
}

/* Most new versions of a Node are heartbeats: no plugin input differs, so nothing is
 * re-evaluated. */
static bool is_as_before(const struct node *a, const struct node *b,
                         const struct resource_vector *had, const struct resource_vector *has)
{
    if (a->images_len != b->images_len || a->features != b->features ||
        a->terminating != b->terminating || a->ready != b->ready)
        return false;
    for (size_t i = 0; i < a->images_len; i++)
        if (a->images[i].hash != b->images[i].hash || a->images[i].bytes != b->images[i].bytes)
            return false;
    return !resource_vector_grew(had, has) && !resource_vector_grew(has, had) &&
           taints_equal(a, b) && cluster_labels_equal(&a->labels, &b->labels) &&
           cluster_labels_equal(&a->annotations, &b->annotations);
}

static void note_virtual(struct cluster *c, struct cluster_node *cn)
{
    bool now = cn->node != NULL && virtuals_have(&c->virtuals, cn->node);
    c->virtual_nodes += (size_t)now - (size_t)cn->is_virtual;
    cn->is_virtual = now;
}

int cluster_set_virtuals(struct cluster *c, const char *labels, const char *taints,
                         struct error *err)
{
    const char *key;
    void *value;
    if (virtuals_set(&c->virtuals, labels, taints, err) < 0)
        return -1;
    for (size_t i = 0; map_next(&c->nodes, &i, &key, &value);) {
        note_virtual(c, value);
        policies_node_changed(c, value);
    }
    node_table_set_stale(c->table);
    return 0;
}

void cluster_nodes_recount(struct cluster_node *cn)
{
    resource_vector_deinit(&cn->used);
    for (size_t i = 0; i < cn->pods.len; i++)
        resource_vector_account_offered(&cn->used, &cn->pods.items[i]->request, &cn->allocatable,
                                        1);
}

uint32_t cluster_put_node(struct cluster *c, struct node *n)
{
    struct cluster_node *cn = cluster_nodes_get(c, n->name);
    struct node *old = cn->node;
    struct resource_vector before = cn->allocatable;
    uint32_t events = 0;

    cn->node = n;
    note_virtual(c, cn);
    resource_vector_of(&cn->allocatable, &n->allocatable, &c->names, &n->arena);
    bool grew = resource_vector_grew(&before, &cn->allocatable);
    if (grew || resource_vector_grew(&cn->allocatable, &before))
        cluster_nodes_recount(cn);
    if (old == NULL) {
        accounts_rebuild(cn);
        cpus_rebuild(c, cn);
        gpu_prices_node_changed(c, cn);
        policies_node_changed(c, cn);
        node_table_set_stale(c->table);
        return EVENT_NODE_ADDED | policies_take_events(c);
    }
    if (grew)
        events |= EVENT_NODE_CAPACITY;
    if (!cluster_labels_equal(&old->labels, &n->labels)) {
        topologies_labels_changed(c->topologies, &old->labels, &n->labels);
        policies_node_changed(c, cn);
        events |= EVENT_NODE_LABELS | policies_take_events(c);
    }
    if (!taints_equal(old, n))
        events |= EVENT_NODE_TAINTS;
    if (old->features != n->features)
        events |= EVENT_NODE_FEATURES;
    if (!str_eq(inventory_of(old), inventory_of(n)) ||
        !str_eq(placement_of(old), placement_of(n))) {
        accounts_rebuild(cn);
        events |= EVENT_NODE_GPU;
    }
    if (!str_eq(topology_of(old), topology_of(n))) {
        cpus_rebuild(c, cn);
        events |= EVENT_NODE_CPU;
    }
    /* Whether a gang fits beside others on its reserved node depends on cards and CPUs too. */
    if (cn->reserved > 0 && (events & (EVENT_NODE_GPU | EVENT_NODE_CPU)) != 0)
        events |= EVENT_NODE_CAPACITY;
    if (!is_as_before(old, n, &before, &cn->allocatable)) {
        gpu_prices_node_changed(c, cn);
        node_table_touch(c->table, cn, true);
    }
    node_free(old);
    return events;
}

uint32_t cluster_remove_node(struct cluster *c, const char *name)
{
    struct cluster_node *cn = cluster_find_node(c, name);
    if (cn == NULL)
        return 0;
    struct node *old = cn->node;
    uint32_t events = replacement_hold_drop_node(c, name);
    cn->node = NULL;
    note_virtual(c, cn);
    cn->allocatable = (struct resource_vector){0};
    cluster_nodes_recount(cn);
    accounts_rebuild(cn);
    cpus_rebuild(c, cn);
    policies_node_changed(c, cn);
    gpu_prices_node_changed(c, cn);
    node_free(old);
    node_table_set_stale(c->table);
    cluster_nodes_drop_if_unused(c, cn);
    return events | EVENT_NODE_GONE | policies_take_events(c);
}

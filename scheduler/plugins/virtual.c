// SPDX-License-Identifier: Apache-2.0
/*
 * Not set: never on a virtual node, even if the pod tolerates everything, unless it requests one by
 * nodeSelector or required node affinity (the label of virtual nodes, or the node's name). eci:
 * real nodes score above every virtual one, so a virtual one wins only where no real node passes
 * the filters. eci_only, or the label alibabacloud.com/eci on the pod or its namespace: virtual
 * nodes only.
 *
 * If a gang must stay together, the pool (ask->pool) decides which kind its members may use; it
 * affects only pods that prefer real nodes. A pod that may use virtual nodes does not preempt while
 * one of them fits: real nodes are preferred, but not at the cost of running pods.
 */
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/cache/virtual_use.h"
#include "scheduler/framework/class_key.h"
#include "scheduler/framework/equivalence.h"
#include "scheduler/plugins/all.h"

static enum virtual_use use_of(const struct plugin_ask *ask)
{
    return *(const enum virtual_use *)equivalence_facts(ask, &plugin_virtual);
}

bool plugin_virtual_may_use(const struct plugin_ask *ask, const struct cluster_node *node)
{
    return node->is_virtual && use_of(ask) != VIRTUAL_USE_NEVER;
}

static bool names_it(const struct plugin_ask *ask, const struct cluster_node *node, const char *key,
                     const char *value)
{
    if (virtuals_know(&ask->cluster->virtuals, key, value))
        return true;
    return str_eq(key, NAME_LABEL_HOSTNAME) &&
           str_eq(value, labels_get(&node->node->labels, NAME_LABEL_HOSTNAME));
}

static bool term_names_it(const struct plugin_ask *ask, const struct cluster_node *node,
                          const struct node_term *t)
{
    for (size_t i = 0; i < t->fields.len; i++) /* metadata.name is the only field */
        if (t->fields.reqs[i].op == SELECTOR_IN)
            return true;
    for (size_t i = 0; i < t->labels.len; i++)
        for (size_t k = 0; k < t->labels.reqs[i].values_len; k++)
            if (t->labels.reqs[i].op == SELECTOR_IN &&
                names_it(ask, node, t->labels.reqs[i].key, t->labels.reqs[i].values[k]))
                return true;
    return false;
}

static bool asks_for(const struct plugin_ask *ask, const struct cluster_node *node)
{
    const struct pod *p = ask->pod->pod;
    for (size_t i = 0; i < p->node_selector.len; i++)
        if (names_it(ask, node, p->node_selector.items[i].key, p->node_selector.items[i].value))
            return true;
    for (size_t i = 0; p->has_required_affinity && i < p->required_affinity.len; i++) {
        const struct node_term *t = &p->required_affinity.terms[i];
        if (node_term_matches(t, &node->node->labels, node->name) && term_names_it(ask, node, t))
            return true;
    }
    return false;
}

static bool refuse(struct reason *why, enum reason_kind kind)
{
    if (why != NULL)
        *why = (struct reason){.kind = kind};
    return false;
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    (void)a;
    enum cluster_pool pool = ask->pool;
    switch (use_of(ask)) {
    case VIRTUAL_USE_NEVER:
        return !node->is_virtual || asks_for(ask, node) || refuse(why, REASON_VIRTUAL);
    case VIRTUAL_USE_LAST:
        if (pool == CLUSTER_POOL_REAL && node->is_virtual)
            return refuse(why, REASON_POOL_REAL);
        if (pool == CLUSTER_POOL_VIRTUAL && !node->is_virtual)
            return refuse(why, REASON_POOL_VIRTUAL);
        return true;
    case VIRTUAL_USE_ONLY:
        return node->is_virtual || refuse(why, REASON_NOT_VIRTUAL);
    case VIRTUAL_USE_BY_POLICY:
        break;
    }
    return true;
}

static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    if (use_of(ask) == VIRTUAL_USE_BY_POLICY)
        return 0;
    return node->is_virtual ? 0 : PLUGIN_SCORE_MAX;
}

static void key(const struct plugin_ask *ask, struct strbuf *out)
{
    enum virtual_use use = virtual_use_of(ask->cluster, ask->pod);
    strbuf_addc(out, 'B');
    class_key_number(out, use);
    class_key_number(out, use == VIRTUAL_USE_LAST ? ask->pool : CLUSTER_POOL_ANY);
}

static uint64_t key_version(const struct plugin_ask *ask)
{
    return ask->cluster->objects->generation[API_OBJECTS_NAMESPACES];
}

static void find_facts(const struct plugin_ask *ask, void *facts)
{
    *(enum virtual_use *)facts = virtual_use_of(ask->cluster, ask->pod);
}

static void remark(const struct plugin_ask *ask, struct reasons *why)
{
    enum virtual_use use = use_of(ask);
    why->lacks_virtual = ask->cluster->virtual_nodes == 0 &&
                         (use == VIRTUAL_USE_LAST || use == VIRTUAL_USE_ONLY ||
                          (use == VIRTUAL_USE_BY_POLICY && policies_goes_virtual(ask->pod)));
}

const struct plugin plugin_virtual = {
    .name = "burst", /* visible to users */
    .key = key,
    .key_version = key_version,
    .facts_size = sizeof(enum virtual_use),
    .find_facts = find_facts,
    .remark = remark,
    .facts_reads = FACET_NAMESPACES | FACET_POLICIES,
    PLUGIN_READS(FACET_VIRTUAL | FACET_LABELS | FACET_NAMESPACES | FACET_POLICIES),
    .score_depends = PLUGIN_NODE,
    .filter = filter,
    .score = score,
    .weight = 1000 /* outweighs all others together */};

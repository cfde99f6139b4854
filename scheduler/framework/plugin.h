// SPDX-License-Identifier: Apache-2.0
/*
 * plugin - the verbs filter, score and reserve, and what the framework needs to know about a
 * plugin. Const tables, no run-time registration: scheduler/plugins/all.c.
 *
 * A plugin is a pure function of the cluster: the same state gives the same answer (I4), and
 * reserve succeeds wherever filter said yes on the same state (I3).
 *
 * A plugin declares which parts of the model its filter reads (PLUGIN_READS, facets.h). Two things
 * follow. `wakes` are the events that can turn its "no" into a "yes": a parked gang ignores all
 * others. `depends` is what its answers depend on, because they are cached (equivalence.h): pods
 * with equal requests share a class, and a class asks again only about what changed.
 *
 *     PLUGIN_NODE      the Node object and the pod: asked again when the Node changed
 *     PLUGIN_HELD      also what that node holds: asked again when a pod came or went there
 *     PLUGIN_DOMAIN    also other nodes: asked per decision and group (domains.h), never cached
 *
 * A plugin prints everything that it reads of the pod into the class text (key, class_key.h): an
 * omission gives a pod another one's answers; a needless part splits classes. Raw labels are not in
 * it, since Jobs and StatefulSets give each pod its own label. A key that also reads the cluster
 * needs a key_version. A plugin that reads more than cluster, node and pod calls node_table_touch
 * or node_table_set_stale when that changes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/str.h"
#include "lib/model/grant.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/framework/facets.h"
#include "scheduler/framework/facets_guard.h"
#include "scheduler/framework/reasons.h"
#include "scheduler/model/node_table.h"
#include "scheduler/framework/score_tree.h"

struct equivalence;
struct pod_class;
struct volumes_cache;

enum { PLUGIN_SCORE_MAX = 100 };

struct plugin_ask {
    const struct cluster *cluster;
    const struct cluster_pod *pod;
    /* the pod's class, up to date (pipeline_ask); NULL for key, key_version and find_facts */
    const struct pod_class *class;
    enum cluster_pool pool;        /* the node pool for pods that prefer real nodes */
    enum cluster_packing packing;  /* which of the nodes that fit is filled first */
    size_t units;                  /* policies_view_of */
    struct volumes_cache *volumes; /* of the last class: volumes_view_of */
};

struct plugin {
    const char *name;
    uint32_t reads;                    /* enum facet, of filter; by PLUGIN_READS these three */
    uint32_t wakes;                    /* enum cluster_event */
    enum plugin_depends depends;       /* of filter */
    enum plugin_depends score_depends; /* of score */
    /* Version of what filter reads besides nodes, pods and the pod's own text: when it changes, a
     * class asks again about every node. NULL: nothing. */
    uint64_t (*version)(const struct cluster *c);
    /* Placing another pod may change its answers by more than capacity (it may assume a volume). */
    bool entangles;
    /* Of what a node holds, filter reads only requested and free amounts of resources. */
    bool amounts_only;
    /* Whether filter may refuse this pod, or score differ between nodes. NULL: for every pod. */
    bool (*applies)(const struct cluster_pod *pod);
    /* Why no node and no event can help this pod, in the user's words, or NULL. NULL: no pod. */
    const char *(*illegal)(const struct cluster_pod *pod);
    /* Prints everything that filter, score and reserve read of the pod, by class_key_number and
     * class_key_text, after a letter of its own. NULL: nothing that others do not print. */
    void (*key)(const struct plugin_ask *ask, struct strbuf *out);
    /* A counter or hash that changes whenever key prints another text for an unchanged pod. Asked
     * for each decision. NULL: key reads only the pod, pool and packing. */
    uint64_t (*key_version)(const struct plugin_ask *ask);
    /* What the other verbs look up with equivalence_facts: found once for each class that applies,
     * from what key prints. NULL: nothing. */
    void (*find_facts)(const struct plugin_ask *ask, void *facts);
    size_t facts_size;
    uint32_t facts_reads; /* of find_facts: a filter that uses these facts declares these too */
    /* false: *why is the reason. `a` is for the reason's text and lives as long as the cycle. why
     * NULL: no reason wanted, print nothing. */
    bool (*filter)(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why);
    /* About 0..PLUGIN_SCORE_MAX, times weight; NULL: none. Also called where filter refuses. */
    int64_t (*score)(const struct plugin_ask *ask, const struct cluster_node *node);
    /* filter and score in one, from the node's row alone: the same score, or SCORE_TREE_NO where
     * filter refuses. Only for PLUGIN_HELD, as an optimization; or NULL. */
    int32_t (*rate)(const struct plugin_ask *ask, const struct node_table_row *row);
    int64_t weight;
    /* No node fits: adds to the tally what no single node shows. NULL: nothing. */
    void (*remark)(const struct plugin_ask *ask, struct reasons *why);
    /* Adds what the pod gets of this node to the grant (in a). NULL: nothing. */
    bool (*reserve)(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                    struct grant *grant);
    /* Adds CPUs that a placed pod may borrow (cpu_lending.h). NULL: nothing. */
    void (*lend)(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                 struct cpu_grant *c);
};

/* The only caller of filter: it reads only what the plugin declares (facets_guard.h). */
static inline bool plugin_filter(const struct plugin *p, const struct plugin_ask *ask,
                                 const struct cluster_node *node, struct arena *a,
                                 struct reason *why)
{
#ifdef FACETS_GUARDED
    facets_guard_close(p->reads, ask->cluster, ask->pod, node);
#endif
    bool fits = p->filter(ask, node, a, why);
#ifdef FACETS_GUARDED
    facets_guard_open(p->reads, ask->cluster, ask->pod, node);
#endif
    return fits;
}

/* NULL-terminated, in order of filtering: cheap and common refusals first. */
extern const struct plugin *const plugin_table[];

/* The cluster and how to place pods. For another pool, packing or number of units, copy; copies
 * share the caches. */
struct pipeline {
    struct cluster *cluster;
    struct equivalence *classes;   /* cached answers */
    struct ids_table *node_pods;   /* by node: heap block, cached data of its pods */
    struct volumes_cache *volumes; /* volumes_view.h */
    enum cluster_pool pool;        /* the node pool for pods that prefer real nodes */
    /* which of the nodes that fit is filled first, or CLUSTER_AS_SET */
    enum cluster_packing packing;
    size_t units; /* of their ResourcePolicy that pods may use: policies_view_of */
};

/* The query in the plugins' form. */
struct plugin_ask plugin_question(const struct pipeline *p, struct cluster_pod *pod,
                                  const struct pod_class *class);
/* Why no node and no event can help the pod; NULL: some may. */
const char *plugin_own_problem(const struct cluster_pod *pod);
/* The first plugin that refuses this node and why; NULL: it fits. why may be NULL. */
const struct plugin *plugin_refusing(const struct plugin_ask *ask, const struct cluster_node *node,
                                     struct arena *a, struct reason *why);

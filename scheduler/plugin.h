// SPDX-License-Identifier: Apache-2.0
/*
 * plugin - three verbs: filter, score, reserve. Const tables, no run-time registration.
 *
 * A plugin is a pure function of the cluster as it is: the same state gives the same answer (I4), and reserve succeeds wherever filter said yes on the
 * same state (I3). `wakes` names the events that can turn this plugin's "no" into a "yes": a parked gang sleeps through all others.
 *
 * What an answer depends on is declared, because answers are remembered (classes.h): pods that ask the same share a class, and a class asks again only about
 * what changed since.
 *
 *     PLUGIN_NODE      the Node object and the pod: asked again when the Node changed
 *     PLUGIN_HELD      also what is held on that node: asked again when a pod came or went there
 *     PLUGIN_DOMAIN    also other nodes: asked at each decision, for each group of nodes (domains.h), never remembered
 *
 * Everything that a plugin reads of the pod must be in the text that makes pods equal (class_key.c). A plugin that reads more than cluster, node and pod calls
 * cluster_touch or cluster_touch_all when that changes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/claim.h"
#include "scheduler/cluster.h"
#include "scheduler/reasons.h"
#include "scheduler/table.h"
#include "scheduler/tree.h"

struct pod_class;

enum { PLUGIN_SCORE_MAX = 100 };

enum plugin_depends { PLUGIN_NODE, PLUGIN_HELD, PLUGIN_DOMAIN };

/* Who asks. */
struct plugin_ask {
    const struct cluster *cluster;
    const struct cluster_pod *pod;
    const struct pod_class *class; /* the pod's, up to date (pipeline_ask) */
};

struct plugin {
    const char *name;
    uint32_t wakes;
    enum plugin_depends depends;       /* of filter */
    enum plugin_depends score_depends; /* of score */
    /* Of what filter reads beside nodes, pods and the pod's own text: when it changed, a class asks again about every node. NULL: there is nothing. */
    uint64_t (*version)(const struct cluster *c);
    /* Placing another pod may change more of its answers than by the room that it takes (it may promise a volume away). */
    bool entangles;
    /* Whether filter can ever say no, or score anything but the same for all nodes. NULL: to every pod. */
    bool (*applies)(const struct cluster_pod *pod);
    /* false: *why says so. `a` is for the reason's text and lives as long as the cycle. why NULL: nobody wants to know, and nothing is to be printed. */
    bool (*filter)(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why);
    /* About 0..PLUGIN_SCORE_MAX, times weight; NULL: no opinion. Also asked about nodes that filter refuses. */
    int64_t (*score)(const struct plugin_ask *ask, const struct cluster_node *node);
    /* filter and score in one, from the node's row alone: the same score, or TREE_NO where filter refuses. Only for PLUGIN_HELD, where it is worth it; or NULL. */
    int32_t (*rate)(const struct plugin_ask *ask, const struct table_row *row);
    int64_t weight;
    /* Adds what the pod gets of this node to the claim (in a). NULL: nothing. */
    bool (*reserve)(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                    struct claim *claim);
};

extern const struct plugin plugin_burst, plugin_taints, plugin_affinity, plugin_fit, plugin_gpu,
    plugin_fragmentation, plugin_ports, plugin_images, plugin_features, plugin_spread,
    plugin_interpod, plugin_volumes, plugin_volumes_attach, plugin_compute, plugin_cpu,
    plugin_policy, plugin_policy_open;
/* The cards that gpu would reserve, of one NUMA node alone. For cpu, which comes behind it. */
bool plugin_gpu_choose_on(const struct plugin_ask *ask, const struct cluster_node *node,
                          int32_t numa, struct arena *a, struct claim *claim);
/* What else a static-burst pod in its place may borrow, added to its CPUs (loans.h). */
void plugin_cpu_lend(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                     struct cpuclaim *c);

// SPDX-License-Identifier: Apache-2.0
/*
 * plugin - three verbs that decide: filter, score, reserve; and what else core needs to know. Const tables, no run-time registration: plugins/all.c.
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
 * Everything that a plugin reads of the pod it prints into the text that makes pods equal (key, class_key.h): what is missing there gives a pod the answers of
 * another one; what no plugin reads only makes classes that need not be. Raw labels are not in it: Jobs and StatefulSets give each pod a label of its own. A plugin
 * that reads more than cluster, node and pod calls table_touch or table_set_stale when that changes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/str.h"
#include "lib/model/claim.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/framework/reasons.h"
#include "scheduler/cache/table.h"
#include "scheduler/framework/tree.h"

struct classes;
struct pod_class;

enum { PLUGIN_SCORE_MAX = 100 };

enum plugin_depends { PLUGIN_NODE, PLUGIN_HELD, PLUGIN_DOMAIN };

/* Who asks, and how. */
struct plugin_ask {
    const struct cluster *cluster;
    const struct cluster_pod *pod;
    const struct pod_class *class; /* the pod's, up to date (pipeline_ask); NULL for key */
    enum cluster_side side;        /* which nodes a pod may use that has real nodes first */
    enum cluster_packing packing;  /* which of the nodes with room is filled first */
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
    /* Filter compares the amounts of resources that are asked for and free, and looks at nothing else of what is held. */
    bool amounts_only;
    /* Whether filter can ever say no, or score anything but the same for all nodes. NULL: to every pod. */
    bool (*applies)(const struct cluster_pod *pod);
    /* Everything that filter, score and reserve read of the pod itself, by class_key_number and class_key_text, behind a letter of its own. NULL: nothing that
     * others do not print. */
    void (*key)(const struct plugin_ask *ask, struct strbuf *out);
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
    /* What else a pod in its place may borrow, added to its CPUs (loans.h). NULL: nothing. */
    void (*lend)(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                 struct cpuclaim *c);
};

/* NULL-terminated, in the order of filtering: cheap and common refusals first. */
extern const struct plugin *const plugin_table[];

/*
 * Whom to ask, and how. side and packing are part of the question: whoever wants to ask otherwise asks
 * with a copy. One for each cluster, since pods remember their class: copies share the classes.
 */
struct pipeline {
    struct cluster *cluster;
    struct classes *classes;      /* what is remembered of earlier answers */
    enum cluster_side side;       /* which nodes a pod may use that has real nodes first */
    enum cluster_packing packing; /* which of the nodes with room is filled first, or AS_SET */
};

/* The question in the form in which plugins want it. class may be NULL: for key. */
struct plugin_ask plugin_question(const struct pipeline *p, struct cluster_pod *pod,
                                  const struct pod_class *class);
/* The first plugin that refuses this node and why; NULL: it fits. why may be NULL. */
const struct plugin *plugin_refusing(const struct plugin_ask *ask, const struct cluster_node *node,
                                     struct arena *a, struct reason *why);

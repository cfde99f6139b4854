// SPDX-License-Identifier: Apache-2.0
/*
 * classes - pods that ask the same share what was found out about the nodes. Pure.
 *
 * For each class and node there is a verdict that depends on the Node object alone (the plugins PLUGIN_NODE), and a score, or "no", that also depends on what is held
 * there (PLUGIN_HELD); the scores are a tournament (tree.h). Rules that look at other nodes as well (PLUGIN_DOMAIN) are in domains.h. A decision reads the table's log from where the class left it, asks again about the nodes that changed,
 * and takes the winner. A class that has not been used for long goes when the budget is used up; nothing is lost but time.
 *
 * A cache only: it holds nothing that could not be found out again, it is in no digest, and the answer is that of a scan over all nodes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "scheduler/framework/domains.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/framework/reasons.h"
#include "scheduler/framework/refusals.h"
#include "scheduler/framework/tree.h"

enum { CLASSES_BUDGET = 64 << 20, CLASSES_PLUGINS_MAX = 16 };

/* Nodes that the rules over domains cannot tell apart; without such rules all nodes are one group. */
struct class_group {
    struct tree tree;
    uint32_t first; /* in place_of */
};

struct pod_class {
    char *text;
    uint32_t slot;
    uint64_t serial;                 /* which class was in the slot when a pod noted it */
    int burst;                       /* enum virtual_use of its pods */
    struct pod_class *newer, *older; /* by last use */
    size_t bytes;
    const struct plugin *fixed[CLASSES_PLUGINS_MAX]; /* that apply, NULL-terminated: PLUGIN_NODE */
    const struct plugin *held[CLASSES_PLUGINS_MAX];  /* PLUGIN_HELD */
    uint64_t generation;                             /* of the table; 0: not built yet */
    uint64_t seen;                                   /* entries of the table's log */
    bool versioned;                                  /* a plugin has a version */
    bool entangled;                                  /* a plugin entangles */
    uint64_t version;                                /* their sum */
    int32_t *memory;                                 /* of fixed_score and the trees */
    int32_t *fixed_score;    /* by place; TREE_NO: never while the Node is as it is */
    struct domains *domains; /* NULL: no such rules */
    struct class_group *groups;
    uint32_t groups_len;
    uint32_t *rank_of;  /* by place: where it is in its group's tree; NULL: at the place itself */
    uint32_t *place_of; /* the way back: [first + rank] */
    struct refusals *refusals; /* why no node fitted, when that was asked; or NULL */
};

struct classes {
    struct map by_text;
    struct VEC(struct pod_class *) slots; /* NULL: free */
    struct pod_class *newest, *oldest;
    size_t bytes, budget;
    uint64_t serials;
    struct arena scratch;
    struct strbuf text;
    uint64_t made, rebuilt, asked; /* for tests and benchmarks */
    uint64_t disagreed; /* how often a class and the plugins did: never, if all is well */
};

struct classes *classes_new(void);
void classes_free(struct classes *cs);
/* The pod's class, up to date: what it says holds until the next change of the cluster. */
struct pod_class *classes_ask(const struct pipeline *p, struct cluster_pod *cp);
/* Best score, ties by name; NULL: none fits. */
struct cluster_node *classes_best(const struct cluster *c, const struct pod_class *k);
/* The same among some places, which are in order. */
struct cluster_node *classes_best_of(const struct cluster *c, const struct pod_class *k,
                                     const uint32_t *places, size_t len);
/* How many nodes fit. */
uint32_t classes_count(const struct pod_class *k);
/* What it remembers is wrong: counted, and found out anew at the next question. */
void classes_disown(struct classes *cs, struct pod_class *k);
/* Why no node fits the asking pod. false: all nodes have to be asked. */
bool classes_tally(struct classes *cs, const struct plugin_ask *ask, struct pod_class *k,
                   struct arena *a, struct reasons *out, uint32_t *wakes);

// SPDX-License-Identifier: Apache-2.0
/*
 * classes - pods that ask the same share what was found out about the nodes. Pure.
 *
 * For each class and node there is a verdict that depends on the Node object alone (the plugins PLUGIN_NODE), and a score, or "no", that also depends on what is held
 * there (PLUGIN_HELD); the scores are a tournament (tree.h). A decision reads the table's log from where the class left it, asks again about the nodes that changed,
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
#include "scheduler/plugin.h"
#include "scheduler/reasons.h"
#include "scheduler/tree.h"

enum { CLASSES_BUDGET = 64 << 20, CLASSES_PLUGINS_MAX = 16 };

struct class
{
    char *text;
    uint32_t slot;
    uint64_t serial;             /* which class was in the slot when a pod noted it */
    struct class *newer, *older; /* by last use */
    size_t bytes;
    const struct plugin *fixed[CLASSES_PLUGINS_MAX]; /* that apply, NULL-terminated: PLUGIN_NODE */
    const struct plugin *held[CLASSES_PLUGINS_MAX];  /* PLUGIN_HELD */
    uint64_t generation;                             /* of the table; 0: not built yet */
    uint64_t seen;                                   /* entries of the table's log */
    int32_t *memory;                                 /* of fixed_score and the tree */
    int32_t *fixed_score; /* by place; TREE_NO: never while the Node is as it is */
    struct tree tree;     /* by place */
    /* Why no node fits, as of the log entry `refused_at`, for the next pod of the class. */
    struct arena refused_arena;
    struct reasons *refused; /* NULL: not known */
    uint32_t refused_wakes;
    uint64_t refused_at, refused_generation;
};

struct classes {
    struct map by_text;
    struct VEC(struct class *) slots; /* NULL: free */
    struct class *newest, *oldest;
    size_t bytes, budget;
    uint64_t serials;
    struct arena scratch;
    struct strbuf text;
    uint64_t made, rebuilt, asked; /* for tests and benchmarks */
};

struct classes *classes_new(void);
void classes_free(struct classes *cs);
/* The pod's class, up to date: what it says holds until the next change of the cluster. */
struct class *classes_ask(struct cluster *c, struct cluster_pod *cp);
/* Best score, ties by name; NULL: none fits. */
struct cluster_node *classes_best(const struct cluster *c, const struct class *k);
/* What is remembered of a refusal, or NULL. */
const struct reasons *classes_refusal(const struct cluster *c, const struct class *k,
                                      uint32_t *wakes);
void classes_note_refusal(const struct cluster *c, struct class *k, const struct reasons *why,
                          uint32_t wakes);

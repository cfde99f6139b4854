// SPDX-License-Identifier: Apache-2.0
/* equivalence - pods of one class (class_key.h) share verdicts about nodes. Pure. Each class has
 * per node a verdict that depends on the Node object alone (plugins PLUGIN_NODE), and a score, or
 * "no", that also depends on what the node holds (PLUGIN_HELD); the scores form a tournament
 * (score_tree.h). Rules that involve other nodes (PLUGIN_DOMAIN) are in domains.h. A decision reads
 * the node table's log from where the class left off, evaluates the changed nodes again, and takes
 * the winner. When the budget is exceeded the least recently used class is freed. This is only a
 * cache: not part of any digest, and its answer equals that of a scan over all nodes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/ids.h"
#include "lib/base/map.h"
#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "scheduler/framework/domains.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/framework/reasons.h"
#include "scheduler/framework/refusals.h"
#include "scheduler/framework/score_tree.h"

enum { EQUIVALENCE_BUDGET = 64 << 20 };

/* Nodes that domain rules do not distinguish; without such rules all nodes are one group. */
struct class_group {
    struct score_tree tree;
    uint32_t first; /* in place_of */
};

/* equivalence_facts */
struct class_facts {
    const struct plugin *of; /* NULL: the end */
    void *data;
};

struct pod_class {
    char *text;
    uint32_t slot;
    uint64_t serial;                 /* identifies the class in the slot */
    struct pod_class *newer, *older; /* by last use */
    size_t bytes;
    /* the plugins that apply, NULL-terminated, in one block: PLUGIN_NODE, PLUGIN_HELD */
    const struct plugin **fixed, **held;
    struct class_facts *facts;
    uint64_t generation; /* of the node table; 0: not built yet */
    uint64_t seen;       /* entries of the node table's log */
    bool versioned;      /* a plugin has a version */
    bool entangled;      /* a plugin entangles */
    uint64_t version;    /* sum of the plugins' versions */
    int32_t *memory;     /* of fixed_score and the trees */
    /* by node index; SCORE_TREE_NO: refused while the Node stays the same */
    int32_t *fixed_score;
    /* A lone pod's own nomination does not block it, so its answer for one node is not that of the
     * class: the leaf of this index is the answer for the pod that asked last. Or
     * NODE_TABLE_NOWHERE. */
    int32_t own_place;
    struct domains *domains; /* NULL: no such rules */
    struct class_group *groups;
    uint32_t groups_len;
    uint32_t *rank_of;  /* by node index: its rank in its group's tree; NULL: the index itself */
    uint32_t *place_of; /* the inverse: [first + rank] */
    struct refusals *refusals; /* why no node fits, if that was asked; or NULL */
    /* By node index, a bit for each: a search for victims (preempt.h) found that none would help
     * there, and the node has not changed since. NULL: there was no search. */
    uint64_t *vain;
};

enum { CLASS_VAIN_BITS = 64 };

struct equivalence {
    struct map by_text;
    struct VEC(struct pod_class *) slots; /* NULL: free */
    struct VEC(uint32_t) free_slots;
    struct ids_table found; /* by pod: its last class */
    struct pod_class *newest, *oldest;
    size_t bytes, budget;
    size_t plugins;              /* in the table */
    const struct plugin **keyed; /* those with a key_version, NULL-terminated */
    uint64_t serials;
    struct arena scratch;
    struct strbuf text;
    uint64_t made, rebuilt, asked; /* for tests and benchmarks */
    uint64_t disagreed;            /* class and plugins disagreed: 0 unless there is a bug */
};

struct equivalence *equivalence_new(void);
void equivalence_free(struct equivalence *cs);
/* The pod's class, up to date until the next change of the cluster. */
struct pod_class *equivalence_ask(const struct pipeline *p, struct cluster_pod *cp);
/* Best score, ties by name; NULL: none fits. */
struct cluster_node *equivalence_best(const struct cluster *c, const struct pod_class *k);
/* The same among some nodes, by ascending index. */
struct cluster_node *equivalence_best_of(const struct cluster *c, const struct pod_class *k,
                                         const uint32_t *places, size_t len);
/* No eviction makes room on the node of that index: until it changes, equivalence_next, which skips
 * such nodes, passes over it. nodes: in the table. */
void equivalence_note_vain(struct pod_class *k, uint32_t nodes, uint32_t place);
uint32_t equivalence_next(const struct pod_class *k, uint32_t from, uint32_t to);
uint32_t equivalence_count(const struct pod_class *k);
/* Counts a wrong class, and rebuilds it at the next query. */
void equivalence_disown(struct equivalence *cs, struct pod_class *k);
/* Why no node fits the pod. false: all nodes must be scanned. */
bool equivalence_tally(struct equivalence *cs, const struct plugin_ask *ask, struct pod_class *k,
                       struct arena *a, struct reasons *out, uint32_t *wakes);
/* What find_facts of this plugin found for the pod's class; NULL: it does not apply. Inline because
 * filters ask for each node, and the plugins with facts are among the first. */
static inline const void *equivalence_facts(const struct plugin_ask *ask, const struct plugin *of)
{
    const struct class_facts *f = ask->class->facts;
    facets_guard_read(of->facts_reads);
    while (f->of != NULL && f->of != of)
        f++;
    return f->data;
}

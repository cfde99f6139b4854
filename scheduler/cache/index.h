// SPDX-License-Identifier: Apache-2.0
/*
 * index - how many placed pods of a kind each node has, kept up to date instead of counted again. For inter-pod affinity and topology spread. Pure.
 *
 * A counter is a question about placed pods with a number for each node:
 *
 *     INDEX_MATCHES    how many are meant by these terms (all of them), wherever they come from
 *     INDEX_SPREADS    how many does this spread constraint count: of one namespace, not terminating
 *     INDEX_HOLDS_*    how many carry this very term themselves: for the symmetry of affinity
 *
 * Pods with the same namespace, labels, terms and fate share their traits, and traits list the counters that count such a pod: placing a pod costs as many additions as there are
 * counters about it, and finding those out is done once for all pods of a kind. A new counter looks at every placed pod once.
 *
 * As long as nobody in the cluster uses affinity or spread there is no counter, no pod has traits, and all this costs nothing.
 *
 * Numbers are by node (cluster_node.slot), also of nodes that the API server does not have; what a topology key makes of them is domains.h' business.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "lib/model/podterm.h"
#include "lib/model/selector.h"
#include "lib/model/spread.h"

struct cluster;
struct cluster_node;
struct cluster_pod;

enum index_role {
    INDEX_MATCHES,
    INDEX_SPREADS,
    INDEX_HOLDS_ANTI,
    INDEX_HOLDS_AFFINITY,
    INDEX_HOLDS_PREFERRED,
    INDEX_HOLDS_PREFERRED_ANTI,
};

struct index_counter {
    struct arena arena; /* of what follows, and of the counter itself */
    const char *text;
    enum index_role role;
    uint64_t number;       /* never used again: good in the text of a class */
    struct podterm *terms; /* INDEX_HOLDS_*: one */
    size_t terms_len;
    struct spread spread; /* INDEX_SPREADS: its selector */
    const char *ns;       /* INDEX_SPREADS */
    const char *bucket;   /* "key=value" that a pod must have to be meant, or NULL */
    size_t users;         /* classes that read it, and traits that hold it */
    int32_t *counts;      /* by slot; heap */
    size_t counts_len;
};

/* What is to be known of a pod to count it, or to know which terms mean it. */
struct index_traits {
    struct arena arena;
    const char *text;
    const char *ns;
    struct labels labels;
    bool terminating;
    size_t pods; /* that have these traits */
    struct VEC(
        struct index_counter *) counted; /* counters that count such a pod where it is placed */
    struct VEC(struct index_counter *) against; /* INDEX_HOLDS_* whose term means such a pod */
    struct VEC(struct index_counter *) holds; /* INDEX_HOLDS_* of its own terms; also in counted */
};

struct index_bucket {
    struct VEC(struct index_counter *) counters;
    char key[];
};

struct index {
    bool active;                                   /* every placed pod has traits and is counted */
    struct map counters;                           /* text -> struct index_counter */
    struct map traits;                             /* text -> struct index_traits */
    struct map buckets;                            /* "key=value" -> struct index_bucket */
    struct VEC(struct index_counter *) everywhere; /* counters without a bucket */
    uint64_t numbers;                              /* given to counters so far */
    uint64_t looked_at;   /* numbers when idle counters were last looked for */
    uint64_t version;     /* changes with the INDEX_HOLDS_* counters: who is against whom */
    uint64_t namespaces;  /* generation of the namespaces' labels that were read */
    size_t with_selector; /* counters that select namespaces by label */
    struct VEC(uint32_t) free_slots;
    uint32_t slots;
    struct strbuf key;
};

void index_init(struct index *x);
/* After all pods are gone. */
void index_deinit(struct index *x);

/* A number for a node, the same until it is given back. */
uint32_t index_take_slot(struct index *x);
void index_give_slot(struct index *x, uint32_t slot);

/* The pod comes to the node (before it is in the node's list) or leaves it. Whether any counter counts it. */
bool index_hold(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on);
bool index_release(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on);
/* The pod's labels, terms or fate are other ones now; not while it is held. */
void index_forget_traits(struct index *x, struct cluster_pod *cp);
/* Of a pod that may be placed. NULL while the index is not active and the pod has no terms. Borrowed until index_forget_traits. */
struct index_traits *index_traits_of(struct cluster *c, struct cluster_pod *cp);

/* The counter for the question, made and counted if need be; the caller is a user of it until index_drop. */
struct index_counter *index_want_matches(struct cluster *c, const struct podterm *terms,
                                         size_t len);
struct index_counter *index_want_spread(struct cluster *c, const struct spread *s, const char *ns);
void index_use(struct index_counter *k);
void index_drop(struct index_counter *k);
/* Namespaces may have other labels now: everything that depends on those is counted again. true: something was. Counters that nobody uses go when there are many. */
bool index_refresh(struct cluster *c);

static inline int32_t index_count(const struct index_counter *k, uint32_t slot)
{
    return slot < k->counts_len ? k->counts[slot] : 0;
}

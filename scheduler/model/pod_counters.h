// SPDX-License-Identifier: Apache-2.0
/*
 * pod_counters - the number of placed pods of a kind on each node, maintained incrementally. For
 * inter-pod affinity and topology spread. Pure.
 *
 * A counter is a query over placed pods with a number for each node:
 *
 *     POD_COUNTERS_MATCHES    pods that all these terms select, from any namespace
 *     POD_COUNTERS_SPREADS    non-terminating pods of one namespace that the constraint counts
 *     POD_COUNTERS_HOLDS_*    pods that have this very term: for the symmetry of affinity
 *
 * Pods with the same namespace, labels, terms and terminating state share their traits, which list
 * the counters that count such a pod. Placing a pod costs one addition per such counter. A new
 * counter visits the placed pods that it counts. While no pod uses affinity or spread there are no
 * counters and no traits, and this costs nothing.
 *
 * Counts are by the number of the node's id, including nodes unknown to the API server; domains.h
 * maps them to topology keys.
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

enum pod_counters_role {
    POD_COUNTERS_MATCHES,
    POD_COUNTERS_SPREADS,
    POD_COUNTERS_HOLDS_ANTI,
    POD_COUNTERS_HOLDS_AFFINITY,
    POD_COUNTERS_HOLDS_PREFERRED,
    POD_COUNTERS_HOLDS_PREFERRED_ANTI,
};

struct pod_counters_few {
    uint32_t node; /* its number */
    int32_t count;
};

enum { POD_COUNTERS_FEW = 8 };

struct pod_counters_counter {
    struct arena arena; /* of the counter and all it points to */
    const char *text;
    enum pod_counters_role role;
    uint64_t number;       /* never reused: usable in a class text */
    struct podterm *terms; /* POD_COUNTERS_HOLDS_*: one */
    size_t terms_len;
    struct spread spread; /* POD_COUNTERS_SPREADS: its selector */
    const char *ns;       /* POD_COUNTERS_SPREADS */
    const char *bucket;   /* "key=value" that a selected pod must have, or NULL */
    size_t users;         /* classes that read it, and traits that hold it */
    /* The counts that are not 0, unsorted, while they are few: most counters of a cluster with many
     * terms are about one pod. Then all, by number of the node; heap, or NULL. */
    struct pod_counters_few few[POD_COUNTERS_FEW];
    size_t few_len;
    int32_t *counts;
    size_t counts_len;
};

/* What determines which counters count a pod, and which terms select it. */
struct pod_counters_traits {
    struct arena arena;
    const char *text;
    const char *ns;
    struct labels labels;
    bool terminating;
    struct cluster_pod *pods;          /* that have these traits: a list by their same_next */
    struct pod_counters_place *places; /* in a bucket for each label, in the arena */
    /* counters that count such a placed pod */
    struct VEC(struct pod_counters_counter *) counted;
    /* POD_COUNTERS_HOLDS_* whose term selects such a pod */
    struct VEC(struct pod_counters_counter *) against;
    /* POD_COUNTERS_HOLDS_* of its own terms; also in counted */
    struct VEC(struct pod_counters_counter *) holds;
};

/* What may be about a label: counters whose pods must have it, and traits that have it. A new
 * counter looks only at these traits, new traits only at these counters. */
struct pod_counters_bucket {
    struct VEC(struct pod_counters_counter *) counters;
    struct VEC(struct pod_counters_seat {
        struct pod_counters_traits *traits;
        size_t label; /* index of it */
    }) traits;
    char key[];
};

struct pod_counters_place {
    struct pod_counters_bucket *bucket;
    size_t seat; /* index in bucket->traits */
};

struct pod_counters {
    bool active;         /* every placed pod has traits and is counted */
    struct map counters; /* text -> struct pod_counters_counter */
    struct map traits;   /* text -> struct pod_counters_traits */
    struct map buckets;  /* "key=value" -> struct pod_counters_bucket */
    struct VEC(struct pod_counters_counter *) everywhere; /* counters without a bucket */
    uint64_t numbers;                                     /* given to counters so far */
    uint64_t search_at;   /* numbers at which idle counters are searched for */
    uint64_t looked;      /* counters and traits compared, for tests */
    uint64_t version;     /* changes with the POD_COUNTERS_HOLDS_* counters */
    uint64_t namespaces;  /* generation of the namespace labels in use */
    size_t with_selector; /* counters with a namespaceSelector */
    struct strbuf key;
};

void pod_counters_init(struct pod_counters *x);
/* After all pods are gone. */
void pod_counters_deinit(struct pod_counters *x);

/* The pod is placed on the node (before it is in the node's list) or leaves it. Returns whether any
 * counter counts it. */
bool pod_counters_hold(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on);
bool pod_counters_release(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on);
/* The pod's labels, terms or terminating state changed; call while it is not held. */
void pod_counters_forget_traits(struct pod_counters *x, struct cluster_pod *cp);
/* The traits of a pod that may be placed. NULL while the counters are inactive and the pod has no
 * terms. Borrowed until pod_counters_forget_traits. */
struct pod_counters_traits *pod_counters_traits_of(struct cluster *c, struct cluster_pod *cp);

/* Finds or creates the counter; the caller uses it until pod_counters_drop. */
struct pod_counters_counter *pod_counters_want_matches(struct cluster *c,
                                                       const struct podterm *terms, size_t len);
struct pod_counters_counter *pod_counters_want_spread(struct cluster *c, const struct spread *s,
                                                      const char *ns);
void pod_counters_use(struct pod_counters_counter *k);
void pod_counters_drop(struct pod_counters_counter *k);
/* Recounts what depends on namespace labels, if they changed; true: they did. Drops unused counters
 * when there are many. */
bool pod_counters_refresh(struct cluster *c);

/* Everything that the terms say; differs for different ones. */
void pod_counters_print_terms(const struct podterms *t, struct strbuf *out);

static inline int32_t pod_counters_count(const struct pod_counters_counter *k, uint32_t node)
{
    if (k->counts != NULL)
        return node < k->counts_len ? k->counts[node] : 0;
    for (size_t i = 0; i < k->few_len; i++)
        if (k->few[i].node == node)
            return k->few[i].count;
    return 0;
}

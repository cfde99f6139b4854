// SPDX-License-Identifier: Apache-2.0
/* volumes_view - storage from one pod's view: its claims with their volumes, and waiting claims
 * with their candidate volumes. Pure. It computes once what does not depend on a node, so checking
 * a node is cheap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/node.h"
#include "lib/model/volume.h"
#include "scheduler/model/model.h"
#include "scheduler/model/volumes_attached.h"

struct cluster;
struct volumes_cache;

/* A zone or region label of a volume that the node must match. */
struct volumes_zone {
    const char *key;
    const char **values;
    size_t values_len;
    const struct pv *volume;
};

struct volumes_bound {
    const struct pvc *claim;
    const struct pv *volume;
};

/* A claim that is bound after a node is chosen. */
struct volumes_wait {
    const struct pvc *claim;
    const struct storage_class *class;
    const char *node;       /* already chosen: only this one; NULL: any */
    const struct pv *own;   /* reserved for the claim: this one or a new one; NULL: none */
    bool only_own;          /* promised: never a new one */
    const struct pv **fits; /* smallest first, then by name */
    size_t fits_len;
    bool provisions;
    bool asks_for_capacity; /* provisions only where one of capacities is accessible */
    const struct csi_capacity **capacities;
    size_t capacities_len;
    const struct pv *choice; /* set by volumes_view_choose; NULL: a new one */
};

struct volumes_view {
    const char
        *problem; /* no node fits: a clause that names the claim; NULL: it depends on the node */
    struct volumes_bound *bound;
    size_t bound_len;
    struct volumes_zone *zones;
    size_t zones_len;
    struct volumes_wait *waits; /* smallest first */
    size_t waits_len;
    struct volumes_attached *attached;
    size_t attached_len;
    const char **exclusive; /* keys of ReadWriteOncePod claims */
    size_t exclusive_len;
};

/* Why a node does not fit. */
enum volumes_no_kind {
    VOLUMES_NO_CLAIM, /* the claim's problem, on every node */
    VOLUMES_NO_REACH,
    VOLUMES_NO_ZONE,
    VOLUMES_NO_NONE,
    VOLUMES_NO_TOPOLOGY,
    VOLUMES_NO_CAPACITY,
    VOLUMES_NO_ELSEWHERE
};
struct volumes_no {
    enum volumes_no_kind kind;
    const char *what; /* in the arena */
};

/* Borrows from the cluster's objects: valid until one of them changes. */
void volumes_view_make(const struct cluster *c, const struct pod *p, struct arena *a,
                       struct volumes_view *out);
/* The same for pods of one class (its serial), which have the same claims: the last view is kept in
 * the cache. */
const struct volumes_view *volumes_view_of(struct volumes_cache *cache, const struct cluster *c,
                                           const struct pod *p, uint64_t class);
/* Whether the node reaches the bound volumes and satisfies the waiting claims; if so, sets each
 * choice. why may be NULL. */
bool volumes_view_choose(const struct volumes_view *v, const struct node *n, struct arena *a,
                         struct volumes_no *why);
struct volumes_cache *volumes_view_cache_new(void);
void volumes_view_cache_free(struct volumes_cache *cache);
/* Promises the chosen volumes to the pod, which is being assumed there. */
void volumes_view_promise(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on);

// SPDX-License-Identifier: Apache-2.0
/*
 * volumes_view - the storage as one pod sees it: its claims with their volumes, and waiting claims
 * with the volumes that they could get. Pure.
 *
 * What does not depend on a node is computed once here; checking a node is then cheap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/node.h"
#include "lib/model/volume.h"
#include "scheduler/cache/model.h"
#include "scheduler/cache/volumes_attached.h"

struct cluster;

/* A label of a volume that the node must match: zone or region. */
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

/* A claim that is bound once a node is chosen. */
struct volumes_wait {
    const struct pvc *claim;
    const struct storage_class *class;
    const char *node;       /* already chosen for it: only this one; NULL: any */
    const struct pv *own;   /* reserved for it: this one or a new one; NULL: none */
    bool only_own;          /* promised: never a new one */
    const struct pv **fits; /* smallest first, then by name */
    size_t fits_len;
    bool provisions;
    bool asks_for_capacity; /* a new volume only where one of capacities is accessible */
    const struct csi_capacity **capacities;
    size_t capacities_len;
    const struct pv *choice; /* volumes_view_choose's; NULL: a new one */
};

struct volumes_view {
    const char *problem; /* no node will do: a clause that names the claim; NULL: it depends */
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
    VOLUMES_NO_CLAIM, /* on every node: the problem of the claim */
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
/* The same, cached: pods with the same number of a class see the same. */
const struct volumes_view *volumes_view_of(const struct cluster *c, const struct pod *p,
                                           uint64_t class);
/* Whether the node reaches the bound volumes, and the waiting claims can be satisfied there: then
 * each choice is set. why NULL: no reason wanted. */
bool volumes_view_choose(const struct volumes_view *v, const struct node *n, struct arena *a,
                         struct volumes_no *why);
/* Drops the cache: the numbers of classes start again. */
void volumes_view_forget(struct cluster *c);
struct volumes_cache *volumes_view_cache_new(void);
void volumes_view_cache_free(struct volumes_cache *cache);
/* The pod is being assumed there: promises what is chosen for its waiting claims. */
void volumes_view_promise(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on);

// SPDX-License-Identifier: Apache-2.0
/*
 * volumes_view - the storage as one pod sees it: its claims with the volumes behind them, and those that wait for it with the volumes that they could get. Pure.
 *
 * What does not depend on a node is found out once, here; then each node is asked about with few steps.
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

/* A label of a volume that the node's has to be among: zone or region. */
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

/* A claim that is bound when a node is known. */
struct volumes_wait {
    const struct pvc *claim;
    const struct storage_class *class;
    const char *node;       /* chosen for it already: this one or none; NULL: any */
    const struct pv *own;   /* reserved for it: this one or a new one; NULL: none is */
    bool only_own;          /* and never a new one: so it was promised */
    const struct pv **fits; /* the smallest first, then by name */
    size_t fits_len;
    bool provisions;
    bool asks_for_room; /* a new volume only where one of rooms is reached from */
    const struct csi_capacity **rooms;
    size_t rooms_len;
    const struct pv *choice; /* volumes_view_choose's; NULL: a new one */
};

struct volumes_view {
    const char *problem; /* no node will do, in a clause that names the claim; NULL: it depends */
    struct volumes_bound *bound;
    size_t bound_len;
    struct volumes_zone *zones;
    size_t zones_len;
    struct volumes_wait *waits; /* the smallest first */
    size_t waits_len;
    struct volumes_attached *attached;
    size_t attached_len;
    const char **exclusive; /* keys of ReadWriteOncePod claims */
    size_t exclusive_len;
};

/* Why a node does not do. */
enum volumes_no_kind {
    VOLUMES_NO_CLAIM, /* whatever the node: what is wrong with the claim */
    VOLUMES_NO_REACH,
    VOLUMES_NO_ZONE,
    VOLUMES_NO_NONE,
    VOLUMES_NO_TOPOLOGY,
    VOLUMES_NO_ROOM,
    VOLUMES_NO_ELSEWHERE
};
struct volumes_no {
    enum volumes_no_kind kind;
    const char *what; /* in the arena */
};

/* Borrows from the cluster's objects: good until one of them changes. */
void volumes_view_make(const struct cluster *c, const struct pod *p, struct arena *a,
                       struct volumes_view *out);
/* The same, remembered for the next node: pods with the same number of a class see the same. */
const struct volumes_view *volumes_view_of(const struct cluster *c, const struct pod *p,
                                           uint64_t class);
/* Whether bound volumes are reached from the node, and what waits can be had there: then each choice is set. why NULL: nobody wants to know. */
bool volumes_view_choose(const struct volumes_view *v, const struct node *n, struct arena *a,
                         struct volumes_no *why);
/* The numbers of classes begin anew. */
void volumes_view_forget(struct cluster *c);
struct volumes_cache *volumes_view_cache_new(void);
void volumes_view_cache_free(struct volumes_cache *cache);
/* The pod is being assumed there: its claims that waited get what is chosen for them. */
void volumes_view_promise(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on);

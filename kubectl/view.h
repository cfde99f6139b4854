// SPDX-License-Identifier: Apache-2.0
/*
 * view - the cards of a cluster and the pods on them, from its nodes and pods. Pure.
 *
 * It counts like the scheduler: the grants of bound, unfinished pods that add up to the request and
 * name existing cards. What such a pod requests without a valid grant is pending on its node: it
 * holds cards, but it is unknown which.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/grant.h"
#include "lib/model/gpu.h"
#include "lib/model/gpuuse.h"
#include "lib/model/node.h"
#include "lib/model/pod.h"

struct view_card {
    const struct gpu_card *card;
    size_t at; /* its row in inventory.links */
    int64_t total_gib, used_gib, used_percent;
    int64_t holders; /* pods that hold all of it */
};

struct view_pod {
    const struct pod *pod;
    struct grant grant; /* empty: no valid one */
    int64_t pending_gib, pending_cards;
    bool use_known;
    struct gpuuse use; /* last reported use of its processes */
};

struct view_node {
    const struct node *node;
    bool known;          /* the inventory is readable */
    const char *problem; /* why not; NULL: the node has none and offers no cards */
    bool guessed;        /* cards from the node's status: that many, of equal size */
    struct gpu_inventory inventory;
    struct view_card *cards; /* by index */
    size_t cards_len;
    struct view_pod *pods; /* that ask for cards, by namespace and name */
    size_t pods_len;
    int64_t pending_gib;
};

struct view {
    struct view_node *nodes; /* by name */
    size_t nodes_len;
    struct pod **orphans; /* request cards and are bound to a node that is not in the view */
    size_t orphans_len;
};

/* Borrows the nodes and pods; the rest is in a. */
void view_build(struct view *v, struct node *const *nodes, size_t nodes_len,
                struct pod *const *pods, size_t pods_len, struct arena *a);
const struct view_node *view_find(const struct view *v, const char *name);
/* Whether its mode shares cards: the subject of the table. */
bool view_is_shared(const struct view_node *n);
int64_t view_used_gib(const struct view_node *n); /* includes pending */
int64_t view_total_gib(const struct view_node *n);
/* What the pod requests in total. */
int64_t view_asks(const struct pod *p, const char *resource);

// SPDX-License-Identifier: Apache-2.0
/*
 * view - the cluster's cards and the pods on them, computed from nodes and pods. Pure.
 *
 * Counts like the scheduler: grants of bound, unfinished pods count if they add up to the request
 * and name existing cards. A request without a valid grant is pending on its node: it holds unknown
 * cards.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/grant.h"
#include "lib/model/gpu.h"
#include "lib/model/gpu_request.h"
#include "lib/model/gpuuse.h"
#include "lib/model/node.h"
#include "lib/model/pod.h"

struct view_card {
    const struct gpu_card *card;
    size_t at; /* row in inventory.links */
    int64_t total_gib, used_gib, used_percent;
    int64_t holders; /* pods that hold the whole card */
};

struct view_pod {
    const struct pod *pod;
    struct gpu_request request;
    struct grant grant; /* empty: no valid grant */
    int64_t pending_gib, pending_cards;
    bool use_known;
    struct gpuuse use; /* last reported use */
};

struct view_node {
    const struct node *node;
    bool known;          /* inventory is readable */
    const char *problem; /* why not; NULL: has no inventory and offers no cards */
    bool guessed;        /* cards guessed from the node's status, of equal size */
    struct gpu_inventory inventory;
    struct view_card *cards; /* sorted by index */
    size_t cards_len;
    struct view_pod *pods; /* pods that request cards, by namespace and name */
    size_t pods_len;
    int64_t pending_gib;
};

struct view {
    struct view_node *nodes; /* sorted by name */
    size_t nodes_len;
    const struct pod **orphans; /* bound pods that request cards, whose node is not in the view */
    size_t orphans_len;
};

/* Borrows nodes and pods; allocates the rest in a. */
void view_build(struct view *v, struct node *const *nodes, size_t nodes_len,
                struct pod *const *pods, size_t pods_len, struct arena *a);
const struct view_node *view_find(const struct view *v, const char *name);
/* Whether its mode shares cards, as shown in the table. */
bool view_is_shared(const struct view_node *n);
int64_t view_used_gib(const struct view_node *n); /* includes pending */
int64_t view_total_gib(const struct view_node *n);
/* The card with this index, or NULL. */
struct view_card *view_card(const struct view_node *n, int32_t index);

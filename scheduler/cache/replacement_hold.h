// SPDX-License-Identifier: Apache-2.0
/*
 * replacement_hold - capacity held for the replacement of a gang's deleted or failed member. Pure.
 *
 * A running gang that loses a member soon gets a new one from its owner; if another pod took the
 * capacity meanwhile, the rest of the gang would run in vain. So the lost pod keeps its capacity
 * like a nomination (nominations.h), against pods of lower or equal priority. At the gang's next
 * attempt its waiting members may use the holds; each placed member ends one. An unused hold ends
 * after the gang's timeout.
 *
 * Only a gang at its quorum, counting the lost member, gets a hold: not one that is being deleted
 * (its members are terminating), is below its quorum, or has no pod left. Members that were
 * preempted or rejected by their kubelet leave no hold. Holds are in the dump, but do not survive a
 * restart.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/vec.h"

struct cluster;
struct cluster_pod;
struct gang;
struct pod;

struct replacement_hold {
    bool enabled; /* replacement_hold_enable */
    struct VEC(struct replacement_hold_item) items;
};

/* For code that calls replacement_hold_expire; without it no holds are made, only restored. */
void replacement_hold_enable(struct cluster *c, bool enabled);
/* Whether to hold the pod's capacity; call before it leaves its node. */
bool replacement_hold_wants(const struct cluster *c, const struct cluster_pod *cp);
/* Takes the pod, which has left all other structures. */
void replacement_hold_keep(struct cluster *c, struct cluster_pod *cp, const char *gang,
                           const char *node);
/* The next hold of the gang, and the waiting member without a nomination that may use it; false: no
 * more. Begins with *i 0. */
struct replacement_hold_offer {
    struct cluster_pod *lost, *member;
    const char *node;
};
bool replacement_hold_next(const struct cluster *c, const struct gang *g, size_t *i,
                           struct replacement_hold_offer *out);
/* A member uses the capacity of that lost one. Ends the hold, and the lost pod with it. Returns the
 * events: the member may be elsewhere. */
uint32_t replacement_hold_end(struct cluster *c, const struct cluster_pod *lost);
/* For a gang without members. Returns the events. */
uint32_t replacement_hold_drop(struct cluster *c, const char *gang);
/* For a node that is gone, and its capacity with it. Returns the events. */
uint32_t replacement_hold_drop_node(struct cluster *c, const char *node);
/* The kubelet rejected that pod, so its node has no capacity for a replacement. */
uint32_t replacement_hold_void(struct cluster *c, const char *uid);
/* Ends expired holds; returns the events. *next_ms is when the next one expires, or -1. */
uint32_t replacement_hold_expire(struct cluster *c, int64_t now_ms, int64_t *next_ms);
size_t replacement_hold_count(const struct cluster *c);
/* Iterates in order of creation; false: no more. Borrowed. */
struct replacement_hold_view {
    const char *gang; /* its key */
    const char *node;
    const struct pod *pod; /* the lost member */
};
bool replacement_hold_at(const struct cluster *c, size_t i, struct replacement_hold_view *out);
/* Restores a hold from a dump; takes p. */
void replacement_hold_restore(struct cluster *c, struct pod *p, const char *gang, const char *node);
void replacement_hold_deinit(struct cluster *c);

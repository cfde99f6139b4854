// SPDX-License-Identifier: Apache-2.0
/*
 * slots - room that a gang keeps for the replacement of a member that was deleted or has failed. Pure.
 *
 * A gang that runs and loses a member gets a new one from its owner a moment later; if a stranger took the room meanwhile, the rest of the gang would run for
 * nothing. So the lost pod goes on standing in the others' way as a nomination does (nominations.h): for pods of lower or equal priority its room is taken. When the
 * gang is tried the next time, its waiting members are lent its slots; whoever is placed ends one. What nobody came for is free after the gang's timeout.
 *
 * Only a gang at its quorum keeps a slot, the lost member counted: so one that is being taken down (its members are terminating), one below its quorum, one without
 * any pod left hold nothing. Who was sent away for a more important pod, or was sent back by its kubelet, leaves none either. Slots are in the dump, and are not remembered over a
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

struct slots {
    bool kept; /* set by whoever also expires them; otherwise there are none */
    struct VEC(struct slot) items;
};

/* Before the pod leaves its node: whether its room is kept. */
bool slots_wants(const struct cluster *c, const struct cluster_pod *cp);
/* Takes the pod, which has left everything else. */
void slots_keep(struct cluster *c, struct cluster_pod *cp, const char *gang, const char *node);
/* Around a cycle: the gang's slots belong to its waiting members; then those that were used are gone, and the others stand as before. */
void slots_lend(struct cluster *c, struct gang *g);
void slots_settle(struct cluster *c, struct gang *g);
/* Of the gang that has no members any more. Returns the events. */
uint32_t slots_drop(struct cluster *c, const char *gang);
/* That pod was sent back by its kubelet: there is no room where it was. */
uint32_t slots_void(struct cluster *c, const char *uid);
/* Ends what is over; returns the events. *next_ms is when the next one is over, or -1. */
uint32_t slots_expire(struct cluster *c, int64_t now_ms, int64_t *next_ms);
size_t slots_count(const struct cluster *c);
/* One of them, in the order in which they were kept; false: there are no more. Borrowed. */
struct slots_view {
    const char *gang; /* its key */
    const char *node;
    const struct pod *pod; /* that was lost */
};
bool slots_at(const struct cluster *c, size_t i, struct slots_view *out);
/* As read from a dump: takes p. */
void slots_restore(struct cluster *c, struct pod *p, const char *gang, const char *node);
void slots_deinit(struct cluster *c);

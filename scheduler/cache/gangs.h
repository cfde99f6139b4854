// SPDX-License-Identifier: Apache-2.0
/*
 * gangs - groups of pods that are scheduled together; part of the cluster model. Pure. A lone pod
 * is a gang of one until it is bound.
 *
 * Satisfied. With match-policy once-satisfied (the default) a gang needs its quorum only once:
 * later members are placed alone. The quorum is complete when min-available members are bound
 * according to the API server, not only planned. If a crash cuts the first batch of Bindings short,
 * the gang is not satisfied and the missing members are still placed together. A restarted
 * scheduler must know that a quorum was complete, even if members have gone since and without a
 * PodGroup. So the members record it (`in_quorum`, annotation NAME_ANN_GANG_SATISFIED with the
 * gang's name), for all gang forms:
 *
 *     - once the quorum is complete, one of its members gets the annotation (only-waiting: each
 *       member), see gangs_take_unrecorded; it is written again if the watch does not show it in
 *       time (gangs_follow_record);
 *     - a member placed later gets it with its Binding, at no extra cost: gangs_record_of;
 *     - it counts while such a member lives (Succeeded counts, terminating does not). So a gang
 *       recreated under the same name while the old pods terminate must reach its own quorum. If
 *       the only recorded member goes and the scheduler restarts before it placed another, the
 *       gang counts as not satisfied and waits for its missing members.
 *
 * With only-waiting, members of a complete quorum no longer count: the next members need
 * min-available of their own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "scheduler/model/model.h"

/* Adds our pod to its gang, unless it is a bound lone pod. Returns the events. */
uint32_t gangs_join(struct cluster *c, struct cluster_pod *cp, const struct cluster_hooks *hooks);
uint32_t gangs_leave(struct cluster *c, struct cluster_pod *cp, const struct cluster_hooks *hooks);
/* cp->pod was replaced; old is the previous version. Joins, leaves or moves by the new labels. */
uint32_t gangs_member_changed(struct cluster *c, struct cluster_pod *cp, const struct pod *old,
                              const struct cluster_hooks *hooks);
/* A member changed in something other than its labels. */
uint32_t gangs_refresh(struct cluster *c, struct cluster_pod *cp,
                       const struct cluster_hooks *hooks);
/* The pod's state changed: updates its gang's counts. */
void gangs_retally(struct cluster_pod *cp);
/* Frees all gangs and PodGroups. */
void gangs_deinit(struct cluster *c);

/* A gang with members, by "ns/name"; NULL: none. Borrowed. */
struct gang *gangs_find(const struct cluster *c, const char *key);
/* "ns/name" of the gang, which is not a lone pod's. */
const char *gangs_name(const struct gang *g);
/* The PodGroup that applies to the gang, or NULL. Borrowed. */
const struct pod_group *gangs_group_of(const struct cluster *c, const struct gang *g);

/* Whether a member may be placed now. */
bool gangs_has_waiting(const struct gang *g);
/* Members that are neither gated nor terminating (Failed ones are not in the model). */
int32_t gangs_count_existing(const struct gang *g);
/* Members that are assumed, bound or succeeded; without terminating ones. */
int32_t gangs_count_placed(const struct gang *g);
/* How many waiting members must be placed at once, or none is; 0: each may be placed alone. */
int32_t gangs_count_missing(const struct gang *g);
/* How many placed members it has beyond its quorum. */
int32_t gangs_count_spare(const struct gang *g);
/* When enough pods for the quorum existed: the creation time of the youngest of the oldest
 * min-available members that count. 0: not enough exist, or unknown. */
int64_t gangs_quorum_since_ns(const struct gang *g);
bool gangs_is_lone(const struct gang *g);
/* Whether to attempt the gang. If not, *why is a sentence for the members, in a. */
bool gangs_has_quorum(const struct cluster *c, const struct gang *g, struct arena *a,
                      const char **why);
/* The gangs that are placed as one with g, for which gangs_has_quorum returned true: g and those
 * that it names, sorted by key, in a. Only g if it names none or misses no member. Each gang's
 * gangs_count_missing must be met, or nothing is placed. */
size_t gangs_bundle(const struct cluster *c, struct gang *g, struct arena *a, struct gang ***out);

/* The value of NAME_ANN_GANG_SATISFIED in the Binding of a pod being placed; NULL: none. */
const char *gangs_record_of(const struct cluster_pod *cp);
/* The next bound pod that needs that annotation (value cp->said.name), which then counts as
 * written; NULL: no more. */
struct cluster_pod *gangs_take_unrecorded(struct cluster *c);
/* Checks whether the watch has shown a taken record; after again_ms without it sets *again: take it
 * again. Returns when to check next, or -1: no write is pending. *since_ms is the caller's state
 * for the gang: when the pending write started; 0 at first. */
int64_t gangs_follow_record(struct cluster *c, struct gang *g, int64_t *since_ms, int64_t now_ms,
                            int64_t again_ms, bool *again);
/* A PodGroup was added, changed or removed. Each returns the events; put takes the object. */
uint32_t gangs_put_group(struct cluster *c, struct pod_group *g, const struct cluster_hooks *hooks);
uint32_t gangs_remove_group(struct cluster *c, const char *key, enum pod_group_api api,
                            const struct cluster_hooks *hooks);

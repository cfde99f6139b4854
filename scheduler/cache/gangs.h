// SPDX-License-Identifier: Apache-2.0
/*
 * gangs - which pods belong together; part of the cluster model. Pure. A lone pod is a gang of one,
 * until it is bound.
 *
 * Satisfied. With match-policy once-satisfied (the default) a gang that had its quorum once needs
 * none any more: whoever comes later goes alone. A quorum is there when min-available members are
 * bound, as the API server says, not only planned: a gang whose first burst was cut by a crash is
 * not satisfied, and what is missing still goes together. That a quorum was there must be known
 * after a restart too, also when members have gone since and where there is no PodGroup. So it lies
 * with the members (`in_quorum`, annotation NAME_ANN_GANG_SATISFIED with the gang's name), for all
 * forms alike:
 *
 *     - of the members that make up the quorum one is written to (for only-waiting: each), once it
 *       is complete: gangs_take_unrecorded; again where the watch does not show it in time
 *       (gangs_follow_record);
 *     - a member that is placed later brings it along in its Binding, at no cost: gangs_record_of;
 *     - it counts as long as such a member lives (a Succeeded one does, a terminating one does
 *       not). A gang that is made again under the same name while the pods of the old one go has to
 *       find its own quorum. Where the one member goes and the scheduler restarts before another
 *       was placed, the gang counts as not satisfied: it waits for what it lacks, and nothing is
 *       promised that does not hold.
 *
 * With only-waiting members that had their quorum count no more: the next ones need min-available
 * of their own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "scheduler/cache/model.h"

/* Our pod cp enters its gang, unless it is a lone one that is bound; returns the events. */
uint32_t gangs_join(struct cluster *c, struct cluster_pod *cp, const struct cluster_hooks *hooks);
uint32_t gangs_leave(struct cluster *c, struct cluster_pod *cp, const struct cluster_hooks *hooks);
/* cp->pod was replaced; old is the version before. Joins, leaves or moves as its labels say now. */
uint32_t gangs_member_changed(struct cluster *c, struct cluster_pod *cp, const struct pod *old,
                              const struct cluster_hooks *hooks);
/* Something of a member changed that is not in its labels. */
uint32_t gangs_refresh(struct cluster *c, struct gang *g, const struct cluster_hooks *hooks);
/* Frees all gangs and PodGroups. */
void gangs_deinit(struct cluster *c);

/* The gang "ns/name" that has members, or NULL. Borrowed. */
struct gang *gangs_find(const struct cluster *c, const char *key);
/* "ns/name" of a gang that is not a lone pod. */
const char *gangs_name(const struct gang *g);
/* The PodGroup that holds for the gang, or NULL. Borrowed. */
const struct pod_group *gangs_group_of(const struct cluster *c, const struct gang *g);

/* Members that exist: not gated, not terminating (Failed ones are not in the model). */
int32_t gangs_count_existing(const struct gang *g);
/* Members on a node, assumed or bound, and those that have succeeded there; not the terminating. */
int32_t gangs_count_placed(const struct gang *g);
/* How many of the waiting members must find a place now or none may go; 0: each may go alone. */
int32_t gangs_count_missing(const struct gang *g);
/* How many of its placed members it could do without. */
int32_t gangs_count_spare(const struct gang *g);
/* When the quorum of pods was complete: the creation of the youngest of the oldest min-available
 * that count. 0: it is not, or nobody knows. */
int64_t gangs_quorum_since_ns(const struct gang *g);
bool gangs_is_lone(const struct gang *g);
/* Whether a cycle is worth it. If not, *why is a sentence for the members, in a. */
bool gangs_has_quorum(const struct cluster *c, const struct gang *g, struct arena *a,
                      const char **why);
/* The gangs that are placed as one with g, which gangs_has_quorum said yes to: g and those that it
 * names, sorted by key, in a. g alone when it names none, or when nothing of it is missing. Each of
 * them has its own gangs_count_missing, and all of these must be met or nothing is placed. */
size_t gangs_bundle(const struct cluster *c, struct gang *g, struct arena *a, struct gang ***out);

/* The value of NAME_ANN_GANG_SATISFIED in the Binding of a pod that is being placed; NULL: none. */
const char *gangs_record_of(const struct cluster_pod *cp);
/* A bound pod that is to be given that annotation (the value is cp->said.name); NULL: no more. It
 * counts as written from now on. */
struct cluster_pod *gangs_take_unrecorded(struct cluster *c);
/* Whether what was taken came back by the watch: if not within again_ms, it is to be taken again
 * (*again is set). Returns when to look again; -1: nothing is on its way. *since_ms is the caller's
 * memory of the gang: since when something is; 0 at first. */
int64_t gangs_follow_record(struct cluster *c, struct gang *g, int64_t *since_ms, int64_t now_ms,
                            int64_t again_ms, bool *again);
/* A PodGroup came, changed or went. Each returns the events that it caused; put takes the
 * object. */
uint32_t gangs_put_group(struct cluster *c, struct pod_group *g, const struct cluster_hooks *hooks);
uint32_t gangs_remove_group(struct cluster *c, const char *key, enum pod_group_api api,
                            const struct cluster_hooks *hooks);

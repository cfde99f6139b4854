// SPDX-License-Identifier: Apache-2.0
/*
 * gangs - which pods belong together; part of the cluster model. Pure. A lone pod is a gang of one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "scheduler/cluster.h"

/* Our pod cp enters its gang; returns the events. */
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
/* The PodGroup that holds for the gang, or NULL. Borrowed. */
const struct pod_group *gangs_group_of(const struct cluster *c, const struct gang *g);

/* Members that exist: not gated, not terminating (Failed ones are not in the model). */
int32_t gangs_count_existing(const struct gang *g);
/* Members on a node, assumed or bound, and those that have succeeded there; not the terminating. */
int32_t gangs_count_placed(const struct gang *g);
/* How many of the waiting members must find a place now or none may go; 0: each may go alone. */
int32_t gangs_count_missing(const struct gang *g);
bool gangs_is_lone(const struct gang *g);
/* Whether a cycle is worth it. If not, *why is a sentence for the members, in a. */
bool gangs_has_quorum(const struct cluster *c, const struct gang *g, struct arena *a,
                      const char **why);

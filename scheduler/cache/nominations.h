// SPDX-License-Identifier: Apache-2.0
/*
 * nominations - pods that wait for room on one node and have a right to it: status.nominatedNodeName, of ours and of other schedulers' pods. Pure.
 *
 * For pods of lower or equal priority they take room there already (CPU and the like, host ports, cards); for those of higher priority they do not exist. Their labels and
 * terms count for nobody before they are placed. There are few at any time. Members of a gang that have a nomination do not stand in each other's way: the room is the gang's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/cache/model.h"

/* The pod waits for that node from now on; NULL: for none. What the API server says later holds when it changes there. Returns the events: room that nobody has a right to any more. */
uint32_t nominations_set(struct cluster *c, struct cluster_pod *cp, const char *node);
/* The pod's object or state changed; old: the version before, and what that asked for, or NULL. */
uint32_t nominations_follow(struct cluster *c, struct cluster_pod *cp, const struct pod *old,
                            const struct amounts *held);
/* Something is held, or not held any more, by a pod that is nominated: where it waits it counts or does not. */
void nominations_touch(struct cluster *c, const struct cluster_pod *cp);
/* How many name the node. */
uint32_t nominations_count(const struct cluster *c, const char *node);
/* for (size_t i = 0; (other = nominations_next(c, pod, node, &i)) != NULL;): those that take room on the node before the pod. */
const struct cluster_pod *nominations_next(const struct cluster *c, const struct cluster_pod *pod,
                                           const struct cluster_node *node, size_t *i);
void nominations_deinit(struct cluster *c);

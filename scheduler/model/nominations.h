// SPDX-License-Identifier: Apache-2.0
/*
 * nominations - pods that wait for capacity on one node and are entitled to it:
 * status.nominatedNodeName, of our and other schedulers' pods. Pure.
 *
 * For pods of lower or equal priority they already use capacity there (resources, host ports,
 * cards); pods of higher priority ignore them. Their labels and terms do not count until they are
 * placed. Nominated members of one gang do not block each other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/vec.h"
#include "scheduler/model/model.h"

/* The pods nominated to one node, which the API server may not have yet. Sorted by name: which
 * cards are left depends on the order, which must not be that of arrival (I4). */
struct nominations_node {
    struct VEC(struct cluster_pod *) pods;
    char name[]; /* of the node */
};

/* Nominates the pod to the node; NULL: to none. A later change in the API server overrides it.
 * Returns the events: freed capacity. */
uint32_t nominations_set(struct cluster *c, struct cluster_pod *cp, const char *node);
/* The pod's object or state changed. old and held: the previous version and its request, or
 * NULL. */
uint32_t nominations_follow(struct cluster *c, struct cluster_pod *cp, const struct pod *old,
                            const struct resource_vector *held);
/* A nominated pod is now held, or no longer: updates its nominated node. */
void nominations_touch(struct cluster *c, const struct cluster_pod *cp);
/* The nominations for a node, by its name; NULL: none. */
struct nominations_node *nominations_of(const struct cluster *c, const char *node);
/* The number of nominated pods. */
size_t nominations_count(const struct cluster *c);
/* for (size_t i = 0; (other = nominations_next(pod, node, &i)) != NULL;): the nominations that take
 * capacity on the node before the pod. */
const struct cluster_pod *nominations_next(const struct cluster_pod *pod,
                                           const struct cluster_node *node, size_t *i);
void nominations_deinit(struct cluster *c);

// SPDX-License-Identifier: Apache-2.0
/* virtual_use - whether a pod may use virtual nodes. Pure. */
#pragma once

#include <stdint.h>

#include "scheduler/model/model.h"

enum virtual_use {
    VIRTUAL_USE_NEVER,
    VIRTUAL_USE_LAST, /* where no real node fits */
    VIRTUAL_USE_ONLY,
    VIRTUAL_USE_BY_POLICY /* the units of the pod's ResourcePolicy say which nodes */
};

/* By the pod's annotation, its label, and the current label of its namespace. */
enum virtual_use virtual_use_of(const struct cluster *c, const struct cluster_pod *cp);
/* The preemption order of a node for a pod that may use several kinds of nodes, lowest first: by
 * the units of its policy, open or not; without a policy real nodes before virtual ones. */
int32_t virtual_use_rank(const struct cluster_pod *cp, const struct cluster_node *node);

// SPDX-License-Identifier: Apache-2.0
/*
 * virtual_use - whether a pod may use virtual nodes (contract, section 5). Pure.
 */
#pragma once

#include <stdint.h>

#include "scheduler/cache/model.h"

enum virtual_use {
    VIRTUAL_USE_NEVER,
    VIRTUAL_USE_LAST, /* where no real node fits */
    VIRTUAL_USE_ONLY,
    VIRTUAL_USE_BY_POLICY /* the units of the pod's ResourcePolicy say which nodes */
};

/* By the pod's annotation, its label, and the label of its namespace as it is now. */
enum virtual_use virtual_use_of(const struct cluster *c, const struct cluster_pod *cp);
/* In which order pods are preempted for a pod that could be on several kinds of nodes, the lowest
 * first: by the units of its policy, open or not; without a policy real nodes, then virtual ones. */
int32_t virtual_use_rank(const struct cluster_pod *cp, const struct cluster_node *node);

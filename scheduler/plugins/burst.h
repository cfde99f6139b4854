// SPDX-License-Identifier: Apache-2.0
/*
 * burst - where a pod may go: real nodes, real then virtual, virtual only (contract, section 5). Pure.
 */
#pragma once

#include <stdbool.h>

#include "scheduler/cluster.h"
#include "scheduler/plugin.h"

enum burst_policy {
    BURST_REAL_ONLY,
    BURST_REAL_FIRST,
    BURST_VIRTUAL_ONLY,
    BURST_BY_POLICY /* a ResourcePolicy selects the pod: its units say which nodes, nothing is refused here */
};

/* By the pod's annotation, its label, and the label of its namespace as it is now. */
enum burst_policy burst_policy_of(const struct cluster *c, const struct cluster_pod *cp);
/* The provider's taint of a virtual node, and no other, is tolerated for pods that burst. */
bool burst_tolerates(const struct plugin_ask *ask, const struct cluster_node *node,
                     const struct taint *t);
/* Where room is made for a pod that could be on several kinds of nodes: the lower the earlier. By its policy's units, open or not; without one real nodes, then virtual ones. */
int32_t burst_rank(const struct cluster_pod *cp, const struct cluster_node *node);
/* Why a pod that has real nodes first goes to that virtual one: "bursting to virtual node vk-1: 0/12 real nodes fit: ...". NULL: it is not such a pod, or not such a node. It may be
 * there already. */
const char *burst_explain(struct cluster *c, struct cluster_pod *cp,
                          const struct cluster_node *node, struct arena *a);

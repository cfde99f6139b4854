// SPDX-License-Identifier: Apache-2.0
/*
 * reservation_capacity - whether a pod may use a node with capacity reserved for a gang. Pure; part
 * of the filter plugin fit.
 *
 * It may if it belongs to the gang or has a higher priority; if it ends before the gang is to
 * start; or if the members then still fit beside it and the remaining pods. Checks amounts and
 * cards, not ports and volumes, which time does not free.
 */
#pragma once

#include <stdbool.h>

#include "scheduler/cache/cluster.h"
#include "scheduler/framework/reasons.h"

bool reservation_capacity_allows(const struct cluster *c, const struct cluster_pod *pod,
                                 const struct cluster_node *node, struct reason *why);

// SPDX-License-Identifier: Apache-2.0
/*
 * reservation_room - whether a pod may use a node on which room is kept for a gang. Pure; part of the filter plugin fit.
 *
 * It may if it is of the gang or of a higher priority; if it is over when the gang is to start; or if the members fit beside it then, with all that is still there at that
 * time. Amounts and cards are looked at, not ports and volumes: these do not run out by the hour.
 */
#pragma once

#include <stdbool.h>

#include "scheduler/cache/cluster.h"
#include "scheduler/framework/reasons.h"

bool reservation_room_allows(const struct cluster *c, const struct cluster_pod *pod,
                             const struct cluster_node *node, struct reason *why);

// SPDX-License-Identifier: Apache-2.0
/*
 * peers - the pods of one gpu-topology job: those of a gang that carry the same label gpu-topology. Pure.
 *
 * They exchange data between cards. So a job's pods on one node get cards that go well together, not only with the pod's own; and each sees all of them (gpu-visible), because a process reaches
 * another's card over NVLink only when it sees it. A pod that is already running sees what was there when it was placed: its environment does not change any more.
 */
#pragma once

#include <stdbool.h>

#include "scheduler/cache/model.h"

/* Whether both are pods of one job. A pod is its own peer if it is of a job at all. */
bool peers_are(const struct cluster_pod *x, const struct cluster_pod *y);
/* What the others of the job hold on the node, and what those want that have no node yet. */
void peers_of(const struct cluster_pod *cp, const struct cluster_node *node,
              struct ledger_peers *out);
/* Before a plan is committed, for each pod in it: it sees the cards of its peers on its node. */
void peers_show(struct cluster_pod *cp);

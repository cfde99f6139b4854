// SPDX-License-Identifier: Apache-2.0
/*
 * topology_job - the pods of one gpu-topology job: those of a gang with the same label
 * gpu-topology. Pure.
 *
 * They exchange data between cards. So a job's pods on one node get cards that go well together,
 * and each sees all of them (gpu-visible), because a process reaches another's card over NVLink
 * only if it sees it. A running pod sees what was there when it was placed: its environment does
 * not change.
 */
#pragma once

#include <stdbool.h>

#include "scheduler/cache/model.h"

/* Whether both are pods of one job. A pod of a job counts as its own peer. */
bool topology_job_are(const struct cluster_pod *x, const struct cluster_pod *y);
/* What the other pods of the job hold on the node, and what those without a node want. */
void topology_job_of(const struct cluster_pod *cp, const struct cluster_node *node,
                     struct gpu_accounts_peers *out);
/* Before a plan is committed, for each pod in it: makes the cards of the job's pods on its node
 * visible. */
void topology_job_show(struct cluster_pod *cp);

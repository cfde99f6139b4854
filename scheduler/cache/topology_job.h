// SPDX-License-Identifier: Apache-2.0
/*
 * topology_job - the pods of one gpu-topology job: those of a gang with the same label
 * gpu-topology. Pure.
 *
 * They exchange data between cards. So a job's pods on one node get well-connected cards, and each
 * sees all of them (gpu-visible), because a process can use another's card over NVLink only if it
 * sees it. A running pod sees the cards known when it was placed: its environment does not change.
 */
#pragma once

#include <stdbool.h>

#include "scheduler/model/model.h"

/* Whether both are pods of one job. A job's pod counts as its own peer. */
bool topology_job_are(const struct cluster_pod *x, const struct cluster_pod *y);
/* What the job's other pods hold on the node, and what its unplaced pods request. */
void topology_job_of(const struct cluster_pod *cp, const struct cluster_node *node,
                     struct gpu_accounts_peers *out);
/* Makes the cards of the job's pods on its node visible to the pod; for each pod of a plan before
 * its commit. */
void topology_job_show(struct cluster_pod *cp);

// SPDX-License-Identifier: Apache-2.0
/* cluster_internal - shared by the files of the cluster model only. Pure. */
#pragma once

#include "scheduler/model/model.h"

/* Finds or creates the node. A created one has no Node object until the API server sends it. */
struct cluster_node *cluster_nodes_get(struct cluster *c, const char *name);
/* Frees the node if the API server does not have it and no pod is on it. */
void cluster_nodes_drop_if_unused(struct cluster *c, struct cluster_node *cn);
void cluster_nodes_delete(struct cluster_node *cn);
/* Sums up what its pods use: a saturated sum cannot be corrected by subtraction, and only what the
 * node offers is in it. */
void cluster_nodes_recount(struct cluster_node *cn);
/* Sets the grant to: nothing; a copy; the annotations' grant; the update in a newer version's
 * annotations, for a pod bound where it was. */
void cluster_grant_clear(struct cluster_pod *cp);
void cluster_grant_copy(struct cluster_pod *cp, const struct grant *from);
void cluster_grant_read(struct cluster_pod *cp);
void cluster_grant_follow(struct cluster_pod *cp);
uint64_t cluster_digest_grant(const struct cluster_pod *cp);

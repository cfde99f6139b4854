// SPDX-License-Identifier: Apache-2.0
/*
 * cluster_internal - shared by the files of the cluster model only. Pure.
 */
#pragma once

#include "scheduler/cache/model.h"

/* The node of that name, created if need be: without an object until the API server has one. */
struct cluster_node *cluster_nodes_get(struct cluster *c, const char *name);
/* Frees the node if neither the API server nor a pod needs it. */
void cluster_nodes_drop_if_unused(struct cluster *c, struct cluster_node *cn);
void cluster_nodes_delete(struct cluster_node *cn);
/* The grant becomes: none; a copy; what the annotations say; what a newer version's annotations
 * say, if the pod is bound where it was. */
void cluster_grant_clear(struct cluster_pod *cp);
void cluster_grant_copy(struct cluster_pod *cp, const struct grant *from);
void cluster_grant_read(struct cluster_pod *cp);
void cluster_grant_follow(struct cluster_pod *cp);
/* Of the pod's grant. */
uint64_t cluster_digest_grant(const struct cluster_pod *cp);

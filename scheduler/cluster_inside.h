// SPDX-License-Identifier: Apache-2.0
/*
 * cluster_inside - what the files of the cluster model share, and nobody else uses. Pure.
 */
#pragma once

#include "scheduler/cluster.h"

/* The node of that name, made if need be: without an object until the API server has one. */
struct cluster_node *cluster_nodes_get(struct cluster *c, const char *name);
/* It goes when neither the API server nor a pod needs it. */
void cluster_nodes_drop_if_unused(struct cluster *c, struct cluster_node *cn);
void cluster_nodes_delete(struct cluster_node *cn);
/* Of what the pod was given. */
uint64_t cluster_digest_claim(const struct cluster_pod *cp);
/* Takes p, into no map and onto no node. */
struct cluster_pod *cluster_pod_alone(struct cluster *c, struct pod *p);
/* A pod that is in no map and on no node. */
void cluster_pod_free(struct cluster_pod *cp);

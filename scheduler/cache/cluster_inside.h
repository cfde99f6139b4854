// SPDX-License-Identifier: Apache-2.0
/*
 * cluster_inside - what the files of the cluster model share, and nobody else uses. Pure.
 */
#pragma once

#include "scheduler/cache/model.h"

/* The node of that name, made if need be: without an object until the API server has one. */
struct cluster_node *cluster_nodes_get(struct cluster *c, const char *name);
/* It goes when neither the API server nor a pod needs it. */
void cluster_nodes_drop_if_unused(struct cluster *c, struct cluster_node *cn);
void cluster_nodes_delete(struct cluster_node *cn);
/* The pod was given nothing; what is copied; what its annotations say; what they say in a newer version, if it is bound where it was. */
void cluster_claim_clear(struct cluster_pod *cp);
void cluster_claim_copy(struct cluster_pod *cp, const struct claim *from);
void cluster_claim_read(struct cluster_pod *cp);
void cluster_claim_follow(struct cluster_pod *cp);
/* Of what the pod was given. */
uint64_t cluster_digest_claim(const struct cluster_pod *cp);

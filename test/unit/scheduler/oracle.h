// SPDX-License-Identifier: Apache-2.0
/*
 * oracle - inter-pod affinity and topology spread as Kubernetes defines them, by checking every pod
 * of every node: slow, short and without caches.
 */
#pragma once

#include <stdbool.h>

#include "scheduler/cache/cluster.h"

bool oracle_spread(const struct cluster *c, const struct pod *p, const struct cluster_node *node);
bool oracle_interpod(const struct cluster *c, const struct pod *p, const struct cluster_node *node);
/* Every counter of the index against a recount; prints what differs. */
bool oracle_index(const struct cluster *c);
/* What each gang knows of its members against a walk over them; prints what differs. */
bool oracle_gangs(const struct cluster *c);

// SPDX-License-Identifier: Apache-2.0
/*
 * pods - a pod of the model by itself: made, given another version of its object, freed. Pure.
 */
#pragma once

#include "scheduler/cache/model.h"

/* Takes p, into no map and onto no node. */
struct cluster_pod *pods_new(struct cluster *c, struct pod *p);
/* Takes p instead of what it has; what it asks for is read. */
void pods_set_object(struct cluster *c, struct cluster_pod *cp, struct pod *p);
/* A pod that is in no map and on no node. */
void pods_free(struct cluster_pod *cp);

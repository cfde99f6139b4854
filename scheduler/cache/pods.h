// SPDX-License-Identifier: Apache-2.0
/* pods - a single pod of the model: create, update, free. Pure. */
#pragma once

#include "scheduler/model/model.h"

/* Takes p; adds the pod to no map and no node. */
struct cluster_pod *pods_new(struct cluster *c, struct pod *p);
/* Replaces its object by p, which it takes, and parses its request. */
void pods_set_object(struct cluster *c, struct cluster_pod *cp, struct pod *p);
/* The pod must be in no map and on no node. */
void pods_free(struct cluster *c, struct cluster_pod *cp);

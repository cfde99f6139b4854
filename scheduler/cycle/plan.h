// SPDX-License-Identifier: Apache-2.0
/*
 * plan - an undo journal over the cluster: place members one by one, then keep all or undo all, newest first. Undo cannot fail. Pure.
 *
 *     struct plan plan;
 *     plan_begin(&plan, cluster);
 *     plan_place(&plan, pod, node, &claim);
 *     size_t here = plan_mark(&plan);       // try something
 *     plan_rollback(&plan, here);           // or plan_rollback(&plan, 0)
 *     plan_commit(&plan);                   // what is in it stays assumed; plan.steps lists it
 *     plan_end(&plan);                      // rolls back what was not committed
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/vec.h"
#include "scheduler/cache/cluster.h"

struct plan_step {
    struct cluster_pod *pod;
    struct cluster_node *node;
};

struct plan {
    struct cluster *cluster;
    struct VEC(struct plan_step) steps;
    bool committed;
    uint32_t events; /* that placing caused (EVENT_*): for the queue, once committed */
};

void plan_begin(struct plan *p, struct cluster *c);
/* The claim is copied into the pod. */
void plan_place(struct plan *p, struct cluster_pod *pod, struct cluster_node *node,
                const struct claim *claim);
size_t plan_mark(const struct plan *p);
void plan_rollback(struct plan *p, size_t mark);
void plan_commit(struct plan *p);
void plan_end(struct plan *p);

// SPDX-License-Identifier: Apache-2.0
/*
 * plan - an undo journal over the cluster: pods are placed and, for a trial, evicted step by step;
 * then all steps are kept or undone, newest first. Undo cannot fail. Pure.
 *
 *     struct plan plan;
 *     plan_begin(&plan, cluster);
 *     plan_place(&plan, pod, node, &grant);
 *     size_t here = plan_mark(&plan);       // try something
 *     size_t victim = plan_evict(&plan, other);
 *     plan_restore(&plan, victim);          // it can stay after all
 *     plan_rollback(&plan, here);           // or plan_rollback(&plan, 0)
 *     plan_commit(&plan);                   // what is in it stays assumed; plan.steps lists it
 *     plan_end(&plan);                      // rolls back what was not committed
 *
 * An evicted pod holds nothing of a node until the step is undone; it keeps its state, its grant
 * and the promises for its claims. An eviction is only a question (would it fit then?): a plan is
 * committed with placements alone. Nothing but the journal changes the cluster meanwhile; a plan
 * may be begun within another one, and ends before it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/vec.h"
#include "scheduler/cache/cluster.h"

enum plan_kind { PLAN_PLACED, PLAN_EVICTED, PLAN_RESTORED };

struct plan_step {
    enum plan_kind kind;
    struct cluster_pod *pod;
    struct cluster_node *node;
    size_t evicted; /* RESTORED: the step that it takes back */
};

struct plan {
    struct cluster *cluster;
    struct VEC(struct plan_step) steps;
    bool committed;
    uint32_t events; /* that placing caused (EVENT_*): for the queue, once committed */
};

void plan_begin(struct plan *p, struct cluster *c);
/* The grant is copied into the pod. */
void plan_place(struct plan *p, struct cluster_pod *pod, struct cluster_node *node,
                const struct grant *grant);
/* The pod leaves its node. Returns the number of the step. */
size_t plan_evict(struct plan *p, struct cluster_pod *pod);
/* The pod of that step is back on its node, in any order with others. */
void plan_restore(struct plan *p, size_t evicted);
size_t plan_mark(const struct plan *p);
void plan_rollback(struct plan *p, size_t mark);
void plan_commit(struct plan *p);
void plan_end(struct plan *p);

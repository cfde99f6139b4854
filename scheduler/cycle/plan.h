// SPDX-License-Identifier: Apache-2.0
/*
 * plan - an undo journal over the cluster: places pods and, on trial, evicts or nominates them and
 * reclaims lent CPUs step by step; then keeps or undoes all steps, newest first. Undo cannot fail.
 * Pure.
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
 * An evicted pod holds nothing on a node until the step is undone; it keeps its state, its grant
 * and its assumed volumes. All but placements is only for trials: a plan is committed with
 * placements alone. Nothing else may change the cluster meanwhile. Plans may nest; the inner one
 * ends first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/vec.h"
#include "scheduler/cache/cluster.h"

enum plan_kind { PLAN_PLACED, PLAN_EVICTED, PLAN_RESTORED, PLAN_RECLAIMED, PLAN_NOMINATED };

struct plan_step {
    enum plan_kind kind;
    struct cluster_pod *pod; /* RECLAIMED: NULL */
    struct cluster_node *node;
    union {
        size_t evicted;            /* RESTORED: the step that it takes back */
        const struct cpuset *cpus; /* RECLAIMED */
        char *nominated;           /* NOMINATED: where it was nominated before, heap; or NULL */
    };
};

struct plan {
    struct cluster *cluster;
    struct VEC(struct plan_step) steps;
    bool committed;
    uint32_t events; /* caused by placing (EVENT_*): for the queue, once committed */
};

void plan_begin(struct plan *p, struct cluster *c);
/* Copies the grant into the pod. */
void plan_place(struct plan *p, struct cluster_pod *pod, struct cluster_node *node,
                const struct grant *grant);
/* Returns the number of the step. */
size_t plan_evict(struct plan *p, struct cluster_pod *pod);
/* Puts the pod of that step back on its node, in any order. */
void plan_restore(struct plan *p, size_t evicted);
/* The node's lent CPUs count as returned. Borrows cpus until the step is undone. */
void plan_reclaim(struct plan *p, struct cluster_node *node, const struct cpuset *cpus);
/* The pod waits for capacity of that node; NULL: of none. */
void plan_nominate(struct plan *p, struct cluster_pod *pod, const char *node);
size_t plan_mark(const struct plan *p);
void plan_rollback(struct plan *p, size_t mark);
void plan_commit(struct plan *p);
void plan_end(struct plan *p);

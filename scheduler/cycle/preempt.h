// SPDX-License-Identifier: Apache-2.0
/*
 * preempt - who has to go so that a pod of higher priority finds a place. Pure.
 *
 * Asked when no node fits. The cluster is tried without some of its pods (plan_evict) and is as
 * before when this returns; who carries the answer out, and waits until the victims are really
 * gone, is the shell's business. See preempt.c for the order in which nodes and victims are
 * preferred.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "scheduler/cycle/plan.h"
#include "scheduler/framework/pipeline.h"

/* So many nodes that would do are compared, then the best of them is taken. */
enum { PREEMPT_CANDIDATES = 100 };

struct preempt_choice {
    struct cluster_node *node; /* NULL: nobody's leaving helps */
    /* In the arena, on the node, least important first, and then whoever is of no use without them,
     * elsewhere. None: pods that are leaving already make the room. */
    struct cluster_pod **victims;
    size_t victims_len;
    int64_t violations; /* victims beyond what their disruption budgets allow */
};

/* A search that is one of several: room for a whole gang (gang_preempt.h). */
struct preempt_scope {
    struct plan *plan;   /* whom it evicts goes already: disruption budgets are drawn on */
    int32_t below;       /* only pods of a lower priority than this go */
    uint32_t candidates; /* 1 .. PREEMPT_CANDIDATES */
    /* By place: nodes where nobody's leaving helps, noted for the next pod that asks for the same;
     * or NULL. */
    bool *hopeless;
};

/* Whether less important pods are leaving the node that the pod is nominated to. */
bool preempt_awaits(const struct cluster *c, const struct cluster_pod *pod);
/* Whether the pod may send others away at all: not with preemptionPolicy Never, not if all are as
 * important, and not while it awaits those that it sent away before. */
bool preempt_may(const struct cluster *c, const struct cluster_pod *pod);
/* Only while no node fits the pod. */
void preempt_choose(const struct pipeline *ask, struct cluster_pod *pod, struct arena *a,
                    struct preempt_choice *out);
void preempt_choose_more(const struct pipeline *ask, struct cluster_pod *pod,
                         const struct preempt_scope *scope, struct arena *a,
                         struct preempt_choice *out);

// SPDX-License-Identifier: Apache-2.0
/* preempt - chooses the victims that let a pod of higher priority fit. Pure. Called when no node
 * fits. The cluster is tried without some of its pods (plan_evict) and left unchanged. The caller
 * evicts the victims and waits until they are gone. preempt.c ranks the nodes; node_victims.c
 * orders the pods of a node, for gang_preempt too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "scheduler/cycle/plan.h"
#include "scheduler/framework/pipeline.h"

/* Suitable nodes that are compared before the best is taken. */
enum { PREEMPT_CANDIDATES = 100 };

struct preempt_choice {
    struct cluster_node *node; /* NULL: no eviction helps */
    /* In the arena: those on the node, least important first, then pods elsewhere that are useless
     * without them. Empty: pods that are leaving already free enough capacity. */
    struct cluster_pod **victims;
    size_t victims_len;
    int64_t violations; /* victims beyond what their disruption budgets allow */
    uint32_t wakes;     /* node NULL: events that may help, beside those of the pod's refusal */
    uint32_t tried;     /* nodes */
};

/* One of several searches for a whole gang (gang_preempt.h). */
struct preempt_scope {
    struct plan *plan;   /* its evictions are charged to the budgets */
    int32_t below;       /* only pods of a lower priority than this go */
    uint32_t candidates; /* 1 .. PREEMPT_CANDIDATES */
    /* By node index: no eviction helps there, nor for later pods of the same class; or NULL. */
    bool *hopeless;
};

/* Whether less important pods are leaving the pod's nominated node. */
bool preempt_awaits(const struct cluster *c, const struct cluster_pod *pod);
/* Whether the pod may preempt: not with preemptionPolicy Never, not if no pod is less important,
 * and not while its earlier victims are still leaving. */
bool preempt_may(const struct cluster *c, const struct cluster_pod *pod);
/* Only while no node fits the pod. */
void preempt_choose(const struct pipeline *ask, struct cluster_pod *pod, struct arena *a,
                    struct preempt_choice *out);
void preempt_choose_more(const struct pipeline *ask, struct cluster_pod *pod,
                         const struct preempt_scope *scope, struct arena *a,
                         struct preempt_choice *out);

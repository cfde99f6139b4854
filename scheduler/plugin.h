// SPDX-License-Identifier: Apache-2.0
/*
 * plugin - three verbs: filter, score, reserve. Const tables, no run-time registration.
 *
 * A plugin is a pure function of the cluster as it is: the same state gives the same answer (I4), and reserve succeeds wherever filter said yes on the
 * same state (I3). `wakes` names the events that can turn this plugin's "no" into a "yes": a parked gang sleeps through all others.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/claim.h"
#include "scheduler/cluster.h"
#include "scheduler/reasons.h"

enum { PLUGIN_SCORE_MAX = 100 };

struct plugin {
    const char *name;
    uint32_t wakes;
    /* false: *why says so. `a` is for the reason's text and lives as long as the cycle. */
    bool (*filter)(const struct cluster_pod *pod, const struct cluster_node *node, struct arena *a,
                   struct reason *why);
    /* 0..PLUGIN_SCORE_MAX, times weight; NULL: no opinion. */
    int64_t (*score)(const struct cluster_pod *pod, const struct cluster_node *node);
    int64_t weight;
    /* Adds what the pod gets of this node to the claim (in a). NULL: nothing. */
    bool (*reserve)(const struct cluster_pod *pod, const struct cluster_node *node, struct arena *a,
                    struct claim *claim);
};

extern const struct plugin plugin_burst, plugin_taints, plugin_affinity, plugin_fit, plugin_gpu;

// SPDX-License-Identifier: Apache-2.0
/* pdb - a PodDisruptionBudget for choosing victims: its pods, and how many may be disrupted now. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/model/object.h"
#include "lib/model/selector.h"

struct pdb {
    struct object object;
    /* policy/v1: {} is every pod of the namespace; .nothing when absent */
    struct selector selector;
    int32_t disruptions_allowed;
    /* sorted names of status.disruptedPods: evicted, not yet observed; not counted twice */
    const char **disrupted;
    size_t disrupted_len;
};

/* Whether evicting the pod would use this budget, by the rules of the eviction API.
 * (kube-scheduler's preemption also ignores budgets with an empty selector and pods without labels;
 * the API does not.) */
bool pdb_covers(const struct pdb *b, const char *ns, const char *pod, const struct labels *labels);

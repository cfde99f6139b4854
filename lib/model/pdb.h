// SPDX-License-Identifier: Apache-2.0
/*
 * pdb - a PodDisruptionBudget, as far as choosing victims needs it: which pods it is about and how many of them may go now.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/model/object.h"
#include "lib/model/selector.h"

struct pdb {
    struct object object;
    struct selector
        selector; /* policy/v1: {} is every pod of the namespace; .nothing when absent */
    int32_t disruptions_allowed;
    const char **
        disrupted; /* sorted names of status.disruptedPods: evicted, not yet counted; they do not count twice */
    size_t disrupted_len;
};

/* Whether evicting the pod would draw on this budget: what the eviction API would say. (kube-scheduler's preemption also passes over budgets with an empty
 * selector and pods without labels; the API does not, and we follow the API.) */
bool pdb_covers(const struct pdb *b, const char *ns, const char *pod, const struct labels *labels);

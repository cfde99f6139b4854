// SPDX-License-Identifier: Apache-2.0
/* node_victims - the pods of a node that preemption may evict, the most important first
 * (node_victims_compare). Pure. The list is cached until the node changes (pipeline.node_pods):
 * walking the pods again for each candidate node would dominate a search. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/framework/pipeline.h"

struct node_victim {
    struct cluster_pod *pod;
    int64_t cpu_milli, memory_bytes, ephemeral_bytes;
    int64_t started_ns; /* INT64_MAX: not started */
    int32_t priority;
    bool leaving;
};

/* Excludes mirror pods, which the kubelet runs regardless of the API server, and pods that stay
 * although they were to go. */
struct node_victims {
    uint64_t generation, changed; /* of the node_table row when the list was made */
    size_t len, cap;
    struct node_victim items[];
};

/* Borrowed until the node changes. */
const struct node_victims *node_victims_of(const struct pipeline *ask,
                                           const struct cluster_node *cn);
/* < 0: a is more important, so it is evicted later. By priority, then by running time (a pod that
 * the kubelet has not started does not run), then by name. */
int node_victims_compare(struct cluster_pod *a, struct cluster_pod *b);
/* When the kubelet started it; INT64_MAX: it has not. */
int64_t node_victims_began_ns(const struct pod *p);
/* Evicted, or terminating for another reason; not if it stays nevertheless. */
bool node_victims_is_leaving(const struct cluster_pod *cp);

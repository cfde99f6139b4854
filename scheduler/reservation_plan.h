// SPDX-License-Identifier: Apache-2.0
/*
 * reservation_plan - when a gang, or several that are placed as one, could start, and where, if nobody got in its way any more. Pure.
 *
 * The placed pods are taken away in the order in which they are expected to end, as many as are needed for every quorum to fit; the cluster is as before when this returns. Pods that never
 * end by themselves (a DaemonSet's, static ones) stay.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "scheduler/cluster.h"

struct reservation_place {
    const struct cluster_pod *member;
    const struct cluster_node *node;
};

struct reservation_plan {
    bool fits; /* the cluster when it is empty */
    int64_t start_ms;
    struct reservation_place *places; /* in the arena */
    size_t len;
};

/* When the placed pod is expected to be gone, seen from then_ms: its start and its activeDeadlineSeconds; or, if it has none, options.assume_ms, and when that is over, after as long as it has
 * run so far: what has run for hours will not end in this moment. INT64_MAX: never. */
int64_t reservation_plan_end(const struct cluster *c, const struct cluster_pod *cp,
                             int64_t then_ms);
/* How long a pod would run that is placed now. */
int64_t reservation_plan_runtime(const struct cluster *c, const struct cluster_pod *cp);
/* gangs: those of one gangs_bundle. */
void reservation_plan_make(struct cluster *c, struct gang *const *gangs, size_t len, int64_t now_ms,
                           struct arena *a, struct reservation_plan *out);

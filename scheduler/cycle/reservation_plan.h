// SPDX-License-Identifier: Apache-2.0
/*
 * reservation_plan - when a gang, or several that are placed as one, could start, and where, if
 * nobody got in its way any more. Pure.
 *
 * The placed pods are taken away in the order in which they are expected to end, as many as are
 * needed for every quorum to fit; the cluster is as before when this returns. Pods that never end
 * by themselves (a DaemonSet's, static ones) stay.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "scheduler/cache/reservations.h"
#include "scheduler/framework/pipeline.h"

struct reservation_plan {
    bool fits; /* the cluster when it is empty */
    int64_t start_ms;
    struct reservation_place *places; /* in the arena */
    size_t len;
};

/* gangs: those of one gangs_bundle. */
void reservation_plan_make(const struct pipeline *ask, struct gang *const *gangs, size_t len,
                           int64_t now_ms, struct arena *a, struct reservation_plan *out);

// SPDX-License-Identifier: Apache-2.0
/* reservation_plan - when and where a gang, or several placed as one, could start if no other pod
 * took capacity. Pure. Removes placed pods in the order of their expected ends until every quorum
 * fits, and leaves the cluster unchanged. Pods that never end (DaemonSet, static) stay. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "scheduler/model/reservations.h"
#include "scheduler/framework/pipeline.h"

struct reservation_plan {
    bool fits;    /* in the empty cluster */
    bool guessed; /* of a pod that must go only the age is known */
    int64_t start_ms;
    /* Mean run time of what has ended, and of what ran when the gang began to wait, without
     * services; 0: nothing did. */
    int64_t mean_ms;
    size_t to_go;                     /* pods */
    struct reservation_place *places; /* in the arena */
    size_t len;
};

/* gangs: those of one gangs_bundle. Pods placed since then of which only the age is known stay:
 * they were let in beside an earlier plan, and would make place for more of their kind in each new
 * one. INT64_MAX: no earlier plan. */
void reservation_plan_make(const struct pipeline *ask, struct gang *const *gangs, size_t len,
                           int64_t since_ms, int64_t now_ms, struct arena *a,
                           struct reservation_plan *out);

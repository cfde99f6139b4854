// SPDX-License-Identifier: Apache-2.0
/*
 * cycle - one gang in, a committed plan or a sentence out. Pure.
 *
 * All-or-nothing: members are placed under the undo journal (placing.h); fewer than min-available placed (with those that already run) and everything is rolled back, so a
 * waiting gang holds nothing (I2). Members beyond the quorum are placed as far as they fit. Gangs that name each other are placed as one.
 *
 * Where there is no room the cycle also says who would have to go (room.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cycle/plan.h"
#include "scheduler/framework/pipeline.h"

enum cycle_verdict {
    CYCLE_PLACED, /* everything that waits is placed */
    CYCLE_PARTLY, /* the quorum is placed, some members beyond it wait: sentence and wakes are set */
    CYCLE_WAITING, /* no quorum of pods exists: costs no placement */
    CYCLE_NO_ROOM,
    CYCLE_NOTHING, /* no member waits */
};

/* Where a pod waits for room from now on. */
struct cycle_nomination {
    struct cluster_pod *pod;
    struct cluster_node *node; /* NULL: what it was promised before is taken back */
};

/* A placed pod that has to go. */
struct cycle_victim {
    struct cluster_pod *pod;
    struct cluster_pod *for_pod;
};

/* A pod that goes to a virtual node because no real one fits. */
struct cycle_burst {
    const struct cluster_pod *pod;
    const char *sentence;
};

/* CPUs that a placed pod has on loan and that are called back (loans.h). */
struct cycle_recall {
    struct cluster_pod *pod;
    struct cpuset cpus;
};

/* All in the arena. A pod that is in no nomination keeps the one that it has. */
struct cycle_result {
    enum cycle_verdict verdict;
    const char *sentence;
    uint64_t class; /* of the sentence, without amounts */
    uint32_t wakes;
    struct cycle_nomination *nominations;
    size_t nominations_len;
    struct cycle_victim *victims;
    size_t victims_len;
    struct cycle_recall *recalls;
    size_t recalls_len;
    struct cycle_burst *bursts;
    size_t bursts_len;
    struct gang **others; /* placed together with this one: to be looked at again */
    size_t others_len;
    /* Pods are leaving for it, or have to: it is to be tried the moment that they are gone. */
    bool awaits;
};

/* plan was begun by the caller; committed for PLACED and PARTLY, empty otherwise. */
void cycle_run(const struct pipeline *ask, struct gang *g, struct plan *plan, struct arena *a,
               struct cycle_result *out);

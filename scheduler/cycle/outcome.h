// SPDX-License-Identifier: Apache-2.0
/*
 * outcome - what comes of a cycle: what the loop, the replay and the simulator act on. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/cache/cluster.h"

enum cycle_verdict {
    CYCLE_PLACED, /* everything that waits is placed */
    /* the quorum is placed, some members beyond it wait: sentence and wakes are set */
    CYCLE_PARTLY,
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

/* CPUs that a placed pod has on loan and that are called back (cpu_lending.h). */
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

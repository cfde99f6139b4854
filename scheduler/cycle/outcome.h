// SPDX-License-Identifier: Apache-2.0
/* outcome - the result of a cycle, which the loop, the replay and the simulator act on. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/cache/cluster.h"
#include "scheduler/queue/queue_need.h"

enum cycle_verdict {
    CYCLE_PLACED, /* all waiting members are placed */
    /* The quorum is placed, members beyond it wait; sentence and wakes are set. */
    CYCLE_PARTLY,
    CYCLE_WAITING, /* pods are missing: no placement was tried */
    CYCLE_NO_CAPACITY,
    CYCLE_NOTHING, /* no member waits */
};

struct cycle_nomination {
    struct cluster_pod *pod;
    struct cluster_node *node; /* NULL: the nomination is withdrawn */
};

struct cycle_victim {
    struct cluster_pod *pod;
    struct cluster_pod *for_pod;
};

/* A pod that goes to a virtual node because no real one fits. */
struct cycle_virtual {
    const struct cluster_pod *pod;
    const char *sentence;
};

/* Lent CPUs that are reclaimed from a placed pod (cpu_lending.h). */
struct cycle_recall {
    struct cluster_pod *pod;
    struct cpuset cpus;
};

/* All in the arena. A pod without an entry in nominations keeps its nomination. */
struct cycle_result {
    enum cycle_verdict verdict;
    const char *sentence;
    uint64_t class; /* of the sentence, ignoring amounts */
    uint32_t wakes;
    struct queue_need need; /* of the members that wait */
    int64_t cost;           /* in units of queue_turns.h */
    struct cycle_nomination *nominations;
    size_t nominations_len;
    struct cycle_victim *victims;
    size_t victims_len;
    struct cycle_recall *recalls;
    size_t recalls_len;
    struct cycle_virtual *virtuals;
    size_t virtuals_len;
    struct gang **others; /* placed together with this one: try again */
    size_t others_len;
    /* Pods are leaving for it, or must: retry it as soon as they are gone. */
    bool awaits;
};

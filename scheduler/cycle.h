// SPDX-License-Identifier: Apache-2.0
/*
 * cycle - one gang in, a committed plan or a sentence out. Pure.
 *
 * All-or-nothing: members are placed under the undo journal; fewer than min-available placed (with those that already run) and everything is rolled back, so a
 * waiting gang holds nothing (I2). Members beyond the quorum are placed as far as they fit.
 *
 * For a lone pod that finds no room the cycle also says who would have to go (preempt.h). Gangs send nobody away yet.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "scheduler/cluster.h"
#include "scheduler/plan.h"
#include "scheduler/preempt.h"

enum cycle_verdict {
    CYCLE_PLACED, /* everything that waits is placed */
    CYCLE_PARTLY, /* the quorum is placed, some members beyond it wait: sentence and wakes are set */
    CYCLE_WAITING, /* no quorum of pods exists: costs no placement */
    CYCLE_NO_ROOM,
    CYCLE_NOTHING, /* no member waits */
};

struct cycle_result {
    enum cycle_verdict verdict;
    const char *sentence; /* in the arena */
    uint64_t class;       /* of the sentence, without amounts */
    uint32_t wakes;
    struct cluster_pod *pod;       /* NO_ROOM of a lone pod */
    struct preempt_choice preempt; /* of that pod: where room can be made, if node is set */
    bool awaits; /* others were sent away for it and are still leaving: it keeps its nomination */
};

/* plan was begun by the caller; committed for PLACED and PARTLY, empty otherwise. */
void cycle_run(struct cluster *c, struct gang *g, struct plan *plan, struct arena *a,
               struct cycle_result *out);

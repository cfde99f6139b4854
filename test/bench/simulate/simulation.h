// SPDX-License-Identifier: Apache-2.0
/*
 * simulation - jobs that come and end, in simulated time, with the scheduler's own core: queue,
 * cycle, plan and reservation decide, as they do in the program; only the clock and the API server
 * are missing. Time goes from event to event, so months take seconds.
 *
 * Each job is a gang of equal pods (one card each, in the trace); it runs for run_ms once all its
 * pods are placed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/heap.h"
#include "lib/base/map.h"
#include "lib/base/vec.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cycle/attempt.h"

struct simulation_job {
    const char *name;
    int64_t submit_ms, run_ms; /* submit_ms since the begin of the simulation */
    int32_t pods;              /* each of which wants one card */
    int32_t priority;
    bool tells_time;  /* its pods have run_ms as activeDeadlineSeconds */
    int64_t start_ms; /* result; -1: not started */
    /* simulation.c's */
    int32_t held; /* cards, while it is not complete */
    struct heap_node heap;
    struct gang *gang; /* while it waits */
};

struct simulation {
    struct cluster cluster;
    struct pipeline pipeline; /* on the cluster */
    struct queue queue;
    struct arena arena; /* one attempt's */
    struct attempt attempt;
    struct map jobs; /* gang's key -> struct simulation_job */
    struct arena keys;
    struct heap running;                         /* by end */
    struct VEC(struct simulation_job *) waiting; /* in the order of submission */
    int64_t free_cards;
    int64_t now_ms; /* since the begin */
    /* Results. */
    int64_t ended;         /* jobs */
    int64_t held;          /* cards that gangs hold which are not complete, now */
    int64_t incomplete_ms; /* card-milliseconds held by gangs that were not complete */
    int64_t reservations;  /* made */
    int64_t cycles;
};

int simulation_init(struct simulation *s, int64_t nodes, int64_t cards_per_node,
                    const struct reservation_options *o, struct error *err);
/* jobs by submit_ms. Ends when all have ended, when nothing can happen any more, or after
 * until_ms. */
int simulation_run(struct simulation *s, struct simulation_job *jobs, size_t len, int64_t until_ms,
                   struct error *err);
void simulation_deinit(struct simulation *s);

// SPDX-License-Identifier: Apache-2.0
/*
 * reserving - keeps room for gangs that have waited long, at the right moments: the part of reservation.h that has a clock. On the loop's thread, part of the drive.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/loop.h"
#include "lib/base/options.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cycle/cycle.h"
#include "scheduler/queue/queue.h"

struct reserving_options {
    int64_t after_s, for_s, assume_s; /* reservation.h */
};
extern const struct option_row reserving_option_rows[];

struct reserving {
    struct loop *loop;
    const struct pipeline *pipeline;
    struct cluster *cluster;
    struct queue *queue;
    struct arena arena; /* one look's */
    struct loop_timer look;
    void (*changed)(void *arg); /* a gang is to be tried */
    void *arg;
};

/* Nothing is kept before reserving_configure. */
void reserving_init(struct reserving *r, struct loop *loop, const struct pipeline *p,
                    struct queue *q, void (*changed)(void *arg), void *arg);
void reserving_configure(struct reserving *r, const struct reserving_options *o);
/* After a cycle of the gang. The sentence is added to, in a, where room is kept for the gang or cannot be. */
void reserving_follow(struct reserving *r, struct gang *g, struct cycle_result *result,
                      struct arena *a);
/* No look is taken any more. */
void reserving_pause(struct reserving *r);
void reserving_deinit(struct reserving *r);

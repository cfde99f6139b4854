// SPDX-License-Identifier: Apache-2.0
/* reservation_timer - calls reservation_reconcile (reservation.h) when due; on the loop thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/loop.h"
#include "lib/base/options.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cycle/attempt.h"
#include "scheduler/queue/queue.h"

struct reservation_timer_options {
    int64_t after_s, for_s, assume_s; /* reservation.h */
};
extern const struct option_row reservation_timer_option_rows[];

struct reservation_timer {
    struct loop *loop;
    const struct pipeline *pipeline;
    struct cluster *cluster;
    struct queue *queue;
    struct arena arena; /* reset by each reconcile */
    struct loop_timer timer;
    int64_t reconciled_ms;      /* the loop's time at the last reconcile */
    void (*changed)(void *arg); /* a gang is to be tried */
    void *arg;
};

/* Reserves nothing before reservation_timer_configure. */
void reservation_timer_init(struct reservation_timer *r, struct loop *loop,
                            const struct pipeline *p, struct queue *q, void (*changed)(void *arg),
                            void *arg);
void reservation_timer_configure(struct reservation_timer *r,
                                 const struct reservation_timer_options *o);
/* After an attempt: counts ended reservations, and schedules the next reconcile. If a gang has used
 * its reservation the next one has its turn now, before younger ones go on. */
void reservation_timer_follow(struct reservation_timer *r, size_t kept_before,
                              const struct attempt_result *tried);
/* Cancels the timer. */
void reservation_timer_pause(struct reservation_timer *r);
void reservation_timer_deinit(struct reservation_timer *r);

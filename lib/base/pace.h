// SPDX-License-Identifier: Apache-2.0
/*
 * pace - a token bucket for several threads, with a second, slower rate for busy times. Pure but for its lock.
 *
 * What must not get in the way of something more urgent asks here first. The bucket holds one second's tokens of the full rate. While others
 * are busy, tokens come at the slow rate, and only those may be used: what was saved up in quiet times is kept for quiet times, so that a
 * busy time does not begin with a burst.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct pace {
    pthread_mutex_t lock;
    int64_t rate; /* tokens in one second */
    int64_t slow_rate;
    int64_t tokens_milli; /* for quiet times */
    int64_t slow_milli;   /* for busy times: at most one token */
    int64_t at_ms;
};

/* slow_rate is at most rate; both at least 1. The bucket begins full. */
void pace_init(struct pace *p, int64_t rate, int64_t slow_rate, int64_t now_ms);
void pace_deinit(struct pace *p);
/* Any thread. 0: one token is taken; otherwise how many ms to wait before asking again, at least 1. */
int64_t pace_take(struct pace *p, bool busy, int64_t now_ms);

// SPDX-License-Identifier: Apache-2.0
/* rate_limit - a thread-safe token bucket with a second, slower rate for busy times, for work that
 * must not delay more urgent work. It holds one second's tokens; the caller passes the time. While
 * the caller reports busy, tokens come at the slow rate and saved ones are not used, so that
 * a busy time does not begin with a burst. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct rate_limit {
    pthread_mutex_t lock;
    int64_t rate; /* tokens per second */
    int64_t slow_rate;
    int64_t tokens_milli; /* for quiet times */
    int64_t slow_milli;   /* for busy times; at most one token */
    int64_t at_ms;
};

/* 1 <= slow_rate <= rate. The bucket starts full. */
void rate_limit_init(struct rate_limit *p, int64_t rate, int64_t slow_rate, int64_t now_ms);
void rate_limit_deinit(struct rate_limit *p);
/* Any thread. 0: took a token; otherwise the ms to wait before asking again, at least 1. */
int64_t rate_limit_take(struct rate_limit *p, bool busy, int64_t now_ms);

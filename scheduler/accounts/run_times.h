// SPDX-License-Identifier: Apache-2.0
/*
 * run_times - how long pods ran that have ended: by template (a hash of the owner and of what it
 * runs), and on average. Pure.
 *
 * A template's expectation is its mean plus twice its mean deviation, both following the last few
 * runs: with equal runs it is their run time, with differing ones it is on the safe side. At most
 * RUN_TIMES_MAX templates are known; a new one replaces the one that ended least recently. The mean
 * over all pods decays like demand.h: the last few thousand count. Integers only. The state is part
 * of the dump, because it affects placement (I4).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    RUN_TIMES_MAX = 4096,
    RUN_TIMES_ONE = 1 << 10, /* the weight of a lone pod; of a member: divided by the gang's size */
    RUN_TIMES_FADE_EVERY = 256,
    RUN_TIMES_FADE_PART = 16,
    RUN_TIMES_FOLLOW_PART = 4 /* a new run moves the mean by 1/4 of the difference */
};

/* Ten years: longer ones count as that, so no sum overflows. */
#define RUN_TIMES_LONGEST_MS (INT64_C(3650) * 86400 * 1000)

struct run_time {
    uint64_t template; /* never 0 */
    int64_t mean_ms, deviation_ms;
    uint64_t last; /* ended as the so-manieth pod */
};

struct run_times {
    uint64_t ended;           /* pods */
    int64_t weight, total_ms; /* decayed sums over them: weights, weight times run time */
    struct run_time *items;   /* by template; NULL until needed */
    size_t len;
};

/* template 0: counts for the mean only. */
void run_times_see(struct run_times *r, uint64_t template, int64_t weight, int64_t run_ms);
/* The expected run time; 0: unknown. */
int64_t run_times_expect(const struct run_times *r, uint64_t template);
/* For loading. -1: the table is full, or the template is there already. */
int run_times_restore(struct run_times *r, const struct run_time *one);
void run_times_deinit(struct run_times *r);

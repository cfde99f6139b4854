// SPDX-License-Identifier: Apache-2.0
/*
 * gather - when there is much to do, do it in heaps.
 *
 * A thread that is woken for every message spends more on waking than on most messages. One that finds itself woken often naps a little before it looks, and
 * finds more at once; one that is woken seldom is as prompt as ever. Pure: the caller knows the time and does the napping.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { GATHER_WINDOW_US = 10 * 1000, GATHER_ROUNDS = 8, GATHER_NAP_US = 500 };

struct gather {        /* zero-initialised */
    int64_t window_us; /* when it began */
    unsigned rounds;   /* since then */
    bool busy;         /* the window before had many */
};

/* A round begins now: for how long to nap first, 0 if not at all. */
int64_t gather_round(struct gather *g, int64_t now_us);

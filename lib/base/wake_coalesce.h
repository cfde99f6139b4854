// SPDX-License-Identifier: Apache-2.0
/* wake_coalesce - batches work under load. Waking costs more than most messages, so a thread that
 * wakes often sleeps briefly before it reads and finds several; one that wakes seldom is not
 * delayed. Pure: the caller passes the time and sleeps. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { WAKE_COALESCE_WINDOW_US = 10 * 1000, WAKE_COALESCE_ROUNDS = 8, WAKE_COALESCE_NAP_US = 500 };

struct wake_coalesce { /* zero-initialised */
    int64_t window_us; /* start of the window */
    unsigned rounds;   /* since window_us */
    bool busy;         /* the previous window had many rounds */
};

/* Call at the start of a round. Returns how long to sleep first, or 0. */
int64_t wake_coalesce_round(struct wake_coalesce *g, int64_t now_us);

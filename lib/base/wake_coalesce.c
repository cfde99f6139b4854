// SPDX-License-Identifier: Apache-2.0
#include "lib/base/wake_coalesce.h"

int64_t wake_coalesce_round(struct wake_coalesce *g, int64_t now_us)
{
    int64_t since_us = now_us - g->window_us;
    if (since_us < 0 || since_us >= WAKE_COALESCE_WINDOW_US) {
        /* A long pause is not busy, however many rounds preceded it. */
        g->busy = g->rounds >= WAKE_COALESCE_ROUNDS && since_us >= 0 &&
                  since_us < 2 * WAKE_COALESCE_WINDOW_US;
        g->window_us = now_us;
        g->rounds = 0;
    }
    g->rounds++;
    return g->busy ? WAKE_COALESCE_NAP_US : 0;
}

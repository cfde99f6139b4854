// SPDX-License-Identifier: Apache-2.0
#include "lib/base/gather.h"

int64_t gather_round(struct gather *g, int64_t now_us)
{
    int64_t since_us = now_us - g->window_us;
    if (since_us < 0 || since_us >= GATHER_WINDOW_US) {
        /* A long wait between was no busy time, however many rounds came before it. */
        g->busy = g->rounds >= GATHER_ROUNDS && since_us >= 0 && since_us < 2 * GATHER_WINDOW_US;
        g->window_us = now_us;
        g->rounds = 0;
    }
    g->rounds++;
    return g->busy ? GATHER_NAP_US : 0;
}

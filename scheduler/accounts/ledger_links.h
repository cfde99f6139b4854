// SPDX-License-Identifier: Apache-2.0
/*
 * ledger_links - what whole cards of one node cost beside those of another, by their links. Pure.
 */
#pragma once

#include <stdint.h>

#include "lib/model/gpu.h"

enum {
    LEDGER_LINKS_EXACT = 8,     /* free cards up to which the best set is looked for */
    LEDGER_LINKS_WEAKEST = 200, /* points, for cards of whose links nothing is known */
    LEDGER_LINKS_MEAN = 8,
    LEDGER_LINKS_LEFT = 8 /* for so many cards or more that stay over */
};

/* Of `want` of the free cards (bits by position), in the unit of prices.h. 0 where there are fewer: that is not asked here. The greater, the worse. */
int64_t ledger_links_cost(const struct gpu_inventory *inv, uint64_t free, int64_t want);

// SPDX-License-Identifier: Apache-2.0
/* gpu_accounts_links - the cost of a node's whole cards by their links, to compare nodes. Pure. */
#pragma once

#include <stdint.h>

#include "lib/model/gpu.h"

enum {
    GPU_ACCOUNTS_LINKS_EXACT = 8,     /* free cards up to which the search is exact */
    GPU_ACCOUNTS_LINKS_WEAKEST = 200, /* points for cards with unknown links */
    GPU_ACCOUNTS_LINKS_MEAN = 8,
    GPU_ACCOUNTS_LINKS_LEFT = 8 /* points for so many cards or more left over */
};

/* Cost of `want` of the free cards (bits by position), in the unit of prices.h; lower is better. 0
 * if fewer are free, which is not decided here. */
int64_t gpu_accounts_links_cost(const struct gpu_inventory *inv, uint64_t free, int64_t want);

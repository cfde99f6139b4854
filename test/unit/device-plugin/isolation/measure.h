// SPDX-License-Identifier: Apache-2.0
/* measure - what shares_measure writes into a region's file, written into the region itself. */
#pragma once

#include "device-plugin/isolation/budget.h"

/* Total device time of the container as of now (CLOCK_MONOTONIC). */
static inline void measure_card(struct region_card *c, uint64_t used_ns, uint64_t now_ns)
{
    atomic_store(&c->measured_ns, used_ns);
    atomic_store(&c->measured_at_ns, now_ns);
    atomic_store(&c->measured_check, budget_check(used_ns, now_ns));
}

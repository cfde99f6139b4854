// SPDX-License-Identifier: Apache-2.0
/* budget - a container's share of a card's time, as tokens in its region. Pure: the caller passes
 * the clock. */
#pragma once

#include "device-plugin/isolation/region.h"

enum {
    /* time a container may save up, so that waiting behind others' kernels costs it nothing */
    BUDGET_BURST_MS = 200,
    BUDGET_STALE_MS = 2000, /* an older measurement is ignored */
    BUDGET_WAIT_MIN_US = 50,
    BUDGET_WAIT_MAX_MS = 20,
    BUDGET_COST_US = 100, /* the estimate for a launch before the first measurement */
};

/* 0: the launches may go, and are charged. Otherwise: retry after this many nanoseconds. */
uint64_t budget_charge(struct region_card *c, uint32_t percent, uint64_t launches, uint64_t now_ns);
void budget_note_throttled(struct region_card *c, uint64_t ns);
/* The value of measured_check beside measured_ns and measured_at_ns, which the plugin writes
 * (shares_measure): it does not match while they are being written. */
uint64_t budget_check(uint64_t used_ns, uint64_t now_ns);

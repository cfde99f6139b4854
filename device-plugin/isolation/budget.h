// SPDX-License-Identifier: Apache-2.0
/*
 * budget - a container's part of a card's time, as tokens of device time in its region. Pure: the caller brings the clock.
 */
#pragma once

#include "device-plugin/isolation/region.h"

enum {
    BUDGET_BURST_MS =
        200, /* of its time a container may save up: while it waits behind kernels of others it loses nothing */
    BUDGET_STALE_MS = 2000, /* a measurement older than this is none */
    BUDGET_WAIT_MIN_US = 50,
    BUDGET_WAIT_MAX_MS = 20,
    BUDGET_COST_US = 100, /* what a launch is taken to need before anything is known */
};

/* 0: the launches may go, and are charged. Otherwise: not yet, ask again after so many nanoseconds. */
uint64_t budget_charge(struct region_card *c, uint32_t percent, uint64_t launches, uint64_t now_ns);
void budget_note_throttled(struct region_card *c, uint64_t ns);
/* The node's side: device time that the container has used, in all, as of now (CLOCK_MONOTONIC). The plugin writes the same three words into the
 * file (shares_measure). */
void budget_measure(struct region_card *c, uint64_t used_ns, uint64_t now_ns);
/* What measured_check holds for these two; whoever reads a measurement while it is written sees another. */
uint64_t budget_check(uint64_t used_ns, uint64_t now_ns);

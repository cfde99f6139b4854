// SPDX-License-Identifier: Apache-2.0
/*
 * shares_region - one container's region as the plugin sees it. The container can write, lock and
 * truncate the file as it likes, so nothing here costs more than our own numbers allow: a copy of
 * bounded size, at most one lock query for each slot, and SHARES_REGION_BUDGET_US of this thread's
 * time for all of them, because a query walks the whole list of the container's locks. Still not
 * for the main loop: a single call of the kernel cannot be bounded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/isolation/region.h"

enum { SHARES_REGION_BUDGET_US = 20 * 1000 };

struct shares_region {
    struct region region; /* a copy */
    int64_t processes;    /* living ones with the library */
    bool alive[REGION_SLOTS_MAX];
    bool changed; /* see shares_scan */
};

/* Reads the file, of a container with this many cards, and undoes what made it larger than
 * region_bytes(REGION_SLOTS, cards) or executable; shares_region_free afterwards. NULL, or why it
 * cannot be read: then its container's processes do not count as confined. */
const char *shares_region_read(struct shares_region *out, const char *path, uint32_t cards,
                               int64_t budget_us);
void shares_region_free(struct shares_region *r);
/* What living processes hold of the card; the region's own sum may include dead ones. */
int64_t shares_region_used_mib(const struct shares_region *r, uint32_t card);
/* Adds device time used by the container's processes, as of now (CLOCK_MONOTONIC); the library
 * corrects its budget by it. false: no region that we understand. */
bool shares_region_measure(const char *path, uint32_t card, uint64_t ns, uint64_t now_ns);

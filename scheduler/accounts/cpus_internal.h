// SPDX-License-Identifier: Apache-2.0
/* cpus_internal - shared by the files of cpus only. */
#pragma once

#include "scheduler/accounts/cpus.h"

/* Open CPUs of some L3 groups. */
struct supply {
    uint32_t whole[TOPOLOGY_THREADS_MAX + 1]; /* cores with every usable thread open, by size */
    uint32_t part[TOPOLOGY_THREADS_MAX];      /* other cores, by their number of open threads */
    uint32_t cpus;
};

/* How n CPUs are taken from a supply: all threads of so many cores of each kind, and some threads
 * of one more. */
struct fill {
    uint32_t whole[TOPOLOGY_THREADS_MAX + 1];
    uint32_t part[TOPOLOGY_THREADS_MAX];
    uint32_t some;       /* threads of the last core */
    uint32_t some_whole; /* that core's size if it was whole, else 0 */
    uint32_t some_part;  /* that core's open threads if it was not */
    uint32_t partial, broken;
};

/* threads: of the largest core. */
void cpus_supply_add(struct supply *to, const struct supply *s, uint32_t threads);
/* n is at most the supply. */
void cpus_fill_from(const struct supply *s, uint32_t n, uint32_t threads, struct fill *f);
/* Compares the best n open CPUs in this part with the best so far, and keeps the better. Returns
 * the work done, in units of about 10 ns. */
uint32_t cpus_consider(const struct cpus_layout *l, const struct cpuset *open,
                       const struct cpuset *part, uint32_t n, bool *found, struct cpus_cost *cost,
                       struct cpuset *out);

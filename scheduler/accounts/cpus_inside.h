// SPDX-License-Identifier: Apache-2.0
/*
 * cpus_inside - what the files of cpus share. Nobody else includes it.
 */
#pragma once

#include "scheduler/accounts/cpus.h"

/* What is open in some L3 groups. */
struct supply {
    uint32_t
        whole[TOPOLOGY_THREADS_MAX + 1]; /* cores of which every usable thread is open, by size */
    uint32_t part[TOPOLOGY_THREADS_MAX]; /* other cores, by how many of their threads are open */
    uint32_t cpus;
};

/* How n CPUs are taken from a supply: all of so many cores of each sort, and some threads of one more. */
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
/* n is at most what there is. */
void cpus_fill_from(const struct supply *s, uint32_t n, uint32_t threads, struct fill *f);
/* The best n of what is open in this part, compared with the best so far, which it replaces if it is better. Returns how much work it was, about 10 ns each. */
uint32_t cpus_consider(const struct cpus_layout *l, const struct cpuset *open,
                       const struct cpuset *part, uint32_t n, bool *found, struct cpus_cost *cost,
                       struct cpuset *out);

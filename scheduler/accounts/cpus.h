// SPDX-License-Identifier: Apache-2.0
/*
 * cpus - which CPUs of one node a container is pinned to. Pure.
 *
 * A layout is made once from the node's published topology (cosched.io/cpu-topology). A choice then
 * takes the best CPUs by this order, each line breaking ties of the lines above:
 *
 *   1  the fewest NUMA nodes
 *   2  the fewest cores of which the container has some threads and not all
 *   3  the fewest cores broken that were whole before (an odd CPU goes beside another odd one)
 *   4  the fewest L3 groups
 *   5  the fewest CPUs left over in its NUMA nodes, then in its L3 groups (so that large free areas
 *      remain)
 *   6  the lowest numbers
 *
 * This is exact for cores of one or two threads; with four or eight, cores are filled from the
 * largest down, which may leave one partial core too many. Only usable threads are counted, so
 * offline and reserved CPUs do not exist here: a core with one usable thread is a whole core of
 * one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/model/cpuset.h"
#include "lib/model/topology.h"

struct cpus_layout {
    struct cpuset usable; /* neither offline nor reserved */
    struct cpuset *numa;  /* usable CPUs of each */
    size_t numa_len;
    uint16_t *numa_id; /* each node's published number; nodes without usable CPUs are omitted */
    struct cpuset *l3;
    size_t l3_len;
    struct cpuset *cores;
    size_t cores_len;
    uint16_t *numa_of; /* by CPU number, for usable ones */
    uint16_t *l3_of;
    uint16_t *core_of;
    uint8_t *core_size; /* usable threads of each core */
    uint16_t *core_l3, *core_numa;
    uint32_t threads; /* of the largest */
};

/* Everything lives in a. ERROR_INVALID if a usable CPU is in no NUMA node or in two; likewise for
 * L3 groups and cores. Without any L3 group each NUMA node is one. */
int cpus_layout_init(struct cpus_layout *l, const struct cpu_topology *t, struct arena *a,
                     struct error *err);

/* The cost of a choice: lower is better, in the order of the fields. */
struct cpus_cost {
    uint32_t numa_nodes;
    uint32_t partial_cores;
    uint32_t broken_cores;
    uint32_t l3_groups;
    uint32_t numa_left; /* free CPUs left in its NUMA nodes */
    uint32_t l3_left;   /* free CPUs left in its L3 groups */
};
int cpus_cost_compare(const struct cpus_cost *x, const struct cpus_cost *y);
/* The cost of `chosen`, a subset of `open`. */
struct cpus_cost cpus_cost_of(const struct cpus_layout *l, const struct cpuset *open,
                              const struct cpuset *chosen);

/* n of the CPUs in `open` (usable and available). false: too few; *out is then undefined. */
bool cpus_choose(const struct cpus_layout *l, const struct cpuset *open, uint32_t n,
                 struct cpuset *out);
/* As above, all within one NUMA node: numa, or with -1 the best. */
bool cpus_choose_in_numa(const struct cpus_layout *l, const struct cpuset *open, uint32_t n,
                         int numa, struct cpuset *out);

// SPDX-License-Identifier: Apache-2.0
/*
 * topology - how far things are from each other: card to card by link, card to CPU by NUMA node;
 * and the node's CPU layout (annotation cosched.io/cpu-topology, version 1).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/model/cpuset.h"
#include "lib/model/gpu.h"

/* Closeness of two cards by the link's name as nvidia-smi prints it: NV<n> 100 * n above all
 * others, then PIX, PXB, PHB, NODE, SYS; 0 for unknown. The greater the better. "X" (itself) is the
 * maximum. */
int32_t topology_link_score(const char *link);
/* Sum over all pairs of the cards chosen (indexes into inv->cards). */
int64_t topology_group_score(const struct gpu_inventory *inv, const size_t *chosen, size_t n);

enum { TOPOLOGY_GROUPS_MAX = 512, TOPOLOGY_BYTES_MAX = 16 * 1024 };

struct cpu_topology {
    struct cpuset *sockets;
    size_t sockets_len;
    struct cpuset *numa;
    size_t numa_len;
    struct cpuset *l3;
    size_t l3_len;
    /* "smt2:128": cores of the machine; thread t of core c is CPU c + t * cores in Linux's usual
     * numbering. threads 1, 2, 4 or 8. */
    uint32_t threads;
    uint32_t cores;
    struct cpuset offline;
    struct cpuset reserved;
};

int cpu_topology_decode(const char *text, size_t n, struct arena *a, struct cpu_topology *out,
                        struct error *err);
void cpu_topology_encode(const struct cpu_topology *t, struct strbuf *out);

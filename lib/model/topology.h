// SPDX-License-Identifier: Apache-2.0
/* topology - distances: card to card by link, card to CPU by NUMA node; and the node's CPU layout
 * (annotation cosched.io/cpu-topology, version 1). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/model/cpuset.h"
#include "lib/model/gpu.h"

/* Closeness of two cards by nvidia-smi's link name, greater is better: NV<n> 100 * n above all
 * others, then PIX, PXB, PHB, NODE, SYS; 0 for unknown. "X" (itself) is the maximum. */
int32_t topology_link_score(const char *link);

enum {
    TOPOLOGY_GROUPS_MAX = 512,
    TOPOLOGY_BYTES_MAX = 16 * 1024,
    TOPOLOGY_THREADS_MAX = 8,
    TOPOLOGY_NO_CORE = UINT16_MAX,
    TOPOLOGY_CLOSED_MAX = 200, /* bytes */
};

/* How threads are numbered, which decides how "cores" is written. */
enum topology_numbering {
    TOPOLOGY_SPREAD, /* "smt2:128": thread t of core c is CPU c + t * cores, as on bare metal */
    TOPOLOGY_NEAR,   /* "near2:128": it is CPU c * threads + t, as in most virtual machines */
    TOPOLOGY_LISTED, /* "0-1;2;3,7": core by core, for all others */
};

struct cpu_topology {
    struct cpuset *sockets;
    size_t sockets_len;
    struct cpuset *numa;
    size_t numa_len;
    struct cpuset *l3;
    size_t l3_len;
    /* cpu_topology_cores lists each core's CPUs. */
    enum topology_numbering numbering;
    uint32_t threads;  /* 1, 2, 4 or 8; listed: of the largest core, 1 to TOPOLOGY_THREADS_MAX */
    uint32_t cores;    /* of the machine; listed: those in the list */
    uint16_t *core_of; /* listed: CPUSET_MAX numbers below cores, or TOPOLOGY_NO_CORE; else NULL */
    struct cpuset offline;
    struct cpuset reserved;
    const char *closed; /* why no container is pinned there; NULL: containers are pinned */
};

int cpu_topology_decode(const char *text, size_t n, struct arena *a, struct cpu_topology *out,
                        struct error *err);
void cpu_topology_encode(const struct cpu_topology *t, struct strbuf *out);
/* The core of a CPU, below t->cores; TOPOLOGY_NO_CORE: in none (offline CPUs may be in one). */
uint32_t cpu_topology_core_of(const struct cpu_topology *t, unsigned cpu);
/* The threads of each of the t->cores cores, including offline ones. */
struct cpuset *cpu_topology_cores(const struct cpu_topology *t, struct arena *a);
/* Sets numbering, threads, cores and core_of from core_of, which has CPUSET_MAX entries: numbers
 * below CPUSET_MAX, equal for threads of one core, TOPOLOGY_NO_CORE for offline and absent CPUs.
 * t->offline must be set. Chooses the shortest form. false: no CPU, or a core with too many
 * threads. */
bool cpu_topology_number(struct cpu_topology *t, const uint16_t *core_of, struct arena *a);

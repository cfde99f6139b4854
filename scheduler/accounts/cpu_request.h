// SPDX-License-Identifier: Apache-2.0
/*
 * cpu_request - what a pod with the annotation cpuset-scheduler asks of a node's CPUs, read once from the pod. Pure.
 *
 * Each container is bound to limits.cpu CPUs. Containers and sidecars run side by side and have CPUs of their own; an ordinary init container runs before the containers and uses CPUs
 * that are theirs later.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/pod.h"

/* numaTopologyPolicy, in force with cpuset-scheduler: required. */
enum cpu_request_numa {
    CPU_REQUEST_BEST_EFFORT, /* the fewest NUMA nodes that there are */
    CPU_REQUEST_RESTRICTED,  /* no more NUMA nodes than on an empty node */
    CPU_REQUEST_SINGLE       /* one NUMA node */
};

/* singleNUMANodeExclusive: not beside pods that are on more (or fewer) NUMA nodes; in force likewise. */
enum cpu_request_apart {
    CPU_REQUEST_BESIDE, /* anywhere */
    CPU_REQUEST_APART_PREFERRED,
    CPU_REQUEST_APART
};

struct cpu_request {
    const char *illegal; /* a sentence: why no node can ever serve it; NULL when legal */
    uint32_t cpus;       /* at the same time, at most; saturates far beyond any node */
    uint32_t *each;      /* by container (as in cpuclaim_part), 0: not bound */
    size_t each_len;
    enum cpu_request_numa numa;
    enum cpu_request_apart apart;
    bool insists; /* cpuset-scheduler: required */
    bool burst;   /* cpu-policy: static-burst: whole L3 groups, what is beyond limits.cpu on loan */
    bool shared;  /* cosched.io/cpuset-shared: CPUs that others have, where none is free */
};

/* In a; NULL: the pod does not ask for CPUs, and is not bound to any. */
const struct cpu_request *cpu_request_of(const struct pod *p, struct arena *a);
/* Ordinary init containers: their CPUs are among those of the others. */
bool cpu_request_is_passing(const struct pod *p, size_t container);

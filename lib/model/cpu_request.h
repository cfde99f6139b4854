// SPDX-License-Identifier: Apache-2.0
/*
 * cpu_request - what a pod with the annotation cpuset-scheduler asks of a node's CPUs: that
 * annotation, those that go with it, and the limits of its containers. The one reading for the
 * scheduler, the device plugin and the webhook. Pure.
 *
 * Each container is bound to limits.cpu CPUs. Containers and sidecars run side by side and have
 * CPUs of their own; an ordinary init container runs before the containers and uses CPUs that are
 * theirs later. Without cpuset-scheduler the other annotations mean nothing and are not read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/pod.h"
#include "lib/model/request.h"

/* numaTopologyPolicy, in force with cpuset-scheduler: required. */
enum cpu_request_numa {
    CPU_REQUEST_BEST_EFFORT, /* the fewest NUMA nodes that there are */
    CPU_REQUEST_RESTRICTED,  /* no more NUMA nodes than on an empty node */
    CPU_REQUEST_SINGLE       /* one NUMA node */
};

/* singleNUMANodeExclusive: not beside pods that are on more (or fewer) NUMA nodes; in force
 * likewise. */
enum cpu_request_apart {
    CPU_REQUEST_BESIDE, /* anywhere */
    CPU_REQUEST_APART_PREFERRED,
    CPU_REQUEST_APART
};

/* Bytes of annotation numa-topology-spec; more is an error, unparsed. */
enum { CPU_REQUEST_NUMA_SPEC_MAX = 4096 };

struct cpu_request {
    const char *illegal; /* the first error: why no node can ever serve it; NULL when legal */
    uint32_t cpus;       /* at the same time, at most; saturates far beyond any node */
    uint32_t *each;      /* by container (as in cpu_grant_part), 0: not bound */
    size_t each_len;
    enum cpu_request_numa numa;
    enum cpu_request_apart apart;
    bool insists; /* cpuset-scheduler: required */
    bool burst;   /* cpu-policy: static-burst: whole L3 groups, what is beyond limits.cpu on loan */
    bool shared;  /* cosched.io/cpuset-shared: CPUs that others have, where none is free */
};

/* In a; NULL: the pod does not ask for CPUs, and is not bound to any. errors may be NULL; else it
 * gets every sentence. */
const struct cpu_request *cpu_request_read(const struct pod *p, struct arena *a,
                                           struct request_errors *errors);
/* What the node agent reads itself; all else reaches it as the grant.
 * cpuset-scheduler says true or required. */
bool cpu_request_pins(const struct labels *annotations);
/* cosched.io/cpuset-shared says true. */
bool cpu_request_shares(const struct labels *annotations);

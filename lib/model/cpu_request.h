// SPDX-License-Identifier: Apache-2.0
/*
 * cpu_request - what a pod with the annotation cpuset-scheduler requests of a node's CPUs: that
 * annotation, the related ones, and the limits of its containers. The scheduler, the device plugin
 * and the webhook all use this parser. Pure.
 *
 * Each container is pinned to limits.cpu CPUs. Containers and sidecars run concurrently and have
 * their own CPUs; an ordinary init container runs before the containers and uses CPUs that are
 * theirs later. Without cpuset-scheduler the other annotations are ignored.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/pod.h"
#include "lib/model/request.h"

/* numaTopologyPolicy, effective with cpuset-scheduler: required. */
enum cpu_request_numa {
    CPU_REQUEST_BEST_EFFORT, /* the fewest NUMA nodes possible */
    CPU_REQUEST_RESTRICTED,  /* no more NUMA nodes than on an empty node */
    CPU_REQUEST_SINGLE       /* one NUMA node */
};

/* singleNUMANodeExclusive: not beside pods that are on more (or fewer) NUMA nodes; effective
 * likewise. */
enum cpu_request_apart {
    CPU_REQUEST_BESIDE, /* anywhere */
    CPU_REQUEST_APART_PREFERRED,
    CPU_REQUEST_APART
};

/* Bytes of annotation numa-topology-spec; more is an error, unparsed. */
enum { CPU_REQUEST_NUMA_SPEC_MAX = 4096 };

struct cpu_request {
    const char *illegal; /* the first error: why no node can serve it; NULL: valid */
    uint32_t cpus;       /* peak of concurrent CPUs; saturates far beyond any node */
    uint32_t *each;      /* by container (as in cpu_grant_part), 0: not pinned */
    size_t each_len;
    enum cpu_request_numa numa;
    enum cpu_request_apart apart;
    bool insists; /* cpuset-scheduler: required */
    bool burst; /* cpu-policy: static-burst: whole L3 groups; CPUs beyond limits.cpu are borrowed */
    bool shared; /* cosched.io/cpuset-shared: uses other pods' CPUs if none is free */
};

/* In a; NULL: the pod requests no CPUs and is pinned to none. errors may be NULL; else it gets
 * every message. */
const struct cpu_request *cpu_request_read(const struct pod *p, struct arena *a,
                                           struct request_errors *errors);
/* Whether cpuset-scheduler is true or required. The node agent reads only this and cpuset-shared
 * itself; the rest reaches it as the grant. */
bool cpu_request_pins(const struct labels *annotations);
/* Whether cosched.io/cpuset-shared is true. */
bool cpu_request_shares(const struct labels *annotations);

// SPDX-License-Identifier: Apache-2.0
/* pinner_plan - decides on a pod's annotation cpuset, and which CPUs a container gets. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/str.h"
#include "lib/model/cpu_grant.h"
#include "lib/model/cpuset.h"
#include "lib/model/topology.h"

enum pinner_verdict {
    PINNER_NOTHING, /* nothing asked, nothing held */
    PINNER_KEEP,    /* it holds what it asks for */
    PINNER_TAKE,    /* it now holds what it asks for: at first, or fewer than before */
    PINNER_RELEASE, /* it no longer asks */
    PINNER_REFUSE,  /* refused, with a reason; it keeps what it holds */
};

struct pinner_facts {
    const struct cpu_grant *asked; /* by the annotation */
    const char *unreadable;        /* why the annotation could not be decoded, or NULL */
    const struct cpu_grant *held;  /* what was confirmed; empty: nothing ever was */
    bool released;                 /* given up since */
    bool is_static;                /* the kubelet's CPU manager pins itself */
    const struct cpu_topology *machine;
    const struct cpuset *taken; /* CPUs of other pods that this one may not share */
};

/* why is set with PINNER_REFUSE. */
enum pinner_verdict pinner_plan(const struct pinner_facts *f, struct strbuf *why);

/* The container's online CPUs; those of all containers for PINNER_ANY (unknown). false: none,
 * because the grant lacks the container or all its CPUs are offline. */
#define PINNER_ANY UINT32_MAX
bool pinner_plan_cpus(const struct cpu_grant *held, uint32_t container,
                      const struct cpu_topology *machine, struct cpuset *out);
/* The pod's only NUMA node; -1: more than one. */
int pinner_plan_numa(const struct cpu_grant *held);
void pinner_plan_all(const struct cpu_grant *c, struct cpuset *out);

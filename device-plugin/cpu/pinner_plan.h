// SPDX-License-Identifier: Apache-2.0
/*
 * pinner_plan - whether what a pod's annotation cpuset says is done, and on which CPUs a container
 * belongs. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/str.h"
#include "lib/model/cpu_grant.h"
#include "lib/model/cpuset.h"
#include "lib/model/topology.h"

enum pinner_verdict {
    PINNER_NOTHING, /* it asks for nothing and holds nothing */
    PINNER_KEEP,    /* what it holds is what it asks for */
    PINNER_TAKE,    /* it holds what it asks for from now on: first, or fewer than before */
    PINNER_RELEASE, /* it asks for nothing any more */
    PINNER_REFUSE,  /* no: with a reason. What it holds, it keeps */
};

struct pinner_facts {
    const struct cpu_grant *asked; /* the annotation's */
    const char *unreadable;        /* why the annotation could not be decoded, or NULL */
    const struct cpu_grant *held;  /* what was confirmed; empty: nothing was, ever */
    bool released;                 /* and given up since */
    bool is_static;                /* the kubelet's CPU manager has a policy of its own */
    const struct cpu_topology *machine;
    const struct cpuset *taken; /* CPUs of other pods that this one may not share */
};

/* why is set with PINNER_REFUSE: a sentence. */
enum pinner_verdict pinner_plan(const struct pinner_facts *f, struct strbuf *why);

/* The CPUs that are online of those that container has; of all containers together if it is not
 * known which one it is (PINNER_ANY). false: none, the container is nowhere in the grant or all of
 * its CPUs are offline. */
#define PINNER_ANY UINT32_MAX
bool pinner_plan_cpus(const struct cpu_grant *held, uint32_t container,
                      const struct cpu_topology *machine, struct cpuset *out);
/* The one NUMA node that the whole pod is on; -1: more than one. */
int pinner_plan_numa(const struct cpu_grant *held);
/* All CPUs of a grant. */
void pinner_plan_all(const struct cpu_grant *c, struct cpuset *out);

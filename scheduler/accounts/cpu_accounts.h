// SPDX-License-Identifier: Apache-2.0
/*
 * cpu_accounts - which pods are pinned to which CPUs of one node, and which CPUs the next pod gets.
 * Pure.
 *
 * It covers only pods that request CPUs (cpu_request.h) and got some (annotation cpuset); all
 * others float. A pod owns the CPUs it was granted, except with static-burst: then it owns
 * limits.cpu of each container's CPUs and borrows the rest. A lent CPU is not free; if a pod does
 * not fit without it, it is reclaimed (cpu_lending.h), and the pod waits until the node agent
 * confirms that. Pods share CPUs only if each of them says so (cosched.io/cpuset-shared): what one
 * pod writes never opens the CPUs of another.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/cpu_grant.h"
#include "lib/model/pod.h"
#include "lib/model/cpu_request.h"
#include "scheduler/accounts/cpu_shapes.h"

/* Assignment would share the counts: copy with cpu_accounts_try_on. */
struct cpu_accounts {
    const struct cpu_shape *shape; /* NULL: not published by the node */
    uint16_t *owners;              /* number of pods that own each CPU; shape->cpus entries */
    uint16_t *borrowers;           /* number of pods that borrow it */
    uint16_t *keepers;             /* number of pods among both that do not share it */
    uint16_t *single, *several;    /* by NUMA node: pods on this one alone, or on others too */
    struct cpuset owned, lent;     /* by one or more pods; lent excludes owned */
    struct cpuset kept;            /* from pods that share, by one or more pods that do not */
};

void cpu_accounts_deinit(struct cpu_accounts *b);
/* Drops all pods: the caller adds them again and owns the shape. */
void cpu_accounts_set_shape(struct cpu_accounts *b, const struct cpu_shape *shape);
/* A copy in a for trial accounting. Nothing to deinit. */
void cpu_accounts_try_on(const struct cpu_accounts *b, struct arena *a, struct cpu_accounts *out);
/* Adds or (sign -1) removes a pod's CPUs. r NULL: nothing. */
void cpu_accounts_account(struct cpu_accounts *b, const struct cpu_grant *c,
                          const struct cpu_request *r, int sign);

enum cpu_accounts_no {
    CPU_ACCOUNTS_FITS,
    CPU_ACCOUNTS_NO_TOPOLOGY,   /* shape NULL, or its problem */
    CPU_ACCOUNTS_CLOSED,        /* as the shape says */
    CPU_ACCOUNTS_TOO_FEW,       /* want, free: CPUs of the node */
    CPU_ACCOUNTS_NO_NUMA,       /* want: CPUs on one NUMA node; free: the most that one has */
    CPU_ACCOUNTS_TOO_MANY_NUMA, /* want: NUMA nodes allowed; free: needed */
    CPU_ACCOUNTS_LENT           /* once lent CPUs are reclaimed; want, free: CPUs */
};
struct cpu_accounts_why {
    enum cpu_accounts_no no;
    int64_t want, free;
};
/* Whether the pod fits, by counting only, so it is cheap on every node. If so, cpu_accounts_choose
 * finds CPUs on the same state (I3). why may be NULL. */
bool cpu_accounts_has_capacity(const struct cpu_accounts *b, const struct cpu_request *r,
                               struct cpu_accounts_why *why);
/* NUMA nodes of the pod's cards, numbered as in the topology. */
struct cpu_accounts_near {
    const int32_t *numa;
    size_t len;
};
/* The own CPUs of each container, in a. near may be NULL. false: the pod does not fit. */
bool cpu_accounts_choose(const struct cpu_accounts *b, const struct pod *p,
                         const struct cpu_request *r, const struct cpu_accounts_near *near,
                         struct arena *a, struct cpu_grant *out);
/* static-burst: adds the other free CPUs in the L3 groups of the chosen CPUs as borrowed. The
 * accounts may already include the pod. */
void cpu_accounts_lend(const struct cpu_accounts *b, const struct pod *p,
                       const struct cpu_request *r, struct arena *a, struct cpu_grant *c);
/* Accounts a pod that is going to be placed here: with the own CPUs that it would get now or,
 * failing that, after all lent CPUs are reclaimed; nothing if it does not fit then either. */
void cpu_accounts_expect(struct cpu_accounts *b, const struct pod *p, const struct cpu_request *r,
                         struct arena *a, struct cpu_grant *out);
/* Whether enough CPUs are free on that NUMA node of the layout. The node must be open. */
bool cpu_accounts_fits_on(const struct cpu_accounts *b, const struct cpu_request *r, size_t numa);
/* 0..100: how well the pod would fit here: on one NUMA node, one L3 group, with little left in
 * them. */
int64_t cpu_accounts_score(const struct cpu_accounts *b, const struct cpu_request *r);
/* The containers' own CPUs, and the borrowed ones. */
void cpu_accounts_split(const struct cpu_shape *shape, const struct cpu_grant *c,
                        const struct cpu_request *r, struct cpuset *owned, struct cpuset *lent);
uint64_t cpu_accounts_digest(const struct cpu_accounts *b);

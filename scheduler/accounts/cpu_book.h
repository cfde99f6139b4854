// SPDX-License-Identifier: Apache-2.0
/*
 * cpu_book - who is bound to which CPUs of one node, and which ones the next pod gets. Pure.
 *
 * Only pods that ask for CPUs (cpu_request.h) and were given some (annotation cpuset) are here: all others run where the kernel likes. What a pod was given is its own, except with
 * static-burst: there limits.cpu of each container's CPUs are its own, and the rest is on loan. A CPU on loan is not free; where a pod finds no place without it, it is called back
 * (loans.h), and the pod waits until the node agent has said that it is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/cpuclaim.h"
#include "lib/model/pod.h"
#include "scheduler/accounts/cpu_request.h"
#include "scheduler/accounts/cpu_shapes.h"

/* A copy by assignment would share the counts: cpu_book_try_on. */
struct cpu_book {
    const struct cpu_shape *shape; /* NULL: the node has published none */
    uint16_t *owners;              /* pods that each CPU belongs to; shape->cpus of them */
    uint16_t *borrowers;           /* pods that have it on loan */
    uint16_t *single,
        *several;              /* by NUMA node: pods that are on this one alone, or on others too */
    struct cpuset owned, lent; /* by one or more; lent: and owned by nobody */
};

void cpu_book_deinit(struct cpu_book *b);
/* What is held is forgotten: the caller adds its pods again. The shape is the caller's. */
void cpu_book_set_shape(struct cpu_book *b, const struct cpu_shape *shape);
/* One to account on for a trial, in a. Nothing to deinit. */
void cpu_book_try_on(const struct cpu_book *b, struct arena *a, struct cpu_book *out);
/* Adds or (sign -1) removes what a pod has. r NULL: nothing. */
void cpu_book_account(struct cpu_book *b, const struct cpuclaim *c, const struct cpu_request *r,
                      int sign);

enum cpu_book_no {
    CPU_BOOK_FITS,
    CPU_BOOK_NO_TOPOLOGY,   /* shape NULL, or its problem */
    CPU_BOOK_CLOSED,        /* as the shape says */
    CPU_BOOK_TOO_FEW,       /* want, free: CPUs of the node */
    CPU_BOOK_NO_NUMA,       /* want: CPUs, of one NUMA node; free: most that one has */
    CPU_BOOK_TOO_MANY_NUMA, /* want: NUMA nodes, free: that it would take */
    CPU_BOOK_ON_LOAN        /* as soon as loans are called back; want, free: CPUs */
};
struct cpu_book_why {
    enum cpu_book_no no;
    int64_t want, free;
};
/* Whether there is room: by counting alone, and so for every node. cpu_book_choose then finds CPUs on the same state (I3). why may be NULL. */
bool cpu_book_has_room(const struct cpu_book *b, const struct cpu_request *r,
                       struct cpu_book_why *why);
/* NUMA nodes as they are numbered in the topology; where the pod's cards are. */
struct cpu_book_near {
    const int32_t *numa;
    size_t len;
};
/* The own CPUs of each container, in a. near may be NULL. false: there is no room. */
bool cpu_book_choose(const struct cpu_book *b, const struct pod *p, const struct cpu_request *r,
                     const struct cpu_book_near *near, struct arena *a, struct cpuclaim *out);
/* Adds to what a pod was chosen with, static-burst: what else is free in its L3 groups, on loan. The book may have the pod already. */
void cpu_book_lend(const struct cpu_book *b, const struct pod *p, const struct cpu_request *r,
                   struct arena *a, struct cpuclaim *c);
/* A pod that is going to be placed here takes what it would get of its own now, or when all loans are called back; nothing where there is no room for it then either. */
void cpu_book_expect(struct cpu_book *b, const struct pod *p, const struct cpu_request *r,
                     struct arena *a, struct cpuclaim *out);
/* Whether so many CPUs are free on that NUMA node of the layout. The node is open. */
bool cpu_book_fits_on(const struct cpu_book *b, const struct cpu_request *r, size_t numa);
/* 0..100: how well the pod would sit here. One NUMA node, one L3 group, little left over in them. */
int64_t cpu_book_score(const struct cpu_book *b, const struct cpu_request *r);
/* The containers' own CPUs, and those on loan. */
void cpu_book_split(const struct cpu_shape *shape, const struct cpuclaim *c,
                    const struct cpu_request *r, struct cpuset *owned, struct cpuset *lent);
uint64_t cpu_book_digest(const struct cpu_book *b);

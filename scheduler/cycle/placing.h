// SPDX-License-Identifier: Apache-2.0
/*
 * placing - where the members of one gang, or of several gangs that go together, are put: one
 * transaction under the undo journal. Pure.
 *
 * First the quorum of every gang, then the members beyond it, one by one: these never take room
 * that a quorum needs. The hardest member comes first, so that the others cannot take the few
 * places where it fits. See placing.c for the order, and for the ways that are tried before a gang
 * is said not to fit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/framework/pipeline.h"
#include "scheduler/cycle/plan.h"

struct placing_gang {
    struct gang *gang;
    int32_t missing; /* members that have to be placed now */
    int32_t placed;  /* in the attempt under way */
    int32_t left;    /* placed, or it is not out of the question */
    int32_t room;    /* placed in the attempt that says why not */
};

struct placing_member {
    struct cluster_pod *pod;
    struct placing_gang *gang;
    uint32_t nodes; /* that it fits on, at the beginning */
    int64_t share;  /* of the cluster: dominant_share */
    bool placed, hopeless;
};

struct placing {
    struct cluster *cluster;
    struct pipeline ask; /* in the way that is tried: side and packing */
    struct plan *plan;
    struct arena *arena;
    struct placing_gang *gangs;
    size_t gangs_len;
    struct placing_member *members; /* those that wait, hardest first */
    size_t members_len;
    /* one member, or all ask for the same, and for nothing but room: no other way finds more */
    bool exact;
    bool promised; /* some have a nomination */
    /* cpu_lending.c's: there are loans that nobody gives back in time */
    bool passed_over;
    enum cluster_pool pool;         /* on which kind of nodes it was placed, or was to be */
    bool patient;                   /* no way stops early: for tests, nothing else comes of it */
    struct pipeline_choice *choice; /* of the last question */
    struct VEC(uint64_t) refused;   /* serials of classes that no more room can come for */
    /* Why not all are placed. stuck NULL: they are. */
    const struct placing_member *stuck;
    const struct reasons *why;
    uint32_t wakes;
};

/* The members of the gangs that wait, in order. The plan is begun, and stays the caller's. */
void placing_init(struct placing *p, const struct pipeline *ask, struct plan *plan, struct arena *a,
                  struct gang *const *gangs, size_t len);
void placing_deinit(struct placing *p);
/* Tries every way (only the first: thorough false). true: every gang has its quorum, and the plan
 * has the steps. false: the plan is empty. Either way stuck, why and wakes say of whom there is no
 * place for, and what could help. */
bool placing_run(struct placing *p, bool thorough);

/* For whoever makes room (gang_preempt.h): one attempt, member by member. */
void placing_reset(struct placing *p);
/* A node as the cluster is now, or NULL; p->choice has the grant. */
struct cluster_node *placing_choose(struct placing *p, struct cluster_pod *pod);
void placing_put(struct placing *p, struct placing_member *m);
bool placing_has_quorum(const struct placing *p);
/* Places the quorums and nobody beyond them, hardest first, as the cluster is now. make (or NULL)
 * is asked where a member finds no room; true: it made some, and p->choice says where. Returns
 * whether every gang has its quorum; the steps are in the plan either way. */
bool placing_fill(struct placing *p, bool (*make)(void *arg, struct cluster_pod *pod), void *arg);

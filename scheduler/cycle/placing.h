// SPDX-License-Identifier: Apache-2.0
/* placing - finds nodes for the members of one gang, or of several gangs placed together, in one
 * transaction under the undo journal. Pure. The quorum of every gang comes first; members beyond it
 * follow one by one and never take capacity that a quorum needs. The hardest member comes first, so
 * that the others cannot take the few nodes where it fits. placing.c has the order and the ways. */
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
    int32_t missing;  /* members that must be placed now */
    int32_t placed;   /* in the current attempt */
    int32_t left;     /* placed or still possible */
    int32_t reported; /* placed in the attempt that is reported */
};

struct placing_member {
    struct cluster_pod *pod;
    struct placing_gang *gang;
    uint32_t nodes; /* that it fits on, at the start */
    int64_t share;  /* of the cluster: dominant_share */
    bool placed, hopeless;
};

struct placing {
    struct cluster *cluster;
    struct pipeline ask; /* of the current way: pool and packing */
    struct plan *plan;
    struct arena *arena;
    struct placing_gang *gangs;
    size_t gangs_len;
    struct placing_member *members; /* those that wait, hardest first */
    size_t members_len;
    /* One member, or all ask for the same amounts and nothing else: no other way finds more. */
    bool exact;
    bool promised; /* some have a nomination */
    /* cpu_lending.c: skipped borrowers that do not answer */
    bool passed_over;
    enum cluster_pool pool;         /* in which it was placed, or was to be */
    bool patient;                   /* no way stops early; only for tests */
    struct pipeline_choice *choice; /* of the last query */
    struct VEC(uint64_t) refused;   /* serials of classes that cannot fit any more */
    /* Why not all are placed. stuck NULL: all are. */
    const struct placing_member *stuck;
    const struct reasons *why;
    uint32_t wakes;
    int64_t cost; /* members asked for, and what preemption adds: in units of queue_turns.h */
};

/* Collects the waiting members, in order. The plan is begun and stays the caller's. */
void placing_init(struct placing *p, const struct pipeline *ask, struct plan *plan, struct arena *a,
                  struct gang *const *gangs, size_t len);
void placing_deinit(struct placing *p);
/* Tries every way (thorough false: only the first). true: every gang has its quorum, and the plan
 * has the steps. false: the plan is empty. Either way stuck, why and wakes describe members that
 * have no node, and what could help. */
bool placing_run(struct placing *p, bool thorough);

/* Every event that can change where a member may go, placed on trial or not. */
uint32_t placing_wakes(const struct placing *p);
/* For gang_preempt.h: a node in the current state, or NULL; p->choice has the grant. */
struct cluster_node *placing_choose(struct placing *p, struct cluster_pod *pod);
/* Places the quorums only, hardest member first, in the current state. Calls make (may be NULL) if
 * a member does not fit; it returns true if it freed capacity, with the node in p->choice. Returns
 * whether every gang has its quorum; the steps are in the plan either way. */
bool placing_fill(struct placing *p, bool (*make)(void *arg, struct cluster_pod *pod), void *arg);

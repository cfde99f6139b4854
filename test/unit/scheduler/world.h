// SPDX-License-Identifier: Apache-2.0
/*
 * world - a random cluster for property tests: nodes come, change and go, pods too, some are bound
 * by others, with grants that are right, wrong or hostile; gangs are tried and what was assumed is
 * confirmed, refused or bound elsewhere. The same seed gives the same story.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/cache/cluster.h"
#include "scheduler/cycle/attempt.h"
#include "scheduler/queue/queue.h"
#include "test/unit/scheduler/fixture.h"
#include "scheduler/framework/pipeline.h"

enum { WORLD_NODES = 7, WORLD_PODS = 40, WORLD_GANGS = 4, WORLD_TEXT = 256 };

struct world_slot {
    struct fixture_pod f;
    char name[16], uid[24], node[16], gang[16], min[16], count[16], nominated[16];
    char text[4][WORLD_TEXT]; /* values of annotations */
    const char *labels[12];
    const char *annotations[48];
    size_t requests; /* of them that ask for CPUs: the first ones, which no Binding changes */
};

/* What changes of a node by itself. */
enum world_aspect {
    WORLD_SIZE,
    WORLD_CARDS,
    WORLD_INVENTORY,
    WORLD_CPUS,
    WORLD_TAINTS,
    WORLD_LABELS,
    WORLD_ASPECTS
};

struct world {
    uint64_t seed;
    uint64_t random;
    uint64_t nodes;                                   /* how many names there are for nodes */
    uint64_t pods;                                    /* and for pods */
    uint64_t aspects[WORLD_NODES + 1][WORLD_ASPECTS]; /* seeds */
    uint64_t affinity;  /* percent of the pods that have terms, or spread */
    bool pinned;        /* most pods ask for CPUs of their own, and many of them borrow */
    bool policied;      /* ResourcePolicies come and go */
    bool plain;         /* most pods ask for amounts alone, so that these are scarce */
    bool ganged;        /* most pods are members of g0 and g1, with wishes of their own */
    bool bursting;      /* many nodes are virtual, many pods may use them */
    bool stored;        /* pods have claims */
    bool budgeted;      /* disruption budgets come and go */
    bool reserving;     /* capacity is reserved for gangs that wait */
    bool bundled;       /* g2 and g3 name each other, most of the time */
    const char *policy; /* match-policy of g1; NULL: none */
    struct cluster cluster;
    struct pipeline pipeline; /* on it */
    struct queue queue;
    struct attempt attempt;
    struct arena arena; /* of one attempt */
    struct arena specs; /* inventories */
    int64_t now_ms;
    uint64_t made; /* counts uids */
    struct world_slot slots[WORLD_PODS];
    bool tells;       /* prints each attempt */
    uint32_t events;  /* that were spread; cleared by who looks at them */
    const char *said; /* what the last step did, for messages */
    uint64_t story;   /* hash of all placements and sentences so far */
    /* Of the last attempt: the digest before it, what the cycle said, and whether those that wait
     * for lent CPUs fit as soon as they are given back. */
    uint64_t before;
    struct cycle_result result;
    bool firm;
    uint64_t placed, refused, confirmed, foreign, preempted, preempted_for_gangs, recalled,
        recalled_for_gangs;
};

/* 0 .. n-1 */
uint64_t world_random(struct world *w, uint64_t n);
void world_init(struct world *w, uint64_t seed);
void world_deinit(struct world *w);
/* One random operation. */
void world_step(struct world *w);

/* Pieces, for tests that tell their own story. */
struct cluster_hooks world_hooks(struct world *w);
void world_put_node(struct world *w, uint64_t i);
/* One aspect of it; nothing if there is no such node. */
void world_change_node(struct world *w, uint64_t i, enum world_aspect aspect);
void world_fill_pod(struct world *w, uint64_t i);
void world_put_pod(struct world *w, uint64_t i);
/* Tries the next gang in the queue as the program does; false when none is due. Aborts on a broken
 * invariant, with a sentence. */
bool world_try(struct world *w);
/* Everything that must hold between two operations. */
void world_check(const struct world *w);

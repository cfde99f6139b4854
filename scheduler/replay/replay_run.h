// SPDX-License-Identifier: Apache-2.0
/* replay_run - runs attempts until nothing more fits: sched_loop.c with a fake clock, no binder. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/vec.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cycle/attempt.h"

/* A pod that left for another, or lent CPUs that it returns (cpu_lending.h). */
struct replay_run_change {
    char *pod, *uid, *node;
    char *for_pod;
    struct cpuset cpus; /* that are returned */
};
struct replay_run_changes VEC(struct replay_run_change);

struct replay_run {
    struct cluster *cluster;
    struct pipeline pipeline;
    struct queue queue;
    struct cluster_hooks hooks; /* for the loader */
    struct arena arena;         /* reset by each attempt */
    struct attempt attempt;     /* all_stay may be set; lent CPUs are returned all the same */
    int64_t now_ms;
    struct VEC(struct cluster_pod *) placed; /* in order of decision */
    struct replay_run_changes away;          /* in order of eviction */
    size_t gone;                             /* how many of those have left */
    struct replay_run_changes cpu_lending;   /* in order of reclaim */
    size_t given_back;                       /* how many of those were returned */
    size_t cycles;
    /* Called before pods are evicted for the gang, or waited for; or NULL. */
    void (*will_evict)(void *arg, struct gang *g, const struct cycle_result *result);
    /* Called after a cycle that placed something, or NULL. */
    void (*after)(void *arg, struct gang *g);
    void *arg;
};

void replay_run_init(struct replay_run *r, struct cluster *c);
/* Before cluster_deinit. */
void replay_run_deinit(struct replay_run *r);
void replay_run_all(struct replay_run *r);
/* Our pods that are neither placed nor terminating, by key. Free the list with vec_deinit. */
struct replay_run_list VEC(struct cluster_pod *);
void replay_run_waiting(const struct replay_run *r, struct replay_run_list *out);
/* The sentence for a waiting pod; never NULL. */
const char *replay_run_why(const struct replay_run *r, const struct cluster_pod *cp);

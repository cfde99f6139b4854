// SPDX-License-Identifier: Apache-2.0
/*
 * replay_run - attempts until nothing more can be placed: what sched_loop.c does, with a clock of
 * its own and nobody to bind to.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/vec.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cycle/attempt.h"

/* A pod that went so that another finds room, or CPUs on loan that it gives back
 * (cpu_lending.h). */
struct replay_run_change {
    char *pod, *uid, *node;
    char *for_pod;
    struct cpuset cpus; /* that are given back */
};
struct replay_run_changes VEC(struct replay_run_change);

struct replay_run {
    struct cluster *cluster;
    struct pipeline pipeline; /* on the cluster */
    struct queue queue;
    struct cluster_hooks hooks; /* for whoever fills the cluster */
    struct arena arena;         /* one attempt's */
    struct attempt attempt;     /* all_stay may be set; loans are given back in any case */
    int64_t now_ms;
    struct VEC(struct cluster_pod *) placed; /* in the order of the decisions */
    struct replay_run_changes away;          /* in the order in which they were told to */
    size_t gone;                             /* so many of those have gone */
    struct replay_run_changes cpu_lending;   /* in the order in which they were called back */
    size_t given_back;                       /* so many of those have been given back */
    size_t cycles;
    /* Called before pods are told to leave for the gang, or are waited for; or NULL. */
    void (*will_evict)(void *arg, struct gang *g, const struct cycle_result *result);
    /* Called after a cycle that placed something, or NULL. */
    void (*after)(void *arg, struct gang *g);
    void *arg;
};

void replay_run_init(struct replay_run *r, struct cluster *c);
/* Before cluster_deinit. */
void replay_run_deinit(struct replay_run *r);
void replay_run_all(struct replay_run *r);
/* Pods of ours that are neither on a node nor on their way out, by key. The list is the caller's
 * (vec_deinit). */
struct replay_run_list VEC(struct cluster_pod *);
void replay_run_waiting(const struct replay_run *r, struct replay_run_list *out);
/* The sentence for a waiting pod; never NULL. */
const char *replay_run_why(const struct replay_run *r, const struct cluster_pod *cp);

// SPDX-License-Identifier: Apache-2.0
/*
 * replay_run - queue → cycle → plan until nothing more can be placed: what drive.c does, with a clock of its own and nobody to bind to.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/vec.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cycle/cycle.h"
#include "scheduler/queue/queue.h"

/* A pod that went so that another finds room. */
struct replay_run_away {
    char *pod, *uid, *node;
    char *for_pod;
};

/* CPUs on loan that a pod gives back for another (loans.h). */
struct replay_run_loan {
    char *pod, *uid, *node;
    char *for_pod;
    struct cpuset cpus;
};

struct replay_run {
    struct cluster *cluster;
    struct pipeline pipeline; /* on the cluster */
    struct queue queue;
    struct cluster_hooks hooks; /* for whoever fills the cluster */
    struct arena arena;         /* one cycle's */
    int64_t now_ms;
    struct VEC(struct cluster_pod *) placed; /* in the order of the decisions */
    bool
        preempts; /* true unless turned off: pods are sent away, and go. Loans are given back in any case */
    struct VEC(struct replay_run_away) away;  /* in the order in which they were told to */
    size_t gone;                              /* so many of those have gone */
    struct VEC(struct replay_run_loan) loans; /* in the order in which they were called back */
    size_t given_back;                        /* so many of those have been given back */
    size_t cycles;
    /* Called before pods are told to leave for the gang, or are waited for; or NULL. */
    void (*makes_room)(void *arg, struct gang *g, const struct cycle_result *result);
    /* Called after a cycle that placed something, or NULL. */
    void (*after)(void *arg, struct gang *g);
    void *arg;
};

void replay_run_init(struct replay_run *r, struct cluster *c);
/* Before cluster_deinit. */
void replay_run_deinit(struct replay_run *r);
void replay_run_all(struct replay_run *r);
/* Pods of ours that are neither on a node nor on their way out, by key; why each waits is in its gang. The list is the caller's (vec_deinit). */
struct replay_run_list VEC(struct cluster_pod *);
void replay_run_waiting(const struct replay_run *r, struct replay_run_list *out);
/* The sentence for a waiting pod; never NULL. */
const char *replay_run_why(const struct cluster_pod *cp);

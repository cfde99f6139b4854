// SPDX-License-Identifier: Apache-2.0
/* sched_loop - runs the scheduler on the loop's thread: carries out decisions (attempt.h), passes
 * Bindings to the binder and reasons to pod_writer, and handles the binder's results. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/loop.h"
#include "scheduler/binding/binder.h"
#include "scheduler/binding/gang_bind.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/binding/evictor.h"
#include "scheduler/binding/pod_trace.h"
#include "scheduler/binding/podgroups.h"
#include "scheduler/cycle/attempt.h"
#include "scheduler/queue/queue.h"
#include "scheduler/binding/bind_dryrun.h"
#include "scheduler/binding/policy_writer.h"
#include "scheduler/binding/refresher.h"
#include "scheduler/reservation_timer.h"
#include "scheduler/binding/pod_writer.h"
#include "scheduler/binding/teller.h"
#include "scheduler/binding/victims.h"
#include "scheduler/binding/volumes.h"

struct sched_loop_options {
    bool evict_stale; /* evict gangs that fell below their quorum */
};

struct sched_loop {
    struct sched_loop_options options; /* set before sched_loop_start */
    struct loop *loop;
    struct cluster cluster;
    struct pipeline pipeline;
    struct queue queue;
    struct pod_trace trace;
    struct failures failures;           /* for PodGroup statuses */
    struct reservation_timer reserving; /* reservations for gangs that have waited long */
    struct arena arena;                 /* reset by each attempt */
    struct attempt attempt;
    int64_t began_us; /* the current attempt */
    struct loop_timer tick;
    struct loop_timer cpu_lending; /* repeats reclaims */
    struct loop_timer policies;    /* when a unit of a ResourcePolicy opens to a waiting pod */
    int64_t policies_due_ms;       /* on clock_mono_ms; 0: never */
    struct refresher refresher;    /* keeps true what they were told */
    struct teller teller;          /* tells waiting pods why */
    struct mailbox *results;
    struct mailbox *evictions;   /* the evictor's results */
    struct mailbox *dryrun_done; /* the dry run's results */
    struct binder *binder;       /* NULL until we lead */
    struct pod_writer *pod_writer;
    struct evictor *evictor;
    struct victims victims;  /* pods that were to go and are still there */
    struct volumes *volumes; /* binds the claims of pods first */
    /* Set before sched_loop_start; NULL: gangs are bound without. */
    struct bind_dryrun *dryrun;
    struct gang_bind *gang_bind; /* holds gangs back until all their members may go */
    struct podgroups *podgroups;
    struct policy_writer *policy_writer; /* writes what ResourcePolicies need */
    bool running;                        /* caches are synced and we lead */
};

int sched_loop_init(struct sched_loop *d, struct loop *loop, const char *scheduler_name,
                    struct error *err);
struct volumes_config sched_loop_volumes_config(struct sched_loop *d, struct binder *b);
/* Starts trying gangs; first those that the previous leader bound only in part. */
void sched_loop_start(struct sched_loop *d, struct binder *b, struct pod_writer *s,
                      struct evictor *e, struct volumes *v);
/* Tries no new gang; still handles results. */
void sched_loop_pause(struct sched_loop *d);
/* Something changed: schedule in this round. Cheap, may be called often. */
void sched_loop_poke(struct sched_loop *d);
/* After the binder and the evictor have ended. */
void sched_loop_deinit(struct sched_loop *d);

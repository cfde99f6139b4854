// SPDX-License-Identifier: Apache-2.0
/*
 * sched_loop - the scheduler at work, on the loop's thread: carries out what attempts decide
 * (attempt.h), hands Bindings to the binder and reasons to status, and takes the binder's results
 * back.
 */
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
#include "scheduler/reservation_timer.h"
#include "scheduler/binding/pod_writer.h"
#include "scheduler/binding/volumes.h"

struct sched_loop_options {
    bool evict_stale; /* gangs that have fallen apart are sent away altogether */
};

struct sched_loop {
    struct sched_loop_options options; /* set before sched_loop_start */
    struct loop *loop;
    struct cluster cluster;
    struct pipeline pipeline; /* on the cluster */
    struct queue queue;
    struct pod_trace trace;
    struct reservation_timer reserving; /* room kept for gangs that have waited long */
    struct arena arena;                 /* one attempt's */
    struct attempt attempt;
    int64_t began_us; /* the attempt under way */
    struct loop_timer tick;
    struct loop_timer cpu_lending; /* CPUs that were called back */
    struct loop_timer policies;    /* when time opens a unit of a ResourcePolicy to a waiting pod */
    int64_t policies_due_ms;       /* on clock_mono_ms; 0: never */
    struct loop_timer tell;        /* waiting pods that are told why later */
    struct ids_table tell_due;     /* by gang: when, int64_t of milliseconds; -1: all know */
    struct mailbox *results;
    struct mailbox *evictions; /* the evictor's results */
    struct mailbox *rehearsed; /* the dry run's results */
    struct binder *binder;     /* NULL until we lead */
    struct pod_writer *pod_writer;
    struct evictor *evictor;
    struct volumes *volumes; /* pods whose claims are bound first */
    /* set before sched_loop_start, or NULL: gangs are bound without */
    struct bind_dryrun *dryrun;
    struct gang_bind *bursts; /* gangs that are held back until all their members may go */
    struct podgroups *podgroups;
    struct policy_writer *policy_writer; /* what ResourcePolicies need written */
    bool running;                        /* caches are synced and we lead */
};

int sched_loop_init(struct sched_loop *d, struct loop *loop, const char *scheduler_name,
                    struct error *err);
/* What struct volumes wants to know of us. */
struct volumes_config sched_loop_volumes_config(struct sched_loop *d, struct binder *b);
/* From now on gangs are tried; first of all those of which whoever led before us bound some members
 * and not the rest. */
void sched_loop_start(struct sched_loop *d, struct binder *b, struct pod_writer *s,
                      struct evictor *e, struct volumes *v);
/* No new gang is tried; results are still taken. */
void sched_loop_pause(struct sched_loop *d);
/* Something changed: have a look in this round. Cheap, may be called often. */
void sched_loop_poke(struct sched_loop *d);
/* After the binder and the evictor have ended. */
void sched_loop_deinit(struct sched_loop *d);

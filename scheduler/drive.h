// SPDX-License-Identifier: Apache-2.0
/*
 * drive - the scheduler at work, on the loop's thread: takes gangs from the queue, runs a cycle for each, hands Bindings to the binder and reasons to status, and
 * takes the binder's results back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/loop.h"
#include "scheduler/binding/binder.h"
#include "scheduler/binding/bursts.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/binding/evictor.h"
#include "scheduler/binding/podgroups.h"
#include "scheduler/queue/queue.h"
#include "scheduler/binding/rehearsal.h"
#include "scheduler/binding/policing.h"
#include "scheduler/reserving.h"
#include "scheduler/binding/status.h"
#include "scheduler/binding/volumes.h"

struct drive_options {
    bool evict_stale; /* gangs that have fallen apart are sent away altogether */
};

struct drive {
    struct drive_options options; /* set before drive_start */
    struct loop *loop;
    struct cluster cluster;
    struct pipeline pipeline; /* on the cluster */
    struct queue queue;
    struct reserving reserving; /* room kept for gangs that have waited long */
    struct arena arena;         /* one cycle's */
    struct loop_timer tick;
    struct loop_timer loans;    /* CPUs that were called back */
    struct loop_timer policies; /* when time opens a unit of a ResourcePolicy to a waiting pod */
    int64_t policies_due_ms;    /* on clock_mono_ms; 0: never */
    struct loop_timer tell;     /* waiting pods that are told why later */
    struct mailbox *results;
    struct mailbox *evictions; /* the evictor's results */
    struct mailbox *rehearsed; /* the rehearsal's results */
    struct binder *binder;     /* NULL until we lead */
    struct status *status;
    struct evictor *evictor;
    struct volumes *volumes;     /* pods whose claims are bound first */
    struct rehearsal *rehearsal; /* set before drive_start, or NULL: gangs are bound without */
    struct bursts *bursts;       /* gangs that are held back until all their members may go */
    struct podgroups *podgroups;
    struct policing *policing; /* what ResourcePolicies need written */
    uint64_t tickets;          /* Bindings handed out so far */
    bool running;              /* caches are synced and we lead */
};

int drive_init(struct drive *d, struct loop *loop, const char *scheduler_name, struct error *err);
/* What struct volumes wants to know of us. */
struct volumes_config drive_volumes_config(struct drive *d, struct binder *b);
/* From now on gangs are tried; first of all those of which whoever led before us bound some members and not the rest. */
void drive_start(struct drive *d, struct binder *b, struct status *s, struct evictor *e,
                 struct volumes *v);
/* No new gang is tried; results are still taken. */
void drive_pause(struct drive *d);
/* Something changed: have a look in this round. Cheap, may be called often. */
void drive_poke(struct drive *d);
/* After the binder and the evictor have ended. */
void drive_deinit(struct drive *d);

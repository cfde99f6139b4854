// SPDX-License-Identifier: Apache-2.0
/*
 * attempt - tries one gang: connects the queue, the cycle and the hooks that carry out the
 * decision. Pure.
 *
 *     queue_pop ─► cycle ─┬─ committed: bind, wake those it may help ─┬─ all placed: done
 *                         │                                           └─ some wait ─┐
 *                         └─ not ───────────────────────────────────────────────────┴► parked
 *
 * A parked gang waits for events, for the start of a policy's next unit, or (without backoff) for
 * pods that leave. Its members are told why and nominated; CPUs are reclaimed and other pods
 * evicted for it.
 *
 * The scheduler, the replay and the simulator run this same protocol, so the same state gives the
 * same placements in all of them (I4). They differ only in the hooks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/ids.h"
#include "scheduler/cycle/cycle.h"
#include "scheduler/queue/queue.h"

/* CPUs that were reclaimed but not returned are reclaimed again after this. */
enum { ATTEMPT_RECALL_MS = 5000 };

/* Each may be NULL. attempt.c does the accounting and the queueing, not the hooks. Arguments are
 * borrowed for the call. Listed in the order of the calls: */
struct attempt_hooks {
    void (*decided)(void *arg, const struct cycle_result *r);
    /* The plan is committed; bind its pods. */
    void (*bind)(void *arg, struct gang *g, const struct plan *plan, const struct cycle_result *r);
    /* The gang may be placeable at that time without any event. */
    void (*await_time)(void *arg, int64_t due_ns);
    /* All or part of the gang waits, and the queue knows why (queue_why). */
    void (*refused)(void *arg, struct gang *g, const struct cycle_result *r);
    /* Evict r->victims now. Called before any member is nominated. */
    void (*evict_for)(void *arg, struct gang *g, const struct cycle_result *r);
    /* NULL: no nominated node. */
    void (*nominate)(void *arg, struct cluster_pod *cp, const char *node);
    /* The pod must return the CPUs that cpu_lending_left leaves out. */
    void (*recall)(void *arg, const struct cycle_recall *recall, const struct cycle_result *r);
    void *arg;
};

struct attempt {
    const struct pipeline *pipeline;
    struct queue *queue;
    struct arena *arena; /* reset at the start of each attempt */
    struct attempt_hooks hooks;
    struct ids_table recalled; /* by pod: int64_t ms of the last reclaim */
    /* Evict no pod and nominate none for that; only the sentence names the victims. CPUs are
     * reclaimed all the same. */
    bool all_stay;
};

struct attempt_time {
    int64_t now_ms;  /* on the queue's clock */
    int64_t wall_ms; /* since the epoch, like pod times: of reservations */
    int64_t wall_ns; /* the same for the timeouts of ResourcePolicies */
};

struct attempt_result {
    struct gang *gang;
    enum cycle_verdict verdict;
    size_t placed; /* pods, including those of gangs placed together with it */
    bool missed;   /* it was placed because the slow flush brought it up: no event had woken it */
};

/* Borrows everything except the hooks, which are copied. */
void attempt_init(struct attempt *a, const struct pipeline *pipeline, struct queue *queue,
                  struct arena *arena, const struct attempt_hooks *hooks);
void attempt_deinit(struct attempt *a);
/* Tries the next gang; false: none is due. */
bool attempt_next(struct attempt *a, struct attempt_time now, struct attempt_result *out);
/* Sets the nomination and wakes the gangs that helps. Calls the hook only if it changes. */
void attempt_nominate(struct attempt *a, struct cluster_pod *cp, const char *node, int64_t now_ms);

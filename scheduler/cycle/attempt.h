// SPDX-License-Identifier: Apache-2.0
/*
 * attempt - one gang is tried: what happens between the queue, the cycle and whoever carries out
 * what was decided. Pure.
 *
 *     queue_pop ─► cycle ─┬─ committed: bind, and wake whom that may help ─┬─ all placed: done
 *                         │                                                └─ some wait ─┐
 *                         └─ not ────────────────────────────────────────────────────────┴► parked
 *
 * A parked gang waits for events, for the time of a policy's next unit, or (without backoff) for
 * pods that leave. Its members are told why and nominated, CPUs are reclaimed and other pods
 * evicted for it.
 *
 * The program, the replay and the simulator run this same protocol, so the same state gives the
 * same placements in all of them (I4). They differ in the hooks: who binds, who tells, who evicts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/ids.h"
#include "scheduler/cycle/cycle.h"
#include "scheduler/queue/queue.h"

/* CPUs that were called back and not given back are called back again after this. */
enum { ATTEMPT_RECALL_MS = 5000 };

/* Each may be NULL. None changes what is accounted, nor the queue: that is done here. What they get
 * is borrowed for the call. In the order in which they are called: */
struct attempt_hooks {
    /* The cycle has ended. */
    void (*decided)(void *arg, const struct cycle_result *r);
    /* The plan is committed: its pods are to be bound. */
    void (*bind)(void *arg, struct gang *g, const struct plan *plan, const struct cycle_result *r);
    /* Time alone may help the gang, then. */
    void (*await_time)(void *arg, int64_t due_ns);
    /* The gang waits, or some of it, and the queue knows why (queue_why). */
    void (*refused)(void *arg, struct gang *g, const struct cycle_result *r);
    /* Pods leave for the gang: r->victims are to be evicted now. Before anybody is nominated. */
    void (*evict_for)(void *arg, struct gang *g, const struct cycle_result *r);
    /* The pod has a right to room on that node from now on; NULL: on none. */
    void (*nominate)(void *arg, struct cluster_pod *cp, const char *node);
    /* The pod is to give back the CPUs that cpu_lending_left leaves out. */
    void (*recall)(void *arg, const struct cycle_recall *recall, const struct cycle_result *r);
    void *arg;
};

struct attempt {
    const struct pipeline *pipeline; /* on the cluster */
    struct queue *queue;
    struct arena *arena; /* one attempt's: reset when it begins */
    struct attempt_hooks hooks;
    struct ids_table recalled; /* by pod: when it was last called back, int64_t of milliseconds */
    /* Nobody leaves for another, nor is anybody nominated for that: the sentence alone says who
     * would have to go. CPUs are called back all the same. */
    bool all_stay;
};

struct attempt_time {
    int64_t now_ms;  /* on the queue's clock */
    int64_t wall_ms; /* since the epoch, as the times of pods are */
};

struct attempt_result {
    struct gang *gang;
    enum cycle_verdict verdict;
    size_t placed; /* pods, those of gangs that go with it too */
};

/* All but the hooks, which are copied, is borrowed. */
void attempt_init(struct attempt *a, const struct pipeline *pipeline, struct queue *queue,
                  struct arena *arena, const struct attempt_hooks *hooks);
void attempt_deinit(struct attempt *a);
/* Tries the gang whose turn it is; false: none is due. What time it is for policies is set before
 * (policies_set_now). */
bool attempt_next(struct attempt *a, struct attempt_time now, struct attempt_result *out);
/* Sets the nomination and wakes whom that helps. The hook is called where it changes. */
void attempt_nominate(struct attempt *a, struct cluster_pod *cp, const char *node, int64_t now_ms);

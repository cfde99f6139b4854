// SPDX-License-Identifier: Apache-2.0
/* queue - waiting gangs: active (tried next, in the order of queue_turns.h), in backoff (after a
 * failed attempt, for 1 s to 10 s; less at first for gangs of several pods), or parked (until an
 * event that the refusing plugins named: queue_parked.h). Pure; diagram in queue.c. */
#pragma once

#include <stdint.h>

#include "lib/base/heap.h"
#include "lib/base/ids.h"
#include "lib/base/vec.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/queue/queue_need.h"
#include "scheduler/queue/queue_parked.h"
#include "scheduler/queue/queue_turns.h"

enum {
    QUEUE_BACKOFF_MIN_MS = 1000,
    QUEUE_BACKOFF_MAX_MS = 10000,
    QUEUE_GANG_MIN_MS = 5,   /* first backoff of a gang of several pods: see queue.c */
    QUEUE_FLUSH_MS = 300000, /* for queue.flush_ms; spread over as long again as a fifth of it */
};

enum gang_state { GANG_IDLE, GANG_ACTIVE, GANG_BACKOFF, GANG_PARKED };

/* Why a gang waits, for members that are told later. */
struct queue_why {
    char *sentence; /* heap; NULL: never refused */
    uint64_t class;
    bool for_gang; /* pods are missing, not capacity */
};

/* The queue's state of a gang, from its first mention. */
struct queue_entry {
    struct gang *gang;
    enum gang_state state;
    struct heap_node heap;
    int64_t ready_ms;  /* the end of its backoff */
    int64_t wait_ms;   /* how long that was */
    int64_t parked_ms; /* when it was refused last */
    int64_t cost;      /* of the attempt that is under way */
    int32_t attempts;
    bool refused;  /* since it was placed last: a retry */
    bool flushed;  /* by the slow flush: no event woke it */
    uint32_t wake; /* events that it waits for */
    struct queue_need need;
    struct queue_why why;
    struct queue_bucket *bucket; /* parked */
    size_t bucket_place, parked_place;
    struct heap_node flush; /* parked, if there is a slow flush */
    int64_t flush_at_ms;
    bool first;              /* before all others: queue_first */
    struct queue_flow *flow; /* active, and not first */
    /* Copied when it entered a heap. */
    bool queued_first, queued_retry;
    int32_t queued_priority;
    int32_t queued_lapses;
    int64_t queued_since_ns;
};

struct queue {
    struct cluster *cluster;
    struct ids_table entries; /* by gang */
    struct queue_turns active;
    struct heap backoff;
    struct queue_parked parked;
    int64_t flush_ms; /* parked gangs are retried after that, as a check; 0: never */
    struct heap flush;
};

void queue_init(struct queue *q, struct cluster *c);
/* Call before cluster_deinit, which frees the gangs. */
void queue_deinit(struct queue *q);

/* The gang changed (new member, its PodGroup): tried as soon as its backoff allows. */
void queue_touch(struct queue *q, struct gang *g, int64_t now_ms);
/* Puts the gang before all others, regardless of priority and backoff, until it is placed or
 * refused for lack of capacity or pods. For completing a gang that is bound only in part. */
void queue_first(struct queue *q, struct gang *g, int64_t now_ms);
/* The gang is about to be freed. */
void queue_drop(struct queue *q, struct gang *g);
/* Removes and returns the next gang to try; NULL: none is due. */
struct gang *queue_pop(struct queue *q, int64_t now_ms);
/* What the attempt that is under way has cost, in units of work; 1 if it is not called. Before the
 * call that ends it: queue_park, queue_wait, queue_defer, queue_retry, queue_succeeded. */
void queue_charge(struct queue *q, struct gang *g, int64_t cost);
/* What a node must have to help the gang, until it is placed or parked again. Before it is parked;
 * if it is not called any node may help. */
void queue_set_need(struct queue *q, struct gang *g, const struct queue_need *need);
/* Whether the slow flush brought it up, and no event has since. */
bool queue_is_flushed(const struct queue *q, const struct gang *g);
/* After an attempt: wait for these events (0: only for its own change). */
void queue_park(struct queue *q, struct gang *g, uint32_t wake, int64_t now_ms);
/* Pods are missing, so there was no attempt: wait for these events or its own change, no
 * backoff. */
void queue_wait(struct queue *q, struct gang *g, uint32_t wake, int64_t now_ms);
/* It cannot be tried yet, and its own change will tell when: nothing is known of it that was not
 * before, so it keeps its precedence. */
void queue_defer(struct queue *q, struct gang *g, int64_t now_ms);
/* After a failed bind: retry when the backoff is over, without an event. */
void queue_retry(struct queue *q, struct gang *g, int64_t now_ms);
/* Resets attempts and backoff. If a new member has requeued the gang meanwhile, it stays queued. */
void queue_succeeded(struct queue *q, struct gang *g);
/* Wakes the gangs that one of the events can help; returns how many. */
size_t queue_wake(struct queue *q, uint32_t events, int64_t now_ms);
/* Copies the sentence. */
void queue_set_why(struct queue *q, struct gang *g, const char *sentence, uint64_t class,
                   bool for_gang);
/* Borrowed until the next queue_set_why. */
const struct queue_why *queue_why(const struct queue *q, const struct gang *g);
/* When the next backoff ends, or -1. now_ms if a gang is active. */
int64_t queue_next_due(const struct queue *q, int64_t now_ms);
enum gang_state queue_state(const struct queue *q, const struct gang *g);
size_t queue_len(const struct queue *q, enum gang_state state);

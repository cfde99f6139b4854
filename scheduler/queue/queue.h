// SPDX-License-Identifier: Apache-2.0
/*
 * queue - gangs that wait: active (tried next, by priority, then age; those for which room was kept
 * in vain last), in backoff (after a failed attempt, for 1 s to 10 s; gangs of several pods begin
 * lower), parked (until one of the events that the refusing plugins named). Pure; see queue.c for
 * the drawing.
 */
#pragma once

#include <stdint.h>

#include "lib/base/heap.h"
#include "lib/base/ids.h"
#include "lib/base/vec.h"
#include "scheduler/cache/cluster.h"

enum {
    QUEUE_BACKOFF_MIN_MS = 1000,
    QUEUE_BACKOFF_MAX_MS = 10000,
    QUEUE_GANG_MIN_MS = 5 /* of a gang of several pods without room: see queue.c */
};

enum gang_state { GANG_IDLE, GANG_ACTIVE, GANG_BACKOFF, GANG_PARKED };

/* Why a gang waits, for members that are told later. */
struct queue_why {
    char *sentence; /* heap; NULL: it was never refused */
    uint64_t class;
    bool for_gang; /* pods are missing, not room */
};

/* What the queue remembers of a gang, from the first time that it is told of it. */
struct queue_entry {
    struct gang *gang;
    enum gang_state state;
    struct heap_node heap;
    int64_t ready_ms; /* the end of its backoff */
    int32_t attempts;
    uint32_t wake; /* events that it waits for */
    struct queue_why why;
    size_t parked_place; /* index in the parked list */
    bool first;          /* before all others: queue_first */
    /* As they were when it entered a heap. */
    bool queued_first;
    int32_t queued_priority;
    int32_t queued_lapses;
    int64_t queued_since_ns;
};

struct queue {
    const struct cluster *cluster;
    struct ids_table entries; /* by gang */
    struct heap active;
    struct heap backoff;
    struct VEC(struct queue_entry *) parked;
};

void queue_init(struct queue *q, const struct cluster *c);
/* Before the gangs are freed: before cluster_deinit. */
void queue_deinit(struct queue *q);

/* Something about the gang changed (a member came, its PodGroup did): tried as soon as its backoff
 * allows. */
void queue_touch(struct queue *q, struct gang *g, int64_t now_ms);
/* The gang goes before all others, whatever their priority and its own backoff, until it got what
 * it wanted or was refused for want of room or pods. For what was begun and must be ended: a gang
 * of which some members are bound and the rest is not. */
void queue_first(struct queue *q, struct gang *g, int64_t now_ms);
/* The gang is about to be freed. */
void queue_drop(struct queue *q, struct gang *g);
/* The gang to try now, out of the queue; NULL when none is due. */
struct gang *queue_pop(struct queue *q, int64_t now_ms);
/* After an attempt: wait for these events (0: for its own change only). */
void queue_park(struct queue *q, struct gang *g, uint32_t wake, int64_t now_ms);
/* The gang cannot be tried yet (pods are missing): wait for these events or its own change. Not an
 * attempt: no backoff. */
void queue_wait(struct queue *q, struct gang *g, uint32_t wake);
/* After a failed bind: again when the backoff is over, whatever happens. */
void queue_retry(struct queue *q, struct gang *g, int64_t now_ms);
/* A gang that got what it wanted starts afresh next time. If a new member put it back into the
 * queue meanwhile, it stays there. */
void queue_succeeded(struct queue *q, struct gang *g);
/* Wakes those that one of the events can help; returns how many. */
size_t queue_wake(struct queue *q, uint32_t events, int64_t now_ms);
/* The sentence is copied. */
void queue_set_why(struct queue *q, struct gang *g, const char *sentence, uint64_t class,
                   bool for_gang);
/* What was set last. Borrowed until the next. */
const struct queue_why *queue_why(const struct queue *q, const struct gang *g);
/* When the next backoff ends, or -1. Gangs that are active now give now_ms. */
int64_t queue_next_due(const struct queue *q, int64_t now_ms);
enum gang_state queue_state(const struct queue *q, const struct gang *g);
size_t queue_len(const struct queue *q, enum gang_state state);

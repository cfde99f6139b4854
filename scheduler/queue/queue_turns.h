// SPDX-License-Identifier: Apache-2.0
/*
 * queue_turns - whose turn it is among the gangs that may be tried now. Pure.
 *
 * Gangs that were begun come first. All others stand in lines, by priority, then by the number of
 * lapsed reservations; in a line each namespace has its own two lists: gangs that are fresh, and
 * those that were refused before. Both are ordered by age, then by key.
 *
 *     line (priority, lapses) ─► namespace with the least cost ─► the older of its two first gangs
 *
 * Namespaces: each attempt is charged to its namespace, in units of work (members tried), never in
 * time, so that a replay decides the same. The namespace that was charged least is next
 * (start-time fair queueing): one with 3,000 gangs gets no more turns than one with a single pod.
 * A namespace that had nothing to try gets no credit for that: it begins where the one is that is
 * being served. When a line is empty its accounts are closed, so where gangs do not compete they go
 * by age alone.
 *
 * Fresh and refused: an old backlog is retried whenever something changes, mostly in vain. After a
 * refused gang was refused again, fresh gangs of the same line go first until they have cost as
 * much. As long as refused gangs are placed, fresh ones do not overtake them: what comes free goes
 * to the oldest. And when retries of a line have cost QUEUE_TURNS_PATIENCE in a row in vain, one
 * fresh gang of a lower line has its turn, so that a backlog of high priority cannot starve it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/heap.h"
#include "lib/base/map.h"
#include "lib/base/vec.h"

struct queue_entry;
struct queue_flow;
struct queue_line;

/* Units of work of retries in vain, before a fresh gang of a lower priority has a turn. */
enum { QUEUE_TURNS_PATIENCE = 64 };

struct queue_turns {
    struct heap first;                     /* gangs that were begun */
    struct VEC(struct queue_line *) lines; /* highest first */
    size_t len;
    int64_t in_vain;                  /* cost of retries in a row that were refused */
    const struct queue_entry *served; /* popped last, until it is charged; or NULL */
    struct queue_flow *serving;       /* its; NULL: it was among the first */
};

void queue_turns_init(struct queue_turns *t);
void queue_turns_deinit(struct queue_turns *t);
/* By what was copied into the entry: queue.c's put_in. */
void queue_turns_add(struct queue_turns *t, struct queue_entry *e);
void queue_turns_remove(struct queue_turns *t, struct queue_entry *e);
/* NULL: none. */
struct queue_entry *queue_turns_pop(struct queue_turns *t);
/* What the attempt of the entry that was popped last has cost; does nothing for any other. */
void queue_turns_charge(struct queue_turns *t, const struct queue_entry *e, int64_t cost,
                        bool refused);

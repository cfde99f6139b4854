// SPDX-License-Identifier: Apache-2.0
/*
 * queue_parked - the parked gangs, by what they wait for. Pure.
 *
 * Gangs that await the same events and need about the same of a node (queue_need.h) share a bucket,
 * and an event looks at each bucket once: pods of one kind cost as much as one of them. Three kinds
 * of events:
 *
 *     EVENT_POD_GONE, _LEAVING   wake those that a node of cluster.freed may have room for; the
 *                                others from then on when a node grows, whatever refused them first
 *     EVENT_POD_PLACED           and the above, if no such node may: a gang whose members could go
 *                                elsewhere may fit in another order, by luck. There is no hurry,
 *                                and trying all of them after each placement is what starved
 *                                others. So they are woken QUEUE_PARKED_LUCK_MS later, or after
 *                                QUEUE_PARKED_LUCK_WAITS of their last backoff
 *     all others                 wake all of the bucket at once
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/map.h"
#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "scheduler/queue/queue_need.h"

struct queue_entry;
struct queue_bucket;

enum { QUEUE_PARKED_LUCK_MS = 1000, QUEUE_PARKED_LUCK_WAITS = 6 };

struct queue_parked {
    struct VEC(struct queue_entry *) items; /* all */
    struct VEC(struct queue_bucket *) buckets;
    struct map by_text;
    int64_t luck_ms; /* when queue_parked_luck is due; 0: not */
    struct strbuf text;
};

void queue_parked_init(struct queue_parked *p);
void queue_parked_deinit(struct queue_parked *p);
/* By its wake and need. */
void queue_parked_add(struct queue_parked *p, struct queue_entry *e);
void queue_parked_remove(struct queue_parked *p, struct queue_entry *e);
/* Whether its wake is only put off. */
bool queue_parked_is_lucky(const struct queue_entry *e);
/* Calls wake for each that one of the events may help; wake removes it. Looks at, and empties, the
 * cluster's list of freed nodes. */
size_t queue_parked_wake(struct queue_parked *p, struct cluster *c, uint32_t events, int64_t now_ms,
                         void (*wake)(void *arg, struct queue_entry *e), void *arg);
/* The same for those whose wake was put off until now. */
void queue_parked_luck(struct queue_parked *p, int64_t now_ms,
                       void (*wake)(void *arg, struct queue_entry *e), void *arg);

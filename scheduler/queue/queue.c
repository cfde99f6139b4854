// SPDX-License-Identifier: Apache-2.0
/*
 *                 touch, wake (backoff over)
 *        ┌──────────────────────────────────────────┐
 *        ▼                                           │
 *     ACTIVE ── pop ──► IDLE (being tried) ─ park, wait ► PARKED
 *        ▲               │                           │
 *        │               │ retry                     │ touch, wake (backoff not over)
 *        │ pop, when due ▼                           ▼
 *        └────────── BACKOFF ◄───────────────────────┘
 *
 * An attempt sets ready_ms, the end of the backoff. So a gang that was just refused and is woken at once does not spin, and one that was refused long ago is tried at
 * the very moment when room appears. A gang that lacks pods (`wait`) was not tried, which costs nothing: it has no backoff, and goes the moment its last
 * pod comes.
 *
 * Who failed does not stand in others' way: it is parked, and the next one is tried. That a large gang does not wait for ever behind small ones is reservation.h's business;
 * one for which room was kept in vain goes behind all others of its priority.
 *
 * Room for a gang appears in pieces: the pods that leave are gone one after the other, and the first of them wakes it. So a gang of several pods that was refused for want
 * of room is tried again soon, 5 ms later, and half as often after every second time: what it waits in vain when all are gone is about half of what their leaving took. Whoever was left alone
 * for longer than a lone pod's first backoff begins anew, so this costs a gang that cannot be helped a lone pod's attempts, and a handful.
 *
 * Priority and age are copied when a gang enters the heap: its members may change while it is there, and a heap whose keys move loses its order.
 */
#include "scheduler/queue/queue.h"

#include <string.h>

#include "lib/base/num.h"

static bool active_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct gang *x = container_of_const(a, struct gang, heap);
    const struct gang *y = container_of_const(b, struct gang, heap);
    if (x->queued_first != y->queued_first)
        return x->queued_first;
    if (x->queued_priority != y->queued_priority)
        return x->queued_priority > y->queued_priority;
    if (x->queued_lapses != y->queued_lapses)
        return x->queued_lapses < y->queued_lapses;
    if (x->queued_since_ns != y->queued_since_ns)
        return x->queued_since_ns < y->queued_since_ns;
    return strcmp(x->key, y->key) < 0;
}

static bool backoff_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct gang *x = container_of_const(a, struct gang, heap);
    const struct gang *y = container_of_const(b, struct gang, heap);
    return x->ready_ms != y->ready_ms ? x->ready_ms < y->ready_ms : strcmp(x->key, y->key) < 0;
}

void queue_init(struct queue *q)
{
    *q = (struct queue){0};
    heap_init(&q->active, active_before);
    heap_init(&q->backoff, backoff_before);
}

void queue_deinit(struct queue *q)
{
    heap_deinit(&q->active);
    heap_deinit(&q->backoff);
    vec_deinit(&q->parked);
}

static void take_out(struct queue *q, struct gang *g)
{
    switch (g->state) {
    case GANG_IDLE:
        break;
    case GANG_ACTIVE:
        heap_remove(&q->active, &g->heap);
        break;
    case GANG_BACKOFF:
        heap_remove(&q->backoff, &g->heap);
        break;
    case GANG_PARKED:
        q->parked.items[g->parked_place] = q->parked.items[--q->parked.len];
        q->parked.items[g->parked_place]->parked_place = g->parked_place;
        break;
    }
    g->state = GANG_IDLE;
}

static void put_in(struct queue *q, struct gang *g, int64_t now_ms)
{
    g->queued_first = g->first;
    g->queued_priority = g->priority;
    g->queued_since_ns = g->since_ns;
    g->queued_lapses = g->lapses;
    if (g->ready_ms <= now_ms) {
        g->state = GANG_ACTIVE;
        heap_push(&q->active, &g->heap);
    } else {
        g->state = GANG_BACKOFF;
        heap_push(&q->backoff, &g->heap);
    }
}

void queue_touch(struct queue *q, struct gang *g, int64_t now_ms)
{
    take_out(q, g); /* the place in the heap may be another one now */
    put_in(q, g, now_ms);
}

void queue_first(struct queue *q, struct gang *g, int64_t now_ms)
{
    g->first = true;
    g->ready_ms = 0;
    queue_touch(q, g, now_ms);
}

void queue_drop(struct queue *q, struct gang *g)
{
    take_out(q, g);
}

struct gang *queue_pop(struct queue *q, int64_t now_ms)
{
    struct heap_node *n;
    while ((n = heap_top(&q->backoff)) != NULL &&
           container_of(n, struct gang, heap)->ready_ms <= now_ms) {
        struct gang *due = container_of(heap_pop(&q->backoff), struct gang, heap);
        due->state = GANG_ACTIVE;
        heap_push(&q->active, &due->heap);
    }
    n = heap_pop(&q->active);
    if (n == NULL)
        return NULL;
    struct gang *g = container_of(n, struct gang, heap);
    g->state = GANG_IDLE;
    return g;
}

/* Twice as long after every `each` attempts. */
static void count_attempt(struct gang *g, int64_t first_ms, int32_t each, int64_t now_ms)
{
    int64_t wait = first_ms;
    if (g->form != GANG_NONE && now_ms - g->ready_ms >= QUEUE_BACKOFF_MIN_MS)
        g->attempts = 0;
    for (int32_t i = 0; i < g->attempts / each && wait < QUEUE_BACKOFF_MAX_MS; i++)
        wait *= 2;
    if (g->attempts < INT32_MAX)
        g->attempts++;
    g->ready_ms = num_add_sat(now_ms, num_min(wait, QUEUE_BACKOFF_MAX_MS));
}

void queue_wait(struct queue *q, struct gang *g, uint32_t wake)
{
    take_out(q, g);
    g->first = false;
    g->wake = wake;
    g->state = GANG_PARKED;
    g->parked_place = q->parked.len;
    vec_push(&q->parked, g);
}

void queue_park(struct queue *q, struct gang *g, uint32_t wake, int64_t now_ms)
{
    queue_wait(q, g, wake);
    if (g->form == GANG_NONE)
        count_attempt(g, QUEUE_BACKOFF_MIN_MS, 1, now_ms);
    else
        count_attempt(g, QUEUE_GANG_MIN_MS, 2, now_ms);
}

void queue_retry(struct queue *q, struct gang *g, int64_t now_ms)
{
    take_out(q, g);
    count_attempt(g, QUEUE_BACKOFF_MIN_MS, 1, now_ms);
    put_in(q, g, now_ms);
}

void queue_succeeded(struct queue *q, struct gang *g)
{
    g->first = false;
    g->attempts = 0;
    g->ready_ms = 0;
    if (g->state == GANG_BACKOFF) { /* a new member waits in there: the backoff is over now */
        heap_remove(&q->backoff, &g->heap);
        put_in(q, g, 0);
    }
}

size_t queue_wake(struct queue *q, uint32_t events, int64_t now_ms)
{
    size_t woken = 0;
    for (size_t i = 0; events != 0 && i < q->parked.len;) {
        struct gang *g = q->parked.items[i];
        if ((g->wake & events) == 0) {
            i++;
            continue;
        }
        queue_touch(q, g, now_ms); /* another one is at i now */
        woken++;
    }
    return woken;
}

int64_t queue_next_due(const struct queue *q, int64_t now_ms)
{
    if (heap_top(&q->active) != NULL)
        return now_ms;
    const struct heap_node *n = heap_top(&q->backoff);
    return n == NULL ? -1 : container_of_const(n, struct gang, heap)->ready_ms;
}

size_t queue_len(const struct queue *q, enum gang_state state)
{
    return state == GANG_ACTIVE    ? q->active.len
           : state == GANG_BACKOFF ? q->backoff.len
           : state == GANG_PARKED  ? q->parked.len
                                   : 0;
}

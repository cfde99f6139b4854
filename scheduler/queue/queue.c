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
 * An attempt sets ready_ms, the end of the backoff. So a gang that was just refused and is woken at
 * once does not spin, and one that was refused long ago is tried as soon as capacity appears. A
 * gang that lacks pods (`wait`) was not tried: it has no backoff, and goes when its last pod
 * arrives.
 *
 * A refused gang does not block others: it is parked, and the next one is tried. reservation.h
 * keeps small gangs from starving a large one; a gang whose reservation lapsed goes behind all
 * others of its priority.
 *
 * Capacity for a gang appears in pieces: its victims leave one after the other, and the first wakes
 * it. So a gang of several pods that did not fit is retried after 5 ms, with the delay doubled
 * after every second attempt: it loses about half the time that the victims took to leave. The
 * count restarts after a pause longer than a lone pod's first backoff, so a gang that cannot fit
 * costs only a handful more attempts than a lone pod.
 *
 * Priority and age are copied when a gang enters the heap: its members may change meanwhile, and a
 * heap whose keys change loses its order.
 */
#include "scheduler/queue/queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"

static bool active_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct queue_entry *x = container_of_const(a, struct queue_entry, heap);
    const struct queue_entry *y = container_of_const(b, struct queue_entry, heap);
    if (x->queued_first != y->queued_first)
        return x->queued_first;
    if (x->queued_priority != y->queued_priority)
        return x->queued_priority > y->queued_priority;
    if (x->queued_lapses != y->queued_lapses)
        return x->queued_lapses < y->queued_lapses;
    if (x->queued_since_ns != y->queued_since_ns)
        return x->queued_since_ns < y->queued_since_ns;
    return strcmp(x->gang->key, y->gang->key) < 0;
}

static bool backoff_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct queue_entry *x = container_of_const(a, struct queue_entry, heap);
    const struct queue_entry *y = container_of_const(b, struct queue_entry, heap);
    return x->ready_ms != y->ready_ms ? x->ready_ms < y->ready_ms
                                      : strcmp(x->gang->key, y->gang->key) < 0;
}

static void entry_free(void *memory)
{
    free(((struct queue_entry *)memory)->why.sentence);
}

/* Called when the slot is reused; queue_drop has already removed the gang. */
static void entry_end(void *memory)
{
    assert(((struct queue_entry *)memory)->state == GANG_IDLE);
    entry_free(memory);
}

static struct queue_entry *entry_of(struct queue *q, struct gang *g)
{
    struct queue_entry *e = ids_at(&q->entries, g->id);
    e->gang = g;
    return e;
}

void queue_init(struct queue *q, const struct cluster *c)
{
    *q = (struct queue){.cluster = c};
    ids_table_init(&q->entries, sizeof(struct queue_entry), entry_end);
    heap_init(&q->active, active_before);
    heap_init(&q->backoff, backoff_before);
}

void queue_deinit(struct queue *q)
{
    heap_deinit(&q->active);
    heap_deinit(&q->backoff);
    vec_deinit(&q->parked);
    q->entries.clear = entry_free; /* gangs may still be waiting */
    ids_table_deinit(&q->entries);
}

static void take_out(struct queue *q, struct queue_entry *e)
{
    switch (e->state) {
    case GANG_IDLE:
        break;
    case GANG_ACTIVE:
        heap_remove(&q->active, &e->heap);
        break;
    case GANG_BACKOFF:
        heap_remove(&q->backoff, &e->heap);
        break;
    case GANG_PARKED:
        q->parked.items[e->parked_place] = q->parked.items[--q->parked.len];
        q->parked.items[e->parked_place]->parked_place = e->parked_place;
        break;
    }
    e->state = GANG_IDLE;
}

static void put_in(struct queue *q, struct queue_entry *e, int64_t now_ms)
{
    e->queued_first = e->first;
    e->queued_priority = e->gang->priority;
    e->queued_since_ns = e->gang->since_ns;
    e->queued_lapses = reservations_of(q->cluster, e->gang)->lapses;
    if (e->ready_ms <= now_ms) {
        e->state = GANG_ACTIVE;
        heap_push(&q->active, &e->heap);
    } else {
        e->state = GANG_BACKOFF;
        heap_push(&q->backoff, &e->heap);
    }
}

static void touch(struct queue *q, struct queue_entry *e, int64_t now_ms)
{
    take_out(q, e); /* its position in the heap may change */
    put_in(q, e, now_ms);
}

void queue_touch(struct queue *q, struct gang *g, int64_t now_ms)
{
    touch(q, entry_of(q, g), now_ms);
}

void queue_first(struct queue *q, struct gang *g, int64_t now_ms)
{
    struct queue_entry *e = entry_of(q, g);
    e->first = true;
    e->ready_ms = 0;
    touch(q, e, now_ms);
}

void queue_drop(struct queue *q, struct gang *g)
{
    struct queue_entry *e = ids_find(&q->entries, g->id);
    if (e != NULL)
        take_out(q, e);
}

struct gang *queue_pop(struct queue *q, int64_t now_ms)
{
    struct heap_node *n;
    while ((n = heap_top(&q->backoff)) != NULL &&
           container_of(n, struct queue_entry, heap)->ready_ms <= now_ms) {
        struct queue_entry *due = container_of(heap_pop(&q->backoff), struct queue_entry, heap);
        due->state = GANG_ACTIVE;
        heap_push(&q->active, &due->heap);
    }
    n = heap_pop(&q->active);
    if (n == NULL)
        return NULL;
    struct queue_entry *e = container_of(n, struct queue_entry, heap);
    e->state = GANG_IDLE;
    return e->gang;
}

/* Doubles the delay after every `each` attempts. */
static void count_attempt(struct queue_entry *e, int64_t first_ms, int32_t each, int64_t now_ms)
{
    int64_t wait = first_ms;
    if (e->gang->form != GANG_NONE && now_ms - e->ready_ms >= QUEUE_BACKOFF_MIN_MS)
        e->attempts = 0;
    for (int32_t i = 0; i < e->attempts / each && wait < QUEUE_BACKOFF_MAX_MS; i++)
        wait *= 2;
    if (e->attempts < INT32_MAX)
        e->attempts++;
    e->ready_ms = num_add_sat(now_ms, num_min(wait, QUEUE_BACKOFF_MAX_MS));
}

static void put_to_sleep(struct queue *q, struct queue_entry *e, uint32_t wake)
{
    take_out(q, e);
    e->first = false;
    e->wake = wake;
    e->state = GANG_PARKED;
    e->parked_place = q->parked.len;
    vec_push(&q->parked, e);
}

void queue_wait(struct queue *q, struct gang *g, uint32_t wake)
{
    put_to_sleep(q, entry_of(q, g), wake);
}

void queue_park(struct queue *q, struct gang *g, uint32_t wake, int64_t now_ms)
{
    struct queue_entry *e = entry_of(q, g);
    put_to_sleep(q, e, wake);
    if (g->form == GANG_NONE)
        count_attempt(e, QUEUE_BACKOFF_MIN_MS, 1, now_ms);
    else
        count_attempt(e, QUEUE_GANG_MIN_MS, 2, now_ms);
}

void queue_retry(struct queue *q, struct gang *g, int64_t now_ms)
{
    struct queue_entry *e = entry_of(q, g);
    take_out(q, e);
    count_attempt(e, QUEUE_BACKOFF_MIN_MS, 1, now_ms);
    put_in(q, e, now_ms);
}

void queue_succeeded(struct queue *q, struct gang *g)
{
    struct queue_entry *e = entry_of(q, g);
    e->first = false;
    e->attempts = 0;
    e->ready_ms = 0;
    if (e->state == GANG_BACKOFF) { /* end the backoff for the new member */
        heap_remove(&q->backoff, &e->heap);
        put_in(q, e, 0);
    }
}

size_t queue_wake(struct queue *q, uint32_t events, int64_t now_ms)
{
    size_t woken = 0;
    for (size_t i = 0; events != 0 && i < q->parked.len;) {
        struct queue_entry *e = q->parked.items[i];
        if ((e->wake & events) == 0) {
            i++;
            continue;
        }
        touch(q, e, now_ms); /* touch removed item i */
        woken++;
    }
    return woken;
}

void queue_set_why(struct queue *q, struct gang *g, const char *sentence, uint64_t class,
                   bool for_gang)
{
    struct queue_why *why = &entry_of(q, g)->why;
    free(why->sentence);
    *why =
        (struct queue_why){.sentence = mem_strdup(sentence), .class = class, .for_gang = for_gang};
}

const struct queue_why *queue_why(const struct queue *q, const struct gang *g)
{
    static const struct queue_why none;
    const struct queue_entry *e = ids_find(&q->entries, g->id);
    return e != NULL ? &e->why : &none;
}

int64_t queue_next_due(const struct queue *q, int64_t now_ms)
{
    if (heap_top(&q->active) != NULL)
        return now_ms;
    const struct heap_node *n = heap_top(&q->backoff);
    return n == NULL ? -1 : container_of_const(n, struct queue_entry, heap)->ready_ms;
}

enum gang_state queue_state(const struct queue *q, const struct gang *g)
{
    const struct queue_entry *e = ids_find(&q->entries, g->id);
    return e != NULL ? e->state : GANG_IDLE;
}

size_t queue_len(const struct queue *q, enum gang_state state)
{
    return state == GANG_ACTIVE    ? q->active.len
           : state == GANG_BACKOFF ? q->backoff.len
           : state == GANG_PARKED  ? q->parked.len
                                   : 0;
}

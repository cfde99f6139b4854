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
 * A refused gang does not block others: it is parked, and the next one is tried. Who that is says
 * queue_turns.h: a backlog that only fails again does not delay what is new. reservation.h keeps
 * small gangs from starving a large one; a gang whose reservation lapsed goes behind all others of
 * its priority.
 *
 * Capacity for a gang appears in pieces: the pods in its way leave one after the other, and the
 * first wakes it. So a gang of several pods that did not fit is retried after 5 ms, with the delay
 * doubled after every second attempt: it loses about half the time that these pods took to leave.
 * The count goes on as long as something wakes it within QUEUE_BACKOFF_MAX_MS after its backoff;
 * time that it was due and not tried does not count as rest. So a gang that is woken again and
 * again in vain is tried every 10 s at most, and one that was left alone is quick again. If pods
 * leave for it (preemption) it has no backoff at all.
 *
 * A gang that no event wakes for flush_ms is tried nevertheless. That it is placed then means that
 * an event is missing: the caller counts it (queue_is_flushed).
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

static bool backoff_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct queue_entry *x = container_of_const(a, struct queue_entry, heap);
    const struct queue_entry *y = container_of_const(b, struct queue_entry, heap);
    return x->ready_ms != y->ready_ms ? x->ready_ms < y->ready_ms
                                      : strcmp(x->gang->key, y->gang->key) < 0;
}

static bool flush_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct queue_entry *x = container_of_const(a, struct queue_entry, flush);
    const struct queue_entry *y = container_of_const(b, struct queue_entry, flush);
    return x->flush_at_ms != y->flush_at_ms ? x->flush_at_ms < y->flush_at_ms
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

void queue_init(struct queue *q, struct cluster *c)
{
    *q = (struct queue){.cluster = c};
    ids_table_init(&q->entries, sizeof(struct queue_entry), entry_end);
    queue_turns_init(&q->active);
    heap_init(&q->backoff, backoff_before);
    queue_parked_init(&q->parked);
    heap_init(&q->flush, flush_before);
}

void queue_deinit(struct queue *q)
{
    queue_turns_deinit(&q->active);
    heap_deinit(&q->backoff);
    queue_parked_deinit(&q->parked);
    heap_deinit(&q->flush);
    q->entries.clear = entry_free; /* gangs may still be waiting */
    ids_table_deinit(&q->entries);
}

static void take_out(struct queue *q, struct queue_entry *e)
{
    switch (e->state) {
    case GANG_IDLE:
        break;
    case GANG_ACTIVE:
        queue_turns_remove(&q->active, e);
        break;
    case GANG_BACKOFF:
        heap_remove(&q->backoff, &e->heap);
        break;
    case GANG_PARKED:
        queue_parked_remove(&q->parked, e);
        heap_remove(&q->flush, &e->flush);
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
    e->queued_retry = e->refused || e->flushed;
    if (e->ready_ms <= now_ms) {
        e->state = GANG_ACTIVE;
        queue_turns_add(&q->active, e);
    } else {
        e->state = GANG_BACKOFF;
        heap_push(&q->backoff, &e->heap);
    }
}

static void touch(struct queue *q, struct queue_entry *e, int64_t now_ms)
{
    if (e->gang->form != GANG_NONE && e->state == GANG_PARKED &&
        num_sub_sat(now_ms, e->ready_ms) >= QUEUE_BACKOFF_MAX_MS)
        e->attempts = 0; /* it was left alone */
    take_out(q, e);      /* its position in the heap may change */
    e->flushed = false;
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

struct waking {
    struct queue *q;
    int64_t now_ms;
};

static void wake(void *arg, struct queue_entry *e)
{
    const struct waking *w = arg;
    touch(w->q, e, w->now_ms);
}

/* Those whose backoff, or time to be left alone, is over. */
static void bring_up(struct queue *q, int64_t now_ms)
{
    struct heap_node *n;
    queue_parked_luck(&q->parked, now_ms, wake, &(struct waking){q, now_ms});
    while ((n = heap_top(&q->backoff)) != NULL &&
           container_of(n, struct queue_entry, heap)->ready_ms <= now_ms) {
        struct queue_entry *due = container_of(heap_pop(&q->backoff), struct queue_entry, heap);
        due->state = GANG_ACTIVE;
        queue_turns_add(&q->active, due);
    }
    while ((n = heap_top(&q->flush)) != NULL &&
           container_of(n, struct queue_entry, flush)->flush_at_ms <= now_ms) {
        struct queue_entry *due = container_of(n, struct queue_entry, flush);
        due->flushed = !queue_parked_is_lucky(due);
        take_out(q, due);
        put_in(q, due, now_ms);
    }
}

struct gang *queue_pop(struct queue *q, int64_t now_ms)
{
    bring_up(q, now_ms);
    struct queue_entry *e = queue_turns_pop(&q->active);
    if (e == NULL)
        return NULL;
    e->state = GANG_IDLE;
    e->cost = 1;
    e->need = (struct queue_need){0};
    return e->gang;
}

void queue_charge(struct queue *q, struct gang *g, int64_t cost)
{
    entry_of(q, g)->cost = cost;
}

void queue_set_need(struct queue *q, struct gang *g, const struct queue_need *need)
{
    entry_of(q, g)->need = *need;
}

bool queue_is_flushed(const struct queue *q, const struct gang *g)
{
    const struct queue_entry *e = ids_find(&q->entries, g->id);
    return e != NULL && e->flushed;
}

/* Its attempt is over, if there was one. */
static void end_attempt(struct queue *q, struct queue_entry *e, bool refused)
{
    queue_turns_charge(&q->active, e, e->cost, refused);
    e->refused = refused;
}

/* Doubles the delay after every `each` attempts. One that only the slow flush brought up does not
 * count. */
static void count_attempt(struct queue_entry *e, int64_t first_ms, int32_t each, int64_t now_ms)
{
    if (e->flushed)
        return;
    int64_t wait = first_ms;
    for (int32_t i = 0; i < e->attempts / each && wait < QUEUE_BACKOFF_MAX_MS; i++)
        wait *= 2;
    if (e->attempts < INT32_MAX)
        e->attempts++;
    e->wait_ms = num_min(wait, QUEUE_BACKOFF_MAX_MS);
    e->ready_ms = num_add_sat(now_ms, e->wait_ms);
}

static void put_to_sleep(struct queue *q, struct queue_entry *e, uint32_t wake, int64_t now_ms)
{
    take_out(q, e);
    e->first = e->flushed = false;
    e->wake = wake;
    e->state = GANG_PARKED;
    e->parked_ms = now_ms;
    queue_parked_add(&q->parked, e);
    if (q->flush_ms == 0)
        return;
    e->flush_at_ms = num_add_sat(num_max(now_ms, e->ready_ms), q->flush_ms) +
                     (int64_t)(e->gang->id.serial * 7919 % (uint64_t)(q->flush_ms / 5 + 1));
    heap_push(&q->flush, &e->flush);
}

void queue_wait(struct queue *q, struct gang *g, uint32_t wake, int64_t now_ms)
{
    struct queue_entry *e = entry_of(q, g);
    end_attempt(q, e, false);
    put_to_sleep(q, e, wake, now_ms);
}

void queue_defer(struct queue *q, struct gang *g, int64_t now_ms)
{
    struct queue_entry *e = entry_of(q, g);
    bool first = e->first;
    end_attempt(q, e, e->refused);
    put_to_sleep(q, e, 0, now_ms);
    e->first = first;
}

void queue_park(struct queue *q, struct gang *g, uint32_t wake, int64_t now_ms)
{
    struct queue_entry *e = entry_of(q, g);
    end_attempt(q, e, true);
    if (g->form == GANG_NONE)
        count_attempt(e, QUEUE_BACKOFF_MIN_MS, 1, now_ms);
    else
        count_attempt(e, QUEUE_GANG_MIN_MS, 2, now_ms);
    put_to_sleep(q, e, wake, now_ms);
}

void queue_retry(struct queue *q, struct gang *g, int64_t now_ms)
{
    struct queue_entry *e = entry_of(q, g);
    take_out(q, e);
    e->flushed = false;
    e->refused = true;
    count_attempt(e, QUEUE_BACKOFF_MIN_MS, 1, now_ms);
    put_in(q, e, now_ms);
}

void queue_succeeded(struct queue *q, struct gang *g)
{
    struct queue_entry *e = entry_of(q, g);
    end_attempt(q, e, false);
    e->first = e->flushed = false;
    e->attempts = 0;
    e->ready_ms = e->wait_ms = 0;
    if (e->state == GANG_BACKOFF) { /* end the backoff for the new member */
        heap_remove(&q->backoff, &e->heap);
        put_in(q, e, 0);
    }
}

size_t queue_wake(struct queue *q, uint32_t events, int64_t now_ms)
{
    if (q->cluster->index->forgot) /* their next attempt counts again */
        events |= EVENT_POD_COUNTED;
    q->cluster->index->forgot = false;
    if (events == 0)
        return 0;
    return queue_parked_wake(&q->parked, q->cluster, events, now_ms, wake,
                             &(struct waking){q, now_ms});
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
    if (q->active.len > 0)
        return now_ms;
    int64_t next_ms = q->parked.luck_ms != 0 ? q->parked.luck_ms : INT64_MAX;
    const struct heap_node *n = heap_top(&q->backoff), *idle = heap_top(&q->flush);
    if (n != NULL)
        next_ms = num_min(next_ms, container_of_const(n, struct queue_entry, heap)->ready_ms);
    if (idle != NULL)
        next_ms =
            num_min(next_ms, container_of_const(idle, struct queue_entry, flush)->flush_at_ms);
    return next_ms < INT64_MAX ? next_ms : -1;
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
           : state == GANG_PARKED  ? q->parked.items.len
                                   : 0;
}

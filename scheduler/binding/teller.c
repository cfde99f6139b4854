// SPDX-License-Identifier: Apache-2.0
#include "scheduler/binding/teller.h"

#include "lib/base/clock.h"
#include "lib/base/num.h"
#include "scheduler/binding/loop_time.h"

void teller_init(struct teller *t, struct loop *loop, const struct queue *queue)
{
    *t = (struct teller){.loop = loop, .queue = queue, .all_ms = INT64_MAX};
    ids_table_init(&t->due, sizeof(int64_t), NULL);
}

/* Returns when it is to be told again, or INT64_MAX. */
static int64_t tell(struct teller *t, const struct queue_entry *e, int64_t now_ms)
{
    int64_t *due_ms = ids_at(&t->due, e->gang->id);
    if (*due_ms >= 0 && *due_ms <= now_ms)
        *due_ms = pod_writer_report_waiting(t->pod_writer, e->gang, &e->why, now_ms);
    return *due_ms >= 0 ? *due_ms : INT64_MAX;
}

static void tell_refused(struct teller *t, int64_t now_ms)
{
    for (size_t i = 0; i < t->refused.len; i++) {
        const struct queue_entry *e = ids_find(&t->queue->entries, t->refused.items[i]);
        if (e != NULL && e->state == GANG_PARKED)
            t->all_ms = num_min(t->all_ms, tell(t, e, now_ms));
    }
    t->refused.len = 0;
}

static void tell_all(struct teller *t, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;
    for (size_t i = 0; i < t->queue->parked.items.len; i++)
        next_ms = num_min(next_ms, tell(t, t->queue->parked.items.items[i], now_ms));
    t->all_ms = next_ms < INT64_MAX ? num_max(next_ms, now_ms + TELLER_ALL_MS) : INT64_MAX;
}

static void tell_waiting(void *arg)
{
    struct teller *t = arg;
    int64_t began_us = clock_mono_us(), now_ms = clock_mono_ms();
    if (t->pod_writer == NULL)
        return;
    tell_refused(t, now_ms);
    if (t->all_ms <= now_ms)
        tell_all(t, now_ms);
    if (t->all_ms < INT64_MAX)
        loop_timer_set(t->loop, &t->timer, t->all_ms - now_ms, tell_waiting, t);
    loop_time_add(LOOP_TIME_STATUSES, began_us);
}

void teller_start(struct teller *t, struct pod_writer *s)
{
    t->pod_writer = s;
    t->all_ms = 0;
    loop_timer_set(t->loop, &t->timer, 0, tell_waiting, t);
}

void teller_note(struct teller *t, const struct gang *g)
{
    int64_t *due_ms = ids_at(&t->due, g->id);
    *due_ms = clock_mono_ms();
    vec_push(&t->refused, g->id);
    if (!heap_has(&t->timer.node) || t->timer.due_ms > *due_ms)
        loop_timer_set(t->loop, &t->timer, 0, tell_waiting, t);
}

void teller_pause(struct teller *t)
{
    loop_timer_cancel(t->loop, &t->timer);
    t->pod_writer = NULL;
    t->refused.len = 0; /* all are looked at when it starts again */
}

void teller_deinit(struct teller *t)
{
    teller_pause(t);
    ids_table_deinit(&t->due);
    vec_deinit(&t->refused);
}

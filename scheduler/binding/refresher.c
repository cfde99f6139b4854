// SPDX-License-Identifier: Apache-2.0
#include "scheduler/binding/refresher.h"

#include "lib/base/clock.h"
#include "lib/base/metrics.h"
#include "lib/base/num.h"
#include "lib/base/str.h"

enum { NS_PER_MS = 1000000 };

static struct metric looks = {
    .kind = METRIC_COUNTER,
    .name = "cosched_scheduler_condition_looks_total",
    .help = "Looks at waiting gangs whether what they are told is still true, by result.",
    .label = "result"};

static void tick(void *arg);

static void set_timer(struct refresher *r, int64_t least_ms)
{
    int64_t due_ms = refresh_turns_next_due(&r->turns);
    if (due_ms >= 0)
        loop_timer_set(r->loop, &r->timer, num_max(due_ms - clock_mono_ms(), least_ms), tick, r);
}

static void put(struct refresher *r, const struct gang *g, uint32_t wakes, int64_t now_ms)
{
    int64_t waited_ms = num_sub_sat(clock_wall_ns(), g->since_ns) / NS_PER_MS;
    refresh_turns_put(&r->turns, g->id,
                      refresh_turns_band((wakes & EVENT_POD_GONE) != 0, waited_ms), now_ms);
}

/* Brings the queue's sentence up to date. false: the gang would be placed, so that nothing is worth
 * telling. */
static bool look(struct refresher *r, struct gang *g)
{
    struct cycle_result now;
    const struct queue_why *why = queue_why(r->queue, g);
    attempt_ask(r->attempt, g, &now);
    if (now.verdict == CYCLE_PLACED) {
        metrics_inc(&looks, "fits");
        return false;
    }
    bool same = now.verdict == CYCLE_NOTHING || str_eq(now.sentence, why->sentence);
    metrics_inc(&looks, same ? "same" : "changed");
    if (same)
        return true;
    bool told = now.class == why->class;
    queue_set_why(r->queue, g, now.sentence, now.class, now.verdict == CYCLE_WAITING);
    if (!told)
        r->changed(r->arg, g);
    return true;
}

/* Whether a write was made. */
static bool take_turn(struct refresher *r, const struct refresh_turn *turn, int64_t now_ms)
{
    const struct queue_entry *e = ids_find(&r->queue->entries, turn->gang);
    if (e == NULL || e->state == GANG_IDLE) /* placed or gone: the gang may not exist */
        return false;
    struct gang *g = e->gang;
    bool asks = turn->band != REFRESH_UNFINISHED && e->state == GANG_PARKED;
    bool wrote = false;
    if (e->why.sentence != NULL && (!asks || look(r, g)))
        wrote = pod_writer_refresh(r->pod_writer, g, &e->why, now_ms);
    if (wrote)
        refresh_turns_put(&r->turns, turn->gang, REFRESH_UNFINISHED, now_ms);
    else
        put(r, g, e->wake, now_ms);
    return wrote;
}

static void tick(void *arg)
{
    struct refresher *r = arg;
    struct refresh_turn turn;
    int64_t began_us = clock_mono_us(), took_us = 0;
    bool wrote = !pod_writer_is_idle(r->pod_writer);
    for (int i = 0; i < REFRESHER_LOOKS && !wrote && took_us < REFRESHER_SLICE_US &&
                    refresh_turns_take(&r->turns, began_us / 1000, &turn);
         i++) {
        wrote = take_turn(r, &turn, began_us / 1000);
        took_us = clock_mono_us() - began_us;
    }
    set_timer(r, num_max(REFRESHER_TICK_MS, took_us * REFRESHER_SHARE / 1000));
}

void refresher_init(struct refresher *r, struct loop *loop, struct attempt *attempt,
                    struct queue *queue, void (*changed)(void *arg, struct gang *g), void *arg)
{
    *r = (struct refresher){
        .loop = loop, .attempt = attempt, .queue = queue, .changed = changed, .arg = arg};
    refresh_turns_init(&r->turns);
    metrics_register(&looks);
}

void refresher_start(struct refresher *r, struct pod_writer *pod_writer)
{
    r->pod_writer = pod_writer;
    set_timer(r, 0);
}

/* A gang keeps its turn however often it is tried: an attempt alone writes no amounts. */
void refresher_note(struct refresher *r, const struct gang *g, const struct cycle_result *result)
{
    int64_t now_ms = clock_mono_ms();
    if (refresh_turns_has(&r->turns, g->id))
        return;
    put(r, g, result->wakes, now_ms);
    if (r->pod_writer != NULL &&
        (!heap_has(&r->timer.node) || r->timer.due_ms > now_ms + REFRESH_PAUSE_MS))
        loop_timer_set(r->loop, &r->timer, REFRESH_PAUSE_MS, tick, r);
}

void refresher_pause(struct refresher *r)
{
    loop_timer_cancel(r->loop, &r->timer);
}

void refresher_deinit(struct refresher *r)
{
    refresher_pause(r);
    refresh_turns_deinit(&r->turns);
}

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/reservation_timer.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/num.h"
#include "scheduler/binding/loop_time.h"
#include "scheduler/cycle/reservation.h"

/* Minimum time between two reservation_reconcile calls: each may cost a large gang's cycle. */
enum { PAUSE_MS = 1000, MS_PER_S = 1000, NS_PER_MS = 1000000 };

static struct metric kept = {.kind = METRIC_GAUGE,
                             .name = "cosched_scheduler_reservations",
                             .help = "Gangs for which capacity is reserved."};
static struct metric results = {
    .kind = METRIC_COUNTER,
    .name = "cosched_scheduler_reservations_total",
    .help = "Reservations of capacity for a gang: made, used (the gang started), lapsed (there "
            "was no progress), ended (it lacks pods now), refused (it does not fit, or not "
            "soon).",
    .label = "result"};
static struct metric plan_seconds = {.kind = METRIC_HISTOGRAM,
                                     .name = "cosched_scheduler_reservation_look_seconds",
                                     .help = "Time that planning the start of a gang takes."};

const struct option_row reservation_timer_option_rows[] = {
    {.section = "FAIRNESS"},
    {.name = "gang-reserve-after",
     .kind = OPTION_INT,
     .offset = offsetof(struct reservation_timer_options, after_s),
     .fallback = "300",
     .min = 0,
     .max = 31536000,
     .meta = "SECONDS",
     .help = "After a gang has waited for capacity this long, capacity is reserved for it, so "
             "that smaller jobs cannot starve it; later if it is not known when the pods in its "
             "way end; 0: never."},
    {.name = "gang-reserve-for",
     .kind = OPTION_INT,
     .offset = offsetof(struct reservation_timer_options, for_s),
     .fallback = "0",
     .min = 0,
     .max = 31536000,
     .meta = "SECONDS",
     .help = "Ignored, with a warning, and gone in the next release: reserved capacity is kept "
             "while pods in the gang's way end."},
    {.name = "backfill-assume",
     .kind = OPTION_INT,
     .offset = offsetof(struct reservation_timer_options, assume_s),
     .fallback = "0",
     .min = 0,
     .max = 31536000,
     .meta = "SECONDS",
     .help = "Ignored, with a warning, and gone in the next release: run times are learned."},
    {0},
};

static int64_t wall_ms(void)
{
    return clock_wall_ns() / NS_PER_MS;
}

static void reconcile(void *arg);

static void set_timer(struct reservation_timer *r, int64_t least_ms)
{
    int64_t next_ms = reservation_next(r->cluster);
    if (next_ms >= 0)
        loop_timer_set(r->loop, &r->timer, num_max(next_ms - wall_ms(), least_ms), reconcile, r);
}

static void note(const struct reservation_timer *r, const struct reservation_news *news)
{
    for (uint32_t i = 0; i < news->lapsed; i++)
        metrics_inc(&results, "lapsed");
    metrics_set(&kept, NULL, (int64_t)r->cluster->reservations->items.len);
    if (news->looked == NULL)
        return;
    metrics_inc(&results, news->made ? "made" : "refused");
    const struct reservation *made = reservations_of(r->cluster, news->looked)->kept;
    if (made != NULL)
        log_info("capacity reserved", kv("for", made->what), kv("nodes", map_count(&made->nodes)),
                 kv("starts in s", (made->start_ms - made->made_ms) / MS_PER_S));
}

/* Requeues the gang and those placed with it, so that their members are told. */
static void tell(const struct reservation_timer *r, struct gang *planned)
{
    const struct reservation *made = reservations_of(r->cluster, planned)->kept;
    queue_touch(r->queue, planned, loop_now_ms(r->loop));
    for (size_t i = 0; made != NULL && i < made->gangs.len; i++)
        queue_touch(r->queue, made->gangs.items[i], loop_now_ms(r->loop));
}

static void reconcile(void *arg)
{
    struct reservation_timer *r = arg;
    int64_t began_us = clock_mono_us();
    r->reconciled_ms = loop_now_ms(r->loop);
    arena_reset(&r->arena);
    struct reservation_news news = reservation_reconcile(r->pipeline, wall_ms(), &r->arena);
    note(r, &news);
    if (news.looked != NULL) {
        metrics_observe_us(&plan_seconds, NULL, clock_mono_us() - began_us);
        tell(r, news.looked);
        r->changed(r->arg);
    }
    if (news.events != 0) {
        queue_wake(r->queue, news.events, loop_now_ms(r->loop));
        r->changed(r->arg);
    }
    set_timer(r, PAUSE_MS);
    loop_time_add(LOOP_TIME_RESERVATIONS, began_us);
}

void reservation_timer_init(struct reservation_timer *r, struct loop *loop,
                            const struct pipeline *p, struct queue *q, void (*changed)(void *arg),
                            void *arg)
{
    *r = (struct reservation_timer){.loop = loop,
                                    .pipeline = p,
                                    .cluster = p->cluster,
                                    .queue = q,
                                    .changed = changed,
                                    .arg = arg};
    arena_init(&r->arena, 64 * 1024);
    metrics_register(&kept);
    metrics_register(&results);
    metrics_register(&plan_seconds);
}

void reservation_timer_configure(struct reservation_timer *r,
                                 const struct reservation_timer_options *o)
{
    r->cluster->reservations->options =
        (struct reservation_options){.after_ms = o->after_s * MS_PER_S};
    if (o->for_s > 0 || o->assume_s > 0)
        log_warn("option ignored",
                 kv("option", o->for_s > 0 ? "gang-reserve-for" : "backfill-assume"),
                 kv("why", "reservations last while there is progress, and run times are learned"));
}

void reservation_timer_follow(struct reservation_timer *r, size_t kept_before,
                              const struct attempt_result *tried)
{
    size_t now = r->cluster->reservations->items.len;
    if (now < kept_before) {
        bool used = tried->verdict == CYCLE_PLACED || tried->verdict == CYCLE_PARTLY;
        metrics_inc(&results, used ? "used" : "ended");
        metrics_set(&kept, NULL, (int64_t)now);
        int64_t next_ms = reservation_next(r->cluster);
        if (used && next_ms >= 0 && next_ms <= wall_ms() &&
            loop_now_ms(r->loop) - r->reconciled_ms >= PAUSE_MS)
            reconcile(r);
    }
    if (!heap_has(&r->timer.node))
        set_timer(r, 0);
}

void reservation_timer_pause(struct reservation_timer *r)
{
    loop_timer_cancel(r->loop, &r->timer);
}

void reservation_timer_deinit(struct reservation_timer *r)
{
    reservation_timer_pause(r);
    arena_deinit(&r->arena);
}

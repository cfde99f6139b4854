// SPDX-License-Identifier: Apache-2.0
#include "scheduler/reserving.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/num.h"
#include "scheduler/cycle/reservation.h"

/* Looks are not taken more often than this, whatever there is to be looked at: each may take as long as a cycle of a large gang. */
enum { PAUSE_MS = 1000, MS_PER_S = 1000, NS_PER_MS = 1000000 };

static struct metric kept = {.kind = METRIC_GAUGE,
                             .name = "cosched_scheduler_reservations",
                             .help = "Gangs for which room is kept."};
static struct metric results = {
    .kind = METRIC_COUNTER,
    .name = "cosched_scheduler_reservations_total",
    .help =
        "Times that room was kept for a gang: made, used (the gang started), lapsed (it did not "
        "in time), ended (it lacks pods now), refused (it does not fit, or not soon).",
    .label = "result"};
static struct metric look_seconds = {.kind = METRIC_HISTOGRAM,
                                     .name = "cosched_scheduler_reservation_look_seconds",
                                     .help = "Time that planning the start of a gang takes."};

const struct option_row reserving_option_rows[] = {
    {.section = "FAIRNESS"},
    {.name = "gang-reserve-after",
     .kind = OPTION_INT,
     .offset = offsetof(struct reserving_options, after_s),
     .fallback = "300",
     .min = 0,
     .max = 31536000,
     .meta = "SECONDS",
     .help =
         "A gang that has waited for room so long has room kept for it, so that smaller jobs do "
         "not take it away for ever; 0: never."},
    {.name = "gang-reserve-for",
     .kind = OPTION_INT,
     .offset = offsetof(struct reserving_options, for_s),
     .fallback = "1800",
     .min = 1,
     .max = 31536000,
     .meta = "SECONDS",
     .help = "So long at most; then other gangs of its priority have their turn."},
    {.name = "backfill-assume",
     .kind = OPTION_INT,
     .offset = offsetof(struct reserving_options, assume_s),
     .fallback = "600",
     .min = 1,
     .max = 31536000,
     .meta = "SECONDS",
     .help =
         "How long pods run that have no activeDeadlineSeconds, as far as kept room is concerned: "
         "others may use it only if they are over in time."},
    {0},
};

static int64_t wall_ms(void)
{
    return clock_wall_ns() / NS_PER_MS;
}

static void look(void *arg);

static void set_timer(struct reserving *r, int64_t least_ms)
{
    int64_t next_ms = reservation_next(r->cluster);
    if (next_ms >= 0)
        loop_timer_set(r->loop, &r->look, num_max(next_ms - wall_ms(), least_ms), look, r);
}

static void wake(struct reserving *r, uint32_t events)
{
    if (events == 0)
        return;
    queue_wake(r->queue, events, loop_now_ms(r->loop));
    r->changed(r->arg);
}

static void note(const struct reserving *r, const struct reservation_news *news)
{
    for (uint32_t i = 0; i < news->lapsed; i++)
        metrics_inc(&results, "lapsed");
    metrics_set(&kept, NULL, (int64_t)r->cluster->reservations->items.len);
    if (news->looked == NULL)
        return;
    metrics_inc(&results, news->made ? "made" : "refused");
    const struct reservation *made = news->looked->kept;
    if (made != NULL)
        log_info("keeping room", kv("for", made->what), kv("nodes", map_count(&made->nodes)),
                 kv("starts in s", (made->start_ms - made->made_ms) / MS_PER_S));
}

/* Its members are to be told, and those of the gangs that it goes with. */
static void tell(const struct reserving *r, struct gang *looked)
{
    const struct reservation *made = looked->kept;
    queue_touch(r->queue, looked, loop_now_ms(r->loop));
    for (size_t i = 0; made != NULL && i < made->gangs.len; i++)
        queue_touch(r->queue, made->gangs.items[i], loop_now_ms(r->loop));
}

static void look(void *arg)
{
    struct reserving *r = arg;
    int64_t began_us = clock_mono_us();
    arena_reset(&r->arena);
    struct reservation_news news = reservation_look(r->pipeline, wall_ms(), &r->arena);
    note(r, &news);
    if (news.looked != NULL) {
        metrics_observe_us(&look_seconds, NULL, clock_mono_us() - began_us);
        tell(r, news.looked);
        r->changed(r->arg);
    }
    wake(r, news.events);
    set_timer(r, PAUSE_MS);
}

void reserving_init(struct reserving *r, struct loop *loop, const struct pipeline *p,
                    struct queue *q, void (*changed)(void *arg), void *arg)
{
    *r = (struct reserving){.loop = loop,
                            .pipeline = p,
                            .cluster = p->cluster,
                            .queue = q,
                            .changed = changed,
                            .arg = arg};
    arena_init(&r->arena, 64 * 1024);
    metrics_register(&kept);
    metrics_register(&results);
    metrics_register(&look_seconds);
}

void reserving_configure(struct reserving *r, const struct reserving_options *o)
{
    r->cluster->reservations->options =
        (struct reservation_options){.after_ms = o->after_s * MS_PER_S,
                                     .for_ms = o->for_s * MS_PER_S,
                                     .assume_ms = o->assume_s * MS_PER_S};
}

void reserving_follow(struct reserving *r, struct gang *g, struct cycle_result *result,
                      struct arena *a)
{
    bool had = g->kept != NULL;
    uint32_t events = reservation_follow(r->cluster, g, result, wall_ms());
    if (had && g->kept == NULL) {
        metrics_inc(&results, result->verdict == CYCLE_PLACED || result->verdict == CYCLE_PARTLY
                                  ? "used"
                                  : "ended");
        metrics_set(&kept, NULL, (int64_t)r->cluster->reservations->items.len);
    }
    const char *words = reservation_words(r->cluster, g, a);
    if (words != NULL && result->sentence != NULL) {
        result->sentence = arena_printf(a, "%s; %s", result->sentence, words);
        result->class += (uint64_t)g->reservation; /* worth telling */
    }
    wake(r, events);
    if (!heap_has(&r->look.node))
        set_timer(r, 0);
}

void reserving_pause(struct reserving *r)
{
    loop_timer_cancel(r->loop, &r->look);
}

void reserving_deinit(struct reserving *r)
{
    reserving_pause(r);
    arena_deinit(&r->arena);
}

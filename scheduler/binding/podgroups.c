// SPDX-License-Identifier: Apache-2.0
/*
 * One pass visits all gangs and PodGroups, at most every PODGROUPS_DELAY_MS and only when something
 * changed or is due. That takes a few hundred microseconds for thousands of gangs, and needs no
 * hook wherever a pod moves. States between two passes are never written, so a gang that is placed
 * at once costs one write instead of four.
 *
 *      inspect_gang     no attempt ── a quorum waits for capacity (begin) ─► attempt
 *                           ▲                                              │    │  ▲
 *                           └── placed, or the quorum is gone ─────────────┘    └──┘ timeout (fail)
 *
 *      inspect_group    the watch shows the right status (progress.h): nothing to do
 *                       it was sent less than PODGROUPS_AGAIN_MS ago: wait for the watch
 *                       otherwise: sent
 */
#include "scheduler/binding/podgroups.h"

#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "scheduler/binding/loop_time.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cache/progress.h"

static const int64_t second_ns = 1000000000;

static struct metric timeouts = {
    .kind = METRIC_COUNTER,
    .name = "cosched_scheduler_gang_timeouts_total",
    .help = "Attempts of gangs that were not placed within scheduleTimeoutSeconds."};
static struct metric stale_total = {
    .kind = METRIC_COUNTER,
    .name = "cosched_scheduler_stale_gangs_total",
    .help = "Gangs that fell below their minMember and did not recover in time, by what was done.",
    .label = "action"};

struct podgroups {
    struct podgroups_config config;
    struct loop_timer timer;
    struct arena arena;
    struct ids_table trials; /* by gang */
    struct ids_table sent;   /* by PodGroups of one name */
};

struct podgroups_trial *podgroups_trial(struct podgroups *p, const struct gang *g)
{
    return ids_at(&p->trials, g->id);
}

struct podgroups_sent *podgroups_sent(struct podgroups *p, const struct cluster_groups *all)
{
    return ids_at(&p->sent, all->id);
}

static void next_by(int64_t *next_ms, int64_t due_ms)
{
    *next_ms = num_min(*next_ms, due_ms);
}

/* If the previous leader began the attempt, its time counts. */
static void begin(struct podgroups_trial *t, const struct pod_group *group, int64_t timeout_ms,
                  int64_t now_ms)
{
    int64_t wall_ns = clock_wall_ns();
    int64_t age_ms = group != NULL && group->schedule_start_ns > 0
                         ? (wall_ns - group->schedule_start_ns) / 1000000
                         : -1;
    bool goes_on = t->since_ns == 0 && age_ms >= 0 && age_ms < timeout_ms;
    t->since_ms = goes_on ? num_max(now_ms - age_ms, 1) : now_ms;
    t->since_ns = goes_on ? group->schedule_start_ns : wall_ns / second_ns * second_ns;
}

static void fail(struct podgroups *p, struct gang *g, const struct pod_group *group,
                 int64_t timeout_ms, int64_t now_ms)
{
    struct podgroups_trial *t = podgroups_trial(p, g);
    const char *why = queue_why(p->config.queue, g)->sentence;
    AUTO_STRBUF b = {0};
    strbuf_addf(&b, "%s was not placed within %lld s, trying again", g->key,
                (long long)(timeout_ms / 1000));
    if (why != NULL)
        strbuf_addf(&b, ": %s", why);
    metrics_inc(&timeouts, NULL);
    log_info("attempt of a gang ends", kv("gang", g->key), kv("timeout_ms", timeout_ms));
    pod_writer_report_gang(p->config.pod_writer, g, group, true, "ScheduleTimeout", strbuf_str(&b));
    queue_retry(p->config.queue, g, now_ms);
    t->since_ms = now_ms;
    t->since_ns = clock_wall_ns() / second_ns * second_ns;
    p->config.changed(p->config.arg);
}

static void inspect_attempt(struct podgroups *p, struct gang *g, const struct pod_group *group,
                            bool waits, int64_t now_ms, int64_t *next_ms)
{
    const char *why;
    struct podgroups_trial *t = podgroups_trial(p, g);
    int64_t timeout_ms = progress_timeout_ms(group);
    if (!waits || gangs_count_missing(g) == 0 ||
        !gangs_has_quorum(p->config.cluster, g, &p->arena, &why)) {
        t->since_ms = 0;
        return;
    }
    if (t->since_ms == 0)
        begin(t, group, timeout_ms, now_ms);
    if (now_ms - t->since_ms >= timeout_ms)
        fail(p, g, group, timeout_ms, now_ms);
    next_by(next_ms, t->since_ms + timeout_ms);
}

static void evict_all(struct podgroups *p, const struct gang *g, const char *why)
{
    for (size_t i = 0; i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        if (cp->state == CLUSTER_BOUND && !cp->pod->terminating)
            evictor_submit_stale(p->config.evictor, cp->pod, why);
    }
}

static void end_stale(struct podgroups *p, struct gang *g, const struct pod_group *group,
                      int64_t timeout_ms)
{
    AUTO_STRBUF b = {0};
    bool evict = p->config.evict_stale;
    strbuf_addf(&b, "%s has %d of %d pods on nodes, and for %lld s no place for the others: %s",
                g->key, gangs_count_placed(g), g->min_available, (long long)(timeout_ms / 1000),
                evict ? "they are evicted (--stale-gang=evict)" : "they stay (--stale-gang=keep)");
    metrics_inc(&stale_total, evict ? "evicted" : "kept");
    log_warn("gang is stale", kv("gang", g->key), kv("why", strbuf_str(&b)));
    pod_writer_report_gang(p->config.pod_writer, g, group, false, "StaleGang", strbuf_str(&b));
    if (evict)
        evict_all(p, g, strbuf_str(&b));
}

/* Deleted succeeded members may leave the rest below the quorum; such a gang is not stale. */
static void inspect_pieces(struct podgroups *p, struct gang *g, const struct pod_group *group,
                           int64_t now_ms, int64_t *next_ms)
{
    struct podgroups_trial *t = podgroups_trial(p, g);
    int32_t placed = gangs_count_placed(g);
    int64_t timeout_ms = progress_timeout_ms(group);
    if (placed == 0 || placed >= g->min_available || t->had_success) {
        t->broken_ms = 0;
        t->told_broken = false;
        return;
    }
    if (t->broken_ms == 0)
        t->broken_ms = now_ms;
    if (now_ms - t->broken_ms >= timeout_ms && !t->told_broken) {
        end_stale(p, g, group, timeout_ms);
        t->told_broken = !p->config.evict_stale; /* retry failed evictions */
        t->broken_ms = now_ms;
    }
    if (!t->told_broken)
        next_by(next_ms, t->broken_ms + timeout_ms);
}

/* The record is written without waiting for the answer; the watch shows it. */
static void inspect_record(struct podgroups *p, struct gang *g, int64_t now_ms, int64_t *next_ms)
{
    bool again = false;
    int64_t due_ms = gangs_follow_record(p->config.cluster, g, &podgroups_trial(p, g)->recording_ms,
                                         now_ms, PODGROUPS_AGAIN_MS, &again);
    if (due_ms >= 0)
        next_by(next_ms, due_ms);
    if (again)
        p->config.changed(p->config.arg);
}

static void inspect_gang(struct podgroups *p, struct gang *g, int64_t now_ms, int64_t *next_ms)
{
    const struct pod_group *group = gangs_group_of(p->config.cluster, g);
    bool waits = false;
    for (size_t i = 0; i < g->members.len; i++) {
        waits |= cluster_pod_is_schedulable(g->members.items[i]);
        podgroups_trial(p, g)->had_success |= g->members.items[i]->state == CLUSTER_FINISHED;
    }
    inspect_attempt(p, g, group, waits, now_ms, next_ms);
    inspect_pieces(p, g, group, now_ms, next_ms);
    inspect_record(p, g, now_ms, next_ms);
}

static void inspect_group(struct podgroups *p, const struct cluster_groups *all, int64_t now_ms,
                          int64_t *next_ms)
{
    const struct pod_group *group =
        all->of[POD_GROUP_SIGS] != NULL ? all->of[POD_GROUP_SIGS] : all->of[POD_GROUP_X];
    if (group == NULL) /* Kubernetes' own status has no such fields */
        return;
    struct gang *g = gangs_find(p->config.cluster, all->key);
    struct podgroups_trial *t = g != NULL ? podgroups_trial(p, g) : NULL;
    struct podgroups_sent *sent = podgroups_sent(p, all);
    struct progress now;
    progress_of(group, g, failures_count(p->config.failures, group->key), &now);
    now.schedule_start_ns = progress_start_ns(group, now.phase, g != NULL,
                                              t != NULL ? t->since_ns : 0, clock_wall_ns());
    if (t != NULL && now.schedule_start_ns != 0)
        t->since_ns = now.schedule_start_ns;
    if (progress_is_written(&now, group))
        return;
    uint64_t digest = progress_digest(&now, group);
    if (sent->digest != digest || now_ms - sent->ms >= PODGROUPS_AGAIN_MS) {
        *sent = (struct podgroups_sent){.digest = digest, .ms = now_ms};
        pod_writer_report_group(p->config.pod_writer, group, &now);
    }
    next_by(next_ms, sent->ms + PODGROUPS_AGAIN_MS);
}

static void expire_holds(struct podgroups *p, int64_t now_ms, int64_t *next_ms)
{
    int64_t due_ms;
    uint32_t events = replacement_hold_expire(p->config.cluster, now_ms, &due_ms);
    if (due_ms >= 0)
        next_by(next_ms, due_ms);
    if (queue_wake(p->config.queue, events, now_ms) > 0)
        p->config.changed(p->config.arg);
}

static void inspect_all(void *arg)
{
    struct podgroups *p = arg;
    int64_t began_us = clock_mono_us();
    struct cluster *c = p->config.cluster;
    int64_t now_ms = clock_mono_ms(), next_ms = INT64_MAX;
    const char *key;
    void *value;
    arena_reset(&p->arena);
    expire_holds(p, now_ms, &next_ms);
    for (size_t i = 0; i < c->several.len; i++)
        inspect_gang(p, c->several.items[i], now_ms, &next_ms);
    for (size_t i = 0; map_next(&c->pod_groups, &i, &key, &value);)
        inspect_group(p, value, now_ms, &next_ms);
    if (next_ms < INT64_MAX)
        loop_timer_set(p->config.loop, &p->timer, num_max(next_ms - now_ms, PODGROUPS_DELAY_MS),
                       inspect_all, p);
    loop_time_add(LOOP_TIME_PODGROUPS, began_us);
}

void podgroups_reconcile(struct podgroups *p)
{
    if (heap_has(&p->timer.node) && p->timer.due_ms <= clock_mono_ms() + PODGROUPS_DELAY_MS)
        return;
    loop_timer_set(p->config.loop, &p->timer, PODGROUPS_DELAY_MS, inspect_all, p);
}

struct podgroups *podgroups_new(const struct podgroups_config *c)
{
    metrics_register(&timeouts);
    metrics_register(&stale_total);
    struct podgroups *p = mem_new(struct podgroups, 1);
    p->config = *c;
    arena_init(&p->arena, 4096);
    ids_table_init(&p->trials, sizeof(struct podgroups_trial), NULL);
    ids_table_init(&p->sent, sizeof(struct podgroups_sent), NULL);
    return p;
}

void podgroups_free(struct podgroups *p)
{
    if (p == NULL)
        return;
    loop_timer_cancel(p->config.loop, &p->timer);
    arena_deinit(&p->arena);
    ids_table_deinit(&p->trials);
    ids_table_deinit(&p->sent);
    free(p);
}

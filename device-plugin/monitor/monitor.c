// SPDX-License-Identifier: Apache-2.0
/*
 * monitor - connects scans with device-plugin/health:
 *
 *   messages of the scan ─► health ─► cards, healthy or not ─► agent
 *                       └─► usage  ─► Events on pods, metrics
 *
 * A card missing from a scan stays in the inventory until health calls it unhealthy. So one failed
 * call changes nothing, and a lost card keeps what its containers hold.
 *
 * A hanging driver does not condemn all cards. If the call that hangs is about one card, that card
 * is withdrawn; the others keep their last state, and the node reports that it cannot see them.
 */
#include "device-plugin/monitor/monitor_internal.h"

#include <stdlib.h>

#include "device-plugin/cpu/cpumanager.h"
#include "device-plugin/isolation/isolation.h"
#include "device-plugin/isolation/shares_worker.h"
#include "device-plugin/cards/health_store.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/num.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

static const char *const class_names[] = {[HEALTH_APPLICATION] = "application",
                                          [HEALTH_NOTICE] = "notice",
                                          [HEALTH_HARDWARE] = "hardware"};

static void say(struct monitor *m, bool warning, const char *reason, const char *message)
{
    if (warning)
        log_warn(message, kv("reason", reason));
    else
        log_info(message, kv("reason", reason));
    m->config.hooks.event(m->config.hooks.arg, warning, reason, message);
}

static void say_health(struct monitor *m, int32_t index)
{
    const struct health_card *c = &m->health.cards[index];
    char text[512];
    if (m->config.hooks.state_dir != NULL)
        health_store_save(m->config.hooks.state_dir, &m->health);
    if (c->sick)
        (void)str_format(text, sizeof text,
                         "card %d (%s) takes no new containers until it proves well: %s", index,
                         c->uuid, c->why);
    else
        (void)str_format(text, sizeof text, "card %d (%s) is well again: %s", index, c->uuid,
                         c->why);
    say(m, c->sick, c->sick ? "GpuSick" : "GpuRecovered", text);
}

static int32_t index_of(const struct monitor *m, const char *uuid)
{
    for (int32_t i = 0; i < GPU_CARDS_MAX; i++)
        if (m->health.cards[i].known && str_eq(m->health.cards[i].uuid, uuid))
            return i;
    return BACKEND_NO_CARD;
}

/* Delivers the known cards with their health. */
static void deliver(struct monitor *m, const struct gpu_inventory *scan)
{
    struct arena fresh;
    struct gpu_inventory merged;
    arena_init(&fresh, 0);
    inventory_merge(&m->cards, scan, &fresh, &merged);
    for (size_t i = 0; i < merged.cards_len; i++) {
        const struct health_card *c = health_find(&m->health, merged.cards[i].uuid);
        if (c == NULL)
            continue;
        merged.cards[i].health = c->sick ? GPU_HEALTH_SICK : GPU_HEALTH_OK;
        merged.cards[i].why = c->sick ? arena_strdup(&fresh, c->why) : "";
    }
    pthread_mutex_lock(&m->lock);
    struct arena old = m->arena;
    m->arena = fresh;
    m->cards = merged;
    pthread_mutex_unlock(&m->lock);
    arena_deinit(&old);
    m->config.hooks.cards(m->config.hooks.arg, &m->cards);
}

/* ---- scans ---- */

static void judge(struct monitor *m, const struct health_sight *s, int64_t now_ms)
{
    if (health_seen(&m->health, s, now_ms))
        say_health(m, s->index);
}

static void judge_scan(struct monitor *m, const struct backend_sight *sight, int64_t now_ms)
{
    bool seen[GPU_CARDS_MAX] = {false};
    for (size_t i = 0; i < sight->inventory.cards_len; i++) {
        const struct gpu_card *c = &sight->inventory.cards[i];
        bool ill = c->health != GPU_HEALTH_OK; /* only a simulated card reports this itself */
        judge(m,
              &(struct health_sight){.index = c->index,
                                     .uuid = c->uuid,
                                     .sick = ill ? "it says so itself" : NULL,
                                     .gone = ill,
                                     .ecc = sight->cards[i].ecc,
                                     .repair = sight->cards[i].repair},
              now_ms);
        if (c->index >= 0 && c->index < GPU_CARDS_MAX)
            seen[c->index] = true;
    }
    for (size_t i = 0; i < sight->failures_len; i++) {
        const struct backend_failure *f = &sight->failures[i];
        judge(m,
              &(struct health_sight){.index = f->index, .sick = f->why, .gone = f->gone, .ecc = -1},
              now_ms);
        seen[f->index] = true;
    }
    for (int32_t i = 0; i < GPU_CARDS_MAX; i++)
        if (!seen[i])
            judge(m,
                  &(struct health_sight){.index = i,
                                         .sick = "the driver does not list the card any more",
                                         .gone = true,
                                         .ecc = -1},
                  now_ms);
}

/* Warns about a shared mode beside a kubelet that gives containers exclusive CPUs. */
static void inspect_kubelet(struct monitor *m)
{
    if (m->config.cpu_manager_state == NULL)
        return;
    bool now = gpu_mode_is_shared(m->mode) && cpumanager_is_static(m->config.cpu_manager_state);
    if (now && !m->cpu_static) {
        char text[512];
        (void)str_format(
            text, sizeof text,
            "the kubelet's CPU manager policy is static and the node is in GPU mode %s: the kubelet gives CPUs to "
            "single containers and moves all others off them, also those that the scheduler has pinned. Set "
            "cpuManagerPolicy to none on nodes that share GPUs",
            gpu_mode_name(m->mode));
        say(m, true, "CpuManagerStatic", text);
    }
    m->cpu_static = now;
    monitor_metrics_cpu_static(now);
}

/* ---- error events ---- */

static void count_xid(struct monitor *m, int32_t card, int64_t xid)
{
    size_t i = 0;
    pthread_mutex_lock(&m->lock);
    while (i < m->xids_len && (m->xids[i].card != card || m->xids[i].xid != xid))
        i++;
    if (i == m->xids_len && i < MONITOR_XIDS_MAX)
        m->xids[m->xids_len++] = (struct monitor_xid){.card = card, .xid = xid};
    if (i < m->xids_len)
        m->xids[i].count++;
    pthread_mutex_unlock(&m->lock);
}

static void judge_event(struct monitor *m, const struct backend_event *e, int64_t now_ms)
{
    int32_t index = index_of(m, e->uuid);
    bool changed;
    if (e->kind == BACKEND_ECC) {
        log_warn("uncorrected memory error", kv("card", index), kv("uuid", e->uuid));
        changed = health_ecc_seen(&m->health, e->uuid, now_ms);
    } else {
        const struct health_xid *x = health_xid(e->xid);
        log_warn("XID", kv("card", index), kv("uuid", e->uuid), kv("xid", e->xid),
                 kv("class", class_names[x->class]), kv("what", x->what));
        count_xid(m, index, e->xid);
        changed = health_xid_seen(&m->health, e->uuid, e->xid, now_ms);
    }
    if (changed) {
        say_health(m, index);
        deliver(m, &m->cards);
    }
}

void monitor_message(struct monitor *m, const struct scan_message *l)
{
    int64_t now_ms = clock_mono_ms();
    switch (l->kind) {
    case SCAN_CARDS:
        m->scan_error[0] = '\0';
        judge_scan(m, &l->sight, now_ms);
        deliver(m, &l->sight.inventory);
        monitor_pods_scan(m, l, now_ms);
        inspect_kubelet(m);
        monitor_time_wanted(m);
        if (m->contexts != NULL)
            context_probe_scan(m->contexts, l, m->confined);
        break;
    case SCAN_EVENT:
        judge_event(m, &l->event, now_ms);
        break;
    case SCAN_TIME:
        monitor_time_scan(m, l);
        monitor_audit_time(m, l);
        break;
    case SCAN_FAILED:
    case SCAN_FATAL:
        if (error_is_news(m->scan_error, l->err.text))
            log_error("the cards cannot be read, the last known ones stay",
                      kv("error", l->err.text));
        break;
    }
}

/* ---- a hanging driver ---- */

static void watch(void *arg)
{
    struct monitor *m = arg;
    int32_t card = BACKEND_NO_CARD;
    int64_t now_ms = clock_mono_ms();
    int64_t busy_ms = m->scan != NULL ? scan_busy_ms(m->scan, now_ms, &card) : 0;
    bool hung = busy_ms >= m->config.deadline_ms;
    if (hung && (!m->hung || card != m->hung_card)) { /* one hang may follow another */
        char text[512], which[48] = "";
        if (card != BACKEND_NO_CARD)
            (void)str_format(which, sizeof which, " about card %d", card);
        (void)str_format(
            text, sizeof text,
            "the driver has not answered a question%s for %lld s: the health of the cards is not known "
            "from now on, %s",
            which, (long long)(busy_ms / 1000),
            card != BACKEND_NO_CARD ? "the other cards stay as they were"
                                    : "all stay as they were");
        say(m, true, "GpuDriverHangs", text);
        if (health_hangs(&m->health, card, now_ms)) {
            say_health(m, card);
            deliver(m, &m->cards);
        }
    } else if (!hung && m->hung) {
        say(m, false, "GpuDriverAnswers", "the driver answers again");
    }
    m->hung = hung;
    m->hung_card = card;
    monitor_metrics_hung(hung);
    int64_t left_ms = hung ? m->config.deadline_ms : m->config.deadline_ms - busy_ms;
    loop_timer_set(m->config.loop, &m->watchdog, num_max(left_ms, 1), watch, m);
}

void monitor_watch(struct monitor *m, struct scan *s)
{
    m->scan = s;
    monitor_time_wanted(m);
    if (s != NULL)
        loop_timer_set(m->config.loop, &m->watchdog, m->config.deadline_ms, watch, m);
    else
        loop_timer_cancel(m->config.loop, &m->watchdog);
}

void monitor_mode(struct monitor *m, enum gpu_mode mode, const char *engine)
{
    m->mode = mode;
    m->confined = engine != NULL && str_eq(engine, ISOLATION_LIBRARY);
    m->limited = m->confined || (engine != NULL && str_eq(engine, ISOLATION_MPS));
    monitor_time_wanted(m);
}

void monitor_offered(struct monitor *m, enum mode_resource r, const struct inventory_devices *d)
{
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < GPU_CARDS_MAX; i++)
        m->offered[i][r] = 0;
    for (size_t i = 0; i < d->len; i++) {
        int32_t at = d->items[i].healthy ? inventory_find(&m->cards, r, d->items[i].id) : -1;
        if (at >= 0)
            m->offered[m->cards.cards[at].index][r]++;
    }
    pthread_mutex_unlock(&m->lock);
}

int monitor_new(struct monitor **out, const struct monitor_config *c, struct error *err)
{
    struct monitor *m = mem_new(struct monitor, 1);
    *out = m;
    m->config = *c;
    health_init(&m->health, c->hold_ms);
    if (c->hooks.state_dir != NULL)
        health_store_load(c->hooks.state_dir, &m->health);
    arena_init(&m->arena, 0);
    pthread_mutex_init(&m->lock, NULL);
    if (c->hooks.contexts != NULL)
        m->contexts = context_probe_new(c->hooks.program, c->hooks.cuda_library, c->hooks.contexts);
    monitor_pods_init(m);
    monitor_metrics_init(m);
    return monitor_audit_init(m, err);
}

void monitor_free(struct monitor *m)
{
    if (m == NULL)
        return;
    (void)monitor_stop(m);
    loop_timer_cancel(m->config.loop, &m->watchdog);
    mailbox_free(m->looks);
    shares_worker_free(m->worker);
    monitor_pods_free(m);
    context_probe_free(m->contexts);
    arena_deinit(&m->arena);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

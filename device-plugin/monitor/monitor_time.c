// SPDX-License-Identifier: Apache-2.0
/* monitor_time - passes the device time that the driver measured per process to the regions of
 * the containers that have a time limit. Idle containers get a zero, because the library must see
 * that measuring goes on. If a card's driver does not report time, nothing is written: the library
 * notices, counts launches instead and says so (monitor_audit makes an Event of it). */
#include "device-plugin/monitor/monitor_internal.h"

#include <string.h>

#include "device-plugin/isolation/shares_worker.h"
#include "lib/base/num.h"
#include "lib/base/str.h"

int32_t monitor_card_of(const struct monitor *m, const unsigned char uuid[16])
{
    unsigned char other[16];
    for (size_t i = 0; i < m->cards.cards_len; i++) {
        const char *text = m->cards.cards[i].uuid;
        if (limits_uuid(text, strlen(text), other) && memcmp(uuid, other, sizeof other) == 0)
            return m->cards.cards[i].index;
    }
    return BACKEND_NO_CARD;
}

static bool is_for(const struct shares_folder *f, const struct pod *p)
{
    if (f->uid[0] != '\0')
        return str_eq(f->uid, p->uid) || str_eq(f->uid, pod_mirrored_uid(p));
    return str_starts(f->name, SHARES_UNKNOWN) ? str_eq(f->ns, p->ns) && str_eq(f->pod, p->name)
                                               : shares_is_of(f->name, p->uid);
}

struct monitor_pod *monitor_pod_of(const struct monitor *m, const struct shares_folder *f)
{
    for (size_t i = 0; i < m->pods.len; i++)
        if (is_for(f, m->pods.items[i]->pod))
            return m->pods.items[i];
    return NULL;
}

static bool is_of(const struct monitor *m, const struct shares_folder *f, const char *uid)
{
    if (shares_is_of(f->name, uid))
        return true;
    const struct monitor_pod *p = str_starts(f->name, SHARES_UNKNOWN) ? monitor_pod_of(m, f) : NULL;
    return p != NULL && str_eq(p->pod->uid, uid);
}

bool monitor_is_in(const struct monitor *m, const struct usage_process *p,
                   const struct shares_folder *list, size_t len, size_t at)
{
    if (!is_of(m, &list[at], p->uid))
        return false;
    for (size_t i = 0; i < len; i++)
        if (i != at && str_eq(p->folder, list[i].name) && is_of(m, &list[i], p->uid))
            return false;
    return true;
}

static uint64_t busy_ns(const struct monitor *m, const struct scan_message *l,
                        const struct shares_folder *list, size_t len, size_t at, int32_t card)
{
    int64_t ns = 0;
    for (size_t i = 0; i < l->busy_len; i++)
        if (l->busy[i].process.card == card && monitor_is_in(m, &l->busy[i].process, list, len, at))
            ns = num_add_sat(ns, l->busy[i].ns);
    return (uint64_t)ns;
}

void monitor_time_scan(struct monitor *m, const struct scan_message *l)
{
    struct arena a;
    struct shares_folder *list;
    if (m->worker == NULL)
        return;
    arena_init(&a, 0);
    size_t len = shares_list(m->config.hooks.shares, &a, &list);
    for (size_t i = 0; i < len; i++) {
        for (uint32_t row = 0; row < list[i].limits.len; row++) {
            const struct limits_card *limit = &list[i].limits.cards[row];
            int32_t card = limit->percent < 100 ? monitor_card_of(m, limit->uuid) : BACKEND_NO_CARD;
            if (card >= 0 && card < GPU_CARDS_MAX && l->timed[card])
                shares_worker_measure(m->worker, list[i].name, row,
                                      busy_ns(m, l, list, len, i, card), (uint64_t)l->at_ns);
        }
    }
    arena_deinit(&a);
}

/* Does a pod have a share of a card's time? Unknown, so assumed, until the pods are listed. */
static bool has_timed_pods(const struct monitor *m)
{
    for (size_t i = 0; i < m->pods.len; i++)
        for (size_t k = 0; k < m->pods.items[i]->grant->shares_len; k++)
            if (m->pods.items[i]->grant->shares[k].percent > 0)
                return true;
    return !m->pods_listed;
}

void monitor_time_wanted(struct monitor *m)
{
    if (m->scan != NULL)
        scan_want_time(m->scan, m->config.hooks.shares != NULL && m->mode == GPU_MODE_CORE_MEM &&
                                    m->confined && has_timed_pods(m));
}

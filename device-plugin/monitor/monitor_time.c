// SPDX-License-Identifier: Apache-2.0
/* monitor_time - writes the device time that the driver measured per process into the regions of
 * the containers that have a time limit. Idle containers get a zero, because the library must see
 * that measuring goes on. If a card's driver does not report time, nothing is written: the library
 * notices, counts launches instead and says so (monitor_audit makes an Event of it). */
#include "device-plugin/monitor/monitor_internal.h"

#include <string.h>

#include "device-plugin/isolation/shares.h"
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

struct monitor_pod *monitor_pod_of(const struct monitor *m, const char *folder, const char *ns,
                                   const char *pod)
{
    bool unknown = str_starts(folder, SHARES_UNKNOWN);
    for (size_t i = 0; i < m->pods.len; i++)
        if (unknown
                ? str_eq(m->pods.items[i]->pod->ns, ns) && str_eq(m->pods.items[i]->pod->name, pod)
                : shares_is_of(folder, m->pods.items[i]->pod->uid))
            return m->pods.items[i];
    return NULL;
}

bool monitor_is_in(const struct monitor *m, const struct usage_process *p,
                   const struct shares_folder *list, size_t len, size_t at)
{
    if (p->folder[0] != '\0') {
        if (!str_eq(p->folder, list[at].name))
            return false;
        const struct monitor_pod *its = monitor_pod_of(m, list[at].name, list[at].ns, list[at].pod);
        return shares_is_of(list[at].name, p->uid) ||
               (its != NULL && str_eq(its->pod->uid, p->uid));
    }
    if (!shares_is_of(list[at].name, p->uid))
        return false;
    for (size_t i = 0; i < len; i++)
        if (i != at && shares_is_of(list[i].name, p->uid))
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
    if (m->config.hooks.shares == NULL)
        return;
    arena_init(&a, 0);
    size_t len = shares_list(m->config.hooks.shares, &a, &list);
    for (size_t i = 0; i < len; i++) {
        for (uint32_t row = 0; row < list[i].limits.len; row++) {
            const struct limits_card *limit = &list[i].limits.cards[row];
            int32_t card = limit->percent < 100 ? monitor_card_of(m, limit->uuid) : BACKEND_NO_CARD;
            if (card >= 0 && card < GPU_CARDS_MAX && l->timed[card])
                (void)shares_measure(m->config.hooks.shares, list[i].name, row,
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

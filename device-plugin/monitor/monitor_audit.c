// SPDX-License-Identifier: Apache-2.0
/*
 * monitor_audit - finds processes that bypass our library (static and musl binaries, direct users
 * of the device file) and containers whose device time is not measured. There are two signs:
 *
 *   - A process gets a context only through a call that the library intercepts, and then has a slot
 *     in its container's region. If the driver lists more processes of a pod than there are live
 *     processes with a slot, some are not limited to the share.
 *   - The driver counts more memory for a container's processes than its limit. It also counts
 *     its own per-process overhead: a context, module code, stacks. Only an empty context can be
 *     charged, so a legitimate program that fills its share exceeds it. AUDIT_DRIVER_MIB is
 *     allowed for each process, less what is already charged.
 *
 * One source may not yet see a process that just started or ended, so a finding counts only after
 * several in a row. With --enforce=evict the pod is then evicted, repeatedly while it continues.
 */
#include "device-plugin/monitor/monitor_internal.h"

#include <string.h>

#include "device-plugin/isolation/shares.h"
#include "lib/base/log.h"
#include "lib/base/num.h"
#include "lib/base/str.h"

enum { AUDIT_LOOKS = 3, AUDIT_DRIVER_MIB = 512 };

/* ---- what the regions report ---- */

struct asking {
    const struct monitor *m;
    const struct scan_message *l;
};

/* The folder of a then unknown pod may belong to an earlier pod of that name: is it in use? */
static bool is_in_use(const struct scan_message *l, const char *folder, const struct monitor_pod *p)
{
    if (shares_is_of(folder, p->pod->uid))
        return true;
    for (size_t i = 0; i < l->processes_len; i++)
        if (str_eq(l->processes[i].folder, folder) && str_eq(l->processes[i].uid, p->pod->uid))
            return true;
    return false;
}

static void add(void *arg, const struct shares_scan *l)
{
    const struct asking *q = arg;
    struct monitor_pod *p = monitor_pod_of(q->m, l->folder, l->ns, l->pod);
    if (p == NULL || !is_in_use(q->l, l->folder, p))
        return;
    p->audit.known = true;
    p->audit.confined += l->card == 0 ? l->processes : 0;
    p->audit.unmeasured = p->audit.unmeasured || l->unmeasured;
}

/* ---- what the driver reports ---- */

static void compare(const struct monitor *m, const struct scan_message *l,
                    const struct shares_folder *list, size_t len, size_t at, uint32_t row)
{
    const struct limits_card *limit = &list[at].limits.cards[row];
    int32_t card = monitor_card_of(m, limit->uuid);
    struct monitor_pod *p = monitor_pod_of(m, list[at].name, list[at].ns, list[at].pod);
    int64_t mib = 0, processes = 0;
    for (size_t i = 0; i < l->processes_len; i++)
        if (l->processes[i].card == card && monitor_is_in(m, &l->processes[i], list, len, at)) {
            mib = num_add_sat(mib, num_max(l->processes[i].mib, 0));
            processes++;
        }
    int64_t limit_mib = (int64_t)(limit->bytes >> 20);
    int64_t charged_mib = (int64_t)(limit->context_bytes >> 20);
    int64_t allowed = processes * num_max(AUDIT_DRIVER_MIB - charged_mib, 0);
    if (p == NULL || mib <= limit_mib + allowed)
        return;
    if (mib - limit_mib > p->audit.beyond_mib)
        (void)str_format(p->audit.beyond, sizeof p->audit.beyond,
                         "the driver counts %lld MiB of card %d for a container that may have %lld",
                         (long long)mib, card, (long long)limit_mib);
    p->audit.beyond_mib = num_add_sat(p->audit.beyond_mib, mib - limit_mib);
}

static void judge(struct monitor *m, struct monitor_pod *p)
{
    struct monitor_audit *a = &p->audit;
    int64_t loose = a->known ? num_max(p->usage.processes - a->confined, 0) : 0;
    bool now = loose > 0 || a->beyond_mib > 0;
    a->looks = now ? a->looks + 1 : 0;
    a->loose = a->looks >= AUDIT_LOOKS ? loose : 0;
    a->over_mib = a->looks >= AUDIT_LOOKS ? a->beyond_mib : 0;
    if (a->looks < AUDIT_LOOKS) {
        a->told = a->told && now;
        return;
    }
    bool evict = m->config.hooks.evict != NULL && a->looks % AUDIT_LOOKS == 0;
    if (!a->told) {
        char text[768], which[200] = "";
        if (loose > 0)
            (void)str_format(
                which, sizeof which,
                "%lld of its %lld processes on the GPU are not held to its share of %lld MiB",
                (long long)loose, (long long)p->usage.processes, (long long)p->asked_mib);
        (void)str_format(
            text, sizeof text,
            "%s%s%s. Not held are processes that do not load shared libraries as others do (static or musl binaries, or direct use of the device); other "
            "pods on the card may run out of memory%s",
            which, loose > 0 && a->beyond_mib > 0 ? "; " : "", a->beyond_mib > 0 ? a->beyond : "",
            evict ? ". The pod is evicted" : "");
        log_warn(text, kv("pod", p->pod->key));
        m->config.hooks.pod_event(m->config.hooks.arg, p->pod, true, "GpuIsolationBypassed", text);
        a->told = true;
    }
    if (evict)
        m->config.hooks.evict(m->config.hooks.arg, p->pod);
}

/* New containers and a restarted plugin have no measurements yet. */
static void judge_time(struct monitor *m, struct monitor_pod *p)
{
    static const char text[] =
        "the driver does not tell how much of the card's time its processes use: launches are counted instead, by an estimate of what each "
        "takes, and it may get more or less than its percentage";
    struct monitor_audit *a = &p->audit;
    a->blind_looks = a->unmeasured ? a->blind_looks + (a->blind_looks < AUDIT_LOOKS) : 0;
    a->blind_told = a->blind_told && a->unmeasured;
    if (a->blind_looks < AUDIT_LOOKS || a->blind_told)
        return;
    a->blind_told = true;
    log_warn(text, kv("pod", p->pod->key));
    m->config.hooks.pod_event(m->config.hooks.arg, p->pod, true, "GpuTimeUnmeasured", text);
}

void monitor_audit_scan(struct monitor *m, const struct scan_message *l, bool processes_known)
{
    struct arena a;
    struct shares_folder *list;
    if (m->config.hooks.shares == NULL)
        return;
    for (size_t i = 0; i < m->pods.len; i++) {
        struct monitor_audit *x = &m->pods.items[i]->audit;
        x->known = x->unmeasured = false;
        x->confined = x->beyond_mib = 0;
    }
    shares_each(m->config.hooks.shares, add, &(struct asking){m, l});
    arena_init(&a, 0);
    size_t len = processes_known ? shares_list(m->config.hooks.shares, &a, &list) : 0;
    for (size_t i = 0; i < len; i++)
        for (uint32_t row = 0; row < list[i].limits.len; row++)
            compare(m, l, list, len, i, row);
    arena_deinit(&a);
    for (size_t i = 0; i < m->pods.len; i++) {
        if (processes_known)
            judge(m, m->pods.items[i]);
        judge_time(m, m->pods.items[i]);
    }
}

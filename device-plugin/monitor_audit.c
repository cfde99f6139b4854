// SPDX-License-Identifier: Apache-2.0
/*
 * monitor_audit - processes that got past our own library: static and musl binaries, or whoever talks to the device file himself.
 *
 * A process can have a context on a card only by a call that the library stands in front of, and then it has a slot in its container's
 * region. So if the driver lists more processes of a pod than there are living ones with a slot, some are not held to the share.
 * Sizes are not compared: what the driver needs for itself would have to be known exactly. A process that has just started or ended
 * may be seen by one and not by the other, so it counts after some looks in a row.
 */
#include "device-plugin/monitor_inside.h"

#include <string.h>

#include "device-plugin/isolation/shares.h"
#include "lib/base/log.h"
#include "lib/base/num.h"
#include "lib/base/str.h"

enum { AUDIT_LOOKS = 3 };

static void add(void *arg, const struct shares_look *l)
{
    struct monitor *m = arg;
    const char *dot = strrchr(l->folder, '.');
    size_t n = dot != NULL ? (size_t)(dot - l->folder) : 0;
    for (size_t i = 0; l->card == 0 && i < m->pods_len; i++) {
        struct monitor_pod *p = m->pods[i];
        if (strlen(p->uid) != n || memcmp(p->uid, l->folder, n) != 0)
            continue;
        p->audit.known = true;
        p->audit.confined += l->processes;
    }
}

static void judge(struct monitor *m, struct monitor_pod *p)
{
    struct monitor_audit *a = &p->audit;
    int64_t loose = a->known ? num_max(p->usage.processes - a->confined, 0) : 0;
    a->looks = loose > 0 ? a->looks + (a->looks < AUDIT_LOOKS) : 0;
    a->loose = a->looks >= AUDIT_LOOKS ? loose : 0;
    if (a->loose == 0 || a->told) {
        a->told = a->told && loose > 0;
        return;
    }
    char text[512];
    (void)str_format(
        text, sizeof text,
        "%lld of its %lld processes on the GPU are not held to its share of %lld MiB: they do not load shared "
        "libraries as others do (static or musl binaries, or direct use of the device), and other pods on the "
        "card may run out of memory",
        (long long)a->loose, (long long)p->usage.processes, (long long)p->asked_mib);
    log_warn(text, kv("pod", p->key));
    m->config.hooks.pod_event(m->config.hooks.arg, p->ns, p->name, p->uid, true,
                              "GpuIsolationBypassed", text);
    a->told = true;
}

void monitor_audit_look(struct monitor *m)
{
    if (m->config.hooks.shares == NULL)
        return;
    for (size_t i = 0; i < m->pods_len; i++) {
        m->pods[i]->audit.known = false;
        m->pods[i]->audit.confined = 0;
    }
    shares_each(m->config.hooks.shares, add, m);
    for (size_t i = 0; i < m->pods_len; i++)
        judge(m, m->pods[i]);
}

// SPDX-License-Identifier: Apache-2.0
/* monitor_pods - the node's pods with their grants and GPU usage. A node has a few hundred pods at
 * most, so they are a list with linear search. Pods that ask for no GPU are in it, because their
 * processes may use one. Finished pods and pods from a state file are left out. The verdict on a
 * pod's usage survives updates of the pod. */
#include "device-plugin/monitor/monitor_internal.h"

#include <stdlib.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

static size_t find(const struct monitor *m, const char *uid)
{
    size_t i = 0;
    while (i < m->pods.len && !str_eq(m->pods.items[i]->pod->uid, uid))
        i++;
    return i;
}

static struct monitor_pod *pod_new(const struct pod *p, int64_t asked_mib)
{
    struct monitor_pod *out = mem_new(struct monitor_pod, 1);
    struct error err = ERROR_INIT;
    struct gpuuse told;
    if (gpuuse_read(p, &told, &err) == 1)
        out->usage.told = (struct usage_told){
            .any = true, .mib = told.mib, .over = asked_mib > 0 && told.mib > asked_mib};
    return out;
}

/* ---- called by the cache ---- */

static void on_gone(void *arg, const struct podcache_pod *p)
{
    struct monitor *m = arg;
    pthread_mutex_lock(&m->lock);
    size_t at = find(m, p->pod->uid);
    if (at < m->pods.len) {
        free(m->pods.items[at]);
        vec_remove_swap(&m->pods, at);
    }
    pthread_mutex_unlock(&m->lock);
}

/* MIG devices, for example, are NVIDIA's own plugin's. */
static bool asks_others(const struct resources *r)
{
    for (uint32_t i = 0; i < r->extra_len; i++)
        if (str_starts(r->extra[i].name, "nvidia.com/") && r->extra[i].value > 0)
            return true;
    return false;
}

static void on_put(void *arg, const struct podcache_pod *now)
{
    struct monitor *m = arg;
    const struct pod *p = now->pod;
    int64_t gib = resources_get(&p->request, NAME_RES_GPU_MEM, NULL), mib = 0;
    bool cards = resources_get(&p->request, NAME_RES_GPU, NULL) > 0;
    if (now->remembered || pod_is_finished(p)) {
        on_gone(m, now);
        return;
    }
    if (!num_mul(gib, 1024, &mib))
        mib = 0;
    pthread_mutex_lock(&m->lock);
    size_t at = find(m, p->uid);
    if (at == m->pods.len)
        vec_push(&m->pods, pod_new(p, mib));
    struct monitor_pod *x = m->pods.items[at];
    x->pod = p;
    x->grant = &now->grant;
    x->asks = gib > 0 || cards || asks_others(&p->request) || p->resource_claims;
    x->asked_mib = mib;
    x->whole = cards ? MODE_GPU : MODE_NVIDIA_GPU;
    pthread_mutex_unlock(&m->lock);
}

static void on_told(void *arg, bool all)
{
    struct monitor *m = arg;
    m->pods_listed = m->pods_listed || all;
    monitor_time_wanted(m); /* the grant arrives before its container starts */
}

void monitor_pods_init(struct monitor *m)
{
    podcache_subscribe(m->config.hooks.pods,
                       &(struct podcache_subscriber){on_put, on_gone, on_told, m});
}

void monitor_pods_free(struct monitor *m)
{
    for (size_t i = 0; i < m->pods.len; i++)
        free(m->pods.items[i]);
    vec_deinit(&m->pods);
}

/* ---- usage ---- */

static void tell(const struct monitor *m, const struct monitor_pod *p, enum usage_change change)
{
    char text[512];
    if (change == USAGE_OVER)
        (void)str_format(
            text, sizeof text,
            "uses %lld MiB of GPU memory in %lld processes and asked for %lld MiB: in mode share nothing limits it, and "
            "other pods on its card may run out of memory",
            (long long)p->usage.mib, (long long)p->usage.processes, (long long)p->asked_mib);
    else
        (void)str_format(text, sizeof text,
                         "uses %lld MiB of GPU memory, within the %lld MiB it asked for",
                         (long long)p->usage.mib, (long long)p->asked_mib);
    log_info(text, kv("pod", p->pod->key));
    m->config.hooks.pod_event(m->config.hooks.arg, p->pod, change == USAGE_OVER,
                              change == USAGE_OVER ? "GpuShareExceeded" : "GpuShareKept", text);
}

void monitor_pods_scan(struct monitor *m, const struct scan_message *l, int64_t now_ms)
{
    bool known = false;
    for (size_t i = 0; i < l->sight.inventory.cards_len; i++)
        known = known || l->sight.cards[i].processes_known;
    bool share = m->mode == GPU_MODE_SHARE;
    int64_t mib = 0, processes = 0, in_pods_mib = 0, in_pods = 0, all_mib = 0, all = 0;
    pthread_mutex_lock(&m->lock);
    m->usage_known = known;
    for (size_t i = 0; known && i < m->pods.len; i++) {
        struct monitor_pod *p = m->pods.items[i];
        if (!p->asks)
            continue; /* monitor_audit judges those that use a card all the same */
        usage_sum(l->processes, l->processes_len, p->pod->uid, &mib, &processes);
        in_pods_mib = num_add_sat(in_pods_mib, mib);
        in_pods += processes;
        p->looked = true;
        enum usage_change change = usage_scan(&p->usage, share ? p->asked_mib : 0, mib, processes);
        if (change == USAGE_OVER || (change == USAGE_WITHIN && share))
            tell(m, p, change);
        if (usage_is_news(&p->usage, p->asked_mib, now_ms))
            m->config.hooks.pod_used(m->config.hooks.arg, p->pod, &(struct gpuuse){mib, processes});
    }
    /* The rest: processes of the host, and of pods that asked for no GPU. */
    usage_sum(l->processes, l->processes_len, NULL, &all_mib, &all);
    m->outside_mib = num_sub_sat(all_mib, in_pods_mib);
    m->outside_processes = all - in_pods;
    monitor_audit_scan(m, l);
    pthread_mutex_unlock(&m->lock);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * monitor_pods - the pods of this node as far as cards concern them: what they were given (their claims) and what their
 * processes use. A node has some hundred pods at most, so they are a list and are searched one by one.
 *
 * Finished pods hold nothing and are not kept. A pod's verdict on its usage stays over changes of the pod; a namesake with
 * another uid begins afresh.
 */
#include "device-plugin/monitor/monitor_inside.h"

#include <stdlib.h>

#include "device-plugin/isolation/shares.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

static void pod_drop(struct monitor_pod *p)
{
    arena_deinit(&p->arena);
    free(p);
}

static size_t find(const struct monitor *m, const char *key)
{
    size_t i = 0;
    while (i < m->pods_len && !str_eq(m->pods[i]->key, key))
        i++;
    return i;
}

static struct monitor_pod *pod_make(const struct pod *p)
{
    struct monitor_pod *out = mem_new(struct monitor_pod, 1);
    struct error err = ERROR_INIT;
    bool has = false;
    int64_t gib = resources_get(&p->request, NAME_RES_GPU_MEM, &has), mib = 0;
    arena_init(&out->arena, 0);
    out->key = arena_strdup(&out->arena, p->key);
    out->ns = arena_strdup(&out->arena, p->ns);
    out->name = arena_strdup(&out->arena, p->name);
    out->uid = arena_strdup(&out->arena, str_or_empty(p->uid));
    out->asked_mib = has && num_mul(gib, 1024, &mib) ? mib : 0;
    out->whole = resources_get(&p->request, NAME_RES_GPU, NULL) > 0 ? MODE_GPU : MODE_NVIDIA_GPU;
    /* A claim that makes no sense is the scheduler's to complain about. */
    if (p->unreadable != NULL || claim_decode(p, &out->arena, &out->claim, &err) < 0)
        out->claim = (struct claim){0};
    struct gpuuse told;
    if (gpuuse_read(p, &told, &err) == 1)
        out->usage.told = (struct usage_told){
            .any = true, .mib = told.mib, .over = out->asked_mib > 0 && told.mib > out->asked_mib};
    return out;
}

static void put_at(struct monitor *m, size_t at, struct monitor_pod *p)
{
    if (at < m->pods_len) {
        struct monitor_pod *old = m->pods[at];
        if (str_eq(old->uid, p->uid)) {
            p->usage = old->usage;
            p->looked = old->looked;
            p->audit = old->audit;
        }
        m->pods[at] = p;
        pod_drop(old);
        return;
    }
    if (m->pods_len == m->pods_cap) {
        m->pods_cap = m->pods_cap > 0 ? m->pods_cap * 2 : 16;
        m->pods = realloc(m->pods, m->pods_cap * sizeof(struct monitor_pod *));
        if (m->pods == NULL)
            abort();
    }
    m->pods[m->pods_len++] = p;
}

void monitor_pod_put(struct monitor *m, const struct pod *p)
{
    bool ours = p->unreadable == NULL && !pod_is_finished(p) &&
                (resources_get(&p->request, NAME_RES_GPU_MEM, NULL) > 0 ||
                 resources_get(&p->request, NAME_RES_GPU, NULL) > 0 ||
                 resources_get(&p->request, NAME_RES_NVIDIA_GPU, NULL) > 0);
    /* A version that cannot be read says nothing new: what is known stays, and so do the limits of its containers. */
    if (p->unreadable != NULL && find(m, p->key) < m->pods_len)
        return;
    if (!ours) {
        monitor_pod_delete(m, p->key);
        return;
    }
    struct monitor_pod *fresh = pod_make(p);
    pthread_mutex_lock(&m->lock);
    put_at(m, find(m, p->key), fresh);
    pthread_mutex_unlock(&m->lock);
    monitor_time_wanted(m); /* the scheduler's claim is here before its container begins */
}

void monitor_pod_delete(struct monitor *m, const char *key)
{
    pthread_mutex_lock(&m->lock);
    size_t at = find(m, key);
    if (at < m->pods_len) {
        pod_drop(m->pods[at]);
        m->pods[at] = m->pods[--m->pods_len];
    }
    pthread_mutex_unlock(&m->lock);
}

static bool is_unreadable(struct pod *const *pods, size_t len, const struct monitor_pod *p)
{
    for (size_t i = 0; i < len; i++)
        if (pods[i]->unreadable != NULL && str_eq(pods[i]->key, p->key))
            return str_eq(pods[i]->uid, p->uid);
    return false;
}

void monitor_pods_reset(struct monitor *m, struct pod *const *pods, size_t len)
{
    struct monitor_pod **gone = NULL;
    pthread_mutex_lock(&m->lock);
    size_t n = m->pods_len;
    gone = mem_new(struct monitor_pod *, n > 0 ? n : 1);
    for (size_t i = 0; i < n; i++)
        gone[i] = m->pods[i];
    m->pods_len = 0;
    pthread_mutex_unlock(&m->lock);
    for (size_t i = 0; i < len; i++)
        monitor_pod_put(m, pods[i]);
    m->pods_listed = true;
    /* Verdicts stay with those that are still there. */
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < n; i++) {
        if (is_unreadable(pods, len, gone[i])) {
            put_at(m, find(m, gone[i]->key), gone[i]);
            continue;
        }
        size_t at = find(m, gone[i]->key);
        if (at < m->pods_len && str_eq(m->pods[at]->uid, gone[i]->uid)) {
            m->pods[at]->usage = gone[i]->usage;
            m->pods[at]->looked = gone[i]->looked;
            m->pods[at]->audit = gone[i]->audit;
        }
        pod_drop(gone[i]);
    }
    pthread_mutex_unlock(&m->lock);
    free(gone);
}

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
    log_info(text, kv("pod", p->key));
    m->config.hooks.pod_event(m->config.hooks.arg, p->ns, p->name, p->uid, change == USAGE_OVER,
                              change == USAGE_OVER ? "GpuShareExceeded" : "GpuShareKept", text);
}

static bool has_uid(void *arg, const char *uid)
{
    const struct monitor *m = arg;
    size_t i = 0;
    while (i < m->pods_len && !str_eq(m->pods[i]->uid, uid))
        i++;
    return i < m->pods_len;
}

/* Not before all pods are known: a folder that is removed too early would leave a container without its limits. */
static void sweep(struct monitor *m)
{
    if (m->config.hooks.shares == NULL || !m->pods_listed)
        return;
    size_t n = shares_sweep(m->config.hooks.shares, SHARES_KEEP_MS, has_uid, m);
    if (n > 0)
        log_info("folders of containers that have gone were removed", kv("folders", n));
}

void monitor_pods_look(struct monitor *m, const struct scan_letter *l, int64_t now_ms)
{
    bool known = false;
    for (size_t i = 0; i < l->sight.inventory.cards_len; i++)
        known = known || l->sight.cards[i].processes_known;
    bool share = m->config.hooks.mode(m->config.hooks.arg) == GPU_MODE_SHARE;
    int64_t mib = 0, processes = 0, in_pods_mib = 0, in_pods = 0, all_mib = 0, all = 0;
    pthread_mutex_lock(&m->lock);
    m->usage_known = known;
    for (size_t i = 0; known && i < m->pods_len; i++) {
        struct monitor_pod *p = m->pods[i];
        usage_sum(l->processes, l->processes_len, p->uid, &mib, &processes);
        in_pods_mib = num_add_sat(in_pods_mib, mib);
        in_pods += processes;
        p->looked = true;
        enum usage_change change = usage_look(&p->usage, share ? p->asked_mib : 0, mib, processes);
        if (change == USAGE_OVER || (change == USAGE_WITHIN && share))
            tell(m, p, change);
        if (usage_is_news(&p->usage, p->asked_mib, now_ms))
            m->config.hooks.pod_used(m->config.hooks.arg, p->ns, p->name, p->uid,
                                     &(struct gpuuse){mib, processes});
    }
    /* Whatever else is on the cards: processes of the machine, and of pods that asked for no GPU. */
    usage_sum(l->processes, l->processes_len, NULL, &all_mib, &all);
    m->outside_mib = num_sub_sat(all_mib, in_pods_mib);
    m->outside_processes = all - in_pods;
    monitor_audit_look(m, l, known);
    pthread_mutex_unlock(&m->lock);
    sweep(m);
}

void monitor_pods_free(struct monitor *m)
{
    for (size_t i = 0; i < m->pods_len; i++)
        pod_drop(m->pods[i]);
    free(m->pods);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * pinner_metrics - what Prometheus sees of each pinned container, told at scrape time, so that one can see what pinning brings: with its CPUs, its use and how often it was held back.
 */
#include "device-plugin/cpu/pinner_inside.h"

#include "lib/base/metrics.h"

static struct metric results = {
    .kind = METRIC_COUNTER,
    .name = "cosched_device_plugin_pins_total",
    .help =
        "What became of pods' CPUs: taken, released, refused (pods); written, repaired, failed (containers).",
    .label = "result"};

void pinner_metrics_count(const char *result)
{
    metrics_inc(&results, result);
}

/* A container has one line: that of its newest group, when the one before it is not gone yet. */
static bool is_told(const struct pinner_pod *x, const struct pinner_box *b)
{
    struct cpuset own;
    if (b->container == PINNER_ANY || cpuset_is_empty(&b->cpus))
        return false;
    cpuclaim_of(&x->held, b->container, &own);
    if (cpuset_is_empty(&own)) /* it is in the shared pool */
        return false;
    for (const struct pinner_box *newer = x->boxes; newer != b; newer = newer->next)
        if (newer->container == b->container && !cpuset_is_empty(&newer->cpus))
            return false;
    return true;
}

static void collect(struct pinner *p, struct metric_samples *out,
                    int64_t (*value)(const struct pinner *p, const struct pinner_box *b))
{
    const char *key;
    void *at;
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; map_next(&p->pods, &i, &key, &at);) {
        const struct pinner_pod *x = at;
        bool holds = x->held.len > 0 && !x->released;
        for (const struct pinner_box *b = x->boxes; b != NULL && holds; b = b->next) {
            if (!is_told(x, b))
                continue;
            const struct metric_label labels[] = {
                {"namespace", x->ns}, {"pod", x->name}, {"container", x->names[b->container]}};
            metrics_sample(out, labels, 3, value(p, b));
        }
    }
    pthread_mutex_unlock(&p->lock);
}

static int64_t cpus_of(const struct pinner *p, const struct pinner_box *b)
{
    (void)p;
    return cpuset_count(&b->cpus);
}

static int64_t repairs_of(const struct pinner *p, const struct pinner_box *b)
{
    (void)p;
    return b->repairs;
}

static int64_t throttled_of(const struct pinner *p, const struct pinner_box *b)
{
    struct cgroups_usage u;
    cgroups_usage(&p->cgroups, b->path, &u);
    return u.throttled;
}

static int64_t used_of(const struct pinner *p, const struct pinner_box *b)
{
    struct cgroups_usage u;
    cgroups_usage(&p->cgroups, b->path, &u);
    return u.used_us;
}

static void collect_cpus(void *arg, struct metric_samples *out)
{
    collect(arg, out, cpus_of);
}

static void collect_repairs(void *arg, struct metric_samples *out)
{
    collect(arg, out, repairs_of);
}

static void collect_throttled(void *arg, struct metric_samples *out)
{
    collect(arg, out, throttled_of);
}

static void collect_used(void *arg, struct metric_samples *out)
{
    collect(arg, out, used_of);
}

static struct metric cpus = {.kind = METRIC_GAUGE,
                             .name = "cosched_device_plugin_pinned_cpus",
                             .help = "CPUs that a container is pinned to.",
                             .collect = collect_cpus};
static struct metric repairs = {
    .kind = METRIC_COUNTER,
    .name = "cosched_device_plugin_pinned_repairs_total",
    .help = "How often a pinned container's CPUs were changed by somebody else and put right.",
    .collect = collect_repairs};
static struct metric throttled = {
    .kind = METRIC_COUNTER,
    .name = "cosched_device_plugin_pinned_throttled_periods_total",
    .help = "Periods in which a pinned container was held back by its CPU limit.",
    .collect = collect_throttled};
static struct metric used = {.kind = METRIC_COUNTER,
                             .name = "cosched_device_plugin_pinned_cpu_microseconds_total",
                             .help = "CPU time that a pinned container has used.",
                             .collect = collect_used};

void pinner_metrics_register(struct pinner *p)
{
    struct metric *const told[] = {&cpus, &repairs, &throttled, &used};
    metrics_register(&results);
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        told[i]->arg = p;
        metrics_register(told[i]);
    }
}

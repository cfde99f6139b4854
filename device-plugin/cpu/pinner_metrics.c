// SPDX-License-Identifier: Apache-2.0
/* pinner_metrics - Prometheus metrics of each pinned container, collected at scrape time: its CPUs,
 * its usage and how often it was throttled. */
#include "device-plugin/cpu/pinner_internal.h"

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

/* One line per container: of its newest group, if an older one still exists. */
static bool is_told(const struct pinner_pod *x, const struct pinner_box *b)
{
    struct cpuset own;
    if (b->container == PINNER_ANY || cpuset_is_empty(&b->cpus))
        return false;
    cpu_grant_of(&x->held, b->container, &own);
    if (cpuset_is_empty(&own)) /* in the shared pool */
        return false;
    for (const struct pinner_box *newer = x->boxes; newer != b; newer = newer->next)
        if (newer->container == b->container && !cpuset_is_empty(&newer->cpus))
            return false;
    return true;
}

enum value { CPUS, REPAIRS, THROTTLED, USED };

struct row {
    struct metric metric; /* its argument is the row */
    enum value value;
    struct pinner *pinner;
};

static int64_t value_of(const struct pinner *p, const struct pinner_box *b, enum value value)
{
    struct cgroups_usage u;
    if (value == CPUS)
        return cpuset_count(&b->cpus);
    if (value == REPAIRS)
        return b->repairs;
    cgroups_usage(&p->cgroups, b->path, &u);
    return value == THROTTLED ? u.throttled : u.used_us;
}

static void collect(void *arg, struct metric_samples *out)
{
    const struct row *row = arg;
    struct pinner *p = row->pinner;
    const char *uid;
    void *at;
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; map_next(&p->pods, &i, &uid, &at);) {
        const struct pinner_pod *x = at;
        bool holds = x->held.len > 0 && !x->released;
        for (const struct pinner_box *b = x->boxes; b != NULL && holds; b = b->next) {
            if (!is_told(x, b))
                continue;
            const struct metric_label labels[] = {
                {"namespace", x->pod->ns},
                {"pod", x->pod->name},
                {"container", pod_container(x->pod, b->container)->name}};
            metrics_sample(out, labels, 3, value_of(p, b, row->value));
        }
    }
    pthread_mutex_unlock(&p->lock);
}

#define ROW(what, kind, name, text)                                 \
    {                                                               \
        {(kind), (name), text, .collect = collect}, .value = (what) \
    }

static struct row rows[] = {
    ROW(CPUS, METRIC_GAUGE, "cosched_device_plugin_pinned_cpus",
        "CPUs that a container is pinned to."),
    ROW(REPAIRS, METRIC_COUNTER, "cosched_device_plugin_pinned_repairs_total",
        "How often something else changed a pinned container's CPUs and the plugin restored them."),
    ROW(THROTTLED, METRIC_COUNTER, "cosched_device_plugin_pinned_throttled_periods_total",
        "Periods in which a pinned container was held back by its CPU limit."),
    ROW(USED, METRIC_COUNTER, "cosched_device_plugin_pinned_cpu_microseconds_total",
        "CPU time that a pinned container has used."),
};

void pinner_metrics_register(struct pinner *p)
{
    metrics_register(&results);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rows[i].pinner = p;
        rows[i].metric.arg = &rows[i];
        metrics_register(&rows[i].metric);
    }
}

// SPDX-License-Identifier: Apache-2.0
/*
 * monitor_metrics - what Prometheus sees of each card and of each pod. Told at scrape time from what the monitor knows, so
 * that a card or a pod that is gone is gone from the metrics as well.
 */
#include "device-plugin/monitor/monitor_inside.h"

#include "lib/base/metrics.h"
#include "lib/base/str.h"

enum { NUMBER = 24 };

static struct metric hung = {.kind = METRIC_GAUGE,
                             .name = "cosched_device_plugin_driver_hung",
                             .help = "1 while a call to the driver does not return."};
static struct metric cpu_static = {
    .kind = METRIC_GAUGE,
    .name = "cosched_device_plugin_cpu_manager_static",
    .help = "1 while a shared GPU mode stands beside the kubelet's CPU manager policy static."};

static const char *number(char out[NUMBER], int64_t n)
{
    (void)str_format(out, NUMBER, "%lld", (long long)n);
    return out;
}

static const char *uuid_of(const struct monitor *m, int32_t index)
{
    int32_t at = inventory_card(&m->cards, index);
    return at >= 0 ? m->cards.cards[at].uuid : "";
}

static void sample_card(struct metric_samples *out, const struct gpu_card *c, const char *more,
                        const char *value_of_more, int64_t value)
{
    char index[NUMBER];
    const struct metric_label labels[] = {
        {"card", number(index, c->index)}, {"uuid", c->uuid}, {str_or_empty(more), value_of_more}};
    metrics_sample(out, labels, more != NULL ? 3 : 2, value);
}

static void collect_memory(void *arg, struct metric_samples *out)
{
    struct monitor *m = arg;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->cards.cards_len; i++)
        sample_card(out, &m->cards.cards[i], "model", m->cards.cards[i].model,
                    m->cards.cards[i].mib);
    pthread_mutex_unlock(&m->lock);
}

static void collect_healthy(void *arg, struct metric_samples *out)
{
    struct monitor *m = arg;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->cards.cards_len; i++)
        sample_card(out, &m->cards.cards[i], NULL, NULL, m->cards.cards[i].health == GPU_HEALTH_OK);
    pthread_mutex_unlock(&m->lock);
}

static void collect_advertised(void *arg, struct metric_samples *out)
{
    struct monitor *m = arg;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->cards.cards_len; i++) {
        const struct gpu_card *c = &m->cards.cards[i];
        for (int r = 0; r < MODE_RESOURCES && c->index < GPU_CARDS_MAX; r++)
            sample_card(out, c, "resource", mode_resource_name((enum mode_resource)r),
                        m->offered[c->index][r]);
    }
    pthread_mutex_unlock(&m->lock);
}

/* What the pod has of the card, by resource; and in how many containers. */
static int64_t claimed(const struct monitor_pod *p, int32_t card, enum mode_resource r)
{
    int64_t sum = 0;
    for (size_t i = 0; i < p->claim.shares_len; i++)
        if (p->claim.shares[i].card == card)
            sum += r == MODE_GPU_MEM    ? p->claim.shares[i].gib
                   : r == MODE_GPU_CORE ? p->claim.shares[i].percent
                                        : 0;
    for (size_t i = 0; i < p->claim.group_len && r == p->whole; i++)
        sum += p->claim.group[i] == card;
    return sum;
}

static int64_t containers(const struct monitor_pod *p, int32_t card)
{
    int64_t n = 0;
    for (size_t i = 0; i < p->claim.shares_len; i++)
        n += p->claim.shares[i].card == card;
    for (size_t i = 0; i < p->claim.group_len; i++)
        n += p->claim.group[i] == card;
    return n;
}

static void collect_allocated(void *arg, struct metric_samples *out)
{
    struct monitor *m = arg;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->cards.cards_len; i++) {
        const struct gpu_card *c = &m->cards.cards[i];
        for (int r = 0; r < MODE_RESOURCES; r++) {
            int64_t sum = 0;
            for (size_t k = 0; k < m->pods_len; k++)
                sum += claimed(m->pods[k], c->index, (enum mode_resource)r);
            sample_card(out, c, "resource", mode_resource_name((enum mode_resource)r), sum);
        }
    }
    pthread_mutex_unlock(&m->lock);
}

static void collect_containers(void *arg, struct metric_samples *out)
{
    struct monitor *m = arg;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->cards.cards_len; i++) {
        int64_t sum = 0;
        for (size_t k = 0; k < m->pods_len; k++)
            sum += containers(m->pods[k], m->cards.cards[i].index);
        sample_card(out, &m->cards.cards[i], NULL, NULL, sum);
    }
    pthread_mutex_unlock(&m->lock);
}

static void collect_xids(void *arg, struct metric_samples *out)
{
    static const char *const names[] = {[HEALTH_APPLICATION] = "application",
                                        [HEALTH_NOTICE] = "notice",
                                        [HEALTH_HARDWARE] = "hardware"};
    struct monitor *m = arg;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->xids_len; i++) {
        const struct monitor_xid *x = &m->xids[i];
        char card[NUMBER], xid[NUMBER];
        const struct metric_label labels[] = {
            {"card", number(card, x->card)},
            {"uuid", uuid_of(m, x->card)},
            {"xid", number(xid, x->xid)},
            {"class", names[health_xid(x->xid)->class]},
        };
        metrics_sample(out, labels, 4, x->count);
    }
    pthread_mutex_unlock(&m->lock);
}

static void collect_pods(struct monitor *m, struct metric_samples *out,
                         int64_t (*value)(const struct monitor_pod *p))
{
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; m->usage_known && i < m->pods_len; i++) {
        const struct monitor_pod *p = m->pods[i];
        const struct metric_label labels[] = {{"namespace", p->ns}, {"pod", p->name}};
        if (p->looked)
            metrics_sample(out, labels, 2, value(p));
    }
    pthread_mutex_unlock(&m->lock);
}

static int64_t used_mib(const struct monitor_pod *p)
{
    return p->usage.mib;
}

static int64_t asked_mib(const struct monitor_pod *p)
{
    return p->asked_mib;
}

static int64_t processes(const struct monitor_pod *p)
{
    return p->usage.processes;
}

static int64_t loose(const struct monitor_pod *p)
{
    return p->audit.loose;
}

static int64_t over_mib(const struct monitor_pod *p)
{
    return p->audit.over_mib;
}

static void collect_over(void *arg, struct metric_samples *out)
{
    collect_pods(arg, out, over_mib);
}

static void collect_loose(void *arg, struct metric_samples *out)
{
    collect_pods(arg, out, loose);
}

static void collect_used(void *arg, struct metric_samples *out)
{
    collect_pods(arg, out, used_mib);
}

static void collect_asked(void *arg, struct metric_samples *out)
{
    collect_pods(arg, out, asked_mib);
}

static void collect_processes(void *arg, struct metric_samples *out)
{
    collect_pods(arg, out, processes);
}

static void collect_outside(void *arg, struct metric_samples *out)
{
    struct monitor *m = arg;
    pthread_mutex_lock(&m->lock);
    if (m->usage_known)
        metrics_sample(out, NULL, 0, m->outside_mib);
    pthread_mutex_unlock(&m->lock);
}

static struct metric collected[] = {
    {.kind = METRIC_GAUGE,
     .name = "cosched_device_plugin_card_memory_mib",
     .help = "Memory of each card.",
     .collect = collect_memory},
    {.kind = METRIC_GAUGE,
     .name = "cosched_device_plugin_card_healthy",
     .help = "1: the card takes new containers; 0: it is sick.",
     .collect = collect_healthy},
    {.kind = METRIC_GAUGE,
     .name = "cosched_device_plugin_card_advertised",
     .help = "Healthy ids of each card that the kubelet is offered: GiB, percent, or whole cards.",
     .collect = collect_advertised},
    {.kind = METRIC_GAUGE,
     .name = "cosched_device_plugin_card_allocated",
     .help = "What pods were given of each card: GiB, percent, or whole cards.",
     .collect = collect_allocated},
    {.kind = METRIC_GAUGE,
     .name = "cosched_device_plugin_card_containers",
     .help = "Containers on each card.",
     .collect = collect_containers},
    {.kind = METRIC_COUNTER,
     .name = "cosched_device_plugin_card_xids_total",
     .help =
         "Errors that the driver reported, by card, number and whose fault they are. Card -1: it did not say.",
     .collect = collect_xids},
    {.kind = METRIC_GAUGE,
     .name = "cosched_device_plugin_pod_used_mib",
     .help = "GPU memory that the processes of each pod use.",
     .collect = collect_used},
    {.kind = METRIC_GAUGE,
     .name = "cosched_device_plugin_pod_asked_mib",
     .help = "GPU memory that each pod asked for; 0 for whole cards.",
     .collect = collect_asked},
    {.kind = METRIC_GAUGE,
     .name = "cosched_device_plugin_pod_processes",
     .help = "Processes of each pod on its cards.",
     .collect = collect_processes},
    {.kind = METRIC_GAUGE,
     .name = "cosched_device_plugin_pod_loose_processes",
     .help = "Processes of each pod on its cards that got past the isolation library.",
     .collect = collect_loose},
    {.kind = METRIC_GAUGE,
     .name = "cosched_device_plugin_pod_over_mib",
     .help =
         "GPU memory that the driver counts for each pod's containers beyond what the isolation library lets them have.",
     .collect = collect_over},
    {.kind = METRIC_GAUGE,
     .name = "cosched_device_plugin_outside_used_mib",
     .help = "GPU memory of processes that belong to no pod with a GPU.",
     .collect = collect_outside},
};

void monitor_metrics_init(struct monitor *m)
{
    metrics_register(&hung);
    metrics_register(&cpu_static);
    for (size_t i = 0; i < sizeof collected / sizeof collected[0]; i++) {
        collected[i].arg = m;
        metrics_register(&collected[i]);
    }
}

void monitor_metrics_hung(bool is_hung)
{
    metrics_set(&hung, NULL, is_hung);
}

void monitor_metrics_cpu_static(bool is_static)
{
    metrics_set(&cpu_static, NULL, is_static);
}

// SPDX-License-Identifier: Apache-2.0
/* monitor_metrics - the Prometheus metrics of cards and pods. They are collected from the monitor
 * at scrape time, so a card or pod that is gone also disappears from the metrics. */
#include "device-plugin/monitor/monitor_internal.h"

#include "lib/base/metrics.h"
#include "lib/base/str.h"

enum { NUMBER = 24 };

static struct metric hung = {.kind = METRIC_GAUGE,
                             .name = "cosched_device_plugin_driver_hung",
                             .help = "1 while a call to the driver does not return."};
static struct metric cpu_static = {
    .kind = METRIC_GAUGE,
    .name = "cosched_device_plugin_cpu_manager_static",
    .help = "1 while the kubelet's CPU manager policy is static in a shared GPU mode."};

enum card_value { CARD_MEMORY, CARD_HEALTHY, CARD_ADVERTISED, CARD_ALLOCATED, CARD_CONTAINERS };
enum use_value { USE_USED, USE_ASKED, USE_PROCESSES, USE_LOOSE, USE_OVER };

struct row {
    struct metric metric; /* its argument is the row */
    enum card_value card; /* of collect_cards */
    enum use_value use;   /* of collect_pods */
    struct monitor *monitor;
};

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

/* ---- cards ---- */

/* What the pod is granted of the card, by resource. */
static int64_t granted(const struct monitor_pod *p, int32_t card, enum mode_resource r)
{
    int64_t sum = 0;
    for (size_t i = 0; i < p->grant->shares_len; i++)
        if (p->grant->shares[i].card == card)
            sum += r == MODE_GPU_MEM    ? p->grant->shares[i].gib
                   : r == MODE_GPU_CORE ? p->grant->shares[i].percent
                                        : 0;
    for (size_t i = 0; i < p->grant->group_len && r == p->whole; i++)
        sum += p->grant->group[i] == card;
    return sum;
}

static int64_t containers(const struct monitor_pod *p, int32_t card)
{
    int64_t n = 0;
    for (size_t i = 0; i < p->grant->shares_len; i++)
        n += p->grant->shares[i].card == card;
    for (size_t i = 0; i < p->grant->group_len; i++)
        n += p->grant->group[i] == card;
    return n;
}

static int64_t card_value(const struct monitor *m, const struct gpu_card *c, enum card_value which,
                          enum mode_resource r)
{
    int64_t sum = 0;
    switch (which) {
    case CARD_MEMORY:
        return c->mib;
    case CARD_HEALTHY:
        return c->health == GPU_HEALTH_OK;
    case CARD_ADVERTISED:
        return c->index < GPU_CARDS_MAX ? m->offered[c->index][r] : 0;
    case CARD_ALLOCATED:
        for (size_t i = 0; i < m->pods.len; i++)
            sum += granted(m->pods.items[i], c->index, r);
        break;
    case CARD_CONTAINERS:
        for (size_t i = 0; i < m->pods.len; i++)
            sum += containers(m->pods.items[i], c->index);
        break;
    }
    return sum;
}

static void collect_cards(void *arg, struct metric_samples *out)
{
    const struct row *row = arg;
    struct monitor *m = row->monitor;
    bool by_resource = row->card == CARD_ADVERTISED || row->card == CARD_ALLOCATED;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->cards.cards_len; i++) {
        const struct gpu_card *c = &m->cards.cards[i];
        for (int r = 0; r < (by_resource ? MODE_RESOURCES : 1); r++)
            sample_card(out, c,
                        by_resource                ? "resource"
                        : row->card == CARD_MEMORY ? "model"
                                                   : NULL,
                        by_resource ? mode_resource_name((enum mode_resource)r) : c->model,
                        card_value(m, c, row->card, (enum mode_resource)r));
    }
    pthread_mutex_unlock(&m->lock);
}

static void collect_xids(void *arg, struct metric_samples *out)
{
    static const char *const names[] = {[HEALTH_APPLICATION] = "application",
                                        [HEALTH_NOTICE] = "notice",
                                        [HEALTH_HARDWARE] = "hardware"};
    struct monitor *m = ((const struct row *)arg)->monitor;
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

/* ---- pods ---- */

static void collect_pods(void *arg, struct metric_samples *out)
{
    const struct row *row = arg;
    struct monitor *m = row->monitor;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; m->usage_known && i < m->pods.len; i++) {
        const struct monitor_pod *p = m->pods.items[i];
        const struct metric_label labels[] = {{"namespace", p->pod->ns}, {"pod", p->pod->name}};
        const int64_t values[] = {[USE_USED] = p->usage.mib,
                                  [USE_ASKED] = p->asked_mib,
                                  [USE_PROCESSES] = p->usage.processes,
                                  [USE_LOOSE] = p->audit.loose,
                                  [USE_OVER] = p->audit.over_mib};
        /* A pod that asked for no GPU counts as outside, unless it is beyond what is allowed. */
        if (p->looked || (row->use == USE_OVER && p->audit.over_mib > 0))
            metrics_sample(out, labels, 2, values[row->use]);
    }
    pthread_mutex_unlock(&m->lock);
}

static void collect_outside(void *arg, struct metric_samples *out)
{
    struct monitor *m = ((const struct row *)arg)->monitor;
    pthread_mutex_lock(&m->lock);
    if (m->usage_known)
        metrics_sample(out, NULL, 0, m->outside_mib);
    pthread_mutex_unlock(&m->lock);
}

#define CARDS(n, what, text)                                                        \
    {                                                                               \
        .metric = {METRIC_GAUGE, n, text, .collect = collect_cards}, .card = (what) \
    }
#define PODS(n, what, text)                                                       \
    {                                                                             \
        .metric = {METRIC_GAUGE, n, text, .collect = collect_pods}, .use = (what) \
    }

static struct row rows[] = {
    CARDS("cosched_device_plugin_card_memory_mib", CARD_MEMORY, "Memory of each card."),
    CARDS("cosched_device_plugin_card_healthy", CARD_HEALTHY,
          "1: the card takes new containers; 0: it is sick."),
    CARDS("cosched_device_plugin_card_advertised", CARD_ADVERTISED,
          "Healthy ids of each card that the kubelet is offered: GiB, percent, or whole cards."),
    CARDS("cosched_device_plugin_card_allocated", CARD_ALLOCATED,
          "What pods were given of each card: GiB, percent, or whole cards."),
    CARDS("cosched_device_plugin_card_containers", CARD_CONTAINERS, "Containers on each card."),
    {.metric =
         {METRIC_COUNTER, "cosched_device_plugin_card_xids_total",
          "Errors that the driver reported, by card, number and whose fault they are. Card -1: it did not say.",
          .collect = collect_xids}},
    PODS("cosched_device_plugin_pod_used_mib", USE_USED,
         "GPU memory that the processes of each pod use."),
    PODS("cosched_device_plugin_pod_asked_mib", USE_ASKED,
         "GPU memory that each pod asked for; 0 for whole cards."),
    PODS("cosched_device_plugin_pod_processes", USE_PROCESSES,
         "Processes of each pod on its cards."),
    PODS("cosched_device_plugin_pod_loose_processes", USE_LOOSE,
         "Processes of each pod on its cards that got past the isolation library."),
    PODS("cosched_device_plugin_pod_over_mib", USE_OVER,
         "GPU memory that the driver counts for each pod beyond its share."),
    {.metric = {METRIC_GAUGE, "cosched_device_plugin_outside_used_mib",
                "GPU memory of processes that belong to no pod with a GPU.",
                .collect = collect_outside}},
};

void monitor_metrics_init(struct monitor *m)
{
    metrics_register(&hung);
    metrics_register(&cpu_static);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rows[i].monitor = m;
        rows[i].metric.arg = &rows[i];
        metrics_register(&rows[i].metric);
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

// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/isolation/shares_metrics.h"

#include <stdint.h>

#include "lib/base/metrics.h"
#include "lib/base/str.h"

enum { NUMBER = 24 };

enum value { SHARE, USED, PEAK, DENIED, THROTTLED, DEVICE, UNMEASURED };

struct row {
    struct metric metric; /* its argument is the row */
    enum value value;
    struct shares_worker *worker;
};

struct reporting {
    struct metric_samples *out;
    enum value value;
};

static void report(void *arg, const struct shares_scan *l)
{
    const struct reporting *t = arg;
    char card[NUMBER];
    (void)str_format(card, sizeof card, "%u", l->card);
    const struct metric_label labels[] = {
        {"namespace", l->ns}, {"pod", l->pod}, {"container", l->container}, {"card", card}};
    const int64_t values[] = {[SHARE] = (int64_t)(l->limit->bytes >> 20),
                              [USED] = l->used_mib,
                              [PEAK] = l->peak_mib,
                              [DENIED] = l->denied,
                              [THROTTLED] = l->throttled_ms,
                              [DEVICE] = l->device_ms,
                              [UNMEASURED] = l->unmeasured};
    if (l->pod[0] != '\0' && l->broken == NULL)
        metrics_sample(t->out, labels, 4, values[t->value]);
}

static void collect(void *arg, struct metric_samples *out)
{
    const struct row *row = arg;
    shares_worker_each(row->worker, report, &(struct reporting){out, row->value});
}

#define ROW(what, kind, name, text)                                 \
    {                                                               \
        {(kind), (name), text, .collect = collect}, .value = (what) \
    }

static struct row rows[] = {
    ROW(SHARE, METRIC_GAUGE, "cosched_device_plugin_container_share_mib",
        "GPU memory that the library lets each container have. Cards are counted as the container sees them."),
    ROW(USED, METRIC_GAUGE, "cosched_device_plugin_container_used_mib",
        "What its living processes hold of it."),
    ROW(PEAK, METRIC_GAUGE, "cosched_device_plugin_container_peak_mib",
        "The most that they held since the container was admitted."),
    ROW(DENIED, METRIC_COUNTER, "cosched_device_plugin_container_denied_total",
        "Allocations that did not fit into the share."),
    ROW(THROTTLED, METRIC_COUNTER, "cosched_device_plugin_container_throttled_milliseconds_total",
        "Time that launches waited for the container's share of GPU time."),
    ROW(DEVICE, METRIC_COUNTER, "cosched_device_plugin_container_device_milliseconds_total",
        "GPU time that its processes used, as the driver measured it, where the container has a share of it."),
    ROW(UNMEASURED, METRIC_GAUGE, "cosched_device_plugin_container_time_unmeasured",
        "1: the driver does not measure its kernels, so launches are counted instead."),
};

void shares_metrics_init(struct shares_worker *w)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rows[i].worker = w;
        rows[i].metric.arg = &rows[i];
        metrics_register(&rows[i].metric);
    }
}

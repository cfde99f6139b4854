// SPDX-License-Identifier: Apache-2.0
/* shares_metrics - see the header. */
#include "device-plugin/isolation/shares_metrics.h"

#include <stdint.h>

#include "device-plugin/isolation/shares.h"
#include "lib/base/metrics.h"
#include "lib/base/str.h"

enum { NUMBER = 24 };

struct telling {
    struct metric_samples *out;
    int64_t (*value)(const struct shares_look *l);
};

static void tell(void *arg, const struct shares_look *l)
{
    const struct telling *t = arg;
    char card[NUMBER];
    (void)str_format(card, sizeof card, "%u", l->card);
    const struct metric_label labels[] = {
        {"namespace", l->ns}, {"pod", l->pod}, {"container", l->container}, {"card", card}};
    if (l->pod[0] != '\0')
        metrics_sample(t->out, labels, 4, t->value(l));
}

static int64_t share_mib(const struct shares_look *l)
{
    return (int64_t)(l->limit->bytes >> 20);
}

static int64_t used_mib(const struct shares_look *l)
{
    return l->used_mib;
}

static int64_t peak_mib(const struct shares_look *l)
{
    return l->peak_mib;
}

static int64_t denied(const struct shares_look *l)
{
    return l->denied;
}

static int64_t throttled_ms(const struct shares_look *l)
{
    return l->throttled_ms;
}

static int64_t device_ms(const struct shares_look *l)
{
    return l->device_ms;
}

static int64_t unmeasured(const struct shares_look *l)
{
    return l->unmeasured;
}

#define COLLECT(what)                                                 \
    static void collect_##what(void *arg, struct metric_samples *out) \
    {                                                                 \
        shares_each(arg, tell, &(struct telling){out, what});         \
    }
COLLECT(share_mib)
COLLECT(used_mib)
COLLECT(peak_mib)
COLLECT(denied)
COLLECT(throttled_ms)
COLLECT(device_ms)
COLLECT(unmeasured)

static struct metric metrics[] = {
    {.kind = METRIC_GAUGE,
     .name = "cosched_device_plugin_container_share_mib",
     .help =
         "GPU memory that the library lets each container have. Cards are counted as the container sees them.",
     .collect = collect_share_mib},
    {.kind = METRIC_GAUGE,
     .name = "cosched_device_plugin_container_used_mib",
     .help = "What its living processes hold of it.",
     .collect = collect_used_mib},
    {.kind = METRIC_GAUGE,
     .name = "cosched_device_plugin_container_peak_mib",
     .help = "The most that they held since the container was admitted.",
     .collect = collect_peak_mib},
    {.kind = METRIC_COUNTER,
     .name = "cosched_device_plugin_container_denied_total",
     .help = "Allocations that did not fit into the share.",
     .collect = collect_denied},
    {.kind = METRIC_COUNTER,
     .name = "cosched_device_plugin_container_throttled_milliseconds_total",
     .help = "Time that launches waited for the container's part of the card's time.",
     .collect = collect_throttled_ms},
    {.kind = METRIC_COUNTER,
     .name = "cosched_device_plugin_container_device_milliseconds_total",
     .help =
         "Time of the card that its processes used, as the driver measured it, where a part of it is promised.",
     .collect = collect_device_ms},
    {.kind = METRIC_GAUGE,
     .name = "cosched_device_plugin_container_time_unmeasured",
     .help =
         "1: it launches kernels and nobody measures what they take, so launches are counted instead.",
     .collect = collect_unmeasured},
};

void shares_metrics_init(const char *base)
{
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        metrics[i].arg = (void *)(uintptr_t)base;
        metrics_register(&metrics[i]);
    }
}

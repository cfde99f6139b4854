// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cache/expected_end.h"
#include "scheduler/model/reservations.h"

#include "lib/base/num.h"
#include "lib/base/str.h"

enum { NS_PER_MS = 1000000, MS_PER_S = 1000 };

int64_t expected_end_runtime(const struct cluster *c, const struct cluster_pod *cp)
{
    return cp->pod->active_deadline_s > 0 ? cp->pod->active_deadline_s * MS_PER_S
                                          : c->reservations->options.assume_ms;
}

static bool is_permanent(const struct cluster_pod *cp)
{
    return pod_is_mirror(cp->pod) || str_eq(cp->pod->owner_kind, "DaemonSet");
}

int64_t expected_end_of(const struct cluster *c, const struct cluster_pod *cp, int64_t then_ms)
{
    if (is_permanent(cp))
        return INT64_MAX;
    if (cp->pod->terminating || cp->evicting)
        return then_ms;
    int64_t start_ns = cp->pod->started_ns > 0 ? cp->pod->started_ns : cp->grant.assume_time_ns;
    int64_t start_ms = start_ns > 0 ? start_ns / NS_PER_MS : then_ms;
    int64_t end_ms = num_add_sat(start_ms, expected_end_runtime(c, cp));
    if (end_ms > then_ms)
        return end_ms;
    return cp->pod->active_deadline_s > 0 ? then_ms
                                          : num_add_sat(then_ms, num_sub_sat(then_ms, start_ms));
}

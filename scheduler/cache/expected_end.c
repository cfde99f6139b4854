// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cache/expected_end.h"

#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "scheduler/model/reservations.h"

enum { NS_PER_MS = 1000000, MS_PER_S = 1000 };

bool expected_end_is_never(const struct cluster_pod *cp)
{
    return pod_is_mirror(cp->pod) || str_eq(cp->pod->owner_kind, "DaemonSet");
}

bool expected_end_is_service(const struct cluster_pod *cp)
{
    return expected_end_is_never(cp) || str_eq(cp->pod->owner_kind, "ReplicaSet") ||
           str_eq(cp->pod->owner_kind, "StatefulSet");
}

int64_t expected_end_runtime(const struct cluster *c, const struct cluster_pod *cp)
{
    if (cp->pod->active_deadline_s > 0)
        return cp->pod->active_deadline_s * MS_PER_S;
    int64_t learned_ms = run_times_expect(&c->reservations->run_times, cp->template);
    return learned_ms > 0 ? learned_ms : INT64_MAX;
}

int64_t expected_end_start(const struct cluster_pod *cp)
{
    int64_t start_ns = cp->pod->started_ns > 0 ? cp->pod->started_ns : cp->grant.assume_time_ns;
    return start_ns / NS_PER_MS;
}

bool expected_end_is_known(const struct cluster *c, const struct cluster_pod *cp, int64_t then_ms)
{
    if (cp->pod->active_deadline_s > 0 || cp->pod->terminating || cp->evicting)
        return true;
    int64_t start_ms = expected_end_start(cp), run_ms = expected_end_runtime(c, cp);
    return num_add_sat(start_ms > 0 ? start_ms : then_ms, run_ms) > then_ms && run_ms < INT64_MAX;
}

int64_t expected_end_of(const struct cluster *c, const struct cluster_pod *cp, int64_t then_ms)
{
    if (expected_end_is_never(cp))
        return INT64_MAX;
    if (cp->pod->terminating || cp->evicting)
        return then_ms;
    int64_t start_ms = expected_end_start(cp);
    start_ms = start_ms > 0 ? start_ms : then_ms;
    if (expected_end_is_known(c, cp, then_ms))
        return num_max(num_add_sat(start_ms, expected_end_runtime(c, cp)), then_ms);
    int64_t age_ms = num_sub_sat(then_ms, start_ms);
    return num_add_sat(then_ms, num_max(age_ms, EXPECTED_END_LEAST_MS));
}

/* "nightly-29387400" of CronJob nightly is "nightly". */
static size_t base_of(const char *name)
{
    size_t n = strlen(name), end = n;
    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9')
        end--;
    return end < n && end > 1 && name[end - 1] == '-' ? end - 1 : n;
}

static uint64_t add_text(uint64_t h, const char *s, size_t n)
{
    return h * UINT64_C(0x9e3779b97f4a7c15) + str_hash(s, n);
}

uint64_t expected_end_template(const struct pod *p)
{
    if (p->owner_kind == NULL || p->owner_name == NULL)
        return 0;
    uint64_t h = str_hash(p->ns, strlen(p->ns));
    h = add_text(h, p->owner_kind, strlen(p->owner_kind));
    h = add_text(h, p->owner_name, base_of(p->owner_name));
    for (size_t i = 0; i < p->containers_len; i++) {
        const char *image = str_or_empty(p->containers[i].image);
        h = add_text(h, image, strlen(image));
    }
    return h != 0 ? h : 1;
}

int64_t expected_end_weight(const struct cluster_pod *cp)
{
    int64_t members = cp->gang != NULL ? cp->gang->min_available : 1;
    return num_max(RUN_TIMES_ONE / num_max(members, 1), 1);
}

void expected_end_learn(struct cluster *c, const struct cluster_pod *cp)
{
    int64_t start_ms = expected_end_start(cp), now_ms = c->reservations->now_ms;
    if (start_ms == 0 || now_ms <= start_ms || cp->evicting || expected_end_is_never(cp))
        return;
    if (!expected_end_is_service(cp))
        run_times_see(&c->reservations->run_times, cp->template, expected_end_weight(cp),
                      now_ms - start_ms);
}

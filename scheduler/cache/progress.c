// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cache/progress.h"

#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "scheduler/cache/gangs.h"

static const char pending[] = "Pending", failed[] = "Failed", finished[] = "Finished";

int64_t progress_timeout_ms(const struct pod_group *group)
{
    int64_t ms;
    if (group == NULL || group->schedule_timeout_s <= 0 ||
        !num_mul(group->schedule_timeout_s, 1000, &ms))
        return PROGRESS_TIMEOUT_MS;
    return ms;
}

static void count(const struct gang *g, struct progress *out)
{
    for (size_t i = 0; i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        if (cp->pod->terminating)
            continue;
        out->scheduled += cp->state == CLUSTER_BOUND || cp->state == CLUSTER_FINISHED;
        out->running += cp->state == CLUSTER_BOUND && cp->pod->phase == POD_RUNNING;
        out->succeeded += cp->state == CLUSTER_FINISHED;
    }
}

static const char *phase_of(const struct progress *p, int32_t existing, int32_t min)
{
    if (existing < min)
        return p->failed > 0 ? failed : pending;
    if (p->succeeded >= min && p->succeeded == existing)
        return finished;
    if (p->running + p->succeeded >= min)
        return "Running";
    if (p->scheduled >= min)
        return "Scheduled";
    return p->scheduled > 0 ? "Scheduling" : "PreScheduling";
}

void progress_of(const struct pod_group *group, const struct gang *g, int32_t failed_pods,
                 struct progress *out)
{
    *out = (struct progress){.failed = failed_pods};
    int32_t min = group->min_member > 0 ? group->min_member : 1;
    if (g != NULL)
        count(g, out);
    out->phase = phase_of(out, g != NULL ? gangs_count_existing(g) : 0, min);
    bool over = str_eq(group->phase, finished) || str_eq(group->phase, failed);
    if (g == NULL && out->failed == 0 && over)
        out->phase = group->phase;
}

int64_t progress_start_ns(const struct pod_group *group, const char *phase, bool has_pods,
                          int64_t since_ns, int64_t now_ns)
{
    static const int64_t second_ns = 1000000000;
    if (str_eq(phase, pending))
        return 0;
    if (!has_pods)
        return group->schedule_start_ns;
    if (since_ns > 0 || group->schedule_start_ns > 0)
        return since_ns > 0 ? since_ns : group->schedule_start_ns;
    /* A failed gang may never have had all its pods. */
    return str_eq(phase, failed) ? 0 : now_ns / second_ns * second_ns;
}

bool progress_is_written(const struct progress *p, const struct pod_group *group)
{
    return str_eq(p->phase, group->phase) && p->scheduled == group->scheduled &&
           p->running == group->running && p->succeeded == group->succeeded &&
           p->failed == group->failed && p->schedule_start_ns == group->schedule_start_ns;
}

uint64_t progress_digest(const struct progress *p, const struct pod_group *group)
{
    AUTO_STRBUF b = {0};
    strbuf_addf(&b, "%d %s %s %d %d %d %d %lld", (int)group->api, group->uid, p->phase,
                p->scheduled, p->running, p->succeeded, p->failed, (long long)p->schedule_start_ns);
    return str_hash(strbuf_str(&b), b.len);
}

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/binding/pod_trace.h"

struct trace {
    int64_t seen_us;
    uint64_t ticket;
};

void pod_trace_init(struct pod_trace *t)
{
    *t = (struct pod_trace){0};
    ids_table_init(&t->pods, sizeof(struct trace), NULL);
}

void pod_trace_deinit(struct pod_trace *t)
{
    ids_table_deinit(&t->pods);
}

void pod_trace_see(struct pod_trace *t, const struct cluster_pod *cp, int64_t now_us)
{
    struct trace *at = ids_at(&t->pods, cp->id);
    if (at->seen_us == 0)
        at->seen_us = now_us;
}

int64_t pod_trace_seen_us(const struct pod_trace *t, const struct cluster_pod *cp)
{
    const struct trace *at = ids_find(&t->pods, cp->id);
    return at != NULL ? at->seen_us : 0;
}

uint64_t pod_trace_give_ticket(struct pod_trace *t, const struct cluster_pod *cp)
{
    struct trace *at = ids_at(&t->pods, cp->id);
    return at->ticket = ++t->tickets;
}

uint64_t pod_trace_ticket(const struct pod_trace *t, const struct cluster_pod *cp)
{
    const struct trace *at = ids_find(&t->pods, cp->id);
    return at != NULL ? at->ticket : 0;
}

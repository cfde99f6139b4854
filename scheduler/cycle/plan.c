// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cycle/plan.h"

#include <assert.h>

void plan_begin(struct plan *p, struct cluster *c)
{
    *p = (struct plan){.cluster = c};
}

void plan_place(struct plan *p, struct cluster_pod *pod, struct cluster_node *node,
                const struct claim *claim)
{
    assert(!p->committed && pod->state == CLUSTER_PENDING);
    p->events |= cluster_assume(p->cluster, pod, node, claim) | EVENT_POD_PLACED;
    struct plan_step step = {.pod = pod, .node = node};
    vec_push(&p->steps, step);
}

size_t plan_mark(const struct plan *p)
{
    return p->steps.len;
}

void plan_rollback(struct plan *p, size_t mark)
{
    assert(!p->committed && mark <= p->steps.len);
    while (p->steps.len > mark)
        cluster_forget(p->cluster, p->steps.items[--p->steps.len].pod);
}

void plan_commit(struct plan *p)
{
    p->committed = true;
}

void plan_end(struct plan *p)
{
    if (!p->committed)
        plan_rollback(p, 0);
    vec_deinit(&p->steps);
}

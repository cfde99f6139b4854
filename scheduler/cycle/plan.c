// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cycle/plan.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "scheduler/model/nominations.h"

void plan_begin(struct plan *p, struct cluster *c)
{
    *p = (struct plan){.cluster = c};
}

void plan_place(struct plan *p, struct cluster_pod *pod, struct cluster_node *node,
                const struct grant *grant)
{
    assert(!p->committed && pod->state == CLUSTER_PENDING);
    p->events |= cluster_assume(p->cluster, pod, node, grant) | EVENT_POD_PLACED;
    struct plan_step step = {.kind = PLAN_PLACED, .pod = pod, .node = node};
    vec_push(&p->steps, step);
}

size_t plan_evict(struct plan *p, struct cluster_pod *pod)
{
    struct plan_step step = {.kind = PLAN_EVICTED, .pod = pod, .node = pod->on};
    assert(!p->committed && pod->on != NULL);
    cluster_lift(p->cluster, pod);
    vec_push(&p->steps, step);
    return p->steps.len - 1;
}

void plan_restore(struct plan *p, size_t evicted)
{
    struct plan_step step = p->steps.items[evicted];
    assert(!p->committed && step.kind == PLAN_EVICTED);
    cluster_set_down(p->cluster, step.pod, step.node);
    step.kind = PLAN_RESTORED;
    step.evicted = evicted;
    vec_push(&p->steps, step);
}

void plan_reclaim(struct plan *p, struct cluster_node *node, const struct cpuset *cpus)
{
    struct plan_step step = {.kind = PLAN_RECLAIMED, .node = node, .cpus = cpus};
    assert(!p->committed && cpuset_is_subset(cpus, &node->cpus.lent));
    cluster_grant_set_lent(p->cluster, node, cpus, false);
    vec_push(&p->steps, step);
}

void plan_nominate(struct plan *p, struct cluster_pod *pod, const char *node)
{
    struct plan_step step = {.kind = PLAN_NOMINATED, .pod = pod};
    assert(!p->committed);
    step.nominated = pod->nominated != NULL ? mem_strdup(pod->nominated) : NULL;
    (void)nominations_set(p->cluster, pod, node);
    vec_push(&p->steps, step);
}

size_t plan_mark(const struct plan *p)
{
    return p->steps.len;
}

/* A pod that was evicted and restored after the mark stays where it is: a search restores most pods
 * that it evicts, and each move costs as much as a query. */
static void undo(struct cluster *c, const struct plan_step *step, size_t mark)
{
    switch (step->kind) {
    case PLAN_PLACED:
        cluster_forget(c, step->pod);
        break;
    case PLAN_EVICTED:
        if (step->pod->on == NULL)
            cluster_set_down(c, step->pod, step->node);
        break;
    case PLAN_RESTORED:
        if (step->evicted < mark)
            cluster_lift(c, step->pod);
        break;
    case PLAN_RECLAIMED:
        cluster_grant_set_lent(c, step->node, step->cpus, true);
        break;
    case PLAN_NOMINATED:
        (void)nominations_set(c, step->pod, step->nominated);
        free(step->nominated);
        break;
    }
}

void plan_rollback(struct plan *p, size_t mark)
{
    assert(!p->committed && mark <= p->steps.len);
    while (p->steps.len > mark)
        undo(p->cluster, &p->steps.items[--p->steps.len], mark);
}

void plan_commit(struct plan *p)
{
    for (size_t i = 0; i < p->steps.len; i++)
        assert(p->steps.items[i].kind == PLAN_PLACED);
    p->committed = true;
}

void plan_end(struct plan *p)
{
    if (!p->committed)
        plan_rollback(p, 0);
    vec_deinit(&p->steps);
}

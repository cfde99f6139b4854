// SPDX-License-Identifier: Apache-2.0
/*
 * replay_run - in the running scheduler, what was placed comes back by the watch and may wake others (a pod that wants to be near it). Here nothing comes back; instead
 * everything that waits is tried again, its backoff over, until a whole round places nothing. So the result is where the scheduler would come to rest.
 */
#include "scheduler/replay_run.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "scheduler/plan.h"

static void gang_changed(void *arg, struct gang *g)
{
    struct replay_run *r = arg;
    queue_touch(&r->queue, g, r->now_ms);
}

static void gang_vanishing(void *arg, struct gang *g)
{
    struct replay_run *r = arg;
    queue_drop(&r->queue, g);
}

void replay_run_init(struct replay_run *r, struct cluster *c)
{
    *r = (struct replay_run){.cluster = c};
    queue_init(&r->queue);
    arena_init(&r->arena, 64 * 1024);
    r->hooks = (struct cluster_hooks){
        .gang_changed = gang_changed, .gang_vanishing = gang_vanishing, .arg = r};
}

void replay_run_deinit(struct replay_run *r)
{
    queue_deinit(&r->queue);
    arena_deinit(&r->arena);
    vec_deinit(&r->placed);
}

static void note_why(struct gang *g, const struct cycle_result *result)
{
    free(g->why.sentence);
    g->why = (struct gang_why){.sentence = mem_strdup(result->sentence),
                               .class = result->class,
                               .for_gang = result->verdict == CYCLE_WAITING,
                               .due_ms = -1};
}

/* true: something was placed. */
static bool try_gang(struct replay_run *r, struct gang *g)
{
    struct plan plan;
    struct cycle_result result;
    arena_reset(&r->arena);
    plan_begin(&plan, r->cluster);
    cycle_run(r->cluster, g, &plan, &r->arena, &result);
    r->cycles++;
    size_t placed = plan.committed ? plan.steps.len : 0;
    for (size_t i = 0; i < placed; i++)
        vec_push(&r->placed, plan.steps.items[i].pod);
    plan_end(&plan);
    switch (result.verdict) {
    case CYCLE_PLACED:
    case CYCLE_NOTHING:
        queue_succeeded(&r->queue, g);
        break;
    case CYCLE_WAITING:
        queue_wait(&r->queue, g, result.wakes);
        note_why(g, &result);
        break;
    case CYCLE_PARTLY:
    case CYCLE_NO_ROOM:
        queue_park(&r->queue, g, result.wakes, r->now_ms);
        note_why(g, &result);
        break;
    }
    if (placed > 0 && r->after != NULL)
        r->after(r->arg, g);
    return placed > 0;
}

void replay_run_all(struct replay_run *r)
{
    for (bool any = true; any;) {
        struct gang *g;
        any = false;
        while ((g = queue_pop(&r->queue, r->now_ms)) != NULL)
            any |= try_gang(r, g);
        r->now_ms += QUEUE_BACKOFF_MAX_MS;
        if (any)
            (void)queue_wake(&r->queue, EVENT_ALL, r->now_ms);
    }
}

static int by_key(const void *a, const void *b)
{
    struct cluster_pod *const *x = a, *const *y = b;
    return strcmp((*x)->pod->key, (*y)->pod->key);
}

void replay_run_waiting(const struct replay_run *r, struct replay_run_list *out)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&r->cluster->pods, &i, &key, &value);) {
        struct cluster_pod *cp = value;
        if (cp->state == CLUSTER_PENDING && cp->gang != NULL && !cp->pod->terminating)
            vec_push(out, cp);
    }
    if (out->len > 0)
        qsort(out->items, out->len, sizeof *out->items, by_key);
}

const char *replay_run_why(const struct cluster_pod *cp)
{
    if (cp->pod->gated)
        return "has scheduling gates (spec.schedulingGates)";
    return cp->gang->why.sentence != NULL ? cp->gang->why.sentence : "was not tried";
}

// SPDX-License-Identifier: Apache-2.0
#include "test/unit/scheduler/world_internal.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/framework/equivalence.h"

uint64_t world_random(struct world *w, uint64_t n)
{
    uint64_t z = (w->random += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

bool world_chance(struct world *w, uint64_t percent)
{
    return world_random(w, 100) < percent;
}

/* ---- the queue beside it, as the program has it ---- */

static void gang_changed(void *arg, struct gang *g)
{
    struct world *w = arg;
    queue_touch(&w->queue, g, w->now_ms);
}

static void gang_vanishing(void *arg, struct gang *g)
{
    struct world *w = arg;
    queue_drop(&w->queue, g);
}

struct cluster_hooks world_hooks(struct world *w)
{
    return (struct cluster_hooks){
        .gang_changed = gang_changed, .gang_vanishing = gang_vanishing, .arg = w};
}

void world_spread_events(struct world *w, uint32_t events)
{
    w->events |= events;
    (void)queue_wake(&w->queue, events, w->now_ms);
}

void world_init(struct world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->random = w->seed = seed;
    w->nodes = WORLD_NODES;
    w->pods = WORLD_PODS;
    w->affinity = seed % 3 == 0 ? 0 : seed % 3 == 1 ? 5 : 40;
    w->pinned = seed / 2 % 3 == 0; /* one of any three lives with all nodes */
    w->policied = seed % 3 == 1;
    w->bundled = seed % 5 == 0;
    w->policy = seed % 7 == 1 ? "only-waiting" : seed % 7 == 2 ? "waiting-and-running" : NULL;
    w->said = "nothing yet";
    cluster_init(&w->cluster, NAME_SCHEDULER);
    pipeline_init(&w->pipeline, &w->cluster);
    /* In some lives classes are forgotten all the time, in some the log is too short to follow, in
     * some nodes are filled up. */
    if (seed % 4 == 1)
        w->pipeline.classes->budget = 4096;
    if (seed % 4 == 2)
        w->cluster.table->log_len = 8;
    if (seed % 8 >= 4)
        w->cluster.packing = CLUSTER_FULLEST_FIRST;
    queue_init(&w->queue, &w->cluster);
    arena_init(&w->arena, 0);
    arena_init(&w->specs, 0);
    struct attempt_hooks hooks = world_attempt_hooks(w);
    attempt_init(&w->attempt, &w->pipeline, &w->queue, &w->arena, &hooks);
    for (size_t i = 0; i < WORLD_PODS; i++)
        (void)str_format(w->slots[i].name, sizeof w->slots[i].name, "p%zu", i);
}

void world_deinit(struct world *w)
{
    attempt_deinit(&w->attempt);
    queue_deinit(&w->queue);
    pipeline_deinit(&w->pipeline);
    cluster_deinit(&w->cluster);
    arena_deinit(&w->arena);
    arena_deinit(&w->specs);
}

void world_step(struct world *w)
{
    if (w->policied && world_chance(w, 3)) {
        world_put_policy(w);
        return;
    }
    if ((w->stored || w->budgeted) && world_chance(w, w->stored ? 15 : 3)) {
        if (w->budgeted && (!w->stored || world_chance(w, 20)))
            world_put_budget(w);
        else
            world_put_storage(w);
        return;
    }
    uint64_t pick = world_random(w, 100);
    if (w->pinned && pick < 6 && world_chance(w, 80)) /* layouts that last, so that some borrow */
        world_update_pod(w, world_random(w, w->pods));
    else if (pick < 2)
        world_put_node(w, world_random(w, w->nodes));
    else if (pick < 5)
        world_change_node(w, world_random(w, w->nodes),
                          (enum world_aspect)world_random(w, WORLD_ASPECTS));
    else if (pick < 6)
        world_remove_node(w, world_random(w, w->nodes));
    else if (pick < 25)
        world_new_pod(w, world_random(w, w->pods));
    else if (pick < 45)
        world_update_pod(w, world_random(w, w->pods));
    else if (pick < 55)
        world_remove_pod(w, &w->slots[world_random(w, w->pods)]);
    else if (pick < 56)
        world_put_group(w);
    else if (pick < 57)
        world_put_namespace(w);
    else if (pick < 59)
        world_try_and_undo(w);
    else if (pick < 60)
        world_filter_means_reserve(w);
    else if (pick < 66)
        world_sleepers_cannot_go(w);
    else if (pick < 67)
        world_reject(w);
    else if (pick < 76)
        world_wait(w);
    else
        (void)world_try(w);
}

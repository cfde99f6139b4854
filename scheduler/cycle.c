// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cycle.h"

#include <stdlib.h>
#include <string.h>

#include "scheduler/gangs.h"
#include "scheduler/pipeline.h"

/* By name: the order in which members were met must not decide where they go (I4). */
static int by_name(const void *a, const void *b)
{
    struct cluster_pod *const *x = a, *const *y = b;
    return strcmp((*x)->pod->key, (*y)->pod->key);
}

static size_t waiting_members(const struct gang *g, struct arena *a, struct cluster_pod ***out)
{
    size_t n = 0;
    *out = arena_new(a, struct cluster_pod *, g->members.len);
    for (size_t i = 0; i < g->members.len; i++)
        if (cluster_pod_is_schedulable(g->members.items[i]))
            (*out)[n++] = g->members.items[i];
    qsort(*out, n, sizeof **out, by_name);
    return n;
}

/* What is wrong with the pod itself: no node and no event can help, only another pod. */
static const char *own_problem(const struct cluster_pod *cp)
{
    if (cp->gpu.illegal != NULL)
        return cp->gpu.illegal;
    if (cp->pod->resource_claims)
        return "spec.resourceClaims (dynamic resource allocation) is not supported by this scheduler";
    return NULL;
}

static const char *gang_sentence(const struct gang *g, const struct cluster_pod *stuck,
                                 int32_t placed, const char *why, struct arena *a)
{
    if (gangs_is_lone(g))
        return why;
    return arena_printf(a, "%s: room for %d of %d pods; %s: %s", g->key, placed, g->min_available,
                        stuck->pod->name, why);
}

void cycle_run(struct cluster *c, struct gang *g, struct plan *plan, struct arena *a,
               struct cycle_result *out)
{
    *out = (struct cycle_result){.verdict = CYCLE_NOTHING};
    struct cluster_pod **members;
    size_t n = waiting_members(g, a, &members);
    if (n == 0)
        return;
    if (!gangs_has_quorum(c, g, a, &out->sentence)) {
        out->verdict = CYCLE_WAITING;
        out->class = 1;
        out->wakes = EVENT_GANG;
        return;
    }

    for (size_t i = 0; i < n; i++)
        if (own_problem(members[i]) != NULL) {
            out->sentence = own_problem(members[i]);
            out->verdict = CYCLE_NO_ROOM;
            out->class = 2;
            return;
        }

    struct pipeline_choice *choice = arena_new(a, struct pipeline_choice, 1);
    struct pipeline_choice *first_no = NULL;
    struct cluster_pod *stuck = NULL;
    int32_t placed = gangs_count_placed(g);
    for (size_t i = 0; i < n; i++) {
        pipeline_choose(c, members[i], a, choice);
        if (choice->node != NULL) {
            plan_place(plan, members[i], choice->node, &choice->claim);
            placed++;
            continue;
        }
        out->wakes |= choice->wakes;
        if (first_no == NULL) {
            first_no = choice;
            stuck = members[i];
            choice = arena_new(a, struct pipeline_choice, 1);
        }
    }
    if (first_no == NULL) {
        out->verdict = CYCLE_PLACED;
        plan_commit(plan);
        return;
    }
    const char *why = reasons_sentence(&first_no->why, a);
    out->sentence = gang_sentence(g, stuck, placed, why, a);
    out->class = reasons_class(&first_no->why);
    if (placed >= g->min_available && plan_mark(plan) > 0) {
        out->verdict = CYCLE_PARTLY;
        plan_commit(plan);
        return;
    }
    out->verdict = CYCLE_NO_ROOM;
    plan_rollback(plan, 0);
}

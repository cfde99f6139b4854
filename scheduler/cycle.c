// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cycle.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "scheduler/gangs.h"
#include "scheduler/pipeline.h"
#include "scheduler/preempt.h"

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
static const char *own_problem(const struct cluster_pod *cp, struct arena *a)
{
    if (cp->pod->unreadable != NULL)
        return arena_printf(a, "cannot be read: %s", cp->pod->unreadable);
    if (cp->gpu.illegal != NULL)
        return cp->gpu.illegal;
    if (cp->pod->resource_claims)
        return "spec.resourceClaims (dynamic resource allocation) is not supported by this scheduler";
    return NULL;
}

static const char *for_member(const struct gang *g, const struct cluster_pod *member,
                              const char *why, struct arena *a)
{
    return gangs_is_lone(g) ? why
                            : arena_printf(a, "%s: pod %s: %s", g->key, member->pod->name, why);
}

/* How many pods exist is worth telling again when it changes; for a large gang not each time, or n members would be told n times. */
static uint64_t waiting_class(const struct gang *g, const char *sentence)
{
    enum { STEPS = 32 };
    int64_t existing = gangs_count_existing(g);
    if (g->min_available <= STEPS || existing >= g->min_available)
        return str_hash(sentence, strlen(sentence));
    return 1 + (uint64_t)(existing * STEPS / g->min_available); /* 0 is "not told yet" */
}

static void refuse(struct cycle_result *out, enum cycle_verdict verdict, const char *sentence,
                   uint64_t class, uint32_t wakes)
{
    *out = (struct cycle_result){
        .verdict = verdict, .sentence = sentence, .class = class, .wakes = wakes};
}

/* The first member that found no node, and the events that can help any that did not. */
struct stuck {
    const struct cluster_pod *member;
    const struct reasons *why;
    uint32_t wakes;
};

/* Places as many as fit; returns how many. */
static int32_t place_all(struct cluster *c, struct cluster_pod **members, size_t n,
                         struct plan *plan, struct arena *a, struct stuck *stuck)
{
    struct pipeline_choice *choice = arena_new(a, struct pipeline_choice, 1);
    int32_t placed = 0;
    for (size_t i = 0; i < n; i++) {
        pipeline_choose(c, members[i], a, choice);
        if (choice->node != NULL) {
            plan_place(plan, members[i], choice->node, &choice->claim);
            placed++;
            continue;
        }
        stuck->wakes |= choice->wakes;
        if (stuck->member == NULL) {
            stuck->member = members[i];
            stuck->why = &choice->why;
            choice = arena_new(a, struct pipeline_choice, 1);
        }
    }
    return placed;
}

static void nominate(struct cycle_result *out, struct cluster_pod *pod, struct cluster_node *node,
                     struct arena *a)
{
    out->nominations = arena_new(a, struct cycle_nomination, 1);
    out->nominations[0] = (struct cycle_nomination){.pod = pod, .node = node};
    out->nominations_len = 1;
}

static void make_room(struct cluster *c, struct cluster_pod *pod, struct arena *a,
                      struct cycle_result *out)
{
    struct preempt_choice p = {0};
    out->awaits = preempt_awaits(c, pod);
    if (out->awaits) {
        out->sentence =
            arena_printf(a, "%s; pods are leaving %s for it", out->sentence, pod->nominated);
        return;
    }
    if (preempt_may(c, pod))
        preempt_choose(c, pod, a, &p);
    nominate(out, pod, p.node, a);
    out->awaits = p.node != NULL;
    out->victims = arena_new(a, struct cycle_victim, p.victims_len);
    for (size_t i = 0; i < p.victims_len; i++)
        out->victims[out->victims_len++] =
            (struct cycle_victim){.pod = p.victims[i], .for_pod = pod};
    if (p.victims_len > 0)
        out->sentence =
            arena_printf(a, "%s; %zu pod%s of lower priority on %s must go for it", out->sentence,
                         p.victims_len, p.victims_len == 1 ? "" : "s", p.node->name);
    else if (p.node != NULL)
        out->sentence =
            arena_printf(a, "%s; pods are leaving %s for it", out->sentence, p.node->name);
}

void cycle_run(struct cluster *c, struct gang *g, struct plan *plan, struct arena *a,
               struct cycle_result *out)
{
    *out = (struct cycle_result){.verdict = CYCLE_NOTHING};
    struct cluster_pod **members;
    size_t n = waiting_members(g, a, &members);
    if (n == 0)
        return;
    const char *why = NULL;
    if (!gangs_has_quorum(c, g, a, &why)) {
        refuse(out, CYCLE_WAITING, why, waiting_class(g, why), 0); /* its own change wakes it */
        return;
    }
    for (size_t i = 0; i < n; i++)
        if ((why = own_problem(members[i], a)) != NULL) {
            refuse(out, CYCLE_NO_ROOM, for_member(g, members[i], why, a),
                   str_hash(why, strlen(why)), 0);
            return;
        }

    struct stuck stuck = {0};
    size_t begin = plan_mark(plan);
    int32_t missing = gangs_count_missing(g);
    int32_t placed = place_all(c, members, n, plan, a, &stuck);
    if (stuck.member == NULL) {
        assert(placed >= missing); /* the quorum exists, and all of it is placed */
        out->verdict = CYCLE_PLACED;
        plan_commit(plan);
        return;
    }
    why = reasons_sentence(stuck.why, a);
    bool quorum = placed >= missing;
    if (gangs_is_lone(g) || quorum)
        why = for_member(g, stuck.member, why, a);
    else
        why = arena_printf(a, "%s: room for %d of %d pods; pod %s: %s", g->key,
                           g->min_available - missing + placed, g->min_available,
                           stuck.member->pod->name, why);
    bool keep = quorum && placed > 0;
    refuse(out, keep ? CYCLE_PARTLY : CYCLE_NO_ROOM, why, reasons_class(stuck.why), stuck.wakes);
    if (keep) {
        plan_commit(plan);
        return;
    }
    plan_rollback(plan, begin);
    if (gangs_is_lone(g))
        make_room(c, members[0], a, out);
}

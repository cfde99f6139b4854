// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cycle/gang_preempt.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/num.h"
#include "scheduler/framework/equivalence.h"
#include "scheduler/cycle/cpu_lending.h"
#include "scheduler/cycle/node_victims.h"
#include "scheduler/cycle/preempt.h"

enum {
    TRIALS = 2000, /* node comparisons for all members together, roughly */
    TRIALS_LEAST = 8,
    TRIALS_PER_COST = 16 /* nodes tried without some of their pods that cost as much as a member */
};

/* The cluster without the victims. */
struct trial {
    struct placing *placing;
    struct VEC(struct cycle_victim) victims;
    struct preempt_scope scope;
    uint64_t serial; /* of the class that hopeless is about */
    uint32_t wakes;  /* preempt_choice */
};

static int by_place(const void *a, const void *b)
{
    struct cluster_node *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* "n1", "n1 and n2", "n1 and 7 other nodes" */
static const char *print_nodes(struct cluster_node **nodes, size_t len, struct arena *a)
{
    size_t n = 0;
    qsort(nodes, len, sizeof *nodes, by_place);
    for (size_t i = 0; i < len; i++)
        if (n == 0 || nodes[n - 1] != nodes[i])
            nodes[n++] = nodes[i];
    if (n == 1)
        return nodes[0]->name;
    if (n == 2)
        return arena_printf(a, "%s and %s", nodes[0]->name, nodes[1]->name);
    return arena_printf(a, "%s and %zu other nodes", nodes[0]->name, n - 1);
}

static void say_leaving(const struct placing *p, struct cluster_node **nodes, size_t len,
                        struct cycle_result *out)
{
    out->sentence = arena_printf(p->arena, "%s; pods are leaving %s for it", out->sentence,
                                 print_nodes(nodes, len, p->arena));
}

static void say(const struct placing *p, struct cycle_result *out)
{
    size_t len = out->victims_len > 0 ? out->victims_len : out->nominations_len;
    struct cluster_node **nodes = arena_new(p->arena, struct cluster_node *, len);
    for (size_t i = 0; i < len; i++)
        nodes[i] = out->victims_len > 0 ? out->victims[i].pod->on : out->nominations[i].node;
    if (out->victims_len == 0)
        say_leaving(p, nodes, len, out);
    else
        out->sentence = arena_printf(
            p->arena, "%s; %zu pod%s of lower priority on %s must go for it", out->sentence, len,
            len == 1 ? "" : "s", print_nodes(nodes, len, p->arena));
}

bool gang_preempt_say_awaited(const struct placing *p, struct cycle_result *out)
{
    struct cluster_node **nodes = arena_new(p->arena, struct cluster_node *, p->members_len);
    size_t len = 0;
    for (size_t i = 0; i < p->members_len; i++)
        if (preempt_awaits(p->cluster, p->members[i].pod))
            nodes[len++] = cluster_find_node(p->cluster, p->members[i].pod->nominated);
    if (len > 0)
        say_leaving(p, nodes, len, out);
    return len > 0;
}

bool gang_preempt_is_awaited(const struct placing *p)
{
    for (size_t i = 0; i < p->members_len; i++)
        if (preempt_awaits(p->cluster, p->members[i].pod))
            return true;
    return false;
}

static void nominate(struct cycle_result *out, struct cluster_pod *pod, struct cluster_node *node)
{
    out->nominations[out->nominations_len++] = (struct cycle_nomination){.pod = pod, .node = node};
}

void gang_preempt_withdraw(const struct placing *p, struct cycle_result *out)
{
    if (out->nominations == NULL)
        out->nominations = arena_new(p->arena, struct cycle_nomination, p->members_len);
    size_t given = out->nominations_len;
    for (size_t i = 0; i < p->members_len; i++) {
        struct cluster_pod *cp = p->members[i].pod;
        bool kept = cp->nominated == NULL || cp->state != CLUSTER_PENDING;
        for (size_t k = 0; k < given && !kept; k++)
            kept = out->nominations[k].pod == cp;
        if (!kept)
            nominate(out, cp, NULL);
    }
}

static void start_eviction(struct cycle_result *out, struct cluster_pod *victim,
                           struct cluster_pod *for_pod)
{
    out->victims[out->victims_len++] = (struct cycle_victim){.pod = victim, .for_pod = for_pod};
}

static void for_one(struct placing *p, struct cluster_pod *pod, struct cycle_result *out)
{
    struct preempt_choice choice;
    preempt_choose(&p->ask, pod, p->arena, &choice);
    p->cost += choice.tried / TRIALS_PER_COST;
    if (choice.node == NULL) {
        out->wakes |= choice.wakes;
        return;
    }
    nominate(out, pod, choice.node);
    out->victims = arena_new(p->arena, struct cycle_victim, choice.victims_len);
    for (size_t i = 0; i < choice.victims_len; i++)
        start_eviction(out, choice.victims[i], pod);
}

static void evict_leaving(struct plan *plan)
{
    const struct node_table *table = plan->cluster->table;
    for (uint32_t i = 0; i < table->len; i++) {
        struct cluster_node *cn = table->rows[i].node;
        for (size_t k = cn->pods.len; k-- > 0;)
            if (node_victims_is_leaving(cn->pods.items[k]))
                (void)plan_evict(plan, cn->pods.items[k]); /* swaps the last one to k */
    }
}

static void note_kind(struct trial *t, const struct pod_class *k)
{
    uint32_t len = t->placing->cluster->table->len;
    bool plain = k->domains == NULL && !k->entangled;
    if (plain && t->serial == k->serial)
        return;
    t->serial = plain ? k->serial : 0;
    t->scope.hopeless = plain ? arena_new(t->placing->arena, bool, len) : NULL;
}

/* true: placing.choice has the pod's node. */
static bool make_place(void *arg, struct cluster_pod *pod)
{
    struct trial *t = arg;
    struct placing *p = t->placing;
    struct preempt_choice choice;
    note_kind(t, equivalence_ask(&p->ask, pod));
    preempt_choose_more(&p->ask, pod, &t->scope, p->arena, &choice);
    p->cost += choice.tried / TRIALS_PER_COST;
    t->wakes |= choice.wakes;
    if (choice.node == NULL)
        return false;
    size_t mark = plan_mark(p->plan), victims = t->victims.len;
    for (size_t i = 0; i < choice.victims_len; i++) {
        struct cycle_victim v = {.pod = choice.victims[i], .for_pod = pod};
        vec_push(&t->victims, v);
        (void)plan_evict(p->plan, v.pod);
    }
    if (placing_choose(p, pod) != NULL)
        return true;
    /* The pod has affinity to a victim on another node. */
    plan_rollback(p->plan, mark);
    t->victims.len = victims;
    return false;
}

static void note_places(const struct plan *plan, size_t mark, struct cycle_result *out)
{
    out->nominations_len = 0;
    for (size_t i = mark; i < plan->steps.len; i++)
        if (plan->steps.items[i].kind == PLAN_PLACED)
            nominate(out, plan->steps.items[i].pod, plan->steps.items[i].node);
}

/* A later member's victims may be pods that an earlier one has affinity to, or that kept its
 * domains balanced; evicting them would be in vain. So the members are placed again on the same
 * nodes, with all victims gone. */
static bool promise_holds(struct placing *p, const struct cycle_result *out)
{
    size_t mark = plan_mark(p->plan), i = 0;
    for (; i < out->nominations_len; i++) {
        const struct cycle_nomination *n = &out->nominations[i];
        if (!pipeline_try(&p->ask, n->pod, n->node, p->arena, p->choice))
            break;
        plan_place(p->plan, n->pod, n->node, &p->choice->grant);
    }
    plan_rollback(p->plan, mark);
    return i == out->nominations_len;
}

struct evicted {
    struct cluster_pod *pod;
    size_t step;
};

static int by_importance(const void *a, const void *b)
{
    return node_victims_compare(((const struct evicted *)a)->pod, ((const struct evicted *)b)->pod);
}

/* Pods of one gang stay or go together: some are victims only because the gang is useless then. */
static bool go_together(const struct cluster_pod *a, const struct cluster_pod *b)
{
    return a == b || (a->gang != NULL && a->gang == b->gang);
}

static void forget_unit(struct trial *t, const struct cluster_pod *one)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->victims.len; i++)
        if (!go_together(t->victims.items[i].pod, one))
            t->victims.items[kept++] = t->victims.items[i];
    t->victims.len = kept;
}

/* Whether the quorums still fit if the pod and those that go with it stay; then they are kept. */
static bool try_to_spare(struct trial *t, const struct evicted *all, size_t len,
                         const struct cluster_pod *one, struct cycle_result *out)
{
    struct placing *p = t->placing;
    size_t mark = plan_mark(p->plan);
    for (size_t i = 0; i < len; i++)
        if (go_together(all[i].pod, one))
            plan_restore(p->plan, all[i].step);
    size_t restored = plan_mark(p->plan);
    bool spared = placing_fill(p, NULL, NULL);
    if (spared)
        note_places(p->plan, restored, out);
    plan_rollback(p->plan, spared ? restored : mark);
    return spared;
}

/* Victims were chosen member by member, so a later victim may make an earlier one unnecessary. Each
 * is restored on trial, the most important first. On entry all victims are evicted; on return those
 * that can stay are restored. No member is placed. */
static void reprieve(struct trial *t, struct evicted *all, struct cycle_result *out)
{
    size_t len = t->victims.len,
           trials = (size_t)num_max(TRIALS / (int64_t)t->placing->members_len, TRIALS_LEAST);
    qsort(all, len, sizeof *all, by_importance);
    for (size_t i = 0; i < len && trials > 0; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = go_together(all[k].pod, all[i].pod);
        if (seen)
            continue;
        trials--;
        if (try_to_spare(t, all, len, all[i].pod, out))
            forget_unit(t, all[i].pod);
    }
}

/* Whether the planned nodes still fit once all victims are gone; spares unneeded victims. */
static bool review(struct trial *t, struct cycle_result *out)
{
    struct placing *p = t->placing;
    struct evicted *all = arena_new(p->arena, struct evicted, t->victims.len);
    for (size_t i = 0; i < t->victims.len; i++) {
        struct cluster_pod *victim = t->victims.items[i].pod;
        all[i] = (struct evicted){.pod = victim, .step = plan_evict(p->plan, victim)};
    }
    if (!promise_holds(p, out))
        return false;
    if (t->victims.len > 1)
        reprieve(t, all, out);
    return true;
}

/* The member a victim is evicted for: preferably one nominated to the victim's node. */
static struct cluster_pod *member_for(const struct cycle_result *out, const struct cycle_victim *v)
{
    const struct cluster_node *from = v->pod->on;
    for (size_t i = 0; i < out->nominations_len; i++)
        if (out->nominations[i].pod == v->for_pod && out->nominations[i].node == from)
            return v->for_pod;
    for (size_t i = 0; i < out->nominations_len; i++)
        if (out->nominations[i].node == from)
            return out->nominations[i].pod;
    return v->for_pod;
}

static void keep(const struct trial *t, struct cycle_result *out)
{
    out->victims = arena_new(t->placing->arena, struct cycle_victim, t->victims.len);
    for (size_t i = 0; i < t->victims.len; i++)
        start_eviction(out, t->victims.items[i].pod, member_for(out, &t->victims.items[i]));
}

/* All members count as the least important of them, so that none is evicted for another, even
 * across gangs that are placed together. */
static int32_t least_priority(const struct placing *p)
{
    int32_t least = INT32_MAX;
    for (size_t i = 0; i < p->members_len; i++)
        least = (int32_t)num_min(least, p->members[i].pod->pod->priority);
    return least;
}

static void for_all(struct placing *p, struct cycle_result *out)
{
    struct trial t = {.placing = p, .scope = {.plan = p->plan, .below = least_priority(p)}};
    size_t start = plan_mark(p->plan);
    t.scope.candidates = (uint32_t)num_min(num_max(TRIALS / (int64_t)p->members_len, TRIALS_LEAST),
                                           PREEMPT_CANDIDATES);
    evict_leaving(p->plan);
    size_t mark = plan_mark(p->plan);
    bool enough = placing_fill(p, make_place, &t);
    if (enough)
        note_places(p->plan, mark, out);
    plan_rollback(p->plan, mark);
    if (enough && t.victims.len > 0)
        enough = review(&t, out);
    plan_rollback(p->plan, start);
    if (enough)
        keep(&t, out);
    else
        out->nominations_len = 0;
    if (!enough) /* members may have been in each other's way, as without victims */
        out->wakes |= t.wakes | placing_wakes(p);
    vec_deinit(&t.victims);
}

static bool may_send_away(const struct placing *p)
{
    for (size_t i = 0; i < p->members_len; i++)
        if (p->members[i].pod->pod->preempt_never)
            return false;
    return cluster_has_placed_below(p->cluster, least_priority(p));
}

/* Why no victim was found: pods that would do did not go. */
static void say_staying(const struct placing *p, struct cycle_result *out)
{
    const struct cluster *c = p->cluster;
    struct cluster_node **nodes = arena_new(p->arena, struct cluster_node *, c->staying.len);
    size_t len = 0;
    for (size_t i = 0; i < c->staying.len; i++) {
        const struct cluster_pod *cp = c->staying.items[i];
        if (cp->on != NULL && cp->pod->priority < least_priority(p))
            nodes[len++] = cp->on;
    }
    if (len > 0)
        out->sentence = arena_printf(
            p->arena, "%s; %zu pod%s of lower priority on %s did not go, and %s left alone for now",
            out->sentence, len, len == 1 ? "" : "s", print_nodes(nodes, len, p->arena),
            len == 1 ? "is" : "are");
}

static bool lacks_quorum(const struct placing *p)
{
    for (size_t i = 0; i < p->gangs_len; i++)
        if (p->gangs[i].missing > 0)
            return true;
    return false;
}

void gang_preempt_make(struct placing *p, struct cycle_result *out)
{
    out->awaits = gang_preempt_say_awaited(p, out);
    if (out->awaits)
        return;
    out->nominations = arena_new(p->arena, struct cycle_nomination, p->members_len);
    bool reclaimed = cpu_lending_reclaim(p, false, out);
    if (reclaimed || !may_send_away(p))
        ;
    else if (p->members_len > 1 && lacks_quorum(p))
        for_all(p, out);
    else
        for_one(p, p->stuck->pod, out); /* beyond the quorum each is on its own */
    if (out->nominations_len == 0 && p->passed_over)
        reclaimed = cpu_lending_reclaim(p, true, out);
    out->awaits = out->nominations_len > 0;
    if (out->awaits && !reclaimed)
        say(p, out);
    if (!out->awaits)
        say_staying(p, out);
    gang_preempt_withdraw(p, out);
}

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cycle/attempt.h"

#include "lib/base/str.h"
#include "scheduler/model/nominations.h"
#include "scheduler/cache/policies.h"
#include "scheduler/cache/replacement_hold.h"
#include "scheduler/cycle/reservation.h"

void attempt_init(struct attempt *a, const struct pipeline *pipeline, struct queue *queue,
                  struct arena *arena, const struct attempt_hooks *hooks)
{
    *a = (struct attempt){.pipeline = pipeline, .queue = queue, .arena = arena, .hooks = *hooks};
    ids_table_init(&a->recalled, sizeof(int64_t), NULL);
}

void attempt_deinit(struct attempt *a)
{
    ids_table_deinit(&a->recalled);
}

void attempt_nominate(struct attempt *a, struct cluster_pod *cp, const char *node, int64_t now_ms)
{
    struct cluster *c = a->pipeline->cluster;
    struct cluster_node *cn = node != NULL ? cluster_find_node(c, node) : NULL;
    uint32_t events = 0;
    if (str_eq(cp->nominated, node))
        return;
    if (a->hooks.nominate != NULL)
        a->hooks.nominate(a->hooks.arg, cp, node);
    if (cn != NULL && cn->nominated) /* one of them may not fit there any more: others may */
        events = cluster_note_freed(c, cn);
    queue_wake(a->queue, events | nominations_set(c, cp, node), now_ms);
}

/* The write may have been lost: CPUs that are still needed are reclaimed again, but not at once. */
static void recall(struct attempt *a, const struct cycle_result *r, int64_t now_ms)
{
    for (size_t i = 0; i < r->recalls_len; i++) {
        const struct cycle_recall *one = &r->recalls[i];
        struct cluster_pod *cp = one->pod;
        bool known = cp->giving != NULL && cpuset_is_subset(&one->cpus, cp->giving);
        int64_t *called_ms = ids_at(&a->recalled, cp->id);
        if (known && now_ms - *called_ms < ATTEMPT_RECALL_MS)
            continue;
        cluster_grant_reclaim(cp, &one->cpus);
        *called_ms = now_ms;
        if (a->hooks.recall != NULL)
            a->hooks.recall(a->hooks.arg, one, r);
    }
}

static bool will_evict(const struct attempt *a, const struct cycle_result *r)
{
    return !a->all_stay || r->recalls_len > 0;
}

/* Withdraws nominations that no eviction can fulfil any more. */
static void evict_for(struct attempt *a, struct gang *g, const struct cycle_result *r,
                      int64_t now_ms)
{
    bool some_leave = will_evict(a, r);
    if (some_leave && r->awaits && r->nominations_len > 0 && a->hooks.evict_for != NULL)
        a->hooks.evict_for(a->hooks.arg, g, r);
    for (size_t i = 0; i < r->nominations_len; i++) {
        const struct cycle_nomination *n = &r->nominations[i];
        if (n->node == NULL || some_leave)
            attempt_nominate(a, n->pod, n->node != NULL ? n->node->name : NULL, now_ms);
    }
    if (!some_leave)
        return;
    recall(a, r, now_ms);
    for (size_t i = 0; i < r->victims_len; i++)
        cluster_set_evicting(a->pipeline->cluster, r->victims[i].pod, true);
}

/* What the gang's members should know about its reservation. */
static void add_message(const struct attempt *a, const struct gang *g, struct cycle_result *r)
{
    const struct cluster *c = a->pipeline->cluster;
    const char *message = reservation_message(c, g, a->arena);
    if (message != NULL && r->sentence != NULL) {
        r->sentence = arena_printf(a->arena, "%s; %s", r->sentence, message);
        r->class += (uint64_t)reservations_of(c, g)->verdict; /* a new verdict is worth reporting */
    }
}

/* Updates the gang's waiting time. */
static void follow(struct attempt *a, struct gang *g, struct cycle_result *r,
                   struct attempt_time now)
{
    uint32_t events = reservation_follow(a->pipeline->cluster, g, r, now.wall_ms);
    add_message(a, g, r);
    queue_wake(a->queue, events, now.now_ms);
}

static void park(struct attempt *a, struct gang *g, const struct cycle_result *r, int64_t now_ms)
{
    int64_t due_ns = policies_due_ns(a->pipeline->cluster, g);
    bool awaits = r->awaits && will_evict(a, r);
    queue_set_need(a->queue, g, &r->need);
    if (due_ns != 0 && a->hooks.await_time != NULL)
        a->hooks.await_time(a->hooks.arg, due_ns);
    /* A gang that waits for pods to leave is retried as soon as they are gone, without backoff. */
    if (awaits || r->verdict == CYCLE_WAITING)
        queue_wait(a->queue, g, r->wakes | (awaits ? EVENT_POD_LEFT : 0), now_ms);
    else
        queue_park(a->queue, g, r->wakes, now_ms);
    queue_set_why(a->queue, g, r->sentence, r->class, r->verdict == CYCLE_WAITING);
    if (a->hooks.refused != NULL)
        a->hooks.refused(a->hooks.arg, g, r);
    /* Members beyond the quorum may preempt, but not in the attempt that placed the quorum. */
    if (r->verdict == CYCLE_PARTLY && cluster_has_placed_below(a->pipeline->cluster, g->priority))
        queue_touch(a->queue, g, now_ms);
}

/* Lets waiting members use the capacity that is held for them: in a plan of its own, because it is
 * undone however the attempt ends. Two steps for each hold: the lost pod's, the member's. */
static void lend_holds(struct plan *lent, const struct gang *g)
{
    struct replacement_hold_offer offer;
    for (size_t i = 0; replacement_hold_next(lent->cluster, g, &i, &offer);) {
        plan_nominate(lent, offer.lost, NULL);
        plan_nominate(lent, offer.member, offer.node);
    }
}

/* Holds whose member was placed end. Returns the events. */
static uint32_t return_holds(struct plan *lent)
{
    uint32_t events = 0;
    while (lent->steps.len > 0) {
        const struct plan_step *last = &lent->steps.items[lent->steps.len - 1];
        const struct cluster_pod *lost = last[-1].pod, *member = last->pod;
        plan_rollback(lent, lent->steps.len - 2);
        if (member->state != CLUSTER_PENDING)
            events |= replacement_hold_end(lent->cluster, lost);
    }
    plan_end(lent);
    return events;
}

static size_t decide(struct attempt *a, struct gang *g, struct cycle_result *r, int64_t now_ms)
{
    struct cluster *c = a->pipeline->cluster;
    struct plan lent, plan;
    plan_begin(&lent, c);
    lend_holds(&lent, g);
    plan_begin(&plan, c);
    cycle_run(a->pipeline, g, &plan, a->arena, r); /* commits, or leaves no step */
    queue_wake(a->queue, return_holds(&lent), now_ms);
    if (a->hooks.decided != NULL)
        a->hooks.decided(a->hooks.arg, r);
    size_t placed = plan.committed ? plan.steps.len : 0;
    if (plan.committed) {
        if (a->hooks.bind != NULL)
            a->hooks.bind(a->hooks.arg, g, &plan, r);
        queue_wake(a->queue, plan.events, now_ms); /* for pods that waited for affinity */
    }
    plan_end(&plan);
    for (size_t i = 0; i < r->others_len; i++)
        queue_touch(a->queue, r->others[i], now_ms);
    return placed;
}

bool attempt_next(struct attempt *a, struct attempt_time now, struct attempt_result *out)
{
    struct cycle_result r;
    struct gang *g;
    while ((g = queue_pop(a->queue, now.now_ms)) != NULL && policies_defer(a->pipeline->cluster, g))
        queue_defer(a->queue, g, now.now_ms);
    if (g == NULL)
        return false;
    bool flushed = queue_is_flushed(a->queue, g);
    arena_reset(a->arena);
    policies_set_now(a->pipeline->cluster, now.wall_ns);
    reservations_set_now(a->pipeline->cluster, now.wall_ms);
    size_t placed = decide(a, g, &r, now.now_ms);
    *out = (struct attempt_result){
        .gang = g, .verdict = r.verdict, .placed = placed, .missed = flushed && placed > 0};
    queue_charge(a->queue, g, 1 + r.cost);
    follow(a, g, &r, now);
    if (r.verdict == CYCLE_PLACED || r.verdict == CYCLE_NOTHING)
        queue_succeeded(a->queue, g);
    else
        park(a, g, &r, now.now_ms);
    evict_for(a, g, &r, now.now_ms);
    return true;
}

void attempt_ask(struct attempt *a, struct gang *g, struct cycle_result *out)
{
    struct plan lent;
    arena_reset(a->arena);
    plan_begin(&lent, a->pipeline->cluster);
    lend_holds(&lent, g);
    cycle_ask(a->pipeline, g, a->arena, out);
    plan_end(&lent);
    add_message(a, g, out);
}

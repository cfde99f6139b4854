// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cycle/reservation.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "scheduler/framework/equivalence.h"
#include "scheduler/cycle/cycle.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cycle/reservation_plan.h"

enum { NS_PER_MS = 1000000, MS_PER_MINUTE = 60000 };

/* Gangs that are placed as one; by key. */
struct together {
    struct gang *const *gangs;
    size_t len;
};

/* false: one of them lacks pods. */
static bool find_together(const struct cluster *c, struct gang *g, struct arena *a,
                          struct together *out)
{
    const char *why;
    if (!gangs_has_quorum(c, g, a, &why))
        return false;
    struct gang **all;
    out->len = gangs_bundle(c, g, a, &all);
    out->gangs = all;
    return true;
}

void reservation_restore(struct cluster *c, struct gang *g, struct gang *const *gangs, size_t len,
                         const struct reservation_plan *plan, const struct reservation_term *term)
{
    reservations_keep(c, g, gangs, len, plan->places, plan->len, term);
}

/* It lacks capacity, not pods. wakes is 0 for a problem of its own that no capacity solves. */
static bool lacks_capacity(const struct gang *g, const struct cycle_result *r)
{
    return r->verdict == CYCLE_NO_CAPACITY && r->wakes != 0 && !gangs_is_lone(g) &&
           gangs_count_missing(g) > 0;
}

void reservation_restore_age(struct cluster *c, struct gang *g, int64_t since_ms, int32_t lapses)
{
    reservations_at(c, g)->lapses = lapses;
    if (since_ms > 0)
        reservations_start_aging(c, g, since_ms);
}

/* Whether it was refused before: by a previous leader, or by this one before a failed binding. */
static bool was_refused(const struct gang *g)
{
    for (size_t i = 0; i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        if (cluster_pod_is_schedulable(cp) && str_eq(cp->pod->scheduled.status, "False") &&
            str_eq(cp->pod->scheduled.reason, "Unschedulable"))
            return true;
    }
    return false;
}

/* A gang with a lapsed reservation always counts as the youngest. */
static int64_t waits_since_ms(const struct cluster *c, const struct gang *g, int64_t now_ms)
{
    bool before = reservations_of(c, g)->lapses == 0 && was_refused(g);
    int64_t since_ms = before ? gangs_quorum_since_ns(g) / NS_PER_MS : 0;
    return since_ms > 0 ? num_min(since_ms, now_ms) : now_ms;
}

uint32_t reservation_follow(struct cluster *c, struct gang *g, const struct cycle_result *r,
                            int64_t now_ms)
{
    if (!lacks_capacity(g, r)) {
        bool placed = r->verdict == CYCLE_PLACED || r->verdict == CYCLE_PARTLY;
        if (placed && reservations_of(c, g)->lapses > 0)
            reservations_at(c, g)->lapses = 0;
        return reservations_end(c, g);
    }
    if (reservations_of(c, g)->since_ms == 0 && c->reservations->options.after_ms > 0)
        reservations_start_aging(c, g, waits_since_ms(c, g, now_ms));
    return 0;
}

/* Their time is over: other gangs come first now. */
static void lapse(struct cluster *c, struct reservation *r, int64_t now_ms,
                  struct reservation_news *news)
{
    for (size_t i = 0; i < r->gangs.len; i++) {
        struct reservation_wait *w = reservations_at(c, r->gangs.items[i]);
        if (w->since_ms != 0)
            w->since_ms = num_max(now_ms, 1);
        w->lapses += w->lapses < INT32_MAX;
    }
    news->events |= reservations_drop(c, r);
    news->lapsed++;
}

/* Whether the gangs are still those that are placed as one, all with their quorum of pods. */
static bool same_gangs(const struct reservation *r, const struct together *t)
{
    if (t->len != r->gangs.len || reservations_priority(t->gangs, t->len) != r->priority)
        return false;
    for (size_t i = 0; i < t->len; i++)
        if (t->gangs[i] != r->gangs.items[i])
            return false;
    return true;
}

/* Whether the plan's members still wait and its nodes, if empty, still fit them. */
static bool still_holds(const struct pipeline *ask, const struct reservation *r, struct arena *a)
{
    struct cluster *c = ask->cluster;
    const char *name;
    void *value;
    int32_t members = 0, missing = 0;
    struct together t;
    if (!find_together(c, r->gang, a, &t) || !same_gangs(r, &t))
        return false;
    for (size_t i = 0; map_next(&r->nodes, &i, &name, &value);) {
        const struct reservation_node *at = value;
        for (size_t k = 0; k < at->members.len; k++, members++) {
            struct cluster_pod *cp = cluster_find_pod(c, at->members.items[k]);
            if (cp == NULL || cp->gang == NULL || reservations_of(c, cp->gang)->kept != r ||
                !cluster_pod_is_schedulable(cp))
                return false;
            const struct pod_class *class = equivalence_ask(ask, cp);
            const struct cluster_node *cn = cluster_find_node(c, name);
            if (cn == NULL || cn->place == NODE_TABLE_NOWHERE ||
                class->fixed_score[cn->place] == SCORE_TREE_NO)
                return false;
        }
    }
    for (size_t i = 0; i < r->gangs.len; i++)
        missing += gangs_count_missing(r->gangs.items[i]);
    return members == missing;
}

/* Without any progress; what blocks a gang longer than many times the mean run time does not end
 * by itself. */
static int64_t stall_ms(const struct cluster *c)
{
    return num_max(RESERVATION_STALL_LEAST_MS, c->reservations->mean_ms * RESERVATION_STALL_MEANS);
}

/* Each lapsed reservation doubles the waiting time. */
static int64_t age_needed(const struct cluster *c, const struct gang *g, bool guessed)
{
    const struct reservations *all = c->reservations;
    int64_t patience_ms = guessed ? all->mean_ms * RESERVATION_PATIENCE_MEANS : 0;
    int64_t age_ms = num_max(all->options.after_ms, patience_ms);
    int32_t lapses = reservations_of(c, g)->lapses;
    for (int32_t i = 0; i < lapses && i < RESERVATION_DOUBLINGS; i++)
        age_ms = num_add_sat(age_ms, age_ms);
    return age_ms;
}

/* Pods in its way may end sooner than expected, so the delay is not much longer than a reservation
 * may wait, but not short where everything takes days. */
static int64_t put_off(const struct cluster *c, const struct gang *g, int64_t now_ms,
                       int64_t start_ms)
{
    int64_t stall = stall_ms(c), age_ms = now_ms - reservations_of(c, g)->since_ms;
    int64_t away_ms = num_min(start_ms - stall - now_ms, num_max(stall, age_ms / 4));
    return now_ms + num_max(away_ms, RESERVATION_AGAIN_MS);
}

/* Sets the same for all gangs placed as one. */
static void set_all(struct cluster *c, const struct together *t, enum reservation_verdict verdict,
                    int64_t again_ms)
{
    for (size_t i = 0; i < t->len; i++) {
        struct reservation_wait *w = reservations_at(c, t->gangs[i]);
        w->look_again_ms = again_ms;
        if (w->verdict != verdict)
            reservations_set_verdict(c, t->gangs[i], verdict);
    }
}

/* The others of its priority are younger still: none is looked at before. */
static void hold_back(struct cluster *c, const struct gang *g, const struct together *t,
                      int64_t now_ms)
{
    struct reservations *all = c->reservations;
    int64_t age_ms = now_ms - reservations_of(c, g)->since_ms;
    int64_t left_ms = age_needed(c, g, true) - age_ms;
    /* The mean changes: not too far ahead. */
    int64_t again_ms = now_ms + num_max(num_min(left_ms, all->mean_ms / 4), RESERVATION_AGAIN_MS);
    for (size_t i = 0; i < all->aging.len; i++) {
        struct reservation_wait *w = reservations_at(c, all->aging.items[i]);
        if (all->aging.items[i]->priority == g->priority)
            w->look_again_ms = num_max(w->look_again_ms, again_ms);
    }
    set_all(c, t, RESERVATION_EARLY, again_ms);
}

/* Fewer pods in its way than ever before: it goes on. */
static void note_progress(struct cluster *c, struct reservation *r, size_t to_go, int64_t now_ms)
{
    if (to_go >= r->to_go)
        return;
    r->to_go = to_go;
    r->until_ms = num_add_sat(now_ms, stall_ms(c));
}

static bool makes_plan(const struct pipeline *ask, const struct together *t, int64_t since_ms,
                       int64_t now_ms, struct arena *a, struct reservation_plan *plan)
{
    reservation_plan_make(ask, t->gangs, t->len, since_ms, now_ms, a, plan);
    ask->cluster->reservations->mean_ms = plan->mean_ms;
    return plan->fits;
}

static void reserve_capacity(const struct pipeline *ask, struct gang *g, int64_t now_ms,
                             struct arena *a)
{
    struct cluster *c = ask->cluster;
    struct together t;
    struct reservation_plan plan;
    int64_t age_ms = now_ms - reservations_of(c, g)->since_ms;
    if (!find_together(c, g, a, &t)) { /* pods are missing; its next cycle reports that */
        reservations_at(c, g)->look_again_ms = now_ms + RESERVATION_AGAIN_MS;
        return;
    }
    if (!makes_plan(ask, &t, INT64_MAX, now_ms, a, &plan)) {
        set_all(c, &t, RESERVATION_HOPELESS, now_ms + RESERVATION_AGAIN_MS);
    } else if (age_ms < age_needed(c, g, plan.guessed)) {
        hold_back(c, g, &t, now_ms);
    } else if (plan.start_ms > num_add_sat(now_ms, stall_ms(c))) {
        set_all(c, &t, RESERVATION_FAR, put_off(c, g, now_ms, plan.start_ms));
    } else {
        const struct reservation_term term = {now_ms, now_ms, plan.start_ms, now_ms};
        reservations_keep(c, g, t.gangs, t.len, plan.places, plan.len, &term);
        note_progress(c, reservations_of(c, g)->kept, plan.to_go, now_ms);
        set_all(c, &t, RESERVATION_KEPT, now_ms + RESERVATIONS_STEP_MS);
    }
}

/* Plans anew: pods have ended, or did not when they should have. The reservation stays the same
 * one, which lapses when its time is over. false: there is none any more. */
static bool plan_again(const struct pipeline *ask, struct reservation *r, int64_t now_ms,
                       struct arena *a, struct reservation_news *news)
{
    struct cluster *c = ask->cluster;
    struct gang *g = r->gang;
    struct together t;
    struct reservation_plan plan;
    struct reservation_term term = {r->made_ms, now_ms, 0, r->until_ms};
    size_t to_go = r->to_go;
    if (!find_together(c, g, a, &t)) {
        news->events |= reservations_drop(c, r);
        reservations_at(c, g)->look_again_ms = now_ms + RESERVATION_AGAIN_MS;
        return false;
    }
    bool fits = makes_plan(ask, &t, r->made_ms, now_ms, a, &plan) ||
                makes_plan(ask, &t, INT64_MAX, now_ms, a, &plan);
    news->events |= reservations_drop(c, r);
    if (!fits) {
        set_all(c, &t, RESERVATION_HOPELESS, now_ms + RESERVATION_AGAIN_MS);
        return false;
    }
    term.start_ms = plan.start_ms;
    reservations_keep(c, g, t.gangs, t.len, plan.places, plan.len, &term);
    struct reservation *again = reservations_of(c, g)->kept;
    again->to_go = to_go;
    note_progress(c, again, plan.to_go, now_ms);
    set_all(c, &t, RESERVATION_KEPT, now_ms + RESERVATIONS_STEP_MS);
    return true;
}

/* A far start is not planned anew whenever a pod ends somewhere. */
static bool is_outdated(const struct cluster *c, const struct reservation *r, int64_t now_ms)
{
    int64_t pause_ms = (r->start_ms - r->planned_ms) / RESERVATION_REPLAN_PART;
    return now_ms >= r->start_ms ||
           (r->departures != c->reservations->departures && now_ms - r->planned_ms >= pause_ms);
}

static void check_kept(const struct pipeline *ask, int64_t now_ms, struct arena *a,
                       struct reservation_news *news)
{
    struct cluster *c = ask->cluster;
    struct reservations *all = c->reservations;
    for (size_t i = 0; i < all->items.len;) {
        struct reservation *r = all->items.items[i++];
        if (r->until_ms <= now_ms) {
            lapse(c, r, now_ms, news);
            i--; /* lapse removed it */
            continue;
        }
        struct reservation_wait *w = reservations_at(c, r->gang);
        if (w->look_again_ms > now_ms || (r->seen == c->table->logged && now_ms < r->start_ms))
            continue;
        w->look_again_ms = now_ms + RESERVATIONS_STEP_MS;
        r->seen = c->table->logged;
        if (still_holds(ask, r, a) && !is_outdated(c, r, now_ms))
            continue;
        (void)plan_again(ask, r, now_ms, a, news);
        return; /* one trial per call */
    }
}

/* Whether the gang's priority level, the lowest of its bundle, already has a reservation. */
static bool has_level(const struct cluster *c, const struct gang *g)
{
    int32_t priority = g->priority;
    for (size_t i = 0; i < g->list.len; i++) {
        const struct gang *other = gangs_find(c, g->list.names[i]);
        priority = other != NULL ? (int32_t)num_min(priority, other->priority) : priority;
    }
    for (size_t i = 0; i < c->reservations->items.len; i++)
        if (c->reservations->items.items[i]->priority == priority)
            return true;
    return false;
}

static bool goes_before(const struct cluster *c, const struct gang *a, const struct gang *b)
{
    int64_t a_ms = reservations_of(c, a)->since_ms, b_ms = reservations_of(c, b)->since_ms;
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a_ms != b_ms)
        return a_ms < b_ms;
    return strcmp(a->key, b->key) < 0;
}

static struct gang *oldest(const struct cluster *c, int64_t now_ms)
{
    const struct reservations *all = c->reservations;
    struct gang *first = NULL;
    for (size_t i = 0; i < all->aging.len; i++) {
        struct gang *g = all->aging.items[i];
        const struct reservation_wait *w = reservations_of(c, g);
        if (now_ms - w->since_ms >= age_needed(c, g, false) && w->look_again_ms <= now_ms &&
            !has_level(c, g) && (first == NULL || goes_before(c, g, first)))
            first = g;
    }
    return first;
}

/* At a change of any node, and when it should have started. */
static int64_t next_look(const struct cluster *c, const struct reservation *r)
{
    int64_t look_ms = reservations_of(c, r->gang)->look_again_ms;
    if (r->seen == c->table->logged)
        look_ms = num_max(look_ms, r->start_ms);
    return num_min(r->until_ms, look_ms);
}

int64_t reservation_next(const struct cluster *c)
{
    const struct reservations *all = c->reservations;
    int64_t next_ms = INT64_MAX;
    for (size_t i = 0; i < all->items.len; i++)
        next_ms = num_min(next_ms, next_look(c, all->items.items[i]));
    for (size_t i = 0; i < all->aging.len && all->items.len < RESERVATION_MAX; i++) {
        const struct gang *g = all->aging.items[i];
        const struct reservation_wait *w = reservations_of(c, g);
        if (!has_level(c, g))
            next_ms = num_min(next_ms, num_max(w->look_again_ms,
                                               num_add_sat(w->since_ms, age_needed(c, g, false))));
    }
    return next_ms < INT64_MAX ? next_ms : -1;
}

struct reservation_news reservation_reconcile(const struct pipeline *ask, int64_t now_ms,
                                              struct arena *a)
{
    struct cluster *c = ask->cluster;
    struct reservation_news news = {0};
    reservations_set_now(c, now_ms);
    check_kept(ask, now_ms, a, &news);
    struct gang *g = c->reservations->items.len < RESERVATION_MAX ? oldest(c, now_ms) : NULL;
    if (g != NULL) {
        reserve_capacity(ask, g, now_ms, a);
        news.looked = g;
        news.made = reservations_of(c, g)->verdict == RESERVATION_KEPT;
    }
    return news;
}

const char *reservation_message(const struct cluster *c, const struct gang *g, struct arena *a)
{
    const struct reservation_wait *w = reservations_of(c, g);
    const struct reservation *r = w->kept;
    switch (w->verdict) {
    case RESERVATION_NONE:
        break;
    case RESERVATION_KEPT:
        return arena_printf(a, "room is kept for it%s on %zu node%s%s",
                            r->gangs.len > 1 ? " and its group" : "", map_count(&r->nodes),
                            map_count(&r->nodes) == 1 ? "" : "s", strstr(r->what, " until "));
    case RESERVATION_HOPELESS:
        return "it would not fit if the cluster were empty, so no room is kept for it";
    case RESERVATION_FAR:
        return arena_printf(a,
                            "the pods in its way are not expected to end within %lld minutes, so "
                            "no room is kept for it",
                            (long long)(stall_ms(c) / MS_PER_MINUTE));
    case RESERVATION_EARLY:
        return arena_printf(a,
                            "no room is kept for it before it has waited about %lld minutes, "
                            "because it is not known when the pods in its way end",
                            (long long)(age_needed(c, g, true) / MS_PER_MINUTE));
    }
    return NULL;
}

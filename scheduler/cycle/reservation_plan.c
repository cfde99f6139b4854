// SPDX-License-Identifier: Apache-2.0
/* The number of pods that must go is found by bisection, down to 1 part in PARTS, since one trial
 * costs as much as a cycle of the gang. So start_ms may be slightly late, never early. */
#include "scheduler/cycle/reservation_plan.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "scheduler/cache/expected_end.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cycle/placing.h"
#include "scheduler/cycle/plan.h"

enum { PARTS = 1024 };

struct leaving {
    struct cluster_pod *pod;
    int64_t end_ms;
};

struct search {
    struct cluster *cluster;
    struct arena *arena;
    struct plan plan; /* its first steps evict as many of `pods` as are tried without */
    struct placing placing;
    size_t need;
    struct leaving *pods; /* by expected end */
    size_t len;
    int64_t weight, total_ms; /* of the run times so far, as in run_times.h */
};

static int by_end(const void *a, const void *b)
{
    const struct leaving *x = a, *y = b;
    if (x->end_ms != y->end_ms)
        return x->end_ms < y->end_ms ? -1 : 1;
    return strcmp(x->pod->pod->key, y->pod->pod->key);
}

static bool is_one_of(const struct gang *g, struct gang *const *gangs, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (gangs[i] == g)
            return true;
    return false;
}

/* As of when the gang began to wait: ages that grow while it waits would put it off for ever. */
static void count_age(struct search *s, const struct cluster_pod *cp, int64_t then_ms)
{
    int64_t start_ms = expected_end_start(cp), weight = expected_end_weight(cp);
    if (start_ms == 0 || start_ms >= then_ms || expected_end_is_service(cp))
        return;
    int64_t age_ms = num_min(then_ms - start_ms, RUN_TIMES_LONGEST_MS);
    s->weight = num_add_sat(s->weight, weight);
    s->total_ms = num_add_sat(s->total_ms, weight * age_ms);
}

/* Placed members stay on their nodes. */
static void gather_pods(struct search *s, struct gang *const *gangs, size_t gangs_len,
                        int64_t since_ms, int64_t now_ms)
{
    const struct node_table *t = s->cluster->table;
    size_t n = 0;
    for (uint32_t i = 0; i < t->len; i++)
        n += t->rows[i].node->pods.len;
    s->pods = arena_new(s->arena, struct leaving, n);
    for (uint32_t i = 0; i < t->len; i++)
        for (size_t k = 0; k < t->rows[i].node->pods.len; k++) {
            struct cluster_pod *cp = t->rows[i].node->pods.items[k];
            count_age(s, cp, reservations_of(s->cluster, gangs[0])->since_ms);
            bool stays = is_one_of(cp->gang, gangs, gangs_len) ||
                         (expected_end_start(cp) >= since_ms &&
                          !expected_end_is_known(s->cluster, cp, now_ms));
            int64_t end_ms = stays ? INT64_MAX : expected_end_of(s->cluster, cp, now_ms);
            if (end_ms < INT64_MAX)
                s->pods[s->len++] = (struct leaving){.pod = cp, .end_ms = end_ms};
        }
    if (s->len > 1)
        qsort(s->pods, s->len, sizeof *s->pods, by_end);
}

static void evict_first(struct search *s, size_t n)
{
    if (plan_mark(&s->plan) > n)
        plan_rollback(&s->plan, n);
    for (size_t i = plan_mark(&s->plan); i < n; i++)
        (void)plan_evict(&s->plan, s->pods[i].pod);
}

/* Whether the quorums fit now; then *out has their nodes. */
static bool try_members(struct search *s, struct reservation_plan *out)
{
    size_t mark = plan_mark(&s->plan);
    bool ok = placing_fill(&s->placing, NULL, NULL);
    for (size_t i = 0; ok && mark + i < s->plan.steps.len; i++) {
        const struct plan_step *step = &s->plan.steps.items[mark + i];
        out->places[i] = (struct reservation_place){.member = step->pod, .node = step->node};
    }
    plan_rollback(&s->plan, mark);
    return ok;
}

static size_t fewest_to_go(struct search *s, struct reservation_plan *out)
{
    size_t low = 0, enough = s->len;
    while (enough - low > s->len / PARTS) {
        size_t half = low + (enough - low) / 2;
        evict_first(s, half);
        if (try_members(s, out))
            enough = half;
        else
            low = half + 1;
    }
    return enough;
}

void reservation_plan_make(const struct pipeline *ask, struct gang *const *gangs, size_t len,
                           int64_t since_ms, int64_t now_ms, struct arena *a,
                           struct reservation_plan *out)
{
    struct cluster *c = ask->cluster;
    const struct run_times *past = &c->reservations->run_times;
    struct search s = {
        .cluster = c, .arena = a, .weight = past->weight, .total_ms = past->total_ms};
    *out = (struct reservation_plan){0};
    for (size_t i = 0; i < len; i++)
        s.need += (size_t)gangs_count_missing(gangs[i]);
    if (s.need == 0)
        return;
    out->places = arena_new(a, struct reservation_place, s.need);
    out->len = s.need;
    node_table_refresh(c->table, &c->nodes);
    gather_pods(&s, gangs, len, since_ms, now_ms);
    out->mean_ms = s.weight > 0 ? s.total_ms / s.weight : 0;
    plan_begin(&s.plan, c);
    evict_first(&s, s.len);
    /* Ranks the members by difficulty in the empty cluster. */
    placing_init(&s.placing, ask, &s.plan, a, gangs, len);
    out->fits = try_members(&s, out);
    if (out->fits) {
        size_t gone = fewest_to_go(&s, out);
        out->start_ms = gone > 0 ? num_max(s.pods[gone - 1].end_ms, now_ms) : now_ms;
        out->to_go = gone;
        for (size_t i = 0; i < gone; i++)
            out->guessed |= !expected_end_is_known(c, s.pods[i].pod, now_ms);
    }
    placing_deinit(&s.placing);
    plan_end(&s.plan);
}

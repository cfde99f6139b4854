// SPDX-License-Identifier: Apache-2.0
/*
 * openb_run - a cluster of the openb trace, and the policies that place its pods: random, best-fit,
 * FGD, and ours (scheduler/accounts/prices.h, the code of the product itself).
 *
 * All policies have the same frame: the nodes that fit get a score, the highest wins, of equal ones
 * the first in a node order that the seed shuffles. Scores are remembered for each shape and asked
 * again about nodes that changed, which changes no result; FGD would take minutes without.
 */
#pragma once

#include <math.h>

#include "scheduler/accounts/prices.h"
#include "test/bench/openb_trace.h"

enum openb_policy { OPENB_RANDOM, OPENB_BEST_FIT, OPENB_FGD, OPENB_OURS, OPENB_LEARNING };
static const char *const openb_policies[] = {"random", "best-fit", "fgd", "ours", "learning"};

#define OPENB_NO INT32_MIN /* does not fit */

struct openb_state {
    int64_t cpu, mib; /* left */
    int64_t left[OPENB_CARDS_MAX];
    int64_t idle; /* the sum of left */
    const struct openb_node *node;
    uint64_t changed;
};

/* FGD: a shape that is expected, by how often. */
struct openb_target {
    double p;
    int64_t cpu, cards, milli;
    uint64_t models;
    uint32_t share; /* of the different amounts of one card */
};

struct openb_run {
    const struct openb_trace *trace;
    enum openb_policy policy;
    uint64_t chance;
    struct openb_state *nodes; /* in the order for ties */
    uint32_t nodes_len;
    uint64_t changes;
    int64_t used; /* milli-cards */
    struct prices_idle idle;
    struct openb_score {
        uint64_t seen; /* changes of the node, and version of the policy */
        int32_t score;
        int32_t card; /* of a share */
    } * *scores;      /* by shape */
    struct openb_target *targets;
    size_t targets_len;
    int64_t shares[OPENB_SHAPES_MAX];
    uint32_t shares_len;
    struct demand demand;
    struct prices prices;
    uint64_t taken; /* demand.seen when prices were last taken */
};

static inline bool openb_is_share(const struct openb_shape *s)
{
    return s->cards == 1 && s->milli < OPENB_CARD;
}

static inline bool openb_fits(const struct openb_state *n, const struct openb_shape *s)
{
    if (n->cpu < s->cpu || n->mib < s->mib || n->idle < openb_milli(s) ||
        (s->models != 0 && (s->models >> n->node->model & 1) == 0))
        return false;
    int64_t enough = 0;
    for (int64_t i = 0; i < n->node->cards; i++)
        enough += n->left[i] >= s->milli;
    return enough >= s->cards;
}

/* ---- best-fit: what is left of CPU and cards, each as a part of the largest node's ---- */

static inline int32_t openb_best_fit(const struct openb_state *n, const struct openb_shape *s,
                                     int32_t *card)
{
    double cpu = (double)(n->cpu - s->cpu) / 128000, cards = (double)(n->idle - openb_milli(s));
    *card = 0;
    for (int32_t i = 0, any = 0; i < n->node->cards; i++)
        if (n->left[i] >= s->milli && (!any || n->left[i] < n->left[*card])) {
            *card = i;
            any = 1;
        }
    return (int32_t)((1 - (0.5 * cpu + 0.5 * cards / 8000)) * 100);
}

/* ---- FGD ---- */

static inline double openb_fragments(const struct openb_run *r, const struct openb_state *n)
{
    int64_t below[OPENB_SHAPES_MAX], count[OPENB_SHAPES_MAX];
    double sum = 0;
    for (uint32_t k = 0; k < r->shares_len; k++) {
        below[k] = count[k] = 0;
        for (int64_t i = 0; i < n->node->cards; i++)
            if (n->left[i] < r->shares[k])
                below[k] += n->left[i];
            else
                count[k]++;
    }
    for (size_t i = 0; i < r->targets_len; i++) {
        const struct openb_target *m = &r->targets[i];
        bool none = m->milli == 0 || n->cpu < m->cpu || count[m->share] < m->cards ||
                    (m->models != 0 && (m->models >> n->node->model & 1) == 0);
        sum += m->p * (double)(none ? n->idle : below[m->share]);
    }
    return sum;
}

static inline int32_t openb_sigmoid(double d)
{
    return (int32_t)(100 / (1 + exp(-d / 1000)));
}

static inline void openb_take_cards(struct openb_state *n, const struct openb_shape *s,
                                    int32_t card)
{
    n->cpu -= s->cpu;
    n->mib -= s->mib;
    n->idle -= openb_milli(s);
    if (openb_is_share(s)) {
        n->left[card] -= s->milli;
        return;
    }
    int64_t want = s->cards;
    for (int64_t i = 0; i < n->node->cards && want > 0; i++)
        if (n->left[i] >= s->milli) {
            n->left[i] -= s->milli;
            want--;
        }
}

static inline int32_t openb_fgd(const struct openb_run *r, const struct openb_state *n,
                                const struct openb_shape *s, int32_t *card)
{
    double before = openb_fragments(r, n);
    int32_t best = OPENB_NO;
    *card = 0;
    for (int32_t i = 0; i < (openb_is_share(s) ? n->node->cards : 1); i++) {
        bool again = false; /* the same as an earlier card: cannot be better */
        for (int32_t k = 0; k < i; k++)
            again |= n->left[k] == n->left[i];
        if (again || (openb_is_share(s) && n->left[i] < s->milli))
            continue;
        struct openb_state after = *n;
        openb_take_cards(&after, s, i);
        int32_t score = openb_sigmoid(before - openb_fragments(r, &after));
        if (score > best) {
            best = score;
            *card = i;
        }
    }
    return best;
}

static inline int openb_by_pods(const void *a, const void *b)
{
    const struct openb_target *x = a, *y = b;
    if (x->p != y->p)
        return (x->p < y->p) - (x->p > y->p);
    if (x->cpu != y->cpu)
        return (x->cpu > y->cpu) - (x->cpu < y->cpu);
    if (x->cards != y->cards)
        return (x->cards > y->cards) - (x->cards < y->cards);
    if (x->milli != y->milli)
        return (x->milli > y->milli) - (x->milli < y->milli);
    return (x->models > y->models) - (x->models < y->models);
}

static inline uint32_t openb_share_number(struct openb_run *r, int64_t milli)
{
    uint32_t k = 0;
    while (k < r->shares_len && r->shares[k] != milli)
        k++;
    if (k == r->shares_len)
        r->shares[r->shares_len++] = milli;
    return k;
}

/* The most frequent shapes, that are 95 % of the trace. Memory is none of their business. */
static inline void openb_set_targets(struct openb_run *r)
{
    const struct openb_trace *t = r->trace;
    r->targets = mem_new(struct openb_target, t->shapes.len);
    size_t n = 0;
    for (size_t i = 0; i < t->shapes.len; i++) {
        const struct openb_shape *s = &t->shapes.items[i];
        size_t k = 0;
        while (k < n && (r->targets[k].cpu != s->cpu || r->targets[k].cards != s->cards ||
                         r->targets[k].milli != s->milli || r->targets[k].models != s->models))
            k++;
        if (k == n)
            r->targets[n++] = (struct openb_target){
                .cpu = s->cpu, .cards = s->cards, .milli = s->milli, .models = s->models};
        r->targets[k].p += (double)s->pods;
    }
    qsort(r->targets, n, sizeof r->targets[0], openb_by_pods);
    double sum = 0;
    while (r->targets_len < n && sum < 0.95 * (double)t->pods.len)
        sum += r->targets[r->targets_len++].p;
    for (size_t i = 0; i < r->targets_len; i++) {
        r->targets[i].p /= sum;
        r->targets[i].share = openb_share_number(r, r->targets[i].milli);
    }
}

/* ---- ours ---- */

static inline struct demand_ask openb_ask(const struct openb_shape *s)
{
    return (struct demand_ask){.cpu_milli = s->cpu,
                               .milli_cards = openb_milli(s),
                               .size = openb_is_share(s) ? s->milli : 0,
                               .shares = 1,
                               .models = s->models};
}

static inline int32_t openb_ours(const struct openb_run *r, const struct openb_state *n,
                                 const struct openb_shape *s, int32_t *card)
{
    struct prices_node node = {.cpu_milli = n->node->cpu,
                               .cards = n->node->cards,
                               .free_cpu_milli = n->cpu,
                               .idle_milli = n->idle,
                               .model = n->node->model};
    int64_t cost = prices_of_node(&r->prices, &node, s->cpu, openb_milli(s)), best = INT64_MAX;
    *card = 0;
    if (!openb_is_share(s))
        return (int32_t)prices_score(cost);
    for (int32_t i = 0; i < n->node->cards; i++) {
        if (n->left[i] < s->milli)
            continue;
        int64_t share = prices_of_share(&r->prices, OPENB_CARD, n->left[i], n->left[i] - s->milli,
                                        n->left[i] == OPENB_CARD);
        if (share < best || (share == best && n->left[i] < n->left[*card])) {
            best = share;
            *card = i;
        }
    }
    return (int32_t)prices_score(cost + best);
}

static inline void openb_take_prices(struct openb_run *r)
{
    static const int64_t capacity = OPENB_CARD;
    prices_take(&r->prices, &r->demand, &capacity, 1, capacity);
    (void)prices_set_idle(&r->prices, &r->idle);
    r->taken = r->demand.seen;
}

/* Before a pod is placed. */
static inline void openb_check(struct openb_run *r, const struct openb_shape *s)
{
    if (r->policy == OPENB_LEARNING) {
        struct demand_ask ask = openb_ask(s);
        demand_see(&r->demand, &ask);
        if (prices_are_due(r->demand.seen, r->taken))
            openb_take_prices(r);
    }
    if (r->policy >= OPENB_OURS)
        (void)prices_set_idle(&r->prices, &r->idle);
}

/* ---- the frame ---- */

static inline void openb_start(struct openb_run *r, const struct openb_trace *t,
                               enum openb_policy policy, uint64_t seed)
{
    uint32_t *order = mem_new(uint32_t, t->nodes.len);
    *r = (struct openb_run){
        .trace = t, .policy = policy, .chance = seed, .nodes_len = (uint32_t)t->nodes.len};
    r->nodes = mem_new(struct openb_state, t->nodes.len);
    openb_shuffle(order, r->nodes_len, &r->chance);
    for (uint32_t i = 0; i < r->nodes_len; i++) {
        const struct openb_node *n = &t->nodes.items[order[i]];
        r->nodes[i] = (struct openb_state){
            .cpu = n->cpu, .mib = n->mib, .idle = n->cards * OPENB_CARD, .node = n, .changed = 1};
        for (int64_t k = 0; k < n->cards; k++)
            r->nodes[i].left[k] = OPENB_CARD;
        r->idle.milli_cards[n->model] += n->cards * OPENB_CARD;
        r->idle.cpu_milli += n->cpu;
    }
    free(order);
    r->changes = 1;
    r->scores = mem_new(struct openb_score *, t->shapes.len);
    prices_init(&r->prices);
    if (policy == OPENB_FGD)
        openb_set_targets(r);
    for (size_t i = 0; policy == OPENB_OURS && i < t->pods.len; i++) {
        struct demand_ask ask = openb_ask(&t->shapes.items[t->pods.items[i].shape]);
        demand_count(&r->demand, &ask);
    }
    if (policy >= OPENB_OURS)
        openb_take_prices(r);
}

static inline void openb_end(struct openb_run *r)
{
    for (size_t i = 0; i < r->trace->shapes.len; i++)
        free(r->scores[i]);
    free(r->scores);
    free(r->nodes);
    free(r->targets);
    prices_deinit(&r->prices);
}

static inline void openb_rate(const struct openb_run *r, const struct openb_state *n,
                              const struct openb_shape *s, struct openb_score *out)
{
    out->card = 0;
    if (!openb_fits(n, s))
        out->score = OPENB_NO;
    else if (r->policy == OPENB_RANDOM)
        out->score = 0;
    else if (r->policy == OPENB_BEST_FIT)
        out->score = openb_best_fit(n, s, &out->card);
    else if (r->policy == OPENB_FGD)
        out->score = openb_fgd(r, n, s, &out->card);
    else
        out->score = openb_ours(r, n, s, &out->card);
}

static inline int32_t openb_random_card(struct openb_run *r, const struct openb_state *n,
                                        const struct openb_shape *s)
{
    uint32_t fit = 0;
    int32_t card = 0;
    for (int32_t i = 0; i < n->node->cards; i++)
        if (n->left[i] >= s->milli && openb_below(&r->chance, ++fit) == 0)
            card = i;
    return card;
}

static inline void openb_account(struct openb_run *r, struct openb_state *n, int64_t milli,
                                 int64_t cpu)
{
    n->changed = ++r->changes;
    r->used += milli;
    r->idle.milli_cards[n->node->model] -= milli;
    r->idle.cpu_milli -= cpu;
}

/* The node's place in the order, or -1: no node fits. *card of a share, or, for whole cards, which
 * ones as bits. */
static inline int32_t openb_place(struct openb_run *r, uint32_t shape, int32_t *card)
{
    const struct openb_shape *s = &r->trace->shapes.items[shape];
    openb_check(r, s);
    if (r->scores[shape] == NULL)
        r->scores[shape] = mem_new(struct openb_score, r->nodes_len);
    struct openb_score *scores = r->scores[shape];
    int32_t best = -1;
    uint32_t fit = 0;
    uint64_t version = r->policy >= OPENB_OURS ? r->prices.version << 32 : 0;
    for (uint32_t i = 0; i < r->nodes_len; i++) {
        if (scores[i].seen != version + r->nodes[i].changed) {
            openb_rate(r, &r->nodes[i], s, &scores[i]);
            scores[i].seen = version + r->nodes[i].changed;
        }
        if (scores[i].score == OPENB_NO)
            continue;
        if (r->policy == OPENB_RANDOM ? openb_below(&r->chance, ++fit) == 0
                                      : best < 0 || scores[i].score > scores[best].score)
            best = (int32_t)i;
    }
    if (best < 0)
        return -1;
    struct openb_state *n = &r->nodes[best], before = *n;
    *card = r->policy == OPENB_RANDOM ? openb_random_card(r, n, s) : scores[best].card;
    openb_take_cards(n, s, *card);
    openb_account(r, n, openb_milli(s), s->cpu);
    if (!openb_is_share(s)) {
        *card = 0;
        for (int64_t i = 0; i < n->node->cards; i++)
            *card |= before.left[i] != n->left[i] ? 1 << i : 0;
    }
    return best;
}

static inline void openb_leave(struct openb_run *r, uint32_t shape, int32_t at, int32_t card)
{
    const struct openb_shape *s = &r->trace->shapes.items[shape];
    struct openb_state *n = &r->nodes[at];
    n->cpu += s->cpu;
    n->mib += s->mib;
    n->idle += openb_milli(s);
    for (int32_t i = 0; i < n->node->cards; i++)
        if (openb_is_share(s) ? i == card : (card >> i & 1) != 0)
            n->left[i] += s->milli;
    openb_account(r, n, -openb_milli(s), -s->cpu);
}

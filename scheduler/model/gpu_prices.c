// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/gpu_prices.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/model/model.h"

struct gpu_prices *gpu_prices_new(struct resource_vector_names *names)
{
    struct gpu_prices *g = mem_new(struct gpu_prices, 1);
    prices_init(&g->prices);
    g->whole_id = resource_vector_id(names, NAME_RES_NVIDIA_GPU);
    return g;
}

void gpu_prices_free(struct gpu_prices *g)
{
    if (g == NULL)
        return;
    for (uint32_t i = 0; i < g->models_len; i++)
        free(g->models[i]);
    prices_deinit(&g->prices);
    free(g);
}

uint32_t gpu_prices_model(struct gpu_prices *g, const char *name)
{
    if (name == NULL)
        return DEMAND_MODELS_MAX;
    for (uint32_t i = 0; i < g->models_len; i++)
        if (str_eq(g->models[i], name))
            return i;
    if (g->models_len == DEMAND_MODELS_MAX)
        return DEMAND_MODELS_MAX;
    g->models[g->models_len] = mem_strdup(name);
    return g->models_len++;
}

static uint64_t bit_of(struct gpu_prices *g, const char *name)
{
    uint32_t model = gpu_prices_model(g, name);
    return model < DEMAND_MODELS_MAX ? UINT64_C(1) << model : 0;
}

static uint64_t all_models(const struct gpu_prices *g)
{
    return g->models_len == DEMAND_MODELS_MAX ? UINT64_MAX : (UINT64_C(1) << g->models_len) - 1;
}

/* The models that a term allows; its other labels do not count. */
static uint64_t models_of_term(struct gpu_prices *g, const struct node_term *t)
{
    uint64_t allowed = UINT64_MAX;
    for (size_t i = 0; i < t->labels.len; i++) {
        const struct requirement *r = &t->labels.reqs[i];
        uint64_t named = 0;
        if (!str_eq(r->key, NAME_LABEL_ACCEL_NAME) ||
            (r->op != SELECTOR_IN && r->op != SELECTOR_NOT_IN))
            continue;
        for (size_t k = 0; k < r->values_len; k++)
            named |= bit_of(g, r->values[k]);
        allowed &= r->op == SELECTOR_IN ? named : ~named;
    }
    return allowed;
}

/* 0: all known models. */
static uint64_t models_of(struct gpu_prices *g, const struct pod *p)
{
    const char *selected = labels_get(&p->node_selector, NAME_LABEL_ACCEL_NAME);
    uint64_t allowed = selected != NULL ? bit_of(g, selected) : UINT64_MAX, terms = 0;
    for (size_t i = 0; p->has_required_affinity && i < p->required_affinity.len; i++)
        terms |= models_of_term(g, &p->required_affinity.terms[i]);
    allowed &= p->has_required_affinity ? terms : UINT64_MAX;
    allowed &= all_models(g);
    return allowed == all_models(g) ? 0 : allowed;
}

static int64_t whole_cards(const struct gpu_prices *g, const struct cluster_pod *cp)
{
    int64_t cards = cp->gpu.total[GPU_REQUEST_CARDS], more = 0;
    (void)resource_vector_get(&cp->request, g->whole_id, &more);
    return num_min(num_add_sat(cards, more), GPU_REQUEST_MAX);
}

/* The request in thousandths of a card of that size. */
static int64_t milli_cards(const struct gpu_prices *g, const struct cluster_pod *cp,
                           int64_t card_gib)
{
    int64_t shared =
        cp->gpu.shared ? cp->gpu.total[GPU_REQUEST_MEM] * DEMAND_CARD / num_max(card_gib, 1) : 0;
    return whole_cards(g, cp) * DEMAND_CARD + shared;
}

/* The share of one container; if containers differ, the largest. */
static void sizes_of(const struct gpu_request *r, struct demand_ask *ask)
{
    ask->shares = r->spread_over;
    if (r->one_card) {
        ask->size = r->total[GPU_REQUEST_MEM];
        return;
    }
    for (size_t i = 0; i < r->shares_len; i++)
        ask->size = num_max(ask->size, r->shares[i].gib / ask->shares);
}

void gpu_prices_see(struct cluster *c, const struct cluster_pod *cp)
{
    struct gpu_prices *g = c->gpu_prices;
    struct demand_ask ask = {.cpu_milli = cp->request.cpu_milli};
    ask.milli_cards = milli_cards(g, cp, g->card_gib > 0 ? g->card_gib : GPU_PRICES_CARD_GIB);
    if (ask.milli_cards == 0 || cp->pod->unplaceable != NULL || cp->gpu.illegal != NULL)
        return;
    if (cp->gpu.shared)
        sizes_of(&cp->gpu, &ask);
    ask.models = models_of(g, cp->pod);
    demand_see(&g->demand, &ask);
}

void gpu_prices_pod_moved(struct gpu_prices *g, const struct cluster_pod *cp)
{
    g->changes += cp->gpu.any || cp->request.extra_len > 0;
}

static bool has_accounts(const struct cluster_node *cn)
{
    return cn->gpu_accounts.known && cn->gpu_accounts.inventory.cards_len > 0 &&
           cn->gpu_accounts.inventory.mode != GPU_MODE_DEFAULT;
}

void gpu_prices_node_changed(struct cluster *c, struct cluster_node *cn)
{
    struct gpu_prices *g = c->gpu_prices;
    int64_t whole = 0;
    (void)resource_vector_get(&cn->allocatable, g->whole_id, &whole);
    cn->cards =
        has_accounts(cn) ? (int64_t)cn->gpu_accounts.inventory.cards_len : num_max(whole, 0);
    cn->gpu_model = DEMAND_MODELS_MAX;
    if (cn->cards > 0 && cn->node != NULL)
        cn->gpu_model = gpu_prices_model(g, labels_get(&cn->node->labels, NAME_LABEL_ACCEL_NAME));
    cn->gpu_accounts.prices = &g->prices;
    g->nodes_changed = true;
}

static int64_t mean_gib(const struct cluster_node *cn)
{
    int64_t sum = 0;
    size_t n = cn->gpu_accounts.inventory.cards_len;
    for (size_t i = 0; i < n; i++)
        sum += num_min(gpu_card_gib(&cn->gpu_accounts.inventory.cards[i]), GPU_REQUEST_MAX);
    return n > 0 ? sum / (int64_t)n : 0;
}

static void describe(const struct cluster *c, const struct cluster_node *cn,
                     struct prices_node *out)
{
    int64_t idle = 0, held = 0;
    if (has_accounts(cn)) {
        idle = gpu_accounts_idle_milli(&cn->gpu_accounts);
    } else {
        (void)resource_vector_get(&cn->used, c->gpu_prices->whole_id, &held);
        idle = num_min(num_max(num_sub_sat(cn->cards, held), 0), GPU_REQUEST_MAX) * DEMAND_CARD;
    }
    int64_t gib = mean_gib(cn), mean = c->gpu_prices->card_gib;
    *out = (struct prices_node){
        .size_milli = gib > 0 && mean > 0 && gib != mean
                          ? num_min(gib * DEMAND_CARD / mean, PRICES_SIZE_MAX)
                          : 0,
        .cpu_milli = cn->allocatable.cpu_milli,
        .cards = cn->cards,
        .free_cpu_milli = num_max(num_sub_sat(cn->allocatable.cpu_milli, cn->used.cpu_milli), 0),
        .idle_milli = idle,
        .model = cn->gpu_model};
}

int64_t gpu_prices_score(const struct cluster *c, const struct cluster_pod *cp,
                         const struct cluster_node *cn)
{
    const struct gpu_prices *g = c->gpu_prices;
    struct prices_node n;
    int64_t share = 0;
    if (cn->cards == 0)
        return 0;
    describe(c, cn, &n);
    int64_t cost = prices_of_node(&g->prices, &n, cp->request.cpu_milli,
                                  milli_cards(g, cp, cp->gpu.shared ? mean_gib(cn) : 0));
    if (cp->gpu.any && gpu_accounts_cost(&cn->gpu_accounts, &cp->gpu, &share))
        cost = num_add_sat(cost, share);
    int64_t score = prices_score(cost);
    return num_min(num_max(score, -GPU_PRICES_SCORE_MAX), GPU_PRICES_SCORE_MAX);
}

enum { SIZES_MAX = 64 };

struct survey {
    struct prices_idle idle;
    int64_t capacities[SIZES_MAX]; /* distinct, sorted */
    size_t len;
    int64_t gib, cards;
};

static void note_capacity(struct survey *s, int64_t gib)
{
    size_t at = 0;
    while (at < s->len && s->capacities[at] < gib)
        at++;
    if (gib <= 0 || (at < s->len && s->capacities[at] == gib) || s->len == SIZES_MAX)
        return;
    memmove(&s->capacities[at + 1], &s->capacities[at], (s->len - at) * sizeof s->capacities[0]);
    s->capacities[at] = gib;
    s->len++;
}

static void survey_node(const struct cluster *c, const struct cluster_node *cn, struct survey *s)
{
    struct prices_node n;
    describe(c, cn, &n);
    s->idle.cpu_milli = num_add_sat(s->idle.cpu_milli, n.free_cpu_milli);
    if (n.model < DEMAND_MODELS_MAX) {
        int64_t *sum = &s->idle.milli_cards[n.model];
        int64_t size = n.size_milli > 0 ? n.size_milli : DEMAND_CARD;
        *sum = num_add_sat(*sum, n.idle_milli * size / DEMAND_CARD);
    }
}

static void survey_sizes(const struct cluster_node *cn, struct survey *s)
{
    for (size_t i = 0; has_accounts(cn) && i < cn->gpu_accounts.inventory.cards_len; i++) {
        int64_t gib = num_min(gpu_card_gib(&cn->gpu_accounts.inventory.cards[i]), GPU_REQUEST_MAX);
        note_capacity(s, gib);
        s->gib = num_add_sat(s->gib, gib);
        s->cards++;
    }
}

/* Card sizes come first, because idle capacity is counted in cards of the mean size. */
static void survey_all(struct cluster *c, struct survey *s)
{
    const char *name;
    void *value;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; map_next(&c->nodes, &i, &name, &value);) {
            const struct cluster_node *cn = value;
            if (cn->node == NULL || cn->cards == 0)
                continue;
            if (pass == 0)
                survey_sizes(cn, s);
            else
                survey_node(c, cn, s);
        }
        c->gpu_prices->card_gib = s->cards > 0 ? s->gib / s->cards : 0;
    }
}

void gpu_prices_refresh(struct cluster *c)
{
    struct gpu_prices *g = c->gpu_prices;
    bool take = prices_are_due(g->demand.seen, g->taken) || g->nodes_changed;
    if (g->demand.seen == 0 || (!take && g->changes - g->checked < GPU_PRICES_CHECK_EVERY))
        return;
    struct survey s = {0};
    survey_all(c, &s);
    if (take) {
        prices_take(&g->prices, &g->demand, s.capacities, s.len, g->card_gib);
        g->taken = g->demand.seen;
        g->nodes_changed = false;
    }
    (void)prices_set_idle(&g->prices, &s.idle);
    g->checked = g->changes;
}

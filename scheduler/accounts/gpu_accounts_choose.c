// SPDX-License-Identifier: Apache-2.0
/*
 * The cards for one pod on one node.
 *
 * A shared pod has a share for each container (or one on each of M cards). Containers are placed
 * one by one by the node's placement rule. If one does not fit, all are tried once more with the
 * largest first and each on the fullest card that fits: so `spread` with containers of 5 and 8 GiB
 * can use cards with 8 and 5 GiB free. Pods with several GPU containers are rare, so there is no
 * further search.
 *
 * If the node's label sets no rule and its cards have one size, a share goes to the card where it
 * costs least (prices.h); of equal ones to the fullest. Whole cards are chosen by their links
 * (lib/model/links.h). Nothing here changes the accounts: struct trial holds what the pod takes
 * while it is being placed. The device plugin's twin is device-plugin/grant/card_usage.c.
 */
#include <stdlib.h>

#include "lib/base/num.h"
#include "lib/model/links.h"
#include "scheduler/accounts/gpu_accounts.h"
#include "scheduler/accounts/gpu_accounts_links.h"

struct share {
    int64_t gib;
    int64_t percent;
};

struct trial {
    struct share taken[GPU_CARDS_MAX];
    struct grant_share *shares; /* NULL: only checking */
    size_t len;
    int64_t cost; /* of all shares so far */
};

/* Regardless of health. */
static struct share unused_share(const struct gpu_accounts *l, size_t at, const struct share *taken)
{
    const struct gpu_accounts_card *use = &l->cards[at];
    if (use->whole_holders > 0 || l->unplaced_cards > 0)
        return (struct share){0, 0};
    int64_t size = num_min(gpu_card_gib(&l->inventory.cards[at]), GPU_REQUEST_MAX);
    int64_t gib = size - use->used_gib - l->unplaced_gib - taken->gib;
    int64_t percent =
        GPU_ACCOUNTS_PERCENT - use->used_percent - l->unplaced_percent - taken->percent;
    return (struct share){num_max(gib, 0), num_max(percent, 0)};
}

static struct share free_share(const struct gpu_accounts *l, size_t at, const struct share *taken)
{
    if (l->inventory.cards[at].health != GPU_HEALTH_OK)
        return (struct share){0, 0};
    return unused_share(l, at, taken);
}

/* The usable part of a card: its free GiB, or less if it has too few percent for them. */
static int64_t usable(int64_t capacity, int64_t gib, int64_t percent)
{
    return num_min(gib, capacity * percent / GPU_ACCOUNTS_PERCENT);
}

static int64_t card_cost(const struct gpu_accounts *l, const struct trial *t, size_t at,
                         const struct share *left, const struct share *want)
{
    const struct gpu_accounts_card *use = &l->cards[at];
    int64_t capacity = num_min(gpu_card_gib(&l->inventory.cards[at]), GPU_REQUEST_MAX);
    bool untouched = use->used_gib == 0 && use->used_percent == 0 && t->taken[at].gib == 0;
    if (l->prices == NULL)
        return 0;
    return prices_of_share(l->prices, capacity, usable(capacity, left->gib, left->percent),
                           usable(capacity, left->gib - want->gib, left->percent - want->percent),
                           untouched);
}

enum rule { RULE_BINPACK, RULE_SPREAD, RULE_PRICES };

static enum rule rule_of(const struct gpu_accounts *l)
{
    if (l->prices != NULL && !l->ruled)
        return RULE_PRICES;
    return l->placement == GPU_SPREAD ? RULE_SPREAD : RULE_BINPACK;
}

/* The card for one share: binpack takes the fullest that fits, spread the emptiest; ties go to the
 * first. cards_len: none fits. */
static size_t best_card(const struct gpu_accounts *l, const struct trial *t, const bool *excluded,
                        const struct share *want, enum rule rule, int64_t *cost)
{
    size_t best = l->inventory.cards_len;
    int64_t best_free = 0;
    *cost = 0;
    for (size_t at = 0; at < l->inventory.cards_len; at++) {
        struct share left = free_share(l, at, &t->taken[at]);
        if (excluded[at] || left.gib < want->gib || left.percent < want->percent)
            continue;
        int64_t costs = card_cost(l, t, at, &left, want);
        bool better = rule == RULE_SPREAD ? left.gib > best_free : left.gib < best_free;
        if (rule == RULE_PRICES && costs != *cost)
            better = costs < *cost;
        if (best == l->inventory.cards_len || better) {
            best = at;
            best_free = left.gib;
            *cost = costs;
        }
    }
    return best;
}

/* One container's share, on as many different cards as the pod requests. */
static bool place(const struct gpu_accounts *l, const struct gpu_request *r, size_t i,
                  enum rule rule, struct trial *t)
{
    struct share want = {r->shares[i].gib / r->spread_over, r->shares[i].percent};
    bool excluded[GPU_CARDS_MAX] = {false};
    for (int64_t k = 0; k < r->spread_over; k++) {
        int64_t cost;
        size_t at = best_card(l, t, excluded, &want, rule, &cost);
        if (at == l->inventory.cards_len)
            return false;
        t->cost = num_add_sat(t->cost, cost);
        excluded[at] = true;
        t->taken[at].gib += want.gib;
        t->taken[at].percent += want.percent;
        if (t->shares != NULL)
            t->shares[t->len++] = (struct grant_share){.container = r->shares[i].container,
                                                       .card = l->inventory.cards[at].index,
                                                       .gib = want.gib,
                                                       .percent = want.percent};
    }
    return true;
}

static bool place_in_order(const struct gpu_accounts *l, const struct gpu_request *r,
                           struct trial *t)
{
    for (size_t i = 0; i < r->shares_len; i++)
        if (!place(l, r, i, rule_of(l), t))
            return false;
    return true;
}

static bool place_largest_first(const struct gpu_accounts *l, const struct gpu_request *r,
                                struct arena *a, struct trial *t)
{
    const size_t *order = gpu_request_largest_first(r, a);
    for (size_t i = 0; i < r->shares_len; i++)
        if (!place(l, r, order[i], RULE_BINPACK, t))
            return false;
    return r->shares_len > 1;
}

static int by_container_and_card(const void *a, const void *b)
{
    const struct grant_share *x = a, *y = b;
    if (x->container != y->container)
        return (x->container > y->container) - (x->container < y->container);
    return (x->card > y->card) - (x->card < y->card);
}

/* The sum of all shares, for a pod that must be on one card. */
static struct share whole_share(const struct gpu_request *r)
{
    return (struct share){r->total[GPU_REQUEST_MEM], r->total[GPU_REQUEST_CORE]};
}

static struct share largest_share(const struct gpu_request *r)
{
    struct share most = {0, 0};
    if (r->one_card)
        return whole_share(r);
    for (size_t i = 0; i < r->shares_len; i++) {
        most.gib = num_max(most.gib, r->shares[i].gib / r->spread_over);
        most.percent = num_max(most.percent, r->shares[i].percent);
    }
    return most;
}

/* The card with the most free capacity for the largest share, as an operator sees it: without what
 * the pod itself would take. */
static void explain(const struct gpu_accounts *l, const struct gpu_request *r,
                    struct gpu_accounts_why *why)
{
    struct share want = largest_share(r);
    *why = (struct gpu_accounts_why){.no = GPU_ACCOUNTS_NO_CARD,
                                     .want = want.gib,
                                     .want_percent = want.percent,
                                     .largest_card = -1};
    for (size_t at = 0; at < l->inventory.cards_len; at++) {
        struct share left = free_share(l, at, &(struct share){0, 0});
        bool enough = left.gib >= why->want, had = why->largest_gib >= why->want;
        bool nearer =
            enough && had ? left.percent > why->largest_percent : left.gib > why->largest_gib;
        if (why->largest_card < 0 || nearer) {
            why->largest_card = l->inventory.cards[at].index;
            why->largest_gib = left.gib;
            why->largest_percent = left.percent;
        }
    }
}

/* The kubelet reuses an init container's ids in any order, so the whole pod is on one card. */
static size_t one_card(const struct gpu_accounts *l, const struct gpu_request *r, int64_t *cost)
{
    static const struct trial nothing;
    static const bool none[GPU_CARDS_MAX];
    struct share want = whole_share(r);
    return best_card(l, &nothing, none, &want, rule_of(l), cost);
}

static bool choose_one(const struct gpu_accounts *l, const struct gpu_request *r, struct arena *a,
                       struct grant *out)
{
    int64_t cost;
    size_t at = one_card(l, r, &cost);
    if (at == l->inventory.cards_len)
        return false;
    if (out != NULL) {
        struct grant one;
        grant_one_card(r, l->inventory.cards[at].index, a, &one);
        out->shares = one.shares;
        out->shares_len = one.shares_len;
    }
    return true;
}

static bool choose_several(const struct gpu_accounts *l, const struct gpu_request *r,
                           struct arena *a, struct grant *out)
{
    struct trial t = {0};
    if (out != NULL)
        t.shares = arena_new(a, struct grant_share, r->shares_len * (size_t)r->spread_over);
    if (!place_in_order(l, r, &t)) {
        t = (struct trial){.shares = t.shares};
        if (!place_largest_first(l, r, a, &t))
            return false;
    }
    if (out != NULL) {
        qsort(t.shares, t.len, sizeof *t.shares, by_container_and_card);
        out->shares = t.shares;
        out->shares_len = t.len;
    }
    return true;
}

static bool choose_shared(const struct gpu_accounts *l, const struct gpu_request *r,
                          struct arena *a, struct grant *out, struct gpu_accounts_why *why)
{
    if (r->one_card ? choose_one(l, r, a, out) : choose_several(l, r, a, out))
        return true;
    explain(l, r, why);
    return false;
}

/* Limits the free cards to those that connect best with the cards of other and later members. */
static void narrow(const struct links *links, const struct gpu_accounts_peers *topology_job,
                   struct links_ask *ask)
{
    size_t free_len = (size_t)__builtin_popcountll(ask->free);
    struct links_ask all = {.free = ask->free, .must = topology_job->beside};
    if (topology_job->beside == 0 && topology_job->to_come == 0)
        return;
    all.count = (size_t)num_min((int64_t)free_len,
                                num_add_sat((int64_t)ask->count, topology_job->to_come)) +
                (size_t)__builtin_popcountll(topology_job->beside);
    ask->free = links_choose(links, &all) & ~topology_job->beside;
}

/* Chooses by the best links; the grant lists the cards in ascending order. */
static void take_linked(const struct gpu_accounts *l, const struct gpu_accounts_peers *topology_job,
                        struct links_ask *ask, struct arena *a, struct grant *out)
{
    struct links links;
    links_of(&l->inventory, &links);
    narrow(&links, topology_job, ask);
    uint64_t chosen = links_choose(&links, ask);
    out->group = arena_new(a, int32_t, ask->count);
    out->group_len = 0;
    for (; chosen != 0; chosen &= chosen - 1) {
        int32_t card = l->inventory.cards[__builtin_ctzll(chosen)].index;
        size_t j = out->group_len++;
        for (; j > 0 && out->group[j - 1] > card; j--)
            out->group[j] = out->group[j - 1];
        out->group[j] = card;
    }
    out->visible = out->group;
    out->visible_len = out->group_len;
}

static bool is_unused(const struct gpu_accounts *l, size_t at)
{
    const struct gpu_accounts_card *use = &l->cards[at];
    return use->whole_holders == 0 && use->used_gib == 0 && use->used_percent == 0;
}

static bool is_free(const struct gpu_accounts *l, size_t at)
{
    return l->inventory.cards[at].health == GPU_HEALTH_OK && is_unused(l, at);
}

static bool has_unplaced(const struct gpu_accounts *l)
{
    return l->unplaced_gib > 0 || l->unplaced_percent > 0 || l->unplaced_cards > 0;
}

static uint64_t free_cards(const struct gpu_accounts *l)
{
    uint64_t set = 0;
    for (size_t at = 0; at < l->inventory.cards_len; at++)
        if (is_free(l, at))
            set |= UINT64_C(1) << at;
    return set;
}

uint64_t gpu_accounts_free_cards(const struct gpu_accounts *l)
{
    bool gives = l->known && !l->inventory.switching && l->inventory.mode == GPU_MODE_TOPOLOGY;
    return gives && !has_unplaced(l) ? free_cards(l) : 0;
}

int32_t gpu_accounts_find_card(const struct gpu_accounts *l, int32_t card)
{
    for (size_t at = 0; at < l->inventory.cards_len; at++)
        if (l->inventory.cards[at].index == card)
            return (int32_t)at;
    return -1;
}

static bool choose_whole(const struct gpu_accounts *l, const struct gpu_request *r,
                         const struct gpu_accounts_peers *topology_job, struct arena *a,
                         struct grant *out, struct gpu_accounts_why *why)
{
    if (has_unplaced(l)) {
        why->no = GPU_ACCOUNTS_UNPLACED;
        return false;
    }
    struct links_ask ask = {.free = free_cards(l), .count = (size_t)r->total[GPU_REQUEST_CARDS]};
    int64_t n = __builtin_popcountll(ask.free);
    if (n < r->total[GPU_REQUEST_CARDS]) {
        *why = (struct gpu_accounts_why){
            .no = GPU_ACCOUNTS_TOO_FEW_CARDS, .want = r->total[GPU_REQUEST_CARDS], .free_cards = n};
        return false;
    }
    if (out != NULL)
        take_linked(l, topology_job, &ask, a, out);
    return true;
}

static bool mode_serves(enum gpu_mode mode, const struct gpu_request *r)
{
    if (r->total[GPU_REQUEST_CARDS] > 0)
        return mode == GPU_MODE_TOPOLOGY;
    return r->total[GPU_REQUEST_CORE] > 0 ? mode == GPU_MODE_CORE_MEM : gpu_mode_is_shared(mode);
}

/* Whether the card would fit if it were healthy. */
static bool would_do(const struct gpu_accounts *l, const struct gpu_request *r, size_t at)
{
    if (r->total[GPU_REQUEST_CARDS] > 0 || !r->shared)
        return is_unused(l, at);
    struct share want = largest_share(r), left = unused_share(l, at, &(struct share){0, 0});
    return left.gib >= want.gib && left.percent >= want.percent;
}

const char *gpu_accounts_trouble(const struct gpu_accounts *l, const struct gpu_request *r,
                                 int64_t short_by)
{
    const char *first = NULL;
    int64_t sick = 0;
    bool serves =
        r->any ? mode_serves(l->inventory.mode, r) : l->inventory.mode == GPU_MODE_DEFAULT;
    if (!l->known || l->inventory.switching || !serves)
        return NULL;
    if (r->any)
        short_by = r->total[GPU_REQUEST_CARDS] > 0
                       ? r->total[GPU_REQUEST_CARDS] - __builtin_popcountll(free_cards(l))
                       : 1;
    for (size_t at = 0; at < l->inventory.cards_len; at++) {
        if (l->troubles[at] == NULL || !would_do(l, r, at))
            continue;
        first = first != NULL ? first : l->troubles[at];
        sick++;
    }
    return sick >= short_by ? first : NULL;
}

bool gpu_accounts_choose_with(const struct gpu_accounts *l, const struct gpu_request *r,
                              const struct gpu_accounts_peers *topology_job, struct arena *a,
                              struct grant *out, struct gpu_accounts_why *why)
{
    *why = (struct gpu_accounts_why){.no = GPU_ACCOUNTS_FITS};
    if (!l->known)
        why->no = GPU_ACCOUNTS_NO_INVENTORY;
    else if (l->inventory.switching)
        why->no = GPU_ACCOUNTS_SWITCHING;
    else if (!mode_serves(l->inventory.mode, r))
        why->no = GPU_ACCOUNTS_WRONG_MODE;
    if (why->no != GPU_ACCOUNTS_FITS)
        return false;
    return r->total[GPU_REQUEST_CARDS] > 0 ? choose_whole(l, r, topology_job, a, out, why)
                                           : choose_shared(l, r, a, out, why);
}

bool gpu_accounts_choose(const struct gpu_accounts *l, const struct gpu_request *r, struct arena *a,
                         struct grant *out, struct gpu_accounts_why *why)
{
    static const struct gpu_accounts_peers no_job;
    return gpu_accounts_choose_with(l, r, &no_job, a, out, why);
}

/* Whether so many cards are large enough for any one share; for most requests that is all. */
static bool obviously_could(const struct gpu_accounts *l, const struct gpu_request *r)
{
    if (r->total[GPU_REQUEST_CARDS] > 0)
        return r->total[GPU_REQUEST_CARDS] <= (int64_t)l->inventory.cards_len;
    if (!r->one_card && r->shares_len != 1)
        return false;
    struct share want = largest_share(r);
    int64_t cards = r->one_card ? 1 : r->spread_over;
    for (size_t i = 0; i < l->inventory.cards_len && cards > 0; i++)
        cards -= gpu_card_gib(&l->inventory.cards[i]) >= want.gib;
    return cards <= 0 && want.percent <= GPU_ACCOUNTS_PERCENT;
}

bool gpu_accounts_could(const struct gpu_accounts *l, const struct gpu_request *r, struct arena *a,
                        struct gpu_accounts_why *why)
{
    struct gpu_accounts_card unused[GPU_CARDS_MAX];
    struct gpu_card healthy[GPU_CARDS_MAX];
    struct gpu_accounts empty = *l;
    if (!l->known || obviously_could(l, r))
        return true;
    for (size_t i = 0; i < l->inventory.cards_len; i++) {
        unused[i] = (struct gpu_accounts_card){0};
        healthy[i] = l->inventory.cards[i];
        healthy[i].health = GPU_HEALTH_OK;
    }
    empty.inventory.cards = healthy;
    empty.cards = unused;
    empty.prices = NULL;
    empty.unplaced_gib = empty.unplaced_percent = empty.unplaced_cards = 0;
    if (gpu_accounts_choose(&empty, r, a, NULL, why))
        return true;
    return why->no != GPU_ACCOUNTS_NO_CARD && why->no != GPU_ACCOUNTS_TOO_FEW_CARDS;
}

bool gpu_accounts_cost(const struct gpu_accounts *l, const struct gpu_request *r, int64_t *cost)
{
    *cost = 0;
    if (!l->known || l->prices == NULL || l->inventory.switching ||
        !mode_serves(l->inventory.mode, r))
        return false;
    if (r->total[GPU_REQUEST_CARDS] > 0) {
        *cost = has_unplaced(l) ? 0
                                : gpu_accounts_links_cost(&l->inventory, free_cards(l),
                                                          r->total[GPU_REQUEST_CARDS]);
        return true;
    }
    if (r->one_card)
        return one_card(l, r, cost) < l->inventory.cards_len;
    struct trial t = {0};
    bool fits = place_in_order(l, r, &t);
    *cost = t.cost;
    return fits;
}

int64_t gpu_accounts_idle_milli(const struct gpu_accounts *l)
{
    static const struct share nothing;
    int64_t sum = 0;
    if (!l->known || l->inventory.switching)
        return 0;
    for (size_t at = 0; at < l->inventory.cards_len; at++) {
        int64_t capacity = num_min(gpu_card_gib(&l->inventory.cards[at]), GPU_REQUEST_MAX);
        struct share left = free_share(l, at, &nothing);
        if (capacity > 0)
            sum += usable(capacity, left.gib, left.percent) * DEMAND_CARD / capacity;
    }
    return sum;
}

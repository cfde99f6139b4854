// SPDX-License-Identifier: Apache-2.0
/*
 * ledger_choose - the cards for one pod on one node.
 *
 * A shared pod has a share for each container (or one on each of M cards). Containers are placed one after the other by the node's placement rule; if that
 * ends without a card, once more with the largest first and each on the fullest card that fits: so that `spread` with containers of 5 and 8 GiB finds its way
 * into cards with 8 and 5 GiB free. More search than that is not worth it: pods with several GPU containers are rare.
 *
 * Where the node's label says nothing about it and its cards are of one size, a share goes to the card where it costs least (prices.h); of equal ones to the fullest.
 * Whole cards are chosen by their links (lib/model/links.h).
 *
 * Nothing here changes the ledger. What this pod takes while it is being placed is in struct trial.
 */
#include <stdlib.h>

#include "lib/base/num.h"
#include "lib/model/links.h"
#include "scheduler/accounts/ledger.h"
#include "scheduler/accounts/ledger_links.h"

struct share {
    int64_t gib;
    int64_t percent;
};

struct trial {
    struct share taken[GPU_CARDS_MAX];
    struct claim_share *shares; /* NULL: only asking */
    size_t len;
    int64_t cost; /* of all shares so far */
};

/* Whether it is well or not. */
static struct share unused_share(const struct ledger *l, size_t at, const struct share *taken)
{
    const struct ledger_card *use = &l->cards[at];
    if (use->whole_holders > 0 || l->unplaced_cards > 0)
        return (struct share){0, 0};
    int64_t size = num_min(gpu_card_gib(&l->inventory.cards[at]), LEDGER_MAX);
    int64_t gib = size - use->used_gib - l->unplaced_gib - taken->gib;
    int64_t percent = LEDGER_PERCENT - use->used_percent - l->unplaced_percent - taken->percent;
    return (struct share){num_max(gib, 0), num_max(percent, 0)};
}

static struct share free_share(const struct ledger *l, size_t at, const struct share *taken)
{
    if (l->inventory.cards[at].health != GPU_HEALTH_OK)
        return (struct share){0, 0};
    return unused_share(l, at, taken);
}

/* The part of a card that is of use: its GiB, or less where they have no percent left to go with them. */
static int64_t usable(int64_t capacity, int64_t gib, int64_t percent)
{
    return num_min(gib, capacity * percent / LEDGER_PERCENT);
}

static int64_t card_cost(const struct ledger *l, const struct trial *t, size_t at,
                         const struct share *left, const struct share *want)
{
    const struct ledger_card *use = &l->cards[at];
    int64_t capacity = num_min(gpu_card_gib(&l->inventory.cards[at]), LEDGER_MAX);
    bool untouched = use->used_gib == 0 && use->used_percent == 0 && t->taken[at].gib == 0;
    if (l->prices == NULL)
        return 0;
    return prices_of_share(l->prices, capacity, usable(capacity, left->gib, left->percent),
                           usable(capacity, left->gib - want->gib, left->percent - want->percent),
                           untouched);
}

/* Which card a share goes to. */
enum rule { RULE_BINPACK, RULE_SPREAD, RULE_PRICES };

static enum rule rule_of(const struct ledger *l)
{
    if (l->prices != NULL && !l->ruled)
        return RULE_PRICES;
    return l->placement == GPU_SPREAD ? RULE_SPREAD : RULE_BINPACK;
}

/* The card for one share: binpack takes the fullest that fits, spread the emptiest; ties go to the first. cards_len when none fits. */
static size_t best_card(const struct ledger *l, const struct trial *t, const bool *excluded,
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

/* One container's share, on as many different cards as the pod asks for. */
static bool place(const struct ledger *l, const struct ledger_request *r, size_t container,
                  enum rule rule, struct trial *t)
{
    const struct container *c = &r->pod->containers[container];
    struct share want = {ledger_request_gib(c) / r->spread_over, ledger_request_percent(c)};
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
            t->shares[t->len++] = (struct claim_share){.container = (uint32_t)container,
                                                       .card = l->inventory.cards[at].index,
                                                       .gib = want.gib,
                                                       .percent = want.percent};
    }
    return true;
}

static bool place_in_order(const struct ledger *l, const struct ledger_request *r, struct trial *t)
{
    for (size_t i = 0; i < r->pod->containers_len; i++)
        if (ledger_request_gib(&r->pod->containers[i]) > 0 && !place(l, r, i, rule_of(l), t))
            return false;
    return true;
}

static bool place_largest_first(const struct ledger *l, const struct ledger_request *r,
                                struct arena *a, struct trial *t)
{
    const struct container *c = r->pod->containers;
    size_t *order = arena_new(a, size_t, r->pod->containers_len);
    size_t n = 0;
    for (size_t i = 0; i < r->pod->containers_len; i++) {
        int64_t gib = ledger_request_gib(&c[i]);
        if (gib == 0)
            continue;
        size_t j = n++;
        for (; j > 0 && ledger_request_gib(&c[order[j - 1]]) < gib; j--)
            order[j] = order[j - 1];
        order[j] = i;
    }
    for (size_t i = 0; i < n; i++)
        if (!place(l, r, order[i], RULE_BINPACK, t))
            return false;
    return n > 1;
}

static int by_container_and_card(const void *a, const void *b)
{
    const struct claim_share *x = a, *y = b;
    if (x->container != y->container)
        return (x->container > y->container) - (x->container < y->container);
    return (x->card > y->card) - (x->card < y->card);
}

static struct share largest_share(const struct ledger_request *r)
{
    struct share most = {0, 0};
    if (r->one_card)
        return (struct share){r->hold_gib, r->hold_percent};
    for (size_t i = 0; i < r->pod->containers_len; i++) {
        const struct container *c = &r->pod->containers[i];
        most.gib = num_max(most.gib, ledger_request_gib(c) / r->spread_over);
        most.percent = num_max(most.percent, ledger_request_percent(c));
    }
    return most;
}

/* The card that comes nearest to the largest share, as an operator would see it: without what the pod itself would take. */
static void explain(const struct ledger *l, const struct ledger_request *r, struct ledger_why *why)
{
    struct share want = largest_share(r);
    *why = (struct ledger_why){
        .no = LEDGER_NO_CARD, .want = want.gib, .want_percent = want.percent, .largest_card = -1};
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

/* An init container's ids are reused by the kubelet in any order, so all of the pod is on one card. */
static size_t one_card(const struct ledger *l, const struct ledger_request *r, int64_t *cost)
{
    static const struct trial nothing;
    static const bool none[GPU_CARDS_MAX];
    struct share want = {r->hold_gib, r->hold_percent};
    return best_card(l, &nothing, none, &want, rule_of(l), cost);
}

static bool choose_one(const struct ledger *l, const struct ledger_request *r, struct arena *a,
                       struct claim *out)
{
    int64_t cost;
    size_t at = one_card(l, r, &cost);
    if (at == l->inventory.cards_len)
        return false;
    if (out != NULL) {
        struct claim one;
        claim_one_card(r->pod, l->inventory.cards[at].index, a, &one);
        out->shares = one.shares;
        out->shares_len = one.shares_len;
    }
    return true;
}

static bool choose_several(const struct ledger *l, const struct ledger_request *r, struct arena *a,
                           struct claim *out)
{
    struct trial t = {0};
    if (out != NULL)
        t.shares =
            arena_new(a, struct claim_share, r->pod->containers_len * (size_t)r->spread_over);
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

static bool choose_shared(const struct ledger *l, const struct ledger_request *r, struct arena *a,
                          struct claim *out, struct ledger_why *why)
{
    if (r->one_card ? choose_one(l, r, a, out) : choose_several(l, r, a, out))
        return true;
    explain(l, r, why);
    return false;
}

/* Of the free cards only those that go best with the others' and with those to come, as many as there are. */
static void narrow(const struct links *links, const struct ledger_peers *peers,
                   struct links_ask *ask)
{
    size_t room = (size_t)__builtin_popcountll(ask->free);
    struct links_ask all = {.free = ask->free, .must = peers->beside};
    if (peers->beside == 0 && peers->to_come == 0)
        return;
    all.count = (size_t)num_min((int64_t)room, num_add_sat((int64_t)ask->count, peers->to_come)) +
                (size_t)__builtin_popcountll(peers->beside);
    ask->free = links_choose(links, &all) & ~peers->beside;
}

/* By the best links; in the claim in ascending order, whatever the inventory's is. */
static void take_linked(const struct ledger *l, const struct ledger_peers *peers,
                        struct links_ask *ask, struct arena *a, struct claim *out)
{
    struct links links;
    links_of(&l->inventory, &links);
    narrow(&links, peers, ask);
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

static bool is_unused(const struct ledger *l, size_t at)
{
    const struct ledger_card *use = &l->cards[at];
    return use->whole_holders == 0 && use->used_gib == 0 && use->used_percent == 0;
}

static bool is_free(const struct ledger *l, size_t at)
{
    return l->inventory.cards[at].health == GPU_HEALTH_OK && is_unused(l, at);
}

static bool has_unplaced(const struct ledger *l)
{
    return l->unplaced_gib > 0 || l->unplaced_percent > 0 || l->unplaced_cards > 0;
}

static uint64_t free_cards(const struct ledger *l)
{
    uint64_t set = 0;
    for (size_t at = 0; at < l->inventory.cards_len; at++)
        if (is_free(l, at))
            set |= UINT64_C(1) << at;
    return set;
}

uint64_t ledger_free_cards(const struct ledger *l)
{
    bool gives = l->known && !l->inventory.switching && l->inventory.mode == GPU_MODE_TOPOLOGY;
    return gives && !has_unplaced(l) ? free_cards(l) : 0;
}

int32_t ledger_find_card(const struct ledger *l, int32_t card)
{
    for (size_t at = 0; at < l->inventory.cards_len; at++)
        if (l->inventory.cards[at].index == card)
            return (int32_t)at;
    return -1;
}

static bool choose_whole(const struct ledger *l, const struct ledger_request *r,
                         const struct ledger_peers *peers, struct arena *a, struct claim *out,
                         struct ledger_why *why)
{
    if (has_unplaced(l)) {
        why->no = LEDGER_UNPLACED;
        return false;
    }
    struct links_ask ask = {.free = free_cards(l), .count = (size_t)r->whole_cards};
    int64_t n = __builtin_popcountll(ask.free);
    if (n < r->whole_cards) {
        *why = (struct ledger_why){
            .no = LEDGER_TOO_FEW_CARDS, .want = r->whole_cards, .free_cards = n};
        return false;
    }
    if (out != NULL)
        take_linked(l, peers, &ask, a, out);
    return true;
}

static bool mode_serves(enum gpu_mode mode, const struct ledger_request *r)
{
    if (r->whole_cards > 0)
        return mode == GPU_MODE_TOPOLOGY;
    return r->hold_percent > 0 ? mode == GPU_MODE_CORE_MEM : gpu_mode_is_shared(mode);
}

/* Whether the card would do if it were well. */
static bool would_do(const struct ledger *l, const struct ledger_request *r, size_t at)
{
    if (r->whole_cards > 0 || !r->shared)
        return is_unused(l, at);
    struct share want = largest_share(r), left = unused_share(l, at, &(struct share){0, 0});
    return left.gib >= want.gib && left.percent >= want.percent;
}

const char *ledger_trouble(const struct ledger *l, const struct ledger_request *r, int64_t short_by)
{
    const char *first = NULL;
    int64_t sick = 0;
    bool serves =
        r->any ? mode_serves(l->inventory.mode, r) : l->inventory.mode == GPU_MODE_DEFAULT;
    if (!l->known || l->inventory.switching || !serves)
        return NULL;
    if (r->any)
        short_by = r->whole_cards > 0 ? r->whole_cards - __builtin_popcountll(free_cards(l)) : 1;
    for (size_t at = 0; at < l->inventory.cards_len; at++) {
        if (l->troubles[at] == NULL || !would_do(l, r, at))
            continue;
        first = first != NULL ? first : l->troubles[at];
        sick++;
    }
    return sick >= short_by ? first : NULL;
}

bool ledger_choose_with(const struct ledger *l, const struct ledger_request *r,
                        const struct ledger_peers *peers, struct arena *a, struct claim *out,
                        struct ledger_why *why)
{
    *why = (struct ledger_why){.no = LEDGER_FITS};
    if (!l->known)
        why->no = LEDGER_NO_INVENTORY;
    else if (l->inventory.switching)
        why->no = LEDGER_SWITCHING;
    else if (!mode_serves(l->inventory.mode, r))
        why->no = LEDGER_WRONG_MODE;
    if (why->no != LEDGER_FITS)
        return false;
    return r->whole_cards > 0 ? choose_whole(l, r, peers, a, out, why)
                              : choose_shared(l, r, a, out, why);
}

bool ledger_choose(const struct ledger *l, const struct ledger_request *r, struct arena *a,
                   struct claim *out, struct ledger_why *why)
{
    static const struct ledger_peers nobody;
    return ledger_choose_with(l, r, &nobody, a, out, why);
}

bool ledger_cost(const struct ledger *l, const struct ledger_request *r, int64_t *cost)
{
    *cost = 0;
    if (!l->known || l->prices == NULL || l->inventory.switching ||
        !mode_serves(l->inventory.mode, r))
        return false;
    if (r->whole_cards > 0) {
        *cost =
            has_unplaced(l) ? 0 : ledger_links_cost(&l->inventory, free_cards(l), r->whole_cards);
        return true;
    }
    if (r->one_card)
        return one_card(l, r, cost) < l->inventory.cards_len;
    struct trial t = {0};
    bool fits = place_in_order(l, r, &t);
    *cost = t.cost;
    return fits;
}

int64_t ledger_idle_milli(const struct ledger *l)
{
    static const struct share nothing;
    int64_t sum = 0;
    if (!l->known || l->inventory.switching)
        return 0;
    for (size_t at = 0; at < l->inventory.cards_len; at++) {
        int64_t capacity = num_min(gpu_card_gib(&l->inventory.cards[at]), LEDGER_MAX);
        struct share left = free_share(l, at, &nothing);
        if (capacity > 0)
            sum += usable(capacity, left.gib, left.percent) * DEMAND_CARD / capacity;
    }
    return sum;
}

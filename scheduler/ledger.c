// SPDX-License-Identifier: Apache-2.0
#include "scheduler/ledger.h"

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

static int64_t asked(const struct resources *limits, const char *name)
{
    return resources_get(limits, name, NULL);
}

/* An extended resource has limits equal to requests, so limits are the claim. */
static int64_t container_gib(const struct container *c)
{
    return asked(&c->limits, NAME_RES_GPU_MEM);
}

static int64_t container_percent(const struct container *c)
{
    return asked(&c->limits, NAME_RES_GPU_CORE);
}

void ledger_request_of(const struct pod *p, struct arena *a, struct ledger_request *out)
{
    *out = (struct ledger_request){.pod = p, .spread_over = 1};
    for (size_t i = 0; i < p->init_containers_len; i++) {
        const struct container *c = &p->init_containers[i];
        if (container_gib(c) > 0 || container_percent(c) > 0 || asked(&c->limits, NAME_RES_GPU) > 0)
            out->illegal = arena_printf(
                a, "GPU requests in init containers are not supported (container %s)", c->name);
    }
    for (size_t i = 0; i < p->containers_len; i++) {
        const struct container *c = &p->containers[i];
        int64_t gib = container_gib(c), percent = container_percent(c);
        out->shared |= gib > 0 || percent > 0;
        out->total_gib = num_add_sat(out->total_gib, gib);
        out->whole_cards = num_add_sat(out->whole_cards, asked(&c->limits, NAME_RES_GPU));
        if (percent > 0 && gib == 0)
            out->illegal = arena_printf(a, "container %s asks for %s without %s", c->name,
                                        NAME_RES_GPU_CORE, NAME_RES_GPU_MEM);
        if (percent % 5 != 0)
            out->illegal = arena_printf(a, "container %s: %s must be a multiple of 5", c->name,
                                        NAME_RES_GPU_CORE);
    }
    out->any = out->shared || out->whole_cards > 0;
    if (out->shared && out->whole_cards > 0)
        out->illegal = "a pod cannot ask for " NAME_RES_GPU_MEM " and " NAME_RES_GPU " together";

    const char *count = labels_get(&p->labels, NAME_RES_GPU_COUNT);
    if (count == NULL || !out->shared)
        return;
    struct error err = ERROR_INIT;
    if (num_parse_range(count, 1, GPU_CARDS_MAX, &out->spread_over, &err) < 0)
        out->illegal = arena_printf(a, "label %s: %s", NAME_RES_GPU_COUNT, err.text);
    else if (out->spread_over > 1)
        for (size_t i = 0; i < p->containers_len; i++) {
            const struct container *c = &p->containers[i];
            if (container_gib(c) % out->spread_over != 0)
                out->illegal =
                    arena_printf(a, "container %s: %s must be a multiple of the label %s", c->name,
                                 NAME_RES_GPU_MEM, NAME_RES_GPU_COUNT);
            if (container_percent(c) > 0)
                out->illegal =
                    arena_printf(a, "container %s: %s cannot be spread over several cards", c->name,
                                 NAME_RES_GPU_CORE);
        }
}

void ledger_init(struct ledger *l)
{
    *l = (struct ledger){.problem = "no GPU inventory published"};
    arena_init(&l->arena, 0);
}

void ledger_deinit(struct ledger *l)
{
    arena_deinit(&l->arena);
}

void ledger_set_inventory(struct ledger *l, const char *annotation, const char *placement)
{
    arena_deinit(&l->arena);
    ledger_init(l);
    l->placement = str_eq(placement, "spread") ? GPU_SPREAD : GPU_BINPACK;
    if (annotation == NULL || annotation[0] == '\0')
        return;
    struct error err = ERROR_INIT;
    if (gpu_inventory_decode(annotation, strlen(annotation), &l->arena, &l->inventory, &err) < 0) {
        l->problem = arena_printf(&l->arena, "GPU inventory unreadable: %s", err.text);
        return;
    }
    l->known = true;
    l->problem = NULL;
}

static size_t position(const struct ledger *l, int32_t card)
{
    size_t i = 0;
    while (i < l->inventory.cards_len && l->inventory.cards[i].index != card)
        i++;
    return i;
}

int64_t ledger_card_gib(const struct ledger *l, int32_t card)
{
    size_t i = position(l, card);
    return i < l->inventory.cards_len ? gpu_card_gib(&l->inventory.cards[i]) : 0;
}

void ledger_account(struct ledger *l, const struct claim *claim, bool trusted,
                    const struct ledger_request *r, int sign)
{
    if (!trusted) {
        if (!r->any)
            return;
        l->unplaced_gib += sign * r->total_gib;
        l->unplaced_cards += sign * r->whole_cards;
        for (size_t i = 0; i < r->pod->containers_len; i++)
            l->unplaced_percent += sign * container_percent(&r->pod->containers[i]);
        return;
    }
    for (size_t i = 0; i < claim->shares_len; i++) {
        size_t at = position(l, claim->shares[i].card);
        if (at == l->inventory.cards_len)
            continue; /* the card is gone; nobody else can get it either */
        l->cards[at].used_gib += sign * claim->shares[i].gib;
        l->cards[at].used_percent += sign * claim->shares[i].percent;
    }
    for (size_t i = 0; i < claim->group_len; i++) {
        size_t at = position(l, claim->group[i]);
        if (at < l->inventory.cards_len)
            l->cards[at].whole_holders += sign;
    }
}

/* Free share of a card while `taken` more is about to be used on it by the same pod. */
struct share {
    int64_t gib;
    int64_t percent;
};

static struct share free_share(const struct ledger *l, size_t at, const struct share *taken)
{
    const struct gpu_card *card = &l->inventory.cards[at];
    const struct ledger_card *use = &l->cards[at];
    if (card->health != GPU_HEALTH_OK || use->whole_holders > 0)
        return (struct share){0, 0};
    int64_t gib = gpu_card_gib(card) - use->used_gib - l->unplaced_gib - taken->gib;
    int64_t percent = LEDGER_PERCENT - use->used_percent - l->unplaced_percent - taken->percent;
    return (struct share){num_max(gib, 0), num_max(percent, 0)};
}

/* The card for one share: binpack takes the fullest that fits, spread the emptiest; ties go to the lower index. cards_len when none fits. */
static size_t best_card(const struct ledger *l, const struct share *taken, const bool *excluded,
                        int64_t gib, int64_t percent)
{
    size_t best = l->inventory.cards_len;
    int64_t best_free = 0;
    for (size_t at = 0; at < l->inventory.cards_len; at++) {
        struct share left = free_share(l, at, &taken[at]);
        if (excluded[at] || left.gib < gib || left.percent < percent)
            continue;
        bool better = l->placement == GPU_BINPACK ? left.gib < best_free : left.gib > best_free;
        if (best == l->inventory.cards_len || better) {
            best = at;
            best_free = left.gib;
        }
    }
    return best;
}

static int64_t largest_free(const struct ledger *l)
{
    int64_t most = 0;
    for (size_t at = 0; at < l->inventory.cards_len; at++)
        most = num_max(most, free_share(l, at, &(struct share){0, 0}).gib);
    return most;
}

static bool choose_shared(const struct ledger *l, const struct ledger_request *r, struct arena *a,
                          struct claim *out, struct ledger_why *why)
{
    struct share taken[GPU_CARDS_MAX] = {0};
    size_t per_container = (size_t)r->spread_over, n = 0;
    struct claim_share *shares =
        arena_new(a, struct claim_share, r->pod->containers_len * per_container);

    for (size_t i = 0; i < r->pod->containers_len; i++) {
        const struct container *c = &r->pod->containers[i];
        if (container_gib(c) == 0)
            continue;
        bool excluded[GPU_CARDS_MAX] = {false};
        int64_t gib = container_gib(c) / r->spread_over;
        size_t first = n;
        for (size_t k = 0; k < per_container; k++) {
            size_t at = best_card(l, taken, excluded, gib, container_percent(c));
            if (at == l->inventory.cards_len) {
                *why = (struct ledger_why){
                    .no = LEDGER_NO_CARD, .want = gib, .largest_gib = largest_free(l)};
                return false;
            }
            excluded[at] = true;
            taken[at].gib += gib;
            taken[at].percent += container_percent(c);
            struct claim_share s = {.container = (uint32_t)i,
                                    .card = l->inventory.cards[at].index,
                                    .gib = gib,
                                    .percent = container_percent(c)};
            size_t j = n++; /* sorted by card within the container */
            for (; j > first && shares[j - 1].card > s.card; j--)
                shares[j] = shares[j - 1];
            shares[j] = s;
        }
    }
    if (out != NULL)
        *out = (struct claim){.shares = shares, .shares_len = n};
    return true;
}

static bool choose_whole(const struct ledger *l, const struct ledger_request *r, struct arena *a,
                         struct claim *out, struct ledger_why *why)
{
    int64_t found = 0, free_cards = 0;
    int32_t *group = arena_new(a, int32_t, GPU_CARDS_MAX);
    for (size_t at = 0; at < l->inventory.cards_len; at++) {
        const struct ledger_card *use = &l->cards[at];
        if (l->inventory.cards[at].health != GPU_HEALTH_OK || use->whole_holders > 0 ||
            use->used_gib > 0)
            continue;
        free_cards++;
        if (found < r->whole_cards)
            group[found++] = l->inventory.cards[at].index;
    }
    free_cards = num_max(free_cards - l->unplaced_cards, 0);
    if (free_cards < r->whole_cards) {
        *why = (struct ledger_why){
            .no = LEDGER_TOO_FEW_CARDS, .want = r->whole_cards, .free_cards = free_cards};
        return false;
    }
    if (out != NULL)
        *out = (struct claim){.group = group,
                              .group_len = (size_t)found,
                              .visible = group,
                              .visible_len = (size_t)found};
    return true;
}

static bool mode_serves(enum gpu_mode mode, const struct ledger_request *r)
{
    if (r->whole_cards > 0)
        return mode == GPU_MODE_TOPOLOGY;
    if (!gpu_mode_is_shared(mode))
        return false;
    for (size_t i = 0; i < r->pod->containers_len; i++)
        if (container_percent(&r->pod->containers[i]) > 0)
            return mode == GPU_MODE_CORE_MEM;
    return true;
}

bool ledger_choose(const struct ledger *l, const struct ledger_request *r, struct arena *a,
                   struct claim *out, struct ledger_why *why)
{
    *why = (struct ledger_why){.no = LEDGER_FITS};
    if (!l->known) {
        why->no = LEDGER_NO_INVENTORY;
        return false;
    }
    if (l->inventory.switching || !mode_serves(l->inventory.mode, r)) {
        why->no = LEDGER_WRONG_MODE;
        return false;
    }
    return r->whole_cards > 0 ? choose_whole(l, r, a, out, why) : choose_shared(l, r, a, out, why);
}

uint64_t ledger_digest(const struct ledger *l)
{
    int64_t head[3] = {l->unplaced_gib, l->unplaced_percent, l->unplaced_cards};
    uint64_t h = str_hash((const char *)head, sizeof head);
    for (size_t i = 0; i < l->inventory.cards_len; i++) {
        int64_t row[3] = {l->cards[i].used_gib, l->cards[i].used_percent,
                          l->cards[i].whole_holders};
        h = h * 1099511628211u ^ str_hash((const char *)row, sizeof row);
    }
    return h;
}

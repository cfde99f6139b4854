// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/ledger.h"

#include "lib/base/num.h"
#include "lib/base/str.h"

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

void ledger_init(struct ledger *l)
{
    *l = (struct ledger){.problem = "none published"};
    arena_init(&l->arena, 0);
}

void ledger_deinit(struct ledger *l)
{
    arena_deinit(&l->arena);
}

static bool are_alike(const struct gpu_inventory *in)
{
    for (size_t i = 1; i < in->cards_len; i++)
        if (gpu_card_gib(&in->cards[i]) != gpu_card_gib(&in->cards[0]))
            return false;
    return true;
}

void ledger_set_inventory(struct ledger *l, const char *annotation, const char *placement)
{
    const struct prices *prices = l->prices;
    arena_deinit(&l->arena);
    ledger_init(l);
    l->prices = prices;
    l->placement = str_eq(placement, "spread") ? GPU_SPREAD : GPU_BINPACK;
    l->ruled = str_eq(placement, "spread") || str_eq(placement, "binpack");
    if (annotation == NULL || annotation[0] == '\0')
        return;
    struct error err = ERROR_INIT;
    struct gpu_inventory read = {0};
    if (gpu_inventory_decode(annotation, strlen(annotation), &l->arena, &read, &err) < 0) {
        l->problem = arena_printf(&l->arena, "unreadable: %s", err.text);
        return;
    }
    if (read.cards_len > GPU_CARDS_MAX) {
        l->problem = arena_printf(&l->arena, "more than %d cards", GPU_CARDS_MAX);
        return;
    }
    l->inventory = read;
    /* Prices are by the card: they say nothing of a small one beside a large one. */
    if (!are_alike(&read))
        l->ruled = true;
    l->cards = arena_new(&l->arena, struct ledger_card, read.cards_len);
    l->troubles = arena_new(&l->arena, const char *, read.cards_len);
    for (size_t i = 0; i < read.cards_len; i++)
        if (read.cards[i].health != GPU_HEALTH_OK)
            l->troubles[i] = arena_printf(&l->arena, "GPU%d %s", (int)read.cards[i].index,
                                          gpu_card_trouble(&read.cards[i], &l->arena));
    l->known = true;
    l->problem = NULL;
}

void ledger_try_on(const struct ledger *l, struct arena *a, struct ledger *out)
{
    *out = *l;
    out->cards = arena_new(a, struct ledger_card, l->inventory.cards_len);
    if (l->inventory.cards_len > 0)
        memcpy(out->cards, l->cards, l->inventory.cards_len * sizeof *l->cards);
}

void ledger_try_on_numa(const struct ledger *l, int32_t numa, struct arena *a, struct ledger *out)
{
    size_t n = l->inventory.cards_len;
    ledger_try_on(l, a, out);
    out->inventory.cards = arena_new(a, struct gpu_card, n);
    for (size_t i = 0; i < n; i++) {
        out->inventory.cards[i] = l->inventory.cards[i];
        if (l->inventory.cards[i].numa != numa)
            out->inventory.cards[i].health = GPU_HEALTH_SICK;
    }
}

static bool cards_exist(const struct ledger *l, const struct claim *claim)
{
    for (size_t i = 0; i < claim->shares_len; i++)
        if (position(l, claim->shares[i].card) == l->inventory.cards_len)
            return false;
    for (size_t i = 0; i < claim->group_len; i++)
        if (position(l, claim->group[i]) == l->inventory.cards_len)
            return false;
    return true;
}

void ledger_account(struct ledger *l, const struct claim *claim, bool trusted,
                    const struct ledger_request *r, int sign)
{
    if (!r->any)
        return;
    if (!trusted || !cards_exist(l, claim)) {
        l->unplaced_gib += sign * r->hold_gib;
        l->unplaced_percent += sign * r->hold_percent;
        l->unplaced_cards += sign * r->hold_cards;
        return;
    }
    for (size_t i = 0; i < claim->shares_len; i++) {
        struct ledger_card *card = &l->cards[position(l, claim->shares[i].card)];
        card->used_gib += sign * claim->shares[i].gib;
        card->used_percent += sign * claim->shares[i].percent;
    }
    for (size_t i = 0; i < claim->group_len; i++)
        l->cards[position(l, claim->group[i])].whole_holders += sign;
}

uint64_t ledger_digest(const struct ledger *l)
{
    int64_t head[3] = {l->unplaced_gib, l->unplaced_percent, l->unplaced_cards};
    uint64_t h = str_hash((const char *)head, sizeof head);
    for (size_t i = 0; i < l->inventory.cards_len; i++) {
        int64_t row[4] = {l->inventory.cards[i].index, l->cards[i].used_gib,
                          l->cards[i].used_percent, l->cards[i].whole_holders};
        h = (h ^ str_hash((const char *)row, sizeof row)) * 1099511628211u;
    }
    return h;
}

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/gpu_accounts.h"

#include "lib/base/num.h"
#include "lib/base/str.h"

static size_t position(const struct gpu_accounts *l, int32_t card)
{
    size_t i = 0;
    while (i < l->inventory.cards_len && l->inventory.cards[i].index != card)
        i++;
    return i;
}

int64_t gpu_accounts_card_gib(const struct gpu_accounts *l, int32_t card)
{
    size_t i = position(l, card);
    return i < l->inventory.cards_len ? gpu_card_gib(&l->inventory.cards[i]) : 0;
}

void gpu_accounts_init(struct gpu_accounts *l)
{
    *l = (struct gpu_accounts){.problem = "none published"};
    arena_init(&l->arena, 0);
}

void gpu_accounts_deinit(struct gpu_accounts *l)
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

void gpu_accounts_set_inventory(struct gpu_accounts *l, const char *annotation,
                                const char *placement)
{
    const struct prices *prices = l->prices;
    arena_deinit(&l->arena);
    gpu_accounts_init(l);
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
    /* Prices are per card, so they cannot compare a small card with a large one. */
    if (!are_alike(&read))
        l->ruled = true;
    l->cards = arena_new(&l->arena, struct gpu_accounts_card, read.cards_len);
    l->troubles = arena_new(&l->arena, const char *, read.cards_len);
    for (size_t i = 0; i < read.cards_len; i++)
        if (read.cards[i].health != GPU_HEALTH_OK)
            l->troubles[i] = arena_printf(&l->arena, "GPU%d %s", (int)read.cards[i].index,
                                          gpu_card_trouble(&read.cards[i], &l->arena));
    l->known = true;
    l->problem = NULL;
}

void gpu_accounts_try_on(const struct gpu_accounts *l, struct arena *a, struct gpu_accounts *out)
{
    *out = *l;
    out->cards = arena_new(a, struct gpu_accounts_card, l->inventory.cards_len);
    if (l->inventory.cards_len > 0)
        memcpy(out->cards, l->cards, l->inventory.cards_len * sizeof *l->cards);
}

void gpu_accounts_try_on_numa(const struct gpu_accounts *l, int32_t numa, struct arena *a,
                              struct gpu_accounts *out)
{
    size_t n = l->inventory.cards_len;
    gpu_accounts_try_on(l, a, out);
    out->inventory.cards = arena_new(a, struct gpu_card, n);
    for (size_t i = 0; i < n; i++) {
        out->inventory.cards[i] = l->inventory.cards[i];
        if (l->inventory.cards[i].numa != numa)
            out->inventory.cards[i].health = GPU_HEALTH_SICK;
    }
}

static bool cards_exist(const struct gpu_accounts *l, const struct grant *grant)
{
    for (size_t i = 0; i < grant->shares_len; i++)
        if (position(l, grant->shares[i].card) == l->inventory.cards_len)
            return false;
    for (size_t i = 0; i < grant->group_len; i++)
        if (position(l, grant->group[i]) == l->inventory.cards_len)
            return false;
    return true;
}

void gpu_accounts_account(struct gpu_accounts *l, const struct grant *grant, bool trusted,
                          const struct gpu_request *r, int sign)
{
    if (!r->any)
        return;
    if (!trusted || !cards_exist(l, grant)) {
        l->unplaced_gib += sign * r->total[GPU_REQUEST_MEM];
        l->unplaced_percent += sign * r->total[GPU_REQUEST_CORE];
        l->unplaced_cards += sign * r->total[GPU_REQUEST_CARDS];
        return;
    }
    for (size_t i = 0; i < grant->shares_len; i++) {
        struct gpu_accounts_card *card = &l->cards[position(l, grant->shares[i].card)];
        card->used_gib += sign * grant->shares[i].gib;
        card->used_percent += sign * grant->shares[i].percent;
    }
    for (size_t i = 0; i < grant->group_len; i++)
        l->cards[position(l, grant->group[i])].whole_holders += sign;
}

uint64_t gpu_accounts_digest(const struct gpu_accounts *l)
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

// SPDX-License-Identifier: Apache-2.0
/*
 * room - see the header.
 *
 * binpack takes the fullest card that has room, spread the emptiest; equal ones by their index: the same knowledge gives the
 * same card, so that GetPreferredAllocation and Allocate, and two resources of one container, agree without a memory.
 */
#include "device-plugin/grant/room.h"

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

void room_init(struct room *r, const struct gpu_inventory *inv, enum gpu_placement placement)
{
    *r = (struct room){.inventory = inv, .placement = placement};
}

static void add_ids(const struct gpu_inventory *inv, enum mode_resource resource,
                    const struct inventory_ids *ids, struct room_card *cards)
{
    for (size_t i = 0; i < ids->len; i++) {
        int32_t at = inventory_find(inv, resource, ids->items[i]);
        if (at < 0)
            continue;
        if (mode_resource_is_whole(resource))
            cards[at].whole = true;
        else if (resource == MODE_GPU_MEM)
            cards[at].gib++;
        else
            cards[at].percent++;
    }
}

void room_add(struct room *r, const struct claim *claim, const struct match_listed *held)
{
    const struct gpu_inventory *inv = r->inventory;
    struct room_card said[GPU_CARDS_MAX] = {{0}}, has[GPU_CARDS_MAX] = {{0}};
    for (size_t i = 0; claim != NULL && i < claim->shares_len; i++) {
        int32_t at = inventory_card(inv, claim->shares[i].card);
        if (at < 0)
            continue;
        said[at].gib = num_add_sat(said[at].gib, claim->shares[i].gib);
        said[at].percent = num_add_sat(said[at].percent, claim->shares[i].percent);
    }
    for (size_t i = 0; claim != NULL && i < claim->group_len; i++) {
        int32_t at = inventory_card(inv, claim->group[i]);
        if (at >= 0)
            said[at].whole = true;
    }
    for (size_t i = 0; held != NULL && i < held->containers_len; i++)
        for (int k = 0; k < MODE_RESOURCES; k++)
            add_ids(inv, (enum mode_resource)k, &held->containers[i].held[k], has);
    for (size_t i = 0; i < inv->cards_len; i++) {
        r->used[i].gib = num_add_sat(r->used[i].gib, num_max(said[i].gib, has[i].gib));
        r->used[i].percent =
            num_add_sat(r->used[i].percent, num_max(said[i].percent, has[i].percent));
        r->used[i].whole = r->used[i].whole || said[i].whole || has[i].whole;
    }
}

static int64_t free_gib(const struct room *r, size_t at)
{
    return num_sub_sat(gpu_card_gib(&r->inventory->cards[at]), r->used[at].gib);
}

bool room_has(const struct room *r, size_t at, int64_t gib, int64_t percent)
{
    return r->inventory->cards[at].health == GPU_HEALTH_OK && !r->used[at].whole &&
           gib <= free_gib(r, at) && percent <= INVENTORY_CORES - r->used[at].percent;
}

/* The card for this much by the placement policy, but none of those (may be NULL); INVENTORY_NONE: none has room. */
static int32_t best(const struct room *r, int64_t gib, int64_t percent, const bool *but)
{
    int32_t found = INVENTORY_NONE;
    for (size_t i = 0; i < r->inventory->cards_len; i++) {
        if ((but != NULL && but[i]) || !room_has(r, i, gib, percent))
            continue;
        int64_t ahead = found >= 0 ? free_gib(r, i) - free_gib(r, (size_t)found) : 0;
        if (found < 0 || (r->placement == GPU_SPREAD ? ahead > 0 : ahead < 0))
            found = (int32_t)i;
    }
    return found;
}

static int no_room(const struct room *r, const char *who, int64_t gib, int64_t percent,
                   struct error *err)
{
    int64_t most = 0;
    int32_t card = -1;
    for (size_t i = 0; i < r->inventory->cards_len; i++) {
        if (room_has(r, i, 0, 0) && (card < 0 || free_gib(r, i) > most)) {
            most = free_gib(r, i);
            card = r->inventory->cards[i].index;
        }
    }
    char compute[48] = "";
    if (percent > 0)
        (void)str_format(compute, sizeof compute, " and %lld %% of its compute",
                         (long long)percent);
    if (card < 0)
        return error_set(err, ERROR_CONFLICT, "%s: no card of this node is free for shares", who);
    return error_set(err, ERROR_CONFLICT,
                     "%s: no card has %lld GiB%s free beside what others were promised "
                     "(largest free: %lld GiB on card %d)",
                     who, (long long)gib, compute, (long long)most, card);
}

static void take(struct room *r, size_t at, const struct claim_share *s)
{
    r->used[at].gib = num_add_sat(r->used[at].gib, s->gib);
    r->used[at].percent = num_add_sat(r->used[at].percent, s->percent);
}

/* Each container by itself. */
static int place_apart(const struct room *r, const struct pod *p, struct claim *c,
                       struct error *err)
{
    struct room left = *r;
    for (size_t i = 0; i < c->shares_len; i++) {
        struct claim_share *s = &c->shares[i];
        int32_t at = best(&left, s->gib, s->percent, NULL);
        if (at < 0)
            return no_room(&left, p->key, s->gib, s->percent, err);
        s->card = r->inventory->cards[at].index;
        take(&left, (size_t)at, s);
    }
    return 0;
}

/* In equal parts on several cards. */
static int place_spread(const struct room *r, const struct pod *p, size_t over, struct arena *a,
                        struct claim *c, struct error *err)
{
    bool chosen[GPU_CARDS_MAX] = {false};
    int64_t each = claim_total_gib(c) / (int64_t)over;
    for (size_t i = 0; i < c->shares_len; i++)
        if (c->shares[i].gib % (int64_t)over != 0 || c->shares[i].percent > 0)
            return error_set(err, ERROR_UNSUPPORTED,
                             "%s: label %s is %zu: memory must be a multiple of it, and compute "
                             "cannot be spread",
                             p->key, NAME_RES_GPU_COUNT, over);
    for (size_t n = 0; n < over; n++) {
        int32_t at = best(r, each, 0, chosen);
        if (at < 0)
            return no_room(r, p->key, each, 0, err);
        chosen[at] = true;
    }
    struct claim_share *shares = arena_new(a, struct claim_share, c->shares_len * over);
    size_t n = 0;
    for (size_t i = 0; i < c->shares_len; i++)
        for (size_t at = 0; at < r->inventory->cards_len; at++)
            if (chosen[at])
                shares[n++] = (struct claim_share){.container = c->shares[i].container,
                                                   .card = r->inventory->cards[at].index,
                                                   .gib = c->shares[i].gib / (int64_t)over};
    c->shares = shares;
    c->shares_len = n;
    return 0;
}

int room_place(const struct room *r, const struct pod *p, struct arena *a, struct claim *out,
               struct error *err)
{
    const char *label = labels_get(&p->labels, NAME_RES_GPU_COUNT);
    int64_t over = 1, percent = 0;
    bool init = match_init_asks(p, 1u << MODE_GPU_MEM | 1u << MODE_GPU_CORE);
    claim_one_card(p, 0, a, out);
    if (label != NULL && num_parse_range(label, 1, GPU_CARDS_MAX, &over, err) < 0)
        return error_wrap(err, "%s: label %s", p->key, NAME_RES_GPU_COUNT);
    if (over > 1 && init)
        return error_set(err, ERROR_UNSUPPORTED,
                         "%s: an init container asks for a share, and label %s wants several cards",
                         p->key, NAME_RES_GPU_COUNT);
    if (over > 1)
        return place_spread(r, p, (size_t)over, a, out, err);
    for (size_t i = 0; i < out->shares_len; i++)
        percent = num_add_sat(percent, out->shares[i].percent);
    int32_t at = best(r, claim_total_gib(out), percent, NULL);
    if (at < 0 && !init && out->shares_len > 1)
        return place_apart(r, p, out, err);
    if (at < 0)
        return no_room(r, p->key, claim_total_gib(out), percent, err);
    for (size_t i = 0; i < out->shares_len; i++)
        out->shares[i].card = r->inventory->cards[at].index;
    return 0;
}

int room_pick(const struct room *r, enum mode_resource resource, size_t count, size_t *at,
              struct error *err)
{
    bool memory = resource == MODE_GPU_MEM;
    int64_t gib = memory ? (int64_t)count : 0, percent = memory ? 0 : (int64_t)count;
    int32_t found = best(r, gib, percent, NULL);
    if (found < 0)
        return no_room(r, "a pod that is not known here", gib, percent, err);
    *at = (size_t)found;
    return 0;
}

/* ---- truth ---- */

static const struct match_listed_container *listed(const struct match_listed *l, const char *name)
{
    for (size_t i = 0; i < l->containers_len; i++)
        if (str_eq(l->containers[i].name, name))
            return &l->containers[i];
    return NULL;
}

static bool same_shares(const struct claim *x, const struct claim *y)
{
    if (x->shares_len != y->shares_len)
        return false;
    for (size_t i = 0; i < x->shares_len; i++)
        if (x->shares[i].container != y->shares[i].container ||
            x->shares[i].card != y->shares[i].card || x->shares[i].gib != y->shares[i].gib ||
            x->shares[i].percent != y->shares[i].percent)
            return false;
    return true;
}

/* What the container holds, as shares; false: nothing. */
static bool held_shares(const struct gpu_inventory *inv, const struct match_listed_container *c,
                        uint32_t container, struct claim *out)
{
    struct room_card cards[GPU_CARDS_MAX] = {{0}};
    size_t before = out->shares_len;
    if (c == NULL)
        return false;
    add_ids(inv, MODE_GPU_MEM, &c->held[MODE_GPU_MEM], cards);
    add_ids(inv, MODE_GPU_CORE, &c->held[MODE_GPU_CORE], cards);
    for (size_t i = 0; i < inv->cards_len; i++)
        if (cards[i].gib > 0 || cards[i].percent > 0)
            out->shares[out->shares_len++] = (struct claim_share){.container = container,
                                                                  .card = inv->cards[i].index,
                                                                  .gib = cards[i].gib,
                                                                  .percent = cards[i].percent};
    return out->shares_len > before;
}

bool room_truth(const struct gpu_inventory *inv, const struct pod *p, const struct claim *said,
                const struct match_listed *held, struct arena *a, struct claim *out)
{
    size_t n = p->containers_len + p->init_containers_len;
    struct error why = ERROR_INIT;
    bool any = false;
    *out = *said;
    out->shares = arena_new(a, struct claim_share, n * inv->cards_len + said->shares_len);
    out->shares_len = 0;
    for (size_t i = 0; i < n; i++) {
        struct match_subject s = {.pod = p, .container = i};
        size_t from = out->shares_len;
        if (held_shares(inv, listed(held, match_container(&s)->name), (uint32_t)i, out)) {
            any = true;
            continue;
        }
        for (size_t k = 0; k < said->shares_len; k++)
            if (said->shares[k].container == i)
                out->shares[out->shares_len++] = said->shares[k];
        /* The share of an init container is where the others are. */
        for (size_t k = from; i >= p->containers_len && any && k < out->shares_len; k++)
            out->shares[k].card = out->shares[0].card;
    }
    return any && !same_shares(out, said) && claim_check(out, p, inv, &why) == 0;
}

/* ---- from what was said to what is true ---- */

static struct claim_share *share_of(const struct claim *c, uint32_t container, int32_t card)
{
    for (size_t i = 0; i < c->shares_len; i++)
        if (c->shares[i].container == container && c->shares[i].card == card)
            return &c->shares[i];
    return NULL;
}

bool room_covers(const struct claim *said, const struct claim *truth)
{
    for (size_t i = 0; i < truth->shares_len; i++) {
        const struct claim_share *t = &truth->shares[i], *s = share_of(said, t->container, t->card);
        if (s == NULL || s->gib < t->gib || s->percent < t->percent)
            return false;
    }
    return true;
}

static bool is_before(const struct claim_share *x, const struct claim_share *y)
{
    return x->container != y->container ? x->container < y->container : x->card < y->card;
}

/* Adds it, or what of it is more. The order is kept. */
static void widen_by(struct claim *c, const struct claim_share *s)
{
    struct claim_share *same = share_of(c, s->container, s->card);
    if (same != NULL) {
        same->gib = num_max(same->gib, s->gib);
        same->percent = num_max(same->percent, s->percent);
        return;
    }
    size_t at = c->shares_len++;
    for (; at > 0 && is_before(s, &c->shares[at - 1]); at--)
        c->shares[at] = c->shares[at - 1];
    c->shares[at] = *s;
}

void room_widen(const struct claim *said, const struct claim *truth, struct arena *a,
                struct claim *out)
{
    *out = *truth;
    out->shares = arena_new(a, struct claim_share, said->shares_len + truth->shares_len);
    out->shares_len = 0;
    for (size_t i = 0; i < truth->shares_len; i++)
        widen_by(out, &truth->shares[i]);
    for (size_t i = 0; i < said->shares_len; i++)
        widen_by(out, &said->shares[i]);
}

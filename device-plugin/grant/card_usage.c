// SPDX-License-Identifier: Apache-2.0
/* Binpack takes the fullest card with enough capacity, spread the emptiest; ties go by index. The
 * choice is deterministic, so GetPreferredAllocation and Allocate, and the two resources of a
 * container, agree without stored state. */
#include "device-plugin/grant/card_usage.h"

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

void card_usage_init(struct card_usage *r, const struct gpu_inventory *inv,
                     enum gpu_placement placement)
{
    *r = (struct card_usage){.inventory = inv, .placement = placement};
}

static void add_ids(const struct gpu_inventory *inv, enum mode_resource resource,
                    const struct inventory_ids *ids, struct card_usage_card *cards)
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

void card_usage_add(struct card_usage *r, const struct grant *grant,
                    const struct match_listed *held)
{
    const struct gpu_inventory *inv = r->inventory;
    struct card_usage_card said[GPU_CARDS_MAX] = {{0}}, has[GPU_CARDS_MAX] = {{0}};
    for (size_t i = 0; grant != NULL && i < grant->shares_len; i++) {
        int32_t at = inventory_card(inv, grant->shares[i].card);
        if (at < 0)
            continue;
        said[at].gib = num_add_sat(said[at].gib, grant->shares[i].gib);
        said[at].percent = num_add_sat(said[at].percent, grant->shares[i].percent);
    }
    for (size_t i = 0; grant != NULL && i < grant->group_len; i++) {
        int32_t at = inventory_card(inv, grant->group[i]);
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

static int64_t free_gib(const struct card_usage *r, size_t at)
{
    return num_sub_sat(gpu_card_gib(&r->inventory->cards[at]), r->used[at].gib);
}

bool card_usage_has(const struct card_usage *r, size_t at, int64_t gib, int64_t percent)
{
    return r->inventory->cards[at].health == GPU_HEALTH_OK && !r->used[at].whole &&
           gib <= free_gib(r, at) && percent <= INVENTORY_CORES - r->used[at].percent;
}

/* The placement policy's card for this amount, excluding but (may be NULL); INVENTORY_NONE: none
 * fits. */
static int32_t best(const struct card_usage *r, int64_t gib, int64_t percent, const bool *but)
{
    int32_t found = INVENTORY_NONE;
    for (size_t i = 0; i < r->inventory->cards_len; i++) {
        if ((but != NULL && but[i]) || !card_usage_has(r, i, gib, percent))
            continue;
        int64_t ahead = found >= 0 ? free_gib(r, i) - free_gib(r, (size_t)found) : 0;
        if (found < 0 || (r->placement == GPU_SPREAD ? ahead > 0 : ahead < 0))
            found = (int32_t)i;
    }
    return found;
}

static int does_not_fit(const struct card_usage *r, const char *who, int64_t gib, int64_t percent,
                        struct error *err)
{
    int64_t most = 0;
    int32_t card = -1;
    for (size_t i = 0; i < r->inventory->cards_len; i++) {
        if (card_usage_has(r, i, 0, 0) && (card < 0 || free_gib(r, i) > most)) {
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

static void take(struct card_usage *r, size_t at, const struct grant_share *s)
{
    r->used[at].gib = num_add_sat(r->used[at].gib, s->gib);
    r->used[at].percent = num_add_sat(r->used[at].percent, s->percent);
}

static struct grant_share *share_of(const struct grant *c, uint32_t container, int32_t card)
{
    for (size_t i = 0; i < c->shares_len; i++)
        if (c->shares[i].container == container && c->shares[i].card == card)
            return &c->shares[i];
    return NULL;
}

static bool is_before(const struct grant_share *x, const struct grant_share *y)
{
    return x->container != y->container ? x->container < y->container : x->card < y->card;
}

/* Adds the share, or raises an existing one to it. Keeps the order. */
static void widen_by(struct grant *c, const struct grant_share *s)
{
    struct grant_share *same = share_of(c, s->container, s->card);
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

/* Places one container's share in equal parts on as many cards as the pod asks for. false: *left
 * lacks the capacity. */
static bool place(struct card_usage *left, const struct gpu_request *q, size_t i, struct grant *c)
{
    bool chosen[GPU_CARDS_MAX] = {false};
    struct grant_share s = {.container = q->shares[i].container,
                            .gib = q->shares[i].gib / q->spread_over,
                            .percent = q->shares[i].percent};
    for (int64_t n = 0; n < q->spread_over; n++) {
        int32_t at = best(left, s.gib, s.percent, chosen);
        if (at < 0)
            return false;
        chosen[at] = true;
        s.card = left->inventory->cards[at].index;
        take(left, (size_t)at, &s);
        widen_by(c, &s);
    }
    return true;
}

/* Places each container separately: in order by the node's policy; if that fails, the largest
 * first, each on the fullest card, like the scheduler (gpu_accounts_choose.c). */
static int place_apart(const struct card_usage *r, const char *who, const struct gpu_request *q,
                       struct arena *a, struct grant *c, struct error *err)
{
    const size_t *largest_first = gpu_request_largest_first(q, a);
    struct card_usage left, in_order;
    size_t stuck = 0;
    c->shares = arena_new(a, struct grant_share, q->shares_len * (size_t)q->spread_over);
    for (int again = 0; again < 2; again++) {
        size_t i = 0;
        left = *r;
        c->shares_len = 0;
        if (again)
            left.placement = GPU_BINPACK;
        while (i < q->shares_len && place(&left, q, again ? largest_first[i] : i, c))
            i++;
        if (i == q->shares_len)
            return 0;
        if (!again) {
            in_order = left;
            stuck = i;
        }
    }
    return does_not_fit(&in_order, who, q->shares[stuck].gib / q->spread_over,
                        q->shares[stuck].percent, err);
}

int card_usage_place(const struct card_usage *r, const struct pod *p, struct arena *a,
                     struct grant *out, struct error *err)
{
    struct gpu_request q;
    *out = (struct grant){0};
    gpu_request_read(p, a, &q, NULL);
    if (q.illegal != NULL)
        return error_set(err, ERROR_UNSUPPORTED, "%s: %s", p->key, q.illegal);
    int64_t gib = q.total[GPU_REQUEST_MEM], percent = q.total[GPU_REQUEST_CORE];
    int32_t at = q.spread_over == 1 ? best(r, gib, percent, NULL) : INVENTORY_NONE;
    if (at < 0 && !q.one_card)
        return place_apart(r, p->key, &q, a, out, err);
    if (at < 0)
        return does_not_fit(r, p->key, gib, percent, err);
    grant_one_card(&q, r->inventory->cards[at].index, a, out);
    return 0;
}

int card_usage_pick(const struct card_usage *r, enum mode_resource resource, size_t count,
                    size_t *at, struct error *err)
{
    bool memory = resource == MODE_GPU_MEM;
    int64_t gib = memory ? (int64_t)count : 0, percent = memory ? 0 : (int64_t)count;
    int32_t found = best(r, gib, percent, NULL);
    if (found < 0)
        return does_not_fit(r, "a pod that is not known here", gib, percent, err);
    *at = (size_t)found;
    return 0;
}

/* ---- what the pod holds ---- */

static const struct match_listed_container *listed(const struct match_listed *l, const char *name)
{
    for (size_t i = 0; i < l->containers_len; i++)
        if (str_eq(l->containers[i].name, name))
            return &l->containers[i];
    return NULL;
}

static bool same_shares(const struct grant *x, const struct grant *y)
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

/* The container's ids as shares; false: it holds none. */
static bool held_shares(const struct gpu_inventory *inv, const struct match_listed_container *c,
                        uint32_t container, struct grant *out)
{
    struct card_usage_card cards[GPU_CARDS_MAX] = {{0}};
    size_t before = out->shares_len;
    if (c == NULL)
        return false;
    add_ids(inv, MODE_GPU_MEM, &c->held[MODE_GPU_MEM], cards);
    add_ids(inv, MODE_GPU_CORE, &c->held[MODE_GPU_CORE], cards);
    for (size_t i = 0; i < inv->cards_len; i++)
        if (cards[i].gib > 0 || cards[i].percent > 0)
            out->shares[out->shares_len++] = (struct grant_share){.container = container,
                                                                  .card = inv->cards[i].index,
                                                                  .gib = cards[i].gib,
                                                                  .percent = cards[i].percent};
    return out->shares_len > before;
}

bool card_usage_truth(const struct gpu_inventory *inv, const struct pod *p,
                      const struct grant *said, const struct match_listed *held, struct arena *a,
                      struct grant *out)
{
    size_t n = pod_container_count(p);
    struct error why = ERROR_INIT;
    bool any = false;
    *out = *said;
    out->shares = arena_new(a, struct grant_share, n * inv->cards_len + said->shares_len);
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
        /* An init container's share is on the other containers' card. */
        for (size_t k = from; pod_container_is_init(p, i) && any && k < out->shares_len; k++)
            out->shares[k].card = out->shares[0].card;
    }
    return any && !same_shares(out, said) && grant_check(out, p, inv, &why) == 0;
}

/* ---- corrections of a grant ---- */

bool card_usage_covers(const struct grant *said, const struct grant *truth)
{
    for (size_t i = 0; i < truth->shares_len; i++) {
        const struct grant_share *t = &truth->shares[i], *s = share_of(said, t->container, t->card);
        if (s == NULL || s->gib < t->gib || s->percent < t->percent)
            return false;
    }
    return true;
}

void card_usage_widen(const struct grant *said, const struct grant *truth, struct arena *a,
                      struct grant *out)
{
    *out = *truth;
    out->shares = arena_new(a, struct grant_share, said->shares_len + truth->shares_len);
    out->shares_len = 0;
    for (size_t i = 0; i < truth->shares_len; i++)
        widen_by(out, &truth->shares[i]);
    for (size_t i = 0; i < said->shares_len; i++)
        widen_by(out, &said->shares[i]);
}

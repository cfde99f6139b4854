// SPDX-License-Identifier: Apache-2.0
/*
 * match - identity and claims.
 *
 * The kubelet sends ids and nothing else. What makes identity exact is its own pod resources list, asked while it
 * waits for our answer: admission is serial, so exactly one pod in it asks for the resource and has a container
 * that holds none. Inside that pod the containers are served in order.
 *
 * Ordinary init containers are not in the list. A pod that asks for shares in one of them is claimed on one card
 * altogether (contract), so it does not matter which of its containers is meant: the card is the same.
 *
 * Shares are given only by claim. Whole cards without a claim (default mode serves every scheduler) are given as
 * the kubelet picked them: it never hands one id out twice.
 */
#include "device-plugin/match.h"

#include "lib/base/str.h"

static int64_t asks(const struct container *c, enum mode_resource r)
{
    bool present = false;
    int64_t n = resources_get(&c->limits, mode_resource_name(r), &present);
    return present ? n : resources_get(&c->requests, mode_resource_name(r), NULL);
}

static bool holds(const struct match_listed *l, const char *container, enum mode_resource r)
{
    for (size_t i = 0; i < l->containers_len; i++)
        if (str_eq(l->containers[i].name, container))
            return l->containers[i].held[r].len > 0;
    return false;
}

bool match_may_wait(const struct match_listed *l, enum mode_resource r)
{
    for (size_t i = 0; i < l->containers_len; i++)
        if (l->containers[i].held[r].len == 0)
            return true;
    return l->containers_len == 0;
}

/* The next container of the pod that waits for count ids of r; false: none does. *any_size: one waits for
 * another number of them. */
static bool next_container(const struct match_listed *l, enum mode_resource r, size_t count,
                           int32_t *out, bool *any_size)
{
    const struct pod *p = l->pod;
    for (size_t i = 0; i < p->containers_len; i++) {
        const struct container *c = &p->containers[i];
        if (asks(c, r) <= 0)
            continue;
        if (holds(l, c->name, r))
            continue;
        *any_size = true;
        bool begun = false; /* a container after the init phase already has its ids */
        for (size_t k = 0; k < p->containers_len; k++)
            begun = begun || holds(l, p->containers[k].name, r);
        for (size_t k = 0; k < p->init_containers_len && !begun; k++) {
            const struct container *init = &p->init_containers[k];
            if (asks(init, r) == (int64_t)count && !holds(l, init->name, r)) {
                *out = MATCH_INIT;
                return true;
            }
        }
        if (asks(c, r) != (int64_t)count)
            return false;
        *out = (int32_t)i;
        return true;
    }
    /* Only init containers ask. */
    for (size_t k = 0; k < p->init_containers_len; k++) {
        const struct container *init = &p->init_containers[k];
        if (asks(init, r) <= 0 || holds(l, init->name, r))
            continue;
        *any_size = true;
        if (asks(init, r) == (int64_t)count) {
            *out = MATCH_INIT;
            return true;
        }
    }
    return false;
}

int match_waiting(const struct match_listing *l, enum mode_resource r, size_t count,
                  struct match_subject *out, struct error *err)
{
    const char *name = mode_resource_name(r);
    const struct match_listed *found = NULL, *other_size = NULL;
    for (size_t i = 0; i < l->len; i++) {
        const struct match_listed *x = &l->pods[i];
        int32_t container = 0;
        bool any_size = false;
        if (x->pod == NULL || pod_is_finished(x->pod) || !match_may_wait(x, r))
            continue;
        if (!next_container(x, r, count, &container, &any_size)) {
            if (any_size)
                other_size = x;
            continue;
        }
        if (found != NULL)
            return error_set(
                err, ERROR_CONFLICT,
                "%zu ids of %s are asked for, and both pod %s and pod %s wait for them", count,
                name, found->key, x->key);
        found = x;
        *out = (struct match_subject){.pod = x->pod, .container = container};
    }
    if (found != NULL)
        return 0;
    if (other_size != NULL)
        return error_set(err, ERROR_CONFLICT,
                         "%zu ids of %s are asked for, but pod %s waits for another number", count,
                         name, other_size->key);
    return error_set(err, ERROR_NOT_FOUND,
                     "%zu ids of %s are asked for, but no pod on this node waits for them", count,
                     name);
}

static bool same_ids(const struct inventory_ids *x, const struct inventory_ids *y)
{
    if (x->len != y->len)
        return false;
    for (size_t i = 0; i < x->len; i++) {
        bool in = false;
        for (size_t k = 0; k < y->len && !in; k++)
            in = str_eq(x->items[i], y->items[k]);
        if (!in)
            return false;
    }
    return true;
}

int match_holder(const struct match_listing *l, enum mode_resource r,
                 const struct inventory_ids *ids, const struct match_listed **out,
                 struct error *err)
{
    for (size_t i = 0; i < l->len; i++) {
        for (size_t k = 0; k < l->pods[i].containers_len; k++) {
            if (ids->len > 0 && same_ids(&l->pods[i].containers[k].held[r], ids)) {
                *out = &l->pods[i];
                return 0;
            }
        }
    }
    return error_set(err, ERROR_NOT_FOUND, "no container on this node holds these %zu ids of %s",
                     ids->len, mode_resource_name(r));
}

/* How many ids of r the subject's container gets on each card (by position), by its claim. */
struct quota {
    int64_t ids[GPU_CARDS_MAX];
    bool free_choice; /* whole cards without a claim */
};

static int check_card(const struct gpu_inventory *inv, int32_t index, const struct pod *p,
                      int32_t *at, struct error *err)
{
    *at = inventory_card(inv, index);
    if (*at < 0)
        return error_set(err, ERROR_CONFLICT,
                         "pod %s was promised card %d, which this node does not have", p->key,
                         index);
    return 0;
}

static int claim_of(const struct gpu_inventory *inv, const struct pod *p, struct arena *a,
                    struct claim *out, struct error *err)
{
    if (claim_decode(p, a, out, err) < 0)
        return error_wrap(err, "pod %s: claim", p->key);
    if (!claim_is_empty(out) && claim_check(out, p, inv, err) < 0)
        return error_wrap(err, "pod %s: claim", p->key);
    return 0;
}

static int quota_of(const struct gpu_inventory *inv, enum mode_resource r,
                    const struct match_subject *s, const struct claim *claim, size_t count,
                    struct quota *q, struct error *err)
{
    const struct pod *p = s->pod;
    int32_t at = 0;
    *q = (struct quota){0};
    if (mode_resource_is_whole(r)) {
        q->free_choice = claim->group_len == 0;
        for (size_t i = 0; i < claim->group_len; i++) {
            if (check_card(inv, claim->group[i], p, &at, err) < 0)
                return -1;
            q->ids[at] = 1;
        }
        return 0;
    }
    if (claim->shares_len == 0)
        return error_set(err, ERROR_UNSUPPORTED,
                         "pod %s asks for %s but carries no claim on a card: it was not bound by "
                         "cosched's scheduler (its schedulerName is '%s')",
                         p->key, mode_resource_name(r), str_or_empty(p->scheduler));
    if (s->container == MATCH_INIT) {
        if (check_card(inv, claim->shares[0].card, p, &at, err) < 0)
            return -1;
        for (size_t i = 1; i < claim->shares_len; i++)
            if (claim->shares[i].card != claim->shares[0].card)
                return error_set(
                    err, ERROR_CONFLICT,
                    "pod %s asks for %s in an init container but is spread over several cards",
                    p->key, mode_resource_name(r));
        q->ids[at] = (int64_t)count;
        return 0;
    }
    int64_t sum = 0;
    for (size_t i = 0; i < claim->shares_len; i++) {
        const struct claim_share *share = &claim->shares[i];
        if (share->container != (uint32_t)s->container)
            continue;
        if (check_card(inv, share->card, p, &at, err) < 0)
            return -1;
        int64_t n = r == MODE_GPU_MEM ? share->gib : share->percent;
        q->ids[at] += n;
        sum += n;
    }
    if (sum != (int64_t)count)
        return error_set(err, ERROR_CONFLICT,
                         "pod %s, container %s: the claim has %lld of %s, the kubelet asks for %zu",
                         p->key, p->containers[s->container].name, (long long)sum,
                         mode_resource_name(r), count);
    return 0;
}

static bool contains(const struct inventory_ids *ids, const char *id)
{
    for (size_t i = 0; i < ids->len; i++)
        if (str_eq(ids->items[i], id))
            return true;
    return false;
}

int match_prefer(const struct gpu_inventory *inv, enum mode_resource r,
                 const struct match_subject *s, const struct inventory_ids *available,
                 const struct inventory_ids *must, size_t count, struct arena *a,
                 struct inventory_ids *out, struct error *err)
{
    struct claim claim;
    struct quota q;
    if (claim_of(inv, s->pod, a, &claim, err) < 0 ||
        quota_of(inv, r, s, &claim, count, &q, err) < 0)
        return -1;
    if (count > available->len)
        return error_set(err, ERROR_INVALID,
                         "%zu ids of %s are asked for and only %zu are available", count,
                         mode_resource_name(r), available->len);
    out->items = arena_new(a, const char *, count);
    out->len = 0;
    /* First what the kubelet insists on, then the rest in its order. */
    for (int pass = 0; pass < 2; pass++) {
        const struct inventory_ids *from = pass == 0 ? must : available;
        for (size_t i = 0; i < from->len && out->len < count; i++) {
            int32_t at = inventory_find(inv, r, from->items[i]);
            if (at < 0 || (pass == 1 && contains(must, from->items[i])))
                continue;
            if (!q.free_choice && q.ids[at] <= 0)
                continue;
            q.ids[at]--;
            out->items[out->len++] = from->items[i];
        }
    }
    if (out->len < count && !(mode_resource_is_whole(r) && q.free_choice)) {
        for (size_t i = 0; i < inv->cards_len; i++)
            if (q.ids[i] > 0 && !mode_resource_is_whole(r))
                return error_set(
                    err, ERROR_CONFLICT,
                    "pod %s: card %d was chosen for it, but the kubelet has %lld ids of %s too few "
                    "there",
                    s->pod->key, inv->cards[i].index, (long long)q.ids[i], mode_resource_name(r));
    }
    if (out->len < count)
        return error_set(err, ERROR_CONFLICT,
                         "pod %s: %zu of %s are needed, and the kubelet has only %zu that fit",
                         s->pod->key, count, mode_resource_name(r), out->len);
    return 0;
}

static void grant_whole(const struct gpu_inventory *inv, enum mode_resource r,
                        const struct claim *claim, const struct inventory_ids *ids, struct arena *a,
                        struct match_grant *out)
{
    bool visible[GPU_CARDS_MAX] = {false};
    for (size_t i = 0; i < ids->len; i++)
        visible[inventory_find(inv, r, ids->items[i])] = true;
    /* Peers on this node: the container sees their cards too, to reach them over NVLink. */
    if (claim->visible_len > claim->group_len) {
        for (size_t i = 0; i < claim->visible_len; i++) {
            int32_t at = inventory_card(inv, claim->visible[i]);
            if (at >= 0)
                visible[at] = true;
        }
    }
    out->whole = true;
    out->visible = arena_new(a, size_t, inv->cards_len);
    for (size_t i = 0; i < inv->cards_len; i++)
        if (visible[i])
            out->visible[out->visible_len++] = i;
}

int match_grant(const struct gpu_inventory *inv, enum mode_resource r,
                const struct match_subject *s, const struct inventory_ids *ids, struct arena *a,
                struct match_grant *out, struct error *err)
{
    const struct pod *p = s->pod;
    struct claim claim;
    struct quota q;
    if (claim_of(inv, p, a, &claim, err) < 0 || quota_of(inv, r, s, &claim, ids->len, &q, err) < 0)
        return -1;
    *out = (struct match_grant){.subject = *s};
    for (size_t i = 0; i < ids->len; i++) {
        int32_t at = inventory_find(inv, r, ids->items[i]);
        if (at < 0)
            return error_set(err, ERROR_INVALID, "'%s' is not an id of %s on this node",
                             ids->items[i], mode_resource_name(r));
        if (q.free_choice)
            continue;
        if (--q.ids[at] < 0)
            return error_set(
                err, ERROR_CONFLICT,
                "pod %s: the kubelet took more of %s on card %d than the scheduler chose there",
                p->key, mode_resource_name(r), inv->cards[at].index);
    }
    if (mode_resource_is_whole(r)) {
        grant_whole(inv, r, &claim, ids, a, out);
        return 0;
    }
    /* Both resources of a container arrive as calls of their own; each answer tells the whole share. */
    out->pod_gib = claim_total_gib(&claim);
    out->shares = arena_new(a, struct match_share, claim.shares_len);
    for (size_t i = 0; i < claim.shares_len; i++) {
        const struct claim_share *share = &claim.shares[i];
        int32_t at = 0;
        if (s->container != MATCH_INIT && share->container != (uint32_t)s->container)
            continue;
        if (s->container == MATCH_INIT && out->shares_len > 0)
            continue;
        if (check_card(inv, share->card, p, &at, err) < 0)
            return -1;
        out->shares[out->shares_len++] =
            (struct match_share){.card = (size_t)at, .gib = share->gib, .percent = share->percent};
        out->container_gib += share->gib;
        out->container_percent += share->percent;
    }
    if (s->container == MATCH_INIT) {
        out->container_gib = r == MODE_GPU_MEM ? (int64_t)ids->len : 0;
        out->container_percent = r == MODE_GPU_CORE ? (int64_t)ids->len : 0;
    }
    return 0;
}

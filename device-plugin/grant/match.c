// SPDX-License-Identifier: Apache-2.0
/*
 * match - identifies containers and applies grants.
 *
 * The kubelet sends only ids. Its pod resources list, requested while it waits for our answer,
 * makes the identification exact: admission is serial, so exactly one listed pod asks for the
 * resource and has a container without it. Within that pod the containers are served in order.
 *
 * Ordinary init containers are not in the list. The caller that answers Allocate counts how many of
 * a pod's have their ids (init_given), or a pod in which only they ask would seem to wait forever.
 * After a restart that count is lost, and the number of ids decides: a pod with shares in an init
 * container is granted a single card, so the card is right whichever container is meant.
 *
 * Shares need a grant. Whole cards without one (default mode serves every scheduler) follow the
 * kubelet's choice: it never hands out an id twice.
 */
#include "device-plugin/grant/match.h"

#include "lib/base/str.h"
#include "lib/model/links.h"

static int64_t asks(const struct container *c, enum mode_resource r)
{
    return gpu_request_amount(c, mode_resource_name(r));
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

/* The k-th container in the kubelet's order: init containers, then containers. */
static size_t in_order(const struct pod *p, size_t k)
{
    return k < p->init_containers_len ? p->containers_len + k : k - p->init_containers_len;
}

const struct container *match_container(const struct match_subject *s)
{
    return pod_container(s->pod, s->container);
}

bool match_named(const struct pod *p, const char *name, struct match_subject *out)
{
    for (size_t i = 0; i < pod_container_count(p); i++) {
        if (str_eq(pod_container(p, i)->name, name)) {
            *out = (struct match_subject){.pod = p, .container = i};
            return true;
        }
    }
    return false;
}

size_t match_init_rank(const struct match_subject *s, enum mode_resource r)
{
    size_t rank = 0;
    if (!pod_container_is_init(s->pod, s->container))
        return 0;
    for (size_t i = s->pod->containers_len; i <= s->container; i++)
        rank += pod_container_is_init(s->pod, i) && asks(pod_container(s->pod, i), r) > 0;
    return rank;
}

bool match_init_asks(const struct pod *p, uint32_t resources)
{
    for (size_t i = p->containers_len; i < pod_container_count(p); i++)
        for (int r = 0; r < MODE_RESOURCES; r++)
            if (resources & 1u << r && pod_container_is_init(p, i) &&
                asks(pod_container(p, i), (enum mode_resource)r) > 0)
                return true;
    return false;
}

/* The next container of the pod that waits for count ids of r; false: none. *any_size: some
 * container waits, perhaps for another number. */
static bool next_container(const struct match_listed *l, const struct pod *p, enum mode_resource r,
                           size_t count, size_t *out, bool *any_size)
{
    size_t all = pod_container_count(p), first = 0, given = l->init_given[r];
    /* Init containers before one that has its ids are done. */
    for (size_t k = 0; k < all; k++)
        if (holds(l, pod_container(p, in_order(p, k))->name, r))
            first = k + 1;
    for (size_t k = 0; k < all; k++) {
        size_t i = in_order(p, k);
        bool init = pod_container_is_init(p, i);
        int64_t n = asks(pod_container(p, i), r);
        if (n <= 0)
            continue;
        if (init && given > 0) {
            given--;
            continue;
        }
        if (init ? k < first : holds(l, pod_container(p, i)->name, r))
            continue;
        *any_size = true;
        *out = i;
        if (n == (int64_t)count)
            return true;
        if (!init) /* only init containers may have ids that we forgot */
            return false;
    }
    return false;
}

bool match_asks(const struct match_listed *l, const struct pod *p, enum mode_resource r)
{
    size_t container;
    bool any_size = false;
    return next_container(l, p, r, 0, &container, &any_size) || any_size;
}

static bool was_answered(const struct match_listed *l, enum mode_resource r, size_t container)
{
    return container < 64 && (l->answered[r] >> container & 1);
}

/* Should x be served before y, found earlier? The list's order breaks ties. */
static bool is_earlier(const struct match_listed *x, size_t container, const struct match_listed *y,
                       size_t other, enum mode_resource r)
{
    if (was_answered(x, r, container) != was_answered(y, r, other))
        return !was_answered(x, r, container);
    return x->arrival != 0 && (y->arrival == 0 || x->arrival < y->arrival);
}

int match_waiting(const struct match_listing *l, enum mode_resource r, size_t count,
                  struct match_subject *out, struct error *err)
{
    const char *name = mode_resource_name(r);
    const struct match_listed *found = NULL, *other_size = NULL;
    for (size_t i = 0; i < l->len; i++) {
        const struct match_listed *x = &l->pods[i];
        size_t container = 0;
        bool any_size = false;
        if (x->pod == NULL || pod_is_finished(x->pod) || !match_may_wait(x, r))
            continue;
        if (!next_container(x, x->pod, r, count, &container, &any_size)) {
            if (any_size)
                other_size = x;
            continue;
        }
        if (found != NULL && !is_earlier(x, container, found, out->container, r))
            continue;
        found = x;
        *out = (struct match_subject){.pod = x->pod, .container = container};
    }
    if (found != NULL)
        return 0;
    if (other_size != NULL)
        return error_set(err, ERROR_NOT_FOUND,
                         "%zu ids of %s are asked for, but pod %s waits for another number", count,
                         name, other_size->key);
    return error_set(err, ERROR_NOT_FOUND,
                     "%zu ids of %s are asked for, but no pod on this node waits for them", count,
                     name);
}

bool match_same_ids(const struct inventory_ids *x, const struct inventory_ids *y)
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
                 const char **container, struct error *err)
{
    for (size_t i = 0; i < l->len; i++) {
        for (size_t k = 0; k < l->pods[i].containers_len; k++) {
            if (ids->len > 0 && match_same_ids(&l->pods[i].containers[k].held[r], ids)) {
                *out = &l->pods[i];
                *container = l->pods[i].containers[k].name;
                return 0;
            }
        }
    }
    return error_set(err, ERROR_NOT_FOUND, "no container on this node holds these %zu ids of %s",
                     ids->len, mode_resource_name(r));
}

/* What the subject's container gets by its pod's grant. */
struct due {
    struct grant grant;
    struct match_share *shares; /* shared modes */
    size_t shares_len;
    int64_t ids[GPU_CARDS_MAX]; /* of r, by card position */
    bool free_choice;           /* whole cards without a grant */
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

static int due_whole(const struct gpu_inventory *inv, const struct pod *p, struct due *d,
                     struct error *err)
{
    int32_t at = 0;
    d->free_choice = d->grant.group_len == 0;
    for (size_t i = 0; i < d->grant.group_len; i++) {
        if (check_card(inv, d->grant.group[i], p, &at, err) < 0)
            return -1;
        d->ids[at] = 1;
    }
    return 0;
}

/* An ordinary init container runs before the others, on their card, with what it requests. It may
 * have no share of its own (grant.h). */
static int due_init(const struct gpu_inventory *inv, const struct match_subject *s, struct due *d,
                    struct error *err)
{
    const struct grant *c = &d->grant;
    int32_t at = 0;
    for (size_t i = 1; i < c->shares_len; i++)
        if (c->shares[i].card != c->shares[0].card)
            return error_set(
                err, ERROR_CONFLICT,
                "pod %s, init container %s: asks for a share of a card, but the pod is spread over several",
                s->pod->key, match_container(s)->name);
    if (check_card(inv, c->shares[0].card, s->pod, &at, err) < 0)
        return -1;
    d->shares[d->shares_len++] =
        (struct match_share){.card = (size_t)at,
                             .gib = asks(match_container(s), MODE_GPU_MEM),
                             .percent = asks(match_container(s), MODE_GPU_CORE)};
    return 0;
}

/* Any other container: its shares are what it requests. */
static int due_own(const struct gpu_inventory *inv, const struct match_subject *s, struct due *d,
                   struct error *err)
{
    int32_t at = 0;
    for (size_t i = 0; i < d->grant.shares_len; i++) {
        const struct grant_share *share = &d->grant.shares[i];
        if (share->container != s->container)
            continue;
        if (check_card(inv, share->card, s->pod, &at, err) < 0)
            return -1;
        d->shares[d->shares_len++] =
            (struct match_share){.card = (size_t)at, .gib = share->gib, .percent = share->percent};
    }
    return 0;
}

static int due_shares(const struct gpu_inventory *inv, enum mode_resource r,
                      const struct match_subject *s, size_t count, struct arena *a, struct due *d,
                      struct error *err)
{
    const struct pod *p = s->pod;
    int64_t sum = 0;
    if (d->grant.shares_len == 0)
        return error_set(
            err, ERROR_UNSUPPORTED,
            "pod %s asks for %s but has no grant for a card: it was not bound by cosched's "
            "scheduler (its schedulerName is '%s')",
            p->key, mode_resource_name(r), str_or_empty(p->scheduler));
    d->shares = arena_new(a, struct match_share, d->grant.shares_len);
    if ((pod_container_is_init(p, s->container) ? due_init : due_own)(inv, s, d, err) < 0)
        return -1;
    for (size_t i = 0; i < d->shares_len; i++) {
        int64_t n = r == MODE_GPU_MEM ? d->shares[i].gib : d->shares[i].percent;
        d->ids[d->shares[i].card] += n;
        sum += n;
    }
    if (sum != (int64_t)count)
        return error_set(err, ERROR_CONFLICT,
                         "pod %s, container %s: the grant has %lld of %s, the kubelet asks for %zu",
                         p->key, match_container(s)->name, (long long)sum, mode_resource_name(r),
                         count);
    return 0;
}

static int due_of(const struct gpu_inventory *inv, enum mode_resource r,
                  const struct match_subject *s, size_t count, struct arena *a, struct due *d,
                  struct error *err)
{
    *d = (struct due){0};
    if (s->grant != NULL)
        d->grant = *s->grant;
    else if (grant_decode(s->pod, a, &d->grant, err) < 0)
        return error_wrap(err, "pod %s: grant", s->pod->key);
    if (!grant_is_empty(&d->grant) && grant_check(&d->grant, s->pod, inv, err) < 0)
        return error_wrap(err, "pod %s: grant", s->pod->key);
    return mode_resource_is_whole(r) ? due_whole(inv, s->pod, d, err)
                                     : due_shares(inv, r, s, count, a, d, err);
}

static bool contains(const struct inventory_ids *ids, const char *id)
{
    for (size_t i = 0; i < ids->len; i++)
        if (str_eq(ids->items[i], id))
            return true;
    return false;
}

/* Chooses ungranted whole cards: the best linked of those the kubelet offers and requires. */
static void choose_linked(const struct gpu_inventory *inv, enum mode_resource r,
                          const struct inventory_ids *available, const struct inventory_ids *must,
                          size_t count, struct due *d)
{
    struct links links;
    struct links_ask ask = {.count = count};
    for (size_t i = 0; i < available->len + must->len; i++) {
        bool first = i < available->len;
        int32_t at =
            inventory_find(inv, r, first ? available->items[i] : must->items[i - available->len]);
        if (at >= 0)
            *(first ? &ask.free : &ask.must) |= UINT64_C(1) << at;
    }
    links_of(inv, &links);
    uint64_t chosen = links_choose(&links, &ask);
    d->free_choice = chosen == 0;
    for (; chosen != 0; chosen &= chosen - 1)
        d->ids[__builtin_ctzll(chosen)] = 1;
}

int match_prefer(const struct gpu_inventory *inv, enum mode_resource r,
                 const struct match_subject *s, const struct inventory_ids *available,
                 const struct inventory_ids *must, size_t count, struct arena *a,
                 struct inventory_ids *out, struct error *err)
{
    struct due d;
    if (due_of(inv, r, s, count, a, &d, err) < 0)
        return -1;
    if (count > available->len)
        return error_set(err, ERROR_INVALID,
                         "%zu ids of %s are asked for and only %zu are available", count,
                         mode_resource_name(r), available->len);
    if (d.free_choice)
        choose_linked(inv, r, available, must, count, &d);
    out->items = arena_new(a, const char *, count);
    out->len = 0;
    /* First the ids the kubelet requires, then the rest in its order. */
    for (int pass = 0; pass < 2; pass++) {
        const struct inventory_ids *from = pass == 0 ? must : available;
        for (size_t i = 0; i < from->len && out->len < count; i++) {
            int32_t at = inventory_find(inv, r, from->items[i]);
            if (at < 0 || (pass == 1 && contains(must, from->items[i])))
                continue;
            if (!d.free_choice && d.ids[at] <= 0)
                continue;
            d.ids[at]--;
            out->items[out->len++] = from->items[i];
        }
    }
    for (size_t i = 0; out->len < count && !mode_resource_is_whole(r) && i < inv->cards_len; i++)
        if (d.ids[i] > 0)
            return error_set(
                err, ERROR_CONFLICT,
                "pod %s: card %d was chosen for it, but the kubelet has %lld ids of %s too few there",
                s->pod->key, inv->cards[i].index, (long long)d.ids[i], mode_resource_name(r));
    if (out->len < count)
        return error_set(err, ERROR_CONFLICT,
                         "pod %s: %zu of %s are needed, and the kubelet has only %zu that fit",
                         s->pod->key, count, mode_resource_name(r), out->len);
    return 0;
}

static void grant_whole(const struct gpu_inventory *inv, enum mode_resource r,
                        const struct grant *grant, const struct inventory_ids *ids, struct arena *a,
                        struct match_grant *out)
{
    bool visible[GPU_CARDS_MAX] = {false};
    for (size_t i = 0; i < ids->len; i++)
        visible[inventory_find(inv, r, ids->items[i])] = true;
    /* The container also sees its peers' cards on this node, to reach them over NVLink. */
    if (grant->visible_len > grant->group_len) {
        for (size_t i = 0; i < grant->visible_len; i++) {
            int32_t at = inventory_card(inv, grant->visible[i]);
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
    struct due d;
    if (due_of(inv, r, s, ids->len, a, &d, err) < 0)
        return -1;
    *out = (struct match_grant){.subject = *s};
    for (size_t i = 0; i < ids->len; i++) {
        int32_t at = inventory_find(inv, r, ids->items[i]);
        if (at < 0)
            return error_set(err, ERROR_INVALID, "'%s' is not an id of %s on this node",
                             ids->items[i], mode_resource_name(r));
        if (!d.free_choice && --d.ids[at] < 0)
            return error_set(
                err, ERROR_CONFLICT,
                "pod %s: the kubelet took more of %s on card %d than the scheduler chose there",
                s->pod->key, mode_resource_name(r), inv->cards[at].index);
    }
    if (mode_resource_is_whole(r)) {
        grant_whole(inv, r, &d.grant, ids, a, out);
        return 0;
    }
    if (r == MODE_GPU_MEM)
        out->ids_digest = match_digest(ids, a);
    /* A container's two resources are separate calls; each answer describes the whole share. */
    out->pod_gib = grant_total_gib(&d.grant);
    out->shares = d.shares;
    out->shares_len = d.shares_len;
    for (size_t i = 0; i < d.shares_len; i++) {
        out->container_gib += d.shares[i].gib;
        out->container_percent += d.shares[i].percent;
    }
    return 0;
}

int match_prefer_on(const struct gpu_inventory *inv, enum mode_resource r, const bool *cards,
                    const struct inventory_ids *available, const struct inventory_ids *must,
                    size_t count, struct arena *a, struct inventory_ids *out, struct error *err)
{
    out->items = arena_new(a, const char *, count);
    out->len = 0;
    for (int pass = 0; pass < 2; pass++) {
        const struct inventory_ids *from = pass == 0 ? must : available;
        for (size_t i = 0; i < from->len && out->len < count; i++) {
            int32_t at = inventory_find(inv, r, from->items[i]);
            if (at >= 0 && cards[at] && (pass == 0 || !contains(must, from->items[i])))
                out->items[out->len++] = from->items[i];
        }
    }
    if (out->len < count)
        return error_set(
            err, ERROR_CONFLICT,
            "a pod that is not known here: %zu of %s are needed, and the kubelet has only %zu "
            "that are granted to no other pod",
            count, mode_resource_name(r), out->len);
    return 0;
}

static uint64_t mix(uint64_t h)
{
    h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
    return h ^ (h >> 31);
}

/* Two sums over the ids' hashes. Ids of a card differ in their last digits only, and so little do
 * their FNV-1a hashes that sums of different ids are often equal: each is mixed first. */
const char *match_digest(const struct inventory_ids *ids, struct arena *a)
{
    uint64_t first = 0, second = 0;
    for (size_t i = 0; i < ids->len; i++) {
        uint64_t h = UINT64_C(0xcbf29ce484222325);
        for (const char *c = ids->items[i]; *c != '\0'; c++)
            h = (h ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
        first += mix(h);
        second += mix(h + UINT64_C(0x9e3779b97f4a7c15));
    }
    return arena_printf(a, "%016llx%016llx", (unsigned long long)first, (unsigned long long)second);
}

int match_grant_ids(const struct gpu_inventory *inv, enum mode_resource r,
                    const struct inventory_ids *ids, struct arena *a, struct match_grant *out,
                    struct error *err)
{
    int32_t first = INVENTORY_NONE;
    *out = (struct match_grant){.partial = true};
    for (size_t i = 0; i < ids->len; i++) {
        int32_t at = inventory_find(inv, r, ids->items[i]);
        if (at < 0)
            return error_set(err, ERROR_INVALID, "'%s' is not an id of %s on this node",
                             ids->items[i], mode_resource_name(r));
        if (first >= 0 && at != first && !mode_resource_is_whole(r))
            return error_set(err, ERROR_CONFLICT,
                             "a pod that is not known here: its ids of %s lie on cards %d and %d",
                             mode_resource_name(r), inv->cards[first].index, inv->cards[at].index);
        first = first < 0 ? at : first;
    }
    if (first < 0)
        return error_set(err, ERROR_INVALID, "no ids of %s", mode_resource_name(r));
    if (mode_resource_is_whole(r)) {
        grant_whole(inv, r, &(struct grant){0}, ids, a, out);
        return 0;
    }
    int64_t n = (int64_t)ids->len;
    if (r == MODE_GPU_MEM)
        out->ids_digest = match_digest(ids, a);
    out->shares = arena_new(a, struct match_share, 1);
    out->shares_len = 1;
    out->shares[0] = (struct match_share){.card = (size_t)first,
                                          .gib = r == MODE_GPU_MEM ? n : 0,
                                          .percent = r == MODE_GPU_CORE ? n : 0};
    out->pod_gib = out->container_gib = out->shares[0].gib;
    out->container_percent = out->shares[0].percent;
    return 0;
}

const char *match_describe(const struct match_grant *g, struct arena *a)
{
    const char *text = "";
    for (size_t i = 0; i < g->visible_len; i++)
        text = arena_printf(a, "%s%scard %zu", text, i > 0 ? ", " : "", g->visible[i]);
    if (g->whole)
        return text;
    text =
        arena_printf(a, "%lld of the pod's %lld GiB and %lld percent", (long long)g->container_gib,
                     (long long)g->pod_gib, (long long)g->container_percent);
    for (size_t i = 0; i < g->shares_len; i++)
        text = arena_printf(a, "%s, %lld GiB and %lld percent of card %zu", text,
                            (long long)g->shares[i].gib, (long long)g->shares[i].percent,
                            g->shares[i].card);
    return text;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Decodes a grant from a pod's annotations.
 *
 * There are two forms. The newer one has the amount of each card for each container; the older one
 * has one card and one amount for the pod, and pods placed by an earlier installation have only
 * that. The newer takes precedence. An empty value counts as absent: a Binding can overwrite
 * annotations but not remove them.
 *
 * The text is untrusted. Sizes are bounded before anything is parsed, container and card numbers by
 * what can exist, and duplicates are refused rather than summed or overwritten: two readers of the
 * same grant must never get different cards.
 */
#include "lib/model/grant.h"

#include <stdlib.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/model/names.h"

static const char *annotation(const struct pod *p, const char *key)
{
    const char *v = labels_get(&p->annotations, key);
    return v && v[0] != '\0' ? v : NULL;
}

/* A wrong annotation is always ERROR_INVALID. */
static int in_annotation(struct error *err, const char *key)
{
    if (err)
        err->code = ERROR_INVALID;
    return error_wrap(err, "annotation %s", key);
}

struct shares {
    struct grant_share *items;
    size_t len;
};

static int read_cards(json *cards, uint32_t container, bool percent, struct shares *out,
                      struct error *err)
{
    int64_t max = percent ? 100 : GRANT_GIB_MAX;

    if (!json_is_object(cards))
        return error_set(err, ERROR_INVALID, "must be an object of cards, not %s",
                         json_kind_name(cards));
    for (struct json_iter it = json_iter(cards); json_next(&it);) {
        size_t card;
        int64_t amount;
        if (!num_parse_index(it.key, it.key_len, GPU_CARDS_MAX, &card))
            return error_set(err, ERROR_INVALID, "not a card from 0 to %d: '%.32s'",
                             GPU_CARDS_MAX - 1, it.key);
        if (!json_int(it.value, &amount) || amount < 1 || amount > max)
            return error_set(err, ERROR_INVALID, "card %zu: must be an integer from 1 to %lld",
                             card, (long long)max);
        out->items[out->len++] = (struct grant_share){.container = container,
                                                      .card = (int32_t)card,
                                                      .gib = percent ? 0 : amount,
                                                      .percent = percent ? amount : 0};
    }
    return 0;
}

static int read_containers(json *root, const struct pod *p, bool percent, struct shares *out,
                           struct error *err)
{
    if (!json_is_object(root))
        return error_set(err, ERROR_INVALID, "must be an object of containers, not %s",
                         json_kind_name(root));
    for (struct json_iter it = json_iter(root); json_next(&it);) {
        size_t container;
        if (!num_parse_index(it.key, it.key_len, p->containers_len + p->init_containers_len,
                             &container))
            return error_set(err, ERROR_INVALID, "the pod has no container '%.32s'", it.key);
        if (read_cards(it.value, (uint32_t)container, percent, out, err) < 0)
            return error_wrap(err, "container %zu", container);
    }
    return 0;
}

/* Appends the shares of one annotation, if present. */
static int read_shares(const struct pod *p, const char *key, bool percent, struct arena *a,
                       struct shares *out, struct error *err)
{
    const char *text = annotation(p, key);
    AUTO_JSON *doc = NULL;
    size_t n = 0, len;

    if (!text)
        return 0;
    len = strlen(text);
    if (len > GRANT_ANNOTATION_MAX) {
        error_set(err, ERROR_INVALID, "longer than %d bytes", GRANT_ANNOTATION_MAX);
        return in_annotation(err, key);
    }
    if (json_parse(&doc, text, len, err) < 0)
        return in_annotation(err, key);
    for (struct json_iter it = json_iter(json_root(doc)); json_next(&it);)
        n += json_len(it.value);
    struct grant_share *grown = arena_new(a, struct grant_share, out->len + n);
    if (out->len > 0)
        memcpy(grown, out->items, out->len * sizeof grown[0]);
    out->items = grown;
    if (read_containers(json_root(doc), p, percent, out, err) < 0)
        return in_annotation(err, key);
    return 0;
}

static int share_order(const void *a, const void *b)
{
    const struct grant_share *x = a, *y = b;
    if (x->container != y->container)
        return x->container < y->container ? -1 : 1;
    return x->card < y->card ? -1 : x->card > y->card;
}

/* Sorts, and joins GiB and percent of the same card. Duplicates are refused. */
static int join_shares(struct shares *s, struct error *err)
{
    size_t kept = 0;

    if (s->len == 0)
        return 0;
    qsort(s->items, s->len, sizeof s->items[0], share_order);
    for (size_t i = 1; i < s->len; i++) {
        struct grant_share *last = &s->items[kept], *next = &s->items[i];
        if (share_order(last, next) != 0) {
            s->items[++kept] = *next;
            continue;
        }
        if ((last->gib > 0 && next->gib > 0) || (last->percent > 0 && next->percent > 0)) {
            error_set(err, ERROR_INVALID, "container %lu: card %ld is there twice",
                      (unsigned long)next->container, (long)next->card);
            return in_annotation(err, next->gib > 0 ? NAME_ANN_ALLOCATION : NAME_ANN_CORE);
        }
        last->gib += next->gib;
        last->percent += next->percent;
    }
    s->len = kept + 1;
    return 0;
}

/* The one container that has the amount. */
static int old_container(const struct pod *p, uint32_t *out, struct error *err)
{
    const struct container *lists[] = {p->containers, p->init_containers};
    const size_t lens[] = {p->containers_len, p->init_containers_len};
    size_t found = 0;

    /* The earlier installation read the containers; init containers only if these have no limit. */
    for (size_t l = 0; l < 2 && found == 0; l++)
        for (size_t i = 0; i < lens[l]; i++)
            if (gpu_request_amount(&lists[l][i], NAME_RES_GPU_MEM) > 0) {
                found++;
                *out = (uint32_t)(i + (l == 0 ? 0 : p->containers_len));
            }
    if (found == 1)
        return 0;
    return error_set(err, ERROR_INVALID,
                     found == 0 ? "no container asks for %s" : "several containers ask for %s",
                     NAME_RES_GPU_MEM);
}

static int read_number(const struct pod *p, const char *key, int64_t min, int64_t max, int64_t *out,
                       struct error *err)
{
    const char *text = annotation(p, key);

    if (!text) {
        error_set(err, ERROR_INVALID, "is missing");
        return in_annotation(err, key);
    }
    return num_parse_range(text, min, max, out, err) < 0 ? in_annotation(err, key) : 0;
}

static int read_old(const struct pod *p, struct arena *a, struct shares *out, struct error *err)
{
    int64_t card, gib, dev;
    uint32_t container = 0;

    if (!annotation(p, NAME_ANN_OLD_IDX) && !annotation(p, NAME_ANN_OLD_POD))
        return 0;
    if (read_number(p, NAME_ANN_OLD_IDX, 0, GPU_CARDS_MAX - 1, &card, err) < 0 ||
        read_number(p, NAME_ANN_OLD_POD, 1, GRANT_GIB_MAX, &gib, err) < 0)
        return -1;
    if (annotation(p, NAME_ANN_OLD_DEV) &&
        read_number(p, NAME_ANN_OLD_DEV, 0, GRANT_GIB_MAX, &dev, err) < 0)
        return -1;
    if (old_container(p, &container, err) < 0)
        return in_annotation(err, NAME_ANN_OLD_POD);
    out->items = arena_new(a, struct grant_share, 1);
    out->items[0] = (struct grant_share){.container = container, .card = (int32_t)card, .gib = gib};
    out->len = 1;
    return 0;
}

static int read_state(const struct pod *p, struct grant *out, struct error *err)
{
    const char *time =
        annotation(p, NAME_ANN_ASSUME_TIME) ? NAME_ANN_ASSUME_TIME : NAME_ANN_OLD_ASSUME_TIME;
    const char *key = annotation(p, NAME_ANN_ASSIGNED) ? NAME_ANN_ASSIGNED : NAME_ANN_OLD_ASSIGNED;
    const char *assigned = annotation(p, key);

    if (annotation(p, time) && read_number(p, time, 0, INT64_MAX, &out->assume_time_ns, err) < 0)
        return -1;
    out->assigned = str_eq(assigned, "true");
    if (assigned && !out->assigned && !str_eq(assigned, "false")) {
        error_set(err, ERROR_INVALID, "must be true or false: '%.32s'", assigned);
        return in_annotation(err, key);
    }
    return 0;
}

/* "0,3": sorted ascending in out. */
static int read_cards_list(const struct pod *p, const char *key, struct arena *a, int32_t **out,
                           size_t *out_len, struct error *err)
{
    const char *text = annotation(p, key);
    uint64_t seen = 0; /* GPU_CARDS_MAX bits */
    size_t n = 0;

    *out_len = 0;
    for (const char *s = text; s;) {
        const char *comma = strchr(s, ',');
        size_t len = comma ? (size_t)(comma - s) : strlen(s), card;
        if (!num_parse_index(s, len, GPU_CARDS_MAX, &card)) {
            error_set(err, ERROR_INVALID, "not a list of cards from 0 to %d: '%.64s'",
                      GPU_CARDS_MAX - 1, text);
            return in_annotation(err, key);
        }
        if (seen & UINT64_C(1) << card) {
            error_set(err, ERROR_INVALID, "card %zu is there twice", card);
            return in_annotation(err, key);
        }
        seen |= UINT64_C(1) << card;
        n++;
        s = comma ? comma + 1 : NULL;
    }
    if (n == 0)
        return 0;
    *out = arena_new(a, int32_t, n);
    for (int32_t card = 0; card < GPU_CARDS_MAX; card++)
        if (seen & UINT64_C(1) << card)
            (*out)[(*out_len)++] = card;
    return 0;
}

int grant_decode(const struct pod *p, struct arena *a, struct grant *out, struct error *err)
{
    struct grant c = {0};
    struct shares s = {0};

    *out = c;
    if (read_shares(p, NAME_ANN_ALLOCATION, false, a, &s, err) < 0)
        return -1;
    if (!annotation(p, NAME_ANN_ALLOCATION) && read_old(p, a, &s, err) < 0)
        return -1;
    if (read_shares(p, NAME_ANN_CORE, true, a, &s, err) < 0 || join_shares(&s, err) < 0 ||
        read_state(p, &c, err) < 0 ||
        read_cards_list(p, NAME_ANN_GPU_GROUP, a, &c.group, &c.group_len, err) < 0 ||
        read_cards_list(p, NAME_ANN_GPU_VISIBLE, a, &c.visible, &c.visible_len, err) < 0)
        return -1;
    if (c.visible_len == 0) {
        c.visible = c.group;
        c.visible_len = c.group_len;
    }
    c.shares = s.items;
    c.shares_len = s.len;
    *out = c;
    return 0;
}

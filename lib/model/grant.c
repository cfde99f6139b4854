// SPDX-License-Identifier: Apache-2.0
/*
 * Sums, checks and the Binding's annotations of a grant; grant_decode.c reads them.
 *
 * The scheduler writes a grant once, in the request that binds the pod. The plugin on the node and
 * a scheduler that takes over read it later. Meanwhile anyone with the right to edit the pod can
 * edit the annotations, so reading trusts nothing, and grant_check decides whether a grant counts.
 */
#include "lib/model/grant.h"

#include <string.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/model/names.h"

const char *const grant_result_keys[] = {
    NAME_ANN_ALLOCATION,
    NAME_ANN_CORE,
    NAME_ANN_ASSUME_TIME,
    NAME_ANN_ASSIGNED,
    NAME_ANN_OLD_IDX,
    NAME_ANN_OLD_DEV,
    NAME_ANN_OLD_POD,
    NAME_ANN_OLD_ASSIGNED,
    NAME_ANN_GPU_GROUP,
    NAME_ANN_GPU_VISIBLE,
    NAME_ANN_OLD_ASSUME_TIME,
    NAME_ANN_CPUSET,
    NULL,
};
enum { RESULT_KEYS = sizeof grant_result_keys / sizeof grant_result_keys[0] - 1 };

static bool is_in_table(const char *key)
{
    for (size_t i = 0; i < RESULT_KEYS; i++)
        if (strcmp(grant_result_keys[i], key) == 0)
            return true;
    return false;
}

bool grant_is_result_key(const char *key)
{
    if (!key)
        return false;
    if (str_starts(key, NAME_PREFIX_OWN))
        return !str_eq(key, NAME_INJECT) && !str_eq(key, NAME_ANN_CPUSET_SHARED);
    return is_in_table(key);
}

bool grant_is_empty(const struct grant *c)
{
    return c->shares_len == 0 && c->group_len == 0;
}

int64_t grant_card_gib(const struct grant *c, int32_t card)
{
    int64_t sum = 0;

    for (size_t i = 0; i < c->shares_len; i++)
        if (c->shares[i].card == card)
            sum = num_add_sat(sum, c->shares[i].gib);
    return sum;
}

int64_t grant_total_gib(const struct grant *c)
{
    int64_t sum = 0;

    for (size_t i = 0; i < c->shares_len; i++)
        sum = num_add_sat(sum, c->shares[i].gib);
    return sum;
}

int64_t grant_container_gib(const struct grant *c, uint32_t container)
{
    int64_t sum = 0;

    for (size_t i = 0; i < c->shares_len; i++)
        if (c->shares[i].container == container)
            sum = num_add_sat(sum, c->shares[i].gib);
    return sum;
}

static int64_t container_percent(const struct grant *c, uint32_t container)
{
    int64_t sum = 0;

    for (size_t i = 0; i < c->shares_len; i++)
        if (c->shares[i].container == container)
            sum = num_add_sat(sum, c->shares[i].percent);
    return sum;
}

void grant_one_card(const struct gpu_request *r, int32_t card, struct arena *a, struct grant *out)
{
    *out = (struct grant){.shares = arena_new(a, struct grant_share, r->shares_len),
                          .shares_len = r->shares_len};
    for (size_t i = 0; i < r->shares_len; i++)
        out->shares[i] = (struct grant_share){.container = r->shares[i].container,
                                              .card = card,
                                              .gib = r->shares[i].gib,
                                              .percent = r->shares[i].percent};
}

static bool card_exists(const struct gpu_inventory *inv, int32_t card)
{
    for (size_t i = 0; i < inv->cards_len; i++)
        if (inv->cards[i].index == card)
            return true;
    return false;
}

static bool list_has(const int32_t *list, size_t n, int32_t card)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == card)
            return true;
    return false;
}

static int check_cards(const struct grant *c, const struct gpu_inventory *inv, struct error *err)
{
    for (size_t i = 0; i < c->shares_len; i++)
        if (!card_exists(inv, c->shares[i].card))
            return error_set(err, ERROR_INVALID, "grant: the node has no card %d",
                             (int)c->shares[i].card);
    for (size_t i = 0; i < c->group_len; i++)
        if (!card_exists(inv, c->group[i]))
            return error_set(err, ERROR_INVALID, "grant: the node has no card %d",
                             (int)c->group[i]);
    for (size_t i = 0; i < c->visible_len; i++)
        if (!card_exists(inv, c->visible[i]))
            return error_set(err, ERROR_INVALID, "grant: the node has no card %d",
                             (int)c->visible[i]);
    for (size_t i = 0; c->visible_len > 0 && i < c->group_len; i++)
        if (!list_has(c->visible, c->visible_len, c->group[i]))
            return error_set(err, ERROR_INVALID, "grant: card %d is given but not visible",
                             (int)c->group[i]);
    return 0;
}

static int check_sums(const struct grant *c, const struct pod *p, const struct gpu_request *r,
                      struct error *err)
{
    for (size_t i = 0, k = 0; i < pod_container_count(p); i++) {
        struct gpu_request_share none = {0};
        bool asks = k < r->shares_len && r->shares[k].container == i;
        const struct gpu_request_share *want = asks ? &r->shares[k++] : &none;
        int64_t has_gib = grant_container_gib(c, (uint32_t)i),
                has_percent = container_percent(c, (uint32_t)i);
        if (has_gib != want->gib)
            return error_set(
                err, ERROR_INVALID, "container '%s': grant has %lld GiB, request is %lld",
                str_or_empty(pod_container(p, i)->name), (long long)has_gib, (long long)want->gib);
        if (has_percent != want->percent)
            return error_set(err, ERROR_INVALID,
                             "container '%s': grant has %lld %% of a card, request is %lld",
                             str_or_empty(pod_container(p, i)->name), (long long)has_percent,
                             (long long)want->percent);
    }
    return 0;
}

/* A negative share, or one of no container, must not make a sum right. */
static int check_shares(const struct grant *c, const struct pod *p, bool one_card,
                        struct error *err)
{
    for (size_t i = 0; i < c->shares_len; i++) {
        const struct grant_share *s = &c->shares[i];
        if (s->container >= pod_container_count(p))
            return error_set(err, ERROR_INVALID, "grant: the pod has no container %lu",
                             (unsigned long)s->container);
        if (s->gib < 0 || s->percent < 0)
            return error_set(err, ERROR_INVALID, "grant: a share of card %d is negative",
                             (int)s->card);
        if (one_card && s->card != c->shares[0].card)
            return error_set(err, ERROR_INVALID,
                             "grant: a pod with %s in an init container must be on one card",
                             NAME_RES_GPU_MEM);
    }
    return 0;
}

/* The kubelet may choose exclusive cards; topology cards are always named. */
static int check_group(const struct grant *c, const struct gpu_request *r, struct error *err)
{
    int64_t whole = r->total[GPU_REQUEST_CARDS];

    if (whole == 0 && c->group_len > 0)
        whole = r->total[GPU_REQUEST_NVIDIA];
    if ((int64_t)c->group_len != whole)
        return error_set(err, ERROR_INVALID, "grant: %zu whole cards, request is %lld",
                         c->group_len, (long long)whole);
    for (size_t i = 1; i < c->group_len; i++)
        if (list_has(c->group, i, c->group[i]))
            return error_set(err, ERROR_INVALID, "grant: card %d is there twice", (int)c->group[i]);
    return 0;
}

int grant_adds_up(const struct grant *c, const struct pod *p, const struct gpu_request *r,
                  struct error *err)
{
    return check_sums(c, p, r, err) < 0 || check_shares(c, p, r->one_card, err) < 0 ||
                   check_group(c, r, err) < 0
               ? -1
               : 0;
}

int grant_check(const struct grant *c, const struct pod *p, const struct gpu_inventory *inv,
                struct error *err)
{
    struct gpu_request r;
    struct arena scratch;

    arena_init(&scratch, 0);
    gpu_request_read(p, &scratch, &r, NULL);
    int failed = check_cards(c, inv, err) < 0 || grant_adds_up(c, p, &r, err) < 0;
    arena_deinit(&scratch);
    return failed ? -1 : 0;
}

/* {"<container>":{"<card>":<amount>}} of the non-zero shares; NULL if there are none. */
static const char *print_shares(const struct grant *c, bool percent, struct arena *a)
{
    AUTO_STRBUF buf = {0};
    struct json_writer w;
    bool any = false;
    uint32_t open = 0;

    json_writer_init(&w, &buf);
    json_object_begin(&w);
    for (size_t i = 0; i < c->shares_len; i++) {
        const struct grant_share *s = &c->shares[i];
        int64_t amount = percent ? s->percent : s->gib;
        char key[16];
        if (amount == 0)
            continue;
        if (!any || open != s->container) {
            if (any)
                json_object_end(&w);
            str_format(key, sizeof key, "%lu", (unsigned long)s->container);
            json_key(&w, key);
            json_object_begin(&w);
            any = true;
            open = s->container;
        }
        str_format(key, sizeof key, "%ld", (long)s->card);
        json_kv_int(&w, key, amount);
    }
    if (any)
        json_object_end(&w);
    json_object_end(&w);
    return any ? arena_strndup(a, buf.ptr, buf.len) : NULL;
}

static const char *print_cards(const int32_t *cards, size_t n, struct arena *a)
{
    AUTO_STRBUF buf = {0};

    if (n == 0)
        return NULL;
    for (size_t i = 0; i < n; i++)
        strbuf_addf(&buf, "%s%ld", i > 0 ? "," : "", (long)cards[i]);
    return arena_strndup(a, buf.ptr, buf.len);
}

static const char *print_cpus(const struct grant *c, const struct pod *p, struct arena *a)
{
    AUTO_STRBUF buf = {0};

    if (c->cpus.len == 0)
        return NULL;
    cpu_grant_encode(&c->cpus, p, &buf);
    return arena_strndup(a, buf.ptr, buf.len);
}

static void put(struct labels *out, const char *key, const char *value)
{
    out->items[out->len++] = (struct label){key, value ? value : ""};
}

static bool uses_one_card(const struct grant *c)
{
    for (size_t i = 1; i < c->shares_len; i++)
        if (c->shares[i].card != c->shares[0].card)
            return false;
    return c->shares_len > 0;
}

void grant_encode(const struct grant *c, const struct pod *p, int64_t dev_gib, struct arena *a,
                  struct labels *out)
{
    int64_t gib = grant_total_gib(c);
    bool given = !grant_is_empty(c), old = gib > 0 && uses_one_card(c);
    const char *time = given ? arena_printf(a, "%lld", (long long)c->assume_time_ns) : NULL;
    const char *assigned = !given ? NULL : c->assigned ? "true" : "false";
    bool own = c->visible_len > 0;

    *out = (struct labels){.items = arena_new(a, struct label, RESULT_KEYS + p->annotations.len)};
    put(out, NAME_ANN_ALLOCATION, print_shares(c, false, a));
    put(out, NAME_ANN_CORE, print_shares(c, true, a));
    put(out, NAME_ANN_ASSUME_TIME, time);
    put(out, NAME_ANN_ASSIGNED, assigned);
    put(out, NAME_ANN_OLD_IDX, old ? arena_printf(a, "%ld", (long)c->shares[0].card) : NULL);
    put(out, NAME_ANN_OLD_DEV, old ? arena_printf(a, "%lld", (long long)dev_gib) : NULL);
    put(out, NAME_ANN_OLD_POD, old ? arena_printf(a, "%lld", (long long)gib) : NULL);
    put(out, NAME_ANN_OLD_ASSIGNED, old ? assigned : NULL);
    put(out, NAME_ANN_OLD_ASSUME_TIME, old ? time : NULL);
    put(out, NAME_ANN_GPU_GROUP, print_cards(c->group, c->group_len, a));
    put(out, NAME_ANN_GPU_VISIBLE,
        print_cards(own ? c->visible : c->group, own ? c->visible_len : c->group_len, a));
    put(out, NAME_ANN_CPUSET, print_cpus(c, p, a));
    for (size_t i = 0; i < p->annotations.len; i++) {
        const char *key = p->annotations.items[i].key;
        if (grant_is_result_key(key) && !is_in_table(key))
            put(out, arena_strdup(a, key), NULL);
    }
    labels_sort(out);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * claim - what a pod was given: sums, checks and the annotations of a Binding. Reading is
 * claim_decode.c.
 *
 * A claim is written once, by the scheduler, in the same request that binds the pod, and read by
 * whoever starts later: the plugin on the node, a scheduler that takes over. Between them stand
 * annotations that anybody with the right to edit a pod can edit too; so reading trusts nothing,
 * and claim_check decides whether a claim counts.
 */
#include "lib/model/claim.h"

#include <stdlib.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/model/names.h"

const char *const claim_result_keys[] = {
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
enum { RESULT_KEYS = sizeof claim_result_keys / sizeof claim_result_keys[0] - 1 };

static bool is_in_table(const char *key)
{
    for (size_t i = 0; i < RESULT_KEYS; i++)
        if (strcmp(claim_result_keys[i], key) == 0)
            return true;
    return false;
}

bool claim_is_result_key(const char *key)
{
    if (!key)
        return false;
    if (str_starts(key, NAME_PREFIX_OWN))
        return !str_eq(key, NAME_INJECT) && !str_eq(key, NAME_ANN_CPUSET_SHARED);
    return is_in_table(key);
}

/* ---- sums ------------------------------------------------------------------------------------ */

bool claim_is_empty(const struct claim *c)
{
    return c->shares_len == 0 && c->group_len == 0;
}

int64_t claim_card_gib(const struct claim *c, int32_t card)
{
    int64_t sum = 0;

    for (size_t i = 0; i < c->shares_len; i++)
        if (c->shares[i].card == card)
            sum = num_add_sat(sum, c->shares[i].gib);
    return sum;
}

int64_t claim_total_gib(const struct claim *c)
{
    int64_t sum = 0;

    for (size_t i = 0; i < c->shares_len; i++)
        sum = num_add_sat(sum, c->shares[i].gib);
    return sum;
}

int64_t claim_container_gib(const struct claim *c, uint32_t container)
{
    int64_t sum = 0;

    for (size_t i = 0; i < c->shares_len; i++)
        if (c->shares[i].container == container)
            sum = num_add_sat(sum, c->shares[i].gib);
    return sum;
}

static int64_t container_percent(const struct claim *c, uint32_t container)
{
    int64_t sum = 0;

    for (size_t i = 0; i < c->shares_len; i++)
        if (c->shares[i].container == container)
            sum = num_add_sat(sum, c->shares[i].percent);
    return sum;
}

/* ---- what the containers ask for ------------------------------------------------------------- */

/* By the index that shares use. */
static const struct container *container_at(const struct pod *p, size_t i)
{
    return i < p->containers_len ? &p->containers[i] : &p->init_containers[i - p->containers_len];
}

static size_t container_count(const struct pod *p)
{
    return p->containers_len + p->init_containers_len;
}

/* Extended resources have equal requests and limits; either may be all that a hand-written object
 * has. */
static int64_t asked(const struct container *c, const char *resource)
{
    bool present;
    int64_t v = resources_get(&c->requests, resource, &present);
    return present ? v : resources_get(&c->limits, resource, NULL);
}

/* Fills need[i] for each container with what its share must be (see claim.h). */
static void needs(const struct pod *p, const char *resource, int64_t *need)
{
    int64_t running = 0, sidecars = 0, peak = 0;
    size_t peak_at = 0;

    for (size_t i = 0; i < container_count(p); i++) {
        const struct container *c = container_at(p, i);
        bool stays = i < p->containers_len || c->sidecar;
        need[i] = stays ? asked(c, resource) : 0;
        running = num_add_sat(running, need[i]);
    }
    for (size_t i = p->containers_len; i < container_count(p); i++) {
        const struct container *c = container_at(p, i);
        int64_t moment = num_add_sat(sidecars, asked(c, resource));
        if (c->sidecar)
            sidecars = moment;
        else if (moment > peak) {
            peak = moment;
            peak_at = i;
        }
    }
    if (peak > running)
        need[peak_at] = peak - running;
}

void claim_one_card(const struct pod *p, int32_t card, struct arena *a, struct claim *out)
{
    size_t n = container_count(p);
    int64_t *gib = arena_new(a, int64_t, n), *percent = arena_new(a, int64_t, n);

    *out = (struct claim){.shares = arena_new(a, struct claim_share, n)};
    needs(p, NAME_RES_GPU_MEM, gib);
    needs(p, NAME_RES_GPU_CORE, percent);
    for (size_t i = 0; i < n; i++)
        if (gib[i] > 0 || percent[i] > 0)
            out->shares[out->shares_len++] = (struct claim_share){
                .container = (uint32_t)i, .card = card, .gib = gib[i], .percent = percent[i]};
}

/* ---- check ----------------------------------------------------------------------------------- */

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

static int check_cards(const struct claim *c, const struct gpu_inventory *inv, struct error *err)
{
    for (size_t i = 0; i < c->shares_len; i++)
        if (!card_exists(inv, c->shares[i].card))
            return error_set(err, ERROR_INVALID, "claim: the node has no card %d",
                             (int)c->shares[i].card);
    for (size_t i = 0; i < c->group_len; i++)
        if (!card_exists(inv, c->group[i]))
            return error_set(err, ERROR_INVALID, "claim: the node has no card %d",
                             (int)c->group[i]);
    for (size_t i = 0; i < c->visible_len; i++)
        if (!card_exists(inv, c->visible[i]))
            return error_set(err, ERROR_INVALID, "claim: the node has no card %d",
                             (int)c->visible[i]);
    for (size_t i = 0; c->visible_len > 0 && i < c->group_len; i++)
        if (!list_has(c->visible, c->visible_len, c->group[i]))
            return error_set(err, ERROR_INVALID, "claim: card %d is given but not visible",
                             (int)c->group[i]);
    return 0;
}

static int check_sums(const struct claim *c, const struct pod *p, const int64_t *gib,
                      const int64_t *percent, struct error *err)
{
    for (size_t i = 0; i < container_count(p); i++) {
        int64_t has_gib = claim_container_gib(c, (uint32_t)i),
                has_percent = container_percent(c, (uint32_t)i);
        if (has_gib != gib[i])
            return error_set(
                err, ERROR_INVALID, "container '%s': claim has %lld GiB, request is %lld",
                str_or_empty(container_at(p, i)->name), (long long)has_gib, (long long)gib[i]);
        if (has_percent != percent[i])
            return error_set(err, ERROR_INVALID,
                             "container '%s': claim has %lld %% of a card, request is %lld",
                             str_or_empty(container_at(p, i)->name), (long long)has_percent,
                             (long long)percent[i]);
    }
    for (size_t i = 0; i < c->shares_len; i++)
        if (c->shares[i].container >= container_count(p))
            return error_set(err, ERROR_INVALID, "claim: the pod has no container %lu",
                             (unsigned long)c->shares[i].container);
    return 0;
}

/* The kubelet reuses the ids of ordinary init containers in random order: then one card must be
 * all. */
static int check_one_card(const struct claim *c, const struct pod *p, struct error *err)
{
    bool init = false;

    for (size_t i = 0; i < p->init_containers_len; i++)
        if (!p->init_containers[i].sidecar && asked(&p->init_containers[i], NAME_RES_GPU_MEM) > 0)
            init = true;
    for (size_t i = 1; init && i < c->shares_len; i++)
        if (c->shares[i].card != c->shares[0].card)
            return error_set(err, ERROR_INVALID,
                             "claim: a pod with %s in an init container must be on one card",
                             NAME_RES_GPU_MEM);
    return 0;
}

static int64_t total(const int64_t *need, size_t n)
{
    int64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum = num_add_sat(sum, need[i]);
    return sum;
}

int claim_check(const struct claim *c, const struct pod *p, const struct gpu_inventory *inv,
                struct error *err)
{
    size_t n = container_count(p);
    struct arena scratch;
    int failed;

    arena_init(&scratch, 0);
    int64_t *need = arena_new(&scratch, int64_t, n), *percent = arena_new(&scratch, int64_t, n);
    needs(p, NAME_RES_GPU_MEM, need);
    needs(p, NAME_RES_GPU_CORE, percent);
    failed = check_cards(c, inv, err) < 0 || check_sums(c, p, need, percent, err) < 0 ||
             check_one_card(c, p, err) < 0;
    if (!failed) {
        needs(p, NAME_RES_GPU, need);
        int64_t whole = total(need, n);
        needs(p, NAME_RES_NVIDIA_GPU, need);
        /* Exclusive cards may be left to the kubelet to choose; topology cards are always named. */
        if (whole == 0 && c->group_len > 0)
            whole = total(need, n);
        if ((int64_t)c->group_len != whole) {
            error_set(err, ERROR_INVALID, "claim: %zu whole cards, request is %lld", c->group_len,
                      (long long)whole);
            failed = 1;
        }
    }
    arena_deinit(&scratch);
    return failed ? -1 : 0;
}

/* ---- encode ---------------------------------------------------------------------------------- */

/* {"<container>":{"<card>":<amount>}} of the shares that are not 0; NULL if there are none. */
static const char *print_shares(const struct claim *c, bool percent, struct arena *a)
{
    AUTO_STRBUF buf = {0};
    struct json_writer w;
    bool any = false;
    uint32_t open = 0;

    json_writer_init(&w, &buf);
    json_object_begin(&w);
    for (size_t i = 0; i < c->shares_len; i++) {
        const struct claim_share *s = &c->shares[i];
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

static const char *print_cpus(const struct claim *c, const struct pod *p, struct arena *a)
{
    AUTO_STRBUF buf = {0};

    if (c->cpus.len == 0)
        return NULL;
    cpuclaim_encode(&c->cpus, p, &buf);
    return arena_strndup(a, buf.ptr, buf.len);
}

static int label_order(const void *a, const void *b)
{
    const struct label *x = a, *y = b;
    return strcmp(x->key, y->key);
}

static void put(struct labels *out, const char *key, const char *value)
{
    out->items[out->len++] = (struct label){key, value ? value : ""};
}

static bool uses_one_card(const struct claim *c)
{
    for (size_t i = 1; i < c->shares_len; i++)
        if (c->shares[i].card != c->shares[0].card)
            return false;
    return c->shares_len > 0;
}

void claim_encode(const struct claim *c, const struct pod *p, int64_t dev_gib, struct arena *a,
                  struct labels *out)
{
    int64_t gib = claim_total_gib(c);
    bool given = !claim_is_empty(c), old = gib > 0 && uses_one_card(c);
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
        if (claim_is_result_key(key) && !is_in_table(key))
            put(out, arena_strdup(a, key), NULL);
    }
    qsort(out->items, out->len, sizeof out->items[0], label_order);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The table of requests through the device plugin: the containers are waited for in the kubelet's
 * order with what they ask for, and a pod without a grant is given cards, or refused in the same
 * words.
 */
#include "device-plugin/grant/match.h"
#include "device-plugin/grant/card_usage.h"

#include "test/unit/lib/base/expect.h"

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "test/unit/device-plugin/cards.h"
#include "test/unit/lib/model/requests_kit.h"

enum { CARDS = 8 };

/* ---- a grant --------------------------------------------------------------------------------- */

static void make_room(struct card_usage *r, struct gpu_inventory *inv, int64_t gib, struct arena *a)
{
    int64_t mib[CARDS + 1] = {0};
    for (size_t i = 0; i < CARDS; i++)
        mib[i] = gib * 1024;
    cards_make(inv, a, mib);
    card_usage_init(r, inv, GPU_BINPACK);
}

/* What a card must have so that the pod has room, by the table. */
static int64_t needed_gib(const struct requests_row *row, struct arena *a)
{
    int64_t sum = 0, most = 0, over = 1;
    const char *words = requests_kit_given(row, a), *spread = strstr(words, " over ");
    if (spread != NULL)
        assert_int_equal(0, num_parse(spread + 6, strlen(spread + 6), &over, NULL));
    for (const char *at = words; (at = strchr(at, '=')) != NULL;) {
        int64_t gib = 0;
        size_t n = strspn(++at, "0123456789");
        assert_int_equal(0, num_parse(at, n, &gib, NULL));
        sum += gib;
        most = num_max(most, gib / over);
    }
    return requests_kit_on_one_card(row) ? sum : most;
}

static void check_grant(const struct requests_row *row, const struct pod *p, struct arena *a)
{
    struct gpu_inventory inv;
    struct card_usage room;
    struct grant grant;
    struct error err = ERROR_INIT;
    if (row->gpu_errors.len > 0) {
        make_room(&room, &inv, 1024, a);
        expect_int(row->name, -1, card_usage_place(&room, p, a, &grant, &err));
        expect_str(row->name, arena_printf(a, "d/p: %s", row->gpu_errors.items[0]), err.text);
        return;
    }
    int64_t gib = needed_gib(row, a);
    if (gib == 0)
        return;
    make_room(&room, &inv, gib, a);
    if (card_usage_place(&room, p, a, &grant, &err) < 0)
        expect_str(row->name, NULL, err.text);
    expect_str(row->name, requests_kit_given(row, a), requests_kit_grant(&grant, a));
    for (size_t i = 1; requests_kit_on_one_card(row) && i < grant.shares_len; i++)
        expect_int(row->name, grant.shares[0].card, grant.shares[i].card);
    make_room(&room, &inv, gib - 1, a);
    expect_int(row->name, -1, card_usage_place(&room, p, a, &grant, &err));
}

/* ---- who waits ------------------------------------------------------------------------------- */

static int64_t amount_of(json *container, const char *resource)
{
    const char *text = json_get_str(json_get(container, "limits"), resource);
    int64_t n = 0;
    if (text == NULL)
        text = json_get_str(json_get(container, "requests"), resource);
    if (text != NULL)
        assert_int_equal(0, num_parse(text, strlen(text), &n, NULL));
    return n;
}

/* One container of the row is admitted; listed: the kubelet's list has it. */
static void admit(const struct requests_row *row, struct match_listing *l, enum mode_resource r,
                  json *container, size_t index, struct match_listed_container *listed)
{
    struct match_subject s = {.container = SIZE_MAX};
    struct error err = ERROR_INIT;
    int64_t n = amount_of(container, mode_resource_name(r));
    static const char *held[] = {"id"};
    if (n == 0)
        return;
    if (match_waiting(l, r, (size_t)n, &s, &err) < 0)
        expect_str(row->name, NULL, err.text);
    expect_int(row->name, (int64_t)index, (int64_t)s.container);
    if (listed != NULL)
        listed->held[r] = (struct inventory_ids){.items = held, .len = 1};
    else
        l->pods[0].init_given[r]++;
}

static void check_waiting(const struct requests_row *row, const struct pod *p, struct arena *a,
                          enum mode_resource r)
{
    size_t containers = json_len(row->containers), i = 0;
    struct match_listed pod = {.ns = p->ns, .name = p->name, .key = p->key, .pod = p};
    struct match_listing l = {.pods = &pod, .len = 1};
    struct match_subject s;
    struct error err = ERROR_INIT;
    pod.containers = arena_new(a, struct match_listed_container, containers + json_len(row->init));
    for (struct json_iter it = json_iter(row->containers); json_next(&it);)
        pod.containers[pod.containers_len].name = arena_printf(a, "c%zu", pod.containers_len),
        pod.containers_len++;
    for (struct json_iter it = json_iter(row->init); json_next(&it); i++)
        if (json_bool(json_get(it.value, "sidecar"), false))
            pod.containers[pod.containers_len++].name = arena_printf(a, "i%zu", i);
    size_t sidecar = containers;
    i = 0;
    for (struct json_iter it = json_iter(row->init); json_next(&it); i++) {
        bool listed = json_bool(json_get(it.value, "sidecar"), false);
        admit(row, &l, r, it.value, containers + i, listed ? &pod.containers[sidecar++] : NULL);
    }
    i = 0;
    for (struct json_iter it = json_iter(row->containers); json_next(&it); i++)
        admit(row, &l, r, it.value, i, &pod.containers[i]);
    expect_int(row->name, -1, match_waiting(&l, r, 1, &s, &err)); /* all have theirs */
}

static void check_row(const struct requests_row *row, struct arena *a)
{
    struct pod *p = requests_kit_pod(row);
    check_grant(row, p, a);
    for (int r = 0; requests_kit_is_legal(row) && r < MODE_RESOURCES; r++)
        check_waiting(row, p, a, (enum mode_resource)r);
    pod_free(p);
}

static void every_row_is_read_as_the_table_says(void **state)
{
    (void)state;
    requests_kit_each(check_row);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_read_as_the_table_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Pods without a grant get cards by the node's policy, never what others were promised; truth wins
 * over promises. */
#include "device-plugin/grant/card_usage.h"

#include <stdio.h>

#include "test/unit/lib/base/expect.h"

#include "lib/base/str.h"
#include "test/unit/device-plugin/cards.h"

/* The grant in one line: "0:1=3 1:2=2/10" is container 0 on card 1 with 3 GiB, container 1 on card
 * 2 with 2 GiB and 10 %. */
static const char *print(struct arena *a, const struct grant *c)
{
    const char *line = "";
    for (size_t i = 0; i < c->shares_len; i++) {
        const struct grant_share *s = &c->shares[i];
        line = arena_printf(a, "%s%s%u:%d=%lld", line, i > 0 ? " " : "", s->container, s->card,
                            (long long)s->gib);
        if (s->percent > 0)
            line = arena_printf(a, "%s/%lld", line, (long long)s->percent);
    }
    return line;
}

static void pods_without_a_grant(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        enum gpu_placement placement;
        const char *promised; /* the same form, of one pod */
        const char *containers;
        const char *wanted; /* the grant, or a part of the refusal */
    } rows[] = {
        {"binpack fills the fullest card", GPU_BINPACK, "0:1=5", "c0=gpu-mem:3", "0:1=3"},
        {"spread takes the emptiest", GPU_SPREAD, "0:1=5", "c0=gpu-mem:3", "0:2=3"},
        {"equal cards by their index", GPU_BINPACK, "0:2=9", "c0=gpu-mem:3", "0:0=3"},
        {"exactly what is left", GPU_BINPACK, "0:1=5", "c0=gpu-mem:10", "0:1=10"},
        {"one more goes elsewhere", GPU_BINPACK, "0:1=5", "c0=gpu-mem:11", "0:0=11"},
        {"all containers on one card", GPU_BINPACK, "0:1=5", "c0=gpu-mem:4 c1=gpu-mem:6",
         "0:1=4 1:1=6"},
        {"or each on its own", GPU_BINPACK, "0:2=20", "c0=gpu-mem:15 c1=gpu-mem:14",
         "0:0=15 1:1=14"},
        {"the largest first where their order leads nowhere", GPU_SPREAD, "0:2=20",
         "c0=gpu-mem:4 c1=gpu-mem:15 c2=gpu-mem:15", "0:2=4 1:0=15 2:1=15"},
        {"or a sentence about the order", GPU_SPREAD, "0:2=20",
         "c0=gpu-mem:5 c1=gpu-mem:15 c2=gpu-mem:15",
         "no card has 15 GiB free beside what others were promised (largest free: 10 GiB on card 0)"},
        {"but not with an init container", GPU_BINPACK, "0:2=20",
         "init:i=gpu-mem:1 c0=gpu-mem:15 c1=gpu-mem:14",
         "no card has 29 GiB free beside what others were promised (largest free: 15 GiB on card 0)"},
        {"compute counts", GPU_BINPACK, "0:1=5/90", "c0=gpu-mem:3,gpu-core.percentage:15",
         "0:0=3/15"},
        {"to its last percent", GPU_BINPACK, "0:1=5/90", "c0=gpu-mem:3,gpu-core.percentage:10",
         "0:1=3/10"},
        {"more than any card has", GPU_BINPACK, "", "c0=gpu-mem:25",
         "no card has 25 GiB free beside what others were promised (largest free: 24 GiB on card 2)"},
        {"a sick card is none", GPU_SPREAD, "sick", "c0=gpu-mem:3", "0:0=3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arena a;
        struct gpu_inventory inv;
        struct card_usage room;
        struct grant grant;
        struct error err = ERROR_INIT;
        arena_init(&a, 0);
        cards_make(&inv, &a, (const int64_t[]){16160, 16160, 24 * 1024, 0});
        card_usage_init(&room, &inv, rows[i].placement);
        if (str_eq(rows[i].promised, "sick")) {
            inv.cards[2].health = GPU_HEALTH_SICK;
        } else if (rows[i].promised[0] != '\0') {
            struct grant_share share = {0};
            int percent = 0, gib = 0;
            assert_true(sscanf(rows[i].promised, "%u:%d=%d/%d", &share.container, &share.card, &gib,
                               &percent) >= 3);
            share.gib = gib;
            share.percent = percent;
            card_usage_add(&room, &(struct grant){.shares = &share, .shares_len = 1}, NULL);
        }
        struct pod *p = cards_pod("a", rows[i].containers, "");
        if (card_usage_place(&room, p, &a, &grant, &err) == 0)
            expect_str(rows[i].row, rows[i].wanted, print(&a, &grant));
        else
            expect_true(rows[i].row, strstr(err.text, rows[i].wanted) != NULL);
        pod_free(p);
        arena_deinit(&a);
    }
    expect_done();
}

static void the_larger_of_promise_and_truth_counts(void **state)
{
    (void)state;
    struct arena a;
    struct gpu_inventory inv;
    struct card_usage room;
    size_t at = 0;
    struct error err = ERROR_INIT;
    arena_init(&a, 0);
    cards_make(&inv, &a, (const int64_t[]){16160, 16160, 0});
    struct grant_share share = {.container = 0, .card = 0, .gib = 10};
    struct grant grant = {.shares = &share, .shares_len = 1};
    struct match_listed_container c0 = {.name = "c0"};
    c0.held[MODE_GPU_MEM] = cards_ids(&a, "GPU-b:0-9");
    struct match_listed held = {.key = "default/a", .containers = &c0, .containers_len = 1};
    card_usage_init(&room, &inv, GPU_BINPACK);
    card_usage_add(&room, &grant, &held);
    expect_int("10 GiB promised on one card", 10, room.used[0].gib);
    expect_int("and held on the other", 10, room.used[1].gib);
    expect_int("what is left is 5 on each", 0, card_usage_pick(&room, MODE_GPU_MEM, 5, &at, &err));
    expect_int("not 6", -1, card_usage_pick(&room, MODE_GPU_MEM, 6, &at, &err));
    expect_true("in a sentence", strstr(err.text, "no card has 6 GiB free") != NULL);
    share.card = 1;
    card_usage_init(&room, &inv, GPU_BINPACK);
    card_usage_add(&room, &grant, &held);
    expect_int("the same card is not counted twice", 10, room.used[1].gib);
    c0.held[MODE_GPU_MEM] = (struct inventory_ids){0};
    c0.held[MODE_GPU] = cards_ids(&a, "GPU-a");
    card_usage_add(&room, NULL, &held);
    expect_true("a whole card has no room for shares", !card_usage_has(&room, 0, 1, 0));
    arena_deinit(&a);
    expect_done();
}

static void truth(void **state)
{
    (void)state;
    static const struct {
        const char *row, *containers, *grant, *held0, *held1;
        const char *wanted; /* "": the grant stands */
    } rows[] = {
        {"as promised", "c0=gpu-mem:2", "{\\\"0\\\":{\\\"0\\\":2}}", "GPU-a:0-1", "", ""},
        {"on another card", "c0=gpu-mem:2", "{\\\"0\\\":{\\\"0\\\":2}}", "GPU-b:3-4", "", "0:1=2"},
        {"nothing is held yet", "c0=gpu-mem:2", "{\\\"0\\\":{\\\"0\\\":2}}", "", "", ""},
        {"the one that has none yet keeps its promise", "c0=gpu-mem:2 c1=gpu-mem:1",
         "{\\\"0\\\":{\\\"0\\\":2},\\\"1\\\":{\\\"0\\\":1}}", "GPU-b:3-4", "", "0:1=2 1:0=1"},
        {"then it follows", "c0=gpu-mem:2 c1=gpu-mem:1",
         "{\\\"0\\\":{\\\"1\\\":2},\\\"1\\\":{\\\"0\\\":1}}", "GPU-b:3-4", "GPU-b:0-0",
         "0:1=2 1:1=1"},
        {"a sidecar that is not listed has a card of its own", "c0=gpu-mem:2 side:s=gpu-mem:1",
         "{\\\"0\\\":{\\\"0\\\":2},\\\"1\\\":{\\\"0\\\":1}}", "GPU-b:3-4", "", "0:1=2 1:0=1"},
        {"the rest of an init container follows", "c0=gpu-mem:2 init:i=gpu-mem:3",
         "{\\\"0\\\":{\\\"0\\\":2},\\\"1\\\":{\\\"0\\\":1}}", "GPU-b:3-4", "", "0:1=2 1:1=1"},
        {"no promise at all", "c0=gpu-mem:2", "", "GPU-b:3-4", "", "0:1=2"},
        {"no promise, and half of it", "c0=gpu-mem:2 c1=gpu-mem:1", "", "GPU-b:3-4", "", ""},
        {"fewer ids than asked for are no truth yet", "c0=gpu-mem:2", "{\\\"0\\\":{\\\"0\\\":2}}",
         "GPU-b:3-3", "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arena a;
        struct gpu_inventory inv;
        struct grant said, out;
        struct error err = ERROR_INIT;
        arena_init(&a, 0);
        cards_make(&inv, &a, (const int64_t[]){16160, 16160, 0});
        const char *annotation =
            rows[i].grant[0] == '\0'
                ? ""
                : arena_printf(&a, "\"scheduler.framework.gpushare.allocation\":\"%s\"",
                               rows[i].grant);
        struct pod *p = cards_pod("a", rows[i].containers, annotation);
        struct match_listed_container c[2] = {{.name = "c0"}, {.name = "c1"}};
        c[0].held[MODE_GPU_MEM] = cards_ids(&a, rows[i].held0);
        c[1].held[MODE_GPU_MEM] = cards_ids(&a, rows[i].held1);
        struct match_listed held = {
            .key = p->key, .containers = c, .containers_len = p->containers_len};
        expect_int(rows[i].row, 0, grant_decode(p, &a, &said, &err));
        bool differs = card_usage_truth(&inv, p, &said, &held, &a, &out);
        expect_str(rows[i].row, rows[i].wanted, differs ? print(&a, &out) : "");
        pod_free(p);
        arena_deinit(&a);
    }
    expect_done();
}

static void widening(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        struct grant_share said[3], truth[3]; /* gib and percent 0: no more */
        bool covered;
        const char *wanted;
    } rows[] = {
        {"the same", {{0, 0, 2, 0}}, {{0, 0, 2, 0}}, true, "0:0=2"},
        {"nothing was said", {{0}}, {{0, 1, 2, 0}}, false, "0:1=2"},
        {"another card", {{0, 1, 2, 0}}, {{0, 0, 2, 0}}, false, "0:0=2 0:1=2"},
        {"both cards were said", {{0, 0, 2, 0}, {0, 1, 2, 0}}, {{0, 1, 2, 0}}, true, "0:0=2 0:1=2"},
        {"less memory on the same card", {{0, 0, 1, 0}}, {{0, 0, 2, 0}}, false, "0:0=2"},
        {"more memory on the same card", {{0, 0, 3, 0}}, {{0, 0, 2, 0}}, true, "0:0=3"},
        {"less compute, more memory", {{0, 0, 3, 5}}, {{0, 0, 2, 10}}, false, "0:0=3/10"},
        {"the other container's share is not this one's",
         {{0, 0, 2, 0}, {1, 1, 2, 0}},
         {{0, 1, 2, 0}, {1, 1, 2, 0}},
         false,
         "0:0=2 0:1=2 1:1=2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arena a;
        struct grant out, said = {0}, truth = {0};
        arena_init(&a, 0);
        said.shares = arena_new(&a, struct grant_share, 3);
        truth.shares = arena_new(&a, struct grant_share, 3);
        for (size_t k = 0; k < 3; k++) {
            if (rows[i].said[k].gib > 0)
                said.shares[said.shares_len++] = rows[i].said[k];
            if (rows[i].truth[k].gib > 0)
                truth.shares[truth.shares_len++] = rows[i].truth[k];
        }
        expect_int(rows[i].row, rows[i].covered, card_usage_covers(&said, &truth));
        card_usage_widen(&said, &truth, &a, &out);
        expect_str(rows[i].row, rows[i].wanted, print(&a, &out));
        expect_true(rows[i].row, card_usage_covers(&out, &said) && card_usage_covers(&out, &truth));
        arena_deinit(&a);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_without_a_grant),
        cmocka_unit_test(the_larger_of_promise_and_truth_counts),
        cmocka_unit_test(truth),
        cmocka_unit_test(widening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

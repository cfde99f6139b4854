// SPDX-License-Identifier: Apache-2.0
/*
 * Which cards a pod gets: rows with what the cards hold, what is asked for, and the choice or the
 * reason.
 */
#include "scheduler/accounts/gpu_accounts.h"

#include "lib/model/names.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

/* One card's number, GiB and percent held on it; used to set the scene. */
struct held {
    int32_t card;
    int64_t gib, percent;
};

/* Shares as text: "0:1=3" is container 0 on card 1 with 3 GiB; percent behind a slash. Whole cards:
 * "group 0,1". */
static const char *shown(const struct grant *c, struct arena *a)
{
    AUTO_STRBUF b;
    strbuf_init(&b);
    for (size_t i = 0; i < c->shares_len; i++) {
        strbuf_addf(&b, "%s%u:%d=%lld", i > 0 ? " " : "", c->shares[i].container, c->shares[i].card,
                    (long long)c->shares[i].gib);
        if (c->shares[i].percent > 0)
            strbuf_addf(&b, "/%lld", (long long)c->shares[i].percent);
    }
    for (size_t i = 0; i < c->group_len; i++)
        strbuf_addf(&b, "%s%d", i > 0 ? "," : "group ", c->group[i]);
    return arena_strdup(a, strbuf_str(&b));
}

static void choices(void **state)
{
    (void)state;
    const struct {
        const char *row;
        const char *mode, *cards;
        struct fixture_pod pod;
        const char *placement;
        struct held held[3];
        const char *choice; /* NULL: refused */
        enum gpu_accounts_no no;
        int64_t largest, free_cards;
    } rows[] = {
        {"exactly the size of a card",
         "cgpu",
         "15",
         {.name = "p", .c = {{.gib = 15}}},
         .choice = "0:0=15"},
        {"one more",
         "cgpu",
         "15",
         {.name = "p", .c = {{.gib = 16}}},
         .no = GPU_ACCOUNTS_NO_CARD,
         .largest = 15},
        {"binpack takes the fullest card that fits",
         "cgpu",
         "15,15,15",
         {.name = "p", .c = {{.gib = 6}}},
         .held = {{1, 6, 0}, {2, 10, 0}},
         .choice = "0:1=6"},
        {"an unknown placement is binpack",
         "share",
         "15,15",
         {.name = "p", .c = {{.gib = 6}}},
         .placement = "sideways",
         .held = {{1, 6, 0}},
         .choice = "0:1=6"},
        {"spread takes the emptiest",
         "cgpu",
         "15,15,15",
         {.name = "p", .c = {{.gib = 6}}},
         .placement = "spread",
         .held = {{0, 1, 0}, {1, 6, 0}},
         .choice = "0:2=6"},
        {"equal cards: the first",
         "mps",
         "15,15",
         {.name = "p", .c = {{.gib = 6}}},
         .placement = "spread",
         .choice = "0:0=6"},
        {"free memory on several cards does not add up",
         "cgpu",
         "15,15",
         {.name = "p", .c = {{.gib = 8}}},
         .held = {{0, 8, 0}, {1, 8, 0}},
         .no = GPU_ACCOUNTS_NO_CARD,
         .largest = 7},
        {"a sick card is not taken",
         "cgpu",
         "15*,15",
         {.name = "p", .c = {{.gib = 6}}},
         .choice = "0:1=6"},
        {"compute must be free, too",
         "core_mem",
         "15,15",
         {.name = "p", .c = {{.gib = 2, .percent = 30}}},
         .held = {{0, 1, 80}, {1, 1, 70}},
         .choice = "0:1=2/30"},
        {"compute that is not free",
         "core_mem",
         "15,15",
         {.name = "p", .c = {{.gib = 2, .percent = 30}}},
         .held = {{0, 1, 80}, {1, 1, 75}},
         .no = GPU_ACCOUNTS_NO_CARD,
         .largest = 14},
        {"compute in a mode without it",
         "cgpu",
         "15,15",
         {.name = "p", .c = {{.gib = 2, .percent = 30}}},
         .no = GPU_ACCOUNTS_WRONG_MODE},
        {"memory in a mode with compute",
         "core_mem",
         "15",
         {.name = "p", .c = {{.gib = 2}}},
         .choice = "0:0=2"},
        {"two containers fill two cards",
         "cgpu",
         "8,8",
         {.name = "p", .containers = 2, .c = {{.gib = 8}, {.gib = 8}}},
         .choice = "0:0=8 1:1=8"},
        {"two containers share a card",
         "cgpu",
         "8,8",
         {.name = "p", .containers = 2, .c = {{.gib = 4}, {.gib = 4}}},
         .choice = "0:0=4 1:0=4"},
        {"two containers and one card",
         "cgpu",
         "8",
         {.name = "p", .containers = 2, .c = {{.gib = 8}, {.gib = 8}}},
         .no = GPU_ACCOUNTS_NO_CARD,
         .largest = 8},
        {"spread finds the way that the rule alone misses",
         "cgpu",
         "8,5",
         {.name = "p", .containers = 2, .c = {{.gib = 5}, {.gib = 8}}},
         .placement = "spread",
         .choice = "0:1=5 1:0=8"},
        {"a container without a GPU has no share",
         "cgpu",
         "8",
         {.name = "p", .containers = 2, .c = {{.cpu_milli = 5}, {.gib = 8}}},
         .choice = "1:0=8"},
        {"over two cards",
         "cgpu",
         "8,8,8",
         {.name = "p", .c = {{.gib = 8}}, .labels = PAIRS(NAME_RES_GPU_COUNT, "2")},
         .held = {{1, 1, 0}, {2, 6, 0}},
         .choice = "0:0=4 0:1=4"},
        {"over more cards than fit",
         "cgpu",
         "8,8,8",
         {.name = "p", .c = {{.gib = 8}}, .labels = PAIRS(NAME_RES_GPU_COUNT, "2")},
         .held = {{1, 5, 0}, {2, 6, 0}},
         .no = GPU_ACCOUNTS_NO_CARD,
         .largest = 8},
        {"with an init container all is on one card",
         "cgpu",
         "6,8",
         {.name = "p", .c = {{.gib = 3}}, .has_init = true, .init = {.gib = 7}},
         .choice = "0:1=3 1:1=4"},
        {"with an init container that fits nowhere",
         "cgpu",
         "6,6",
         {.name = "p", .c = {{.gib = 3}}, .has_init = true, .init = {.gib = 7}},
         .no = GPU_ACCOUNTS_NO_CARD,
         .largest = 6},
        {"whole cards",
         "topology",
         "15,15,15",
         {.name = "p", .c = {{.cards = 2}}},
         .choice = "group 0,1"},
        {"whole cards beside a share and a sick one",
         "topology",
         "15,15,15*,15",
         {.name = "p", .c = {{.cards = 2}}},
         .held = {{1, 1, 0}},
         .choice = "group 0,3"},
        {"more whole cards than are free",
         "topology",
         "15,15,15*,15",
         {.name = "p", .c = {{.cards = 3}}},
         .held = {{1, 1, 0}},
         .no = GPU_ACCOUNTS_TOO_FEW_CARDS,
         .free_cards = 2},
        {"whole cards in a shared mode",
         "cgpu",
         "15",
         {.name = "p", .c = {{.cards = 1}}},
         .no = GPU_ACCOUNTS_WRONG_MODE},
        {"a share in topology mode",
         "topology",
         "15",
         {.name = "p", .c = {{.gib = 1}}},
         .no = GPU_ACCOUNTS_WRONG_MODE},
        {"a share in default mode",
         "default",
         "15",
         {.name = "p", .c = {{.gib = 1}}},
         .no = GPU_ACCOUNTS_WRONG_MODE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arena a;
        struct gpu_accounts l;
        struct gpu_request r;
        struct gpu_accounts_why why, again;
        struct grant grant = {0};
        arena_init(&a, 0);
        gpu_accounts_init(&l);
        gpu_accounts_set_inventory(&l, fixture_inventory(&a, rows[i].mode, rows[i].cards),
                                   rows[i].placement);
        for (size_t k = 0; k < 3; k++) {
            l.cards[rows[i].held[k].card].used_gib += rows[i].held[k].gib;
            l.cards[rows[i].held[k].card].used_percent += rows[i].held[k].percent;
        }
        struct pod *p = fixture_make_pod(&rows[i].pod);
        gpu_request_read(p, &p->arena, &r, NULL);
        uint64_t before = gpu_accounts_digest(&l);
        bool fits = gpu_accounts_choose(&l, &r, &a, &grant, &why);
        expect_str(rows[i].row, rows[i].choice, fits ? shown(&grant, &a) : NULL);
        expect_int(rows[i].row, rows[i].no, why.no);
        if (!fits) {
            expect_int(rows[i].row, rows[i].largest, why.largest_gib);
            expect_int(rows[i].row, rows[i].free_cards, why.free_cards);
        } else {
            struct error err = ERROR_INIT;
            expect_int(rows[i].row, 0, grant_check(&grant, p, &l.inventory, &err));
            expect_true(rows[i].row, grant_adds_up(&grant, p, &r, NULL) == 0);
        }
        expect_int("asking without taking says the same", fits,
                   gpu_accounts_choose(&l, &r, &a, NULL, &again));
        expect_true("what fits could also fit the empty node",
                    !fits || gpu_accounts_could(&l, &r, &a, &again));
        expect_true("choosing changes nothing", gpu_accounts_digest(&l) == before);
        pod_free(p);
        gpu_accounts_deinit(&l);
        arena_deinit(&a);
    }
    expect_done();
}

/* All cards are held; only their sizes count. */
static void what_the_empty_node_could_hold(void **state)
{
    (void)state;
    const struct {
        const char *row;
        const char *mode, *cards;
        struct fixture_pod pod;
        bool could;
        int64_t largest, all_cards; /* could false */
    } rows[] = {
        {"the size of the largest", "cgpu", "15,24", {.name = "p", .c = {{.gib = 24}}}, true, 0, 0},
        {"one more", "cgpu", "15,24", {.name = "p", .c = {{.gib = 25}}}, false, 24, 0},
        {"a sick card may recover",
         "cgpu",
         "15,24*",
         {.name = "p", .c = {{.gib = 24}}},
         true,
         0,
         0},
        {"two shares on two cards",
         "cgpu",
         "15,24",
         {.name = "p", .containers = 2, .c = {{.gib = 24}, {.gib = 15}}},
         true,
         0,
         0},
        {"two that need the larger one",
         "cgpu",
         "15,24",
         {.name = "p", .containers = 2, .c = {{.gib = 16}, {.gib = 16}}},
         false,
         24,
         0},
        {"whole cards", "topology", "15,15", {.name = "p", .c = {{.cards = 2}}}, true, 0, 0},
        {"more than there are",
         "topology",
         "15,15",
         {.name = "p", .c = {{.cards = 3}}},
         false,
         0,
         2},
        {"another mode is not a matter of size",
         "topology",
         "15",
         {.name = "p", .c = {{.gib = 16}}},
         true,
         0,
         0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arena a;
        struct gpu_accounts l;
        struct gpu_request r;
        struct gpu_accounts_why why;
        arena_init(&a, 0);
        gpu_accounts_init(&l);
        gpu_accounts_set_inventory(&l, fixture_inventory(&a, rows[i].mode, rows[i].cards), NULL);
        for (size_t k = 0; k < l.inventory.cards_len; k++)
            l.cards[k] = (struct gpu_accounts_card){.used_gib = 9, .whole_holders = 1};
        l.unplaced_gib = 5;
        struct pod *p = fixture_make_pod(&rows[i].pod);
        gpu_request_read(p, &p->arena, &r, NULL);
        bool could = gpu_accounts_could(&l, &r, &a, &why);
        expect_int(rows[i].row, rows[i].could, could);
        if (!could) {
            expect_int(rows[i].row, rows[i].largest, why.largest_gib);
            expect_int(rows[i].row, rows[i].all_cards, why.free_cards);
        }
        pod_free(p);
        gpu_accounts_deinit(&l);
        arena_deinit(&a);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices),
        cmocka_unit_test(what_the_empty_node_could_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What whole cards cost by their links: rows of two choices, of which the first must be the cheaper
 * one; and the quick way beside the exact one.
 */
#include "scheduler/accounts/gpu_accounts_links.h"

#include "lib/model/links.h"
#include "scheduler/accounts/prices.h"
#include "test/unit/lib/base/expect.h"

enum { CARDS_MAX = 16 };

/* Cards in islands of so many, linked by `inside` in one and by `outside` between two. */
struct machine {
    size_t cards, island;
    const char *inside, *outside;
};

static void make(const struct machine *m, struct arena *a, struct gpu_inventory *out)
{
    *out = (struct gpu_inventory){.cards = arena_new(a, struct gpu_card, m->cards),
                                  .cards_len = m->cards};
    if (m->inside == NULL)
        return;
    out->links = arena_new(a, const char *, m->cards * m->cards);
    for (size_t i = 0; i < m->cards * m->cards; i++) {
        size_t x = i / m->cards, y = i % m->cards;
        out->links[i] = x == y ? "X" : x / m->island == y / m->island ? m->inside : m->outside;
    }
}

static int64_t cost(const struct machine *m, uint64_t free, int64_t want)
{
    struct arena a;
    struct gpu_inventory inv;
    arena_init(&a, 0);
    make(m, &a, &inv);
    int64_t result = gpu_accounts_links_cost(&inv, free, want);
    arena_deinit(&a);
    return result;
}

static void cheaper(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        int64_t want;
        struct {
            struct machine machine;
            uint64_t free;
        } cheap, dear;
    } rows[] = {
        {"a pair with NVLink before one behind a switch",
         2,
         {{4, 2, "NV2", "SYS"}, 0xF},
         {{4, 4, "PIX", "PIX"}, 0xF}},
        {"more NVLinks before fewer, though more cards stay over",
         4,
         {{8, 8, "NV12", "NV12"}, 0xFF},
         {{4, 4, "NV4", "NV4"}, 0xF}},
        {"the weakest link counts: an island that is whole before one that is broken",
         2,
         {{4, 2, "NV4", "SYS"}, 0x3},
         {{4, 2, "NV4", "SYS"}, 0x5}},
        {"of equal weakest links the better sum",
         3,
         {{4, 2, "NV4", "SYS"}, 0xF},
         {{4, 4, "SYS", "SYS"}, 0xF}},
        {"equal links: where fewer stay over",
         2,
         {{2, 2, "NV4", "SYS"}, 0x3},
         {{8, 8, "NV4", "NV4"}, 0xFF}},
        {"one card: where fewer stay over",
         1,
         {{8, 8, "NV4", "NV4"}, 0x1},
         {{2, 2, "SYS", "SYS"}, 0x3}},
        {"known links before none", 2, {{2, 2, "SYS", "SYS"}, 0x3}, {{2, 2, NULL, NULL}, 0x3}},
        {"of many cards as of few: one island of four",
         4,
         {{16, 4, "NV2", "SYS"}, 0xFFFF},
         {{16, 2, "NV2", "SYS"}, 0xFFFF}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t x = cost(&rows[i].cheap.machine, rows[i].cheap.free, rows[i].want);
        int64_t y = cost(&rows[i].dear.machine, rows[i].dear.free, rows[i].want);
        expect_true(rows[i].row, prices_score(x) > prices_score(y));
        expect_true(rows[i].row, x >= 0 && y <= 216 * PRICES_POINT);
    }
    expect_done();
}

static void boundaries(void **state)
{
    (void)state;
    static const struct machine two = {2, 2, "NV1", "NV1"};
    expect_int("no card is wanted", 0, cost(&two, 0x3, 0));
    expect_int("fewer are free", 0, cost(&two, 0x1, 2));
    expect_int("one, and one stays over", 1 * PRICES_POINT, cost(&two, 0x3, 1));
    expect_int("one NVLink: half of all points", 104 * PRICES_POINT, cost(&two, 0x3, 2));
    expect_done();
}

/* In islands of one kind the grown set is as good as the best one: cards are added to an island
 * until it is full. */
static void many_cards(void **state)
{
    (void)state;
    for (size_t island = 1; island <= CARDS_MAX; island *= 2)
        for (int64_t want = 2; want <= CARDS_MAX; want++) {
            struct machine m = {CARDS_MAX, island, "NV4", "SYS"};
            bool whole = (size_t)want <= island;
            int64_t weakest = whole ? 400 : 10;
            int64_t points = cost(&m, 0xFFFF, want) / PRICES_POINT;
            int64_t least = GPU_ACCOUNTS_LINKS_WEAKEST * 100 / (100 + weakest);
            expect_true("the weakest link is the best there is",
                        points >= least && points <= least + GPU_ACCOUNTS_LINKS_MEAN +
                                                         GPU_ACCOUNTS_LINKS_LEFT + 1);
        }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cheaper),
        cmocka_unit_test(boundaries),
        cmocka_unit_test(many_cards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

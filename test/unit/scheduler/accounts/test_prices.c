// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/prices.h"

#include "test/unit/lib/base/expect.h"

enum { POINT = PRICES_POINT };

/* Shares of 300 and 700 of a card of 1000, 10 CPUs for each card. */
static void learn(struct demand *d)
{
    static const struct demand_ask asks[] = {
        {.cpu_milli = 3000, .milli_cards = 300, .size = 300, .shares = 1},
        {.cpu_milli = 7000, .milli_cards = 700, .size = 700, .shares = 1},
        {.cpu_milli = 10000, .milli_cards = 1000, .models = 2},
    };
    for (int i = 0; i < 30; i++)
        demand_count(d, &asks[i % 3]);
}

static void of_cards(void **state)
{
    (void)state;
    struct prices p;
    struct demand d = {0};
    static const int64_t capacities[] = {1000, 20};
    prices_init(&p);
    expect_true("with nothing known a share costs less on the fuller card",
                prices_of_share(&p, 1000, 400, 100, false) <
                    prices_of_share(&p, 1000, 900, 600, false));
    learn(&d);
    prices_take(&p, &d, capacities, 2, 0);
    expect_int("the small one beside a large one costs nothing else", 0,
               prices_of_share(&p, 1000, 299, 10, false));
    expect_true("into the rest that it fits costs less than from one that the large one fits",
                prices_of_share(&p, 1000, 300, 0, false) <
                    prices_of_share(&p, 1000, 700, 400, false));
    expect_int("a card that nobody uses costs ten points more", PRICES_UNTOUCHED * POINT,
               prices_of_share(&p, 1000, 1000, 700, true) -
                   prices_of_share(&p, 1000, 1000, 700, false));
    expect_int("a size that is not expected on small cards has no price there", 0,
               prices_of_share(&p, 20, 0, 0, false));
    expect_int("more than there is costs nothing", 0, prices_of_share(&p, 1000, 100, -5, false));
    expect_int("nor does a card without size", 0, prices_of_share(&p, 0, 0, 0, false));
    prices_deinit(&p);
    expect_done();
}

static void of_cpu(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        struct prices_node n;
        int64_t cpu, cards, points;
    } rows[] = {
        {"enough CPU for all cards", {96000, 8, 96000, 8000, 0, 0}, 10000, 0, 0},
        {"just enough is left", {96000, 8, 90000, 8000, 0, 0}, 10000, 0, 0},
        {"one CPU too few is a tenth of a card", {96000, 8, 90000, 8000, 0, 0}, 11000, 0, 100},
        {"all of it is too few", {96000, 8, 80000, 8000, 0, 0}, 10000, 0, 1000},
        {"with its share of CPU a card costs nothing",
         {96000, 8, 60000, 8000, 0, 0},
         10000,
         1000,
         0},
        {"with less it frees cards that had none", {96000, 8, 60000, 8000, 0, 0}, 1000, 1000, -900},
        {"a node has no more CPU for a card than it has",
         {80000, 10, 80000, 10000, 0, 0},
         7600,
         0,
         474},
        {"no cards, no cost", {96000, 0, 60000, 0, 0, 0}, 10000, 0, 0},
        {"no idle cards, no cost", {96000, 8, 60000, 0, 0, 0}, 10000, 0, 0},
    };
    struct prices p;
    struct demand d = {0};
    prices_init(&p);
    learn(&d);
    prices_take(&p, &d, NULL, 0, 0);
    expect_int("CPU for a card", 10000, p.cpu_per_card);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_int(rows[i].row, rows[i].points,
                   -prices_score(prices_of_node(&p, &rows[i].n, rows[i].cpu, rows[i].cards)));
    struct prices_node hostile = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, 0, 0};
    expect_int("amounts without sense are no overflow", 0,
               prices_of_node(&p, &hostile, INT64_MAX, 0));
    prices_deinit(&p);
    expect_done();
}

static void of_models(void **state)
{
    (void)state;
    struct prices p;
    struct demand d = {0};
    struct prices_idle idle = {.milli_cards = {9000, 1000}, .cpu_milli = 1000000};
    struct prices_node common = {1, 1, 1, 0, 0, 0}, rare = {1, 1, 1, 0, 1, 0},
                       unknown = {1, 1, 1, 0, DEMAND_MODELS_MAX, 0};
    prices_init(&p);
    expect_true("nothing known, nothing set", !prices_set_idle(&p, &idle));
    learn(&d); /* half of the demand insists on model 1, which is a tenth of what is idle */
    prices_take(&p, &d, NULL, 0, 0);
    uint64_t version = p.version;
    expect_true("set", prices_set_idle(&p, &idle));
    expect_true("that is another version", p.version != version);
    expect_int("nobody insists on it", 0, prices_of_node(&p, &common, 0, 1000));
    expect_int("demand by supply, three tenths of it", 5 * PRICES_CARD / 10 * 3,
               prices_of_node(&p, &rare, 0, 1000));
    expect_int("by the cards asked for", 5 * PRICES_CARD / 100 * 3,
               prices_of_node(&p, &rare, 0, 100));
    expect_int("a model that nobody knows", 0, prices_of_node(&p, &unknown, 0, 1000));
    version = p.version;
    idle.milli_cards[1] = 950;
    expect_true("a little less of it changes nothing", !prices_set_idle(&p, &idle));
    expect_int("no other version", (int64_t)version, (int64_t)p.version);
    idle.milli_cards[1] = 500;
    expect_true("half of it does", prices_set_idle(&p, &idle));
    idle.milli_cards[1] = 0;
    expect_true("none of it", prices_set_idle(&p, &idle));
    expect_true("is dear, and that has an end",
                prices_of_node(&p, &rare, 0, 1000) == INT64_C(30) * PRICES_CARD);
    prices_deinit(&p);
    expect_done();
}

static void of_cards_that_differ_in_size(void **state)
{
    (void)state;
    struct prices p;
    struct demand d = {0};
    struct prices_idle idle = {.milli_cards = {10000}, .cpu_milli = 200000};
    static const int64_t sizes[] = {16, 80};
    prices_init(&p);
    learn(&d);
    prices_take(&p, &d, sizes, 2, 48);
    (void)prices_set_idle(&p, &idle);
    expect_int("a small card that was not touched: a third of the mean",
               PRICES_UNTOUCHED * PRICES_POINT / 3, prices_of_share(&p, 16, 16, 16, true));
    expect_int("a large one: five times that", PRICES_UNTOUCHED * PRICES_POINT * 80 / 48,
               prices_of_share(&p, 80, 80, 80, true));
    p.reference = 0;
    expect_int("no mean: by the card", PRICES_UNTOUCHED * PRICES_POINT,
               prices_of_share(&p, 80, 80, 80, true));
    struct prices_node n = {.cpu_milli = 40000,
                            .cards = 4,
                            .free_cpu_milli = 40000,
                            .idle_milli = 4000,
                            .model = DEMAND_MODELS_MAX};
    int64_t same = prices_of_node(&p, &n, 20000, 0);
    n.size_milli = 1000;
    expect_int("a card of the mean size", same, prices_of_node(&p, &n, 20000, 0));
    n.size_milli = 500;
    expect_true("half as large: half as much CPU goes with it",
                prices_of_node(&p, &n, 20000, 0) < same);
    n.size_milli = 2000;
    expect_true("twice as large: no more CPU than there is, and twice the loss",
                prices_of_node(&p, &n, 20000, 0) >= same);
    n.size_milli = INT64_MAX;
    expect_true("a size that cannot be", prices_of_node(&p, &n, INT64_MAX, INT64_MAX) < INT64_MAX);
    prices_deinit(&p);
    expect_done();
}

static void of_scarce_cpu(void **state)
{
    (void)state;
    struct prices p;
    struct demand d = {0};
    struct prices_idle idle = {.milli_cards = {10000}, .cpu_milli = 200000};
    prices_init(&p);
    learn(&d);
    prices_take(&p, &d, NULL, 0, 0);
    (void)prices_set_idle(&p, &idle);
    expect_int("twice as much as pods ask for: that much", 10000, p.cpu_per_card);
    idle.cpu_milli = 100000;
    (void)prices_set_idle(&p, &idle);
    expect_int("half of what there is for a card", 5000, p.cpu_per_card);
    idle.cpu_milli = 0;
    (void)prices_set_idle(&p, &idle);
    expect_int("none, but a price", 1, p.cpu_per_card);
    idle.cpu_milli = 400000;
    (void)prices_set_idle(&p, &idle);
    expect_int("and back", 10000, p.cpu_per_card);
    prices_deinit(&p);
    expect_done();
}

static void when_to_take_them(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        uint64_t seen, taken;
        bool due;
    } rows[] = {
        {"nothing seen", 0, 0, false},         {"the first", 1, 0, true},
        {"nothing new", 1, 1, false},          {"twice as many", 32, 16, true},
        {"not quite", 31, 16, false},          {"many, and few more", 6023, 5000, false},
        {"a thousand more", 6024, 5000, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_int(rows[i].row, rows[i].due, prices_are_due(rows[i].seen, rows[i].taken));
    expect_int("points round towards what is dearer", -1, prices_score(1));
    expect_int("also below zero", 0, prices_score(-999));
    expect_int("a whole point", -1, prices_score(POINT));
    expect_int("and below", 1, prices_score(-POINT));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_cards),      cmocka_unit_test(of_cpu),
        cmocka_unit_test(of_models),     cmocka_unit_test(of_cards_that_differ_in_size),
        cmocka_unit_test(of_scarce_cpu), cmocka_unit_test(when_to_take_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "lib/model/links.h"

#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/model/links_kit.h"

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

/* Two pairs with bridges on each of two NUMA nodes. */
static const char bridges[] = "GPU0 X NV4 NODE NODE SYS SYS SYS SYS 0-3 0\n"
                              "GPU1 NV4 X NODE NODE SYS SYS SYS SYS 0-3 0\n"
                              "GPU2 NODE NODE X NV4 SYS SYS SYS SYS 0-3 0\n"
                              "GPU3 NODE NODE NV4 X SYS SYS SYS SYS 0-3 0\n"
                              "GPU4 SYS SYS SYS SYS X NV4 NODE NODE 4-7 1\n"
                              "GPU5 SYS SYS SYS SYS NV4 X NODE NODE 4-7 1\n"
                              "GPU6 SYS SYS SYS SYS NODE NODE X NV4 4-7 1\n"
                              "GPU7 SYS SYS SYS SYS NODE NODE NV4 X 4-7 1\n";
/* Two squares of cards, each joined to one of the other square: single and double links. */
static const char squares[] = "GPU0 X NV1 NV1 NV2 NV2 SYS SYS SYS 0-3 0\n"
                              "GPU1 NV1 X NV2 NV1 SYS NV2 SYS SYS 0-3 0\n"
                              "GPU2 NV1 NV2 X NV2 SYS SYS NV1 SYS 0-3 0\n"
                              "GPU3 NV2 NV1 NV2 X SYS SYS SYS NV1 0-3 0\n"
                              "GPU4 NV2 SYS SYS SYS X NV1 NV1 NV2 4-7 1\n"
                              "GPU5 SYS NV2 SYS SYS NV1 X NV2 NV1 4-7 1\n"
                              "GPU6 SYS SYS NV1 SYS NV1 NV2 X NV2 4-7 1\n"
                              "GPU7 SYS SYS SYS NV1 NV2 NV1 NV2 X 4-7 1\n";
/* One kind of link, two NUMA nodes, not in order. */
static const char flat[] = "GPU0 X SYS SYS SYS 0 0\n"
                           "GPU1 SYS X SYS SYS 1 1\n"
                           "GPU2 SYS SYS X SYS 0 0\n"
                           "GPU3 SYS SYS SYS X 1 1\n";
/* The best pair hangs on a bad third. */
static const char kite[] = "GPU0 X NV4 SYS SYS 0 0\n"
                           "GPU1 NV4 X PIX PIX 0 0\n"
                           "GPU2 SYS PIX X PIX 0 0\n"
                           "GPU3 SYS PIX PIX X 0 0\n";

static void machine(const char *text, struct links *out)
{
    struct gpu_inventory inv;
    struct error err = ERROR_INIT;
    if (links_kit_parse(text, &arena, &inv, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    links_of(&inv, out);
}

static void the_best_links_are_chosen(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *machine;
        uint64_t free, must, near;
        size_t count;
        uint64_t expected;
    } rows[] = {
        {"a pair is one with a bridge", bridges, 0xff, 0, 0, 2, 0x03},
        {"a broken bridge is passed over", bridges, 0xfe, 0, 0, 2, 0x0c},
        {"a single card comes from the broken pair", bridges, 0xfe, 0, 0, 1, 0x02},
        {"the broken pair is broken further where more is whole elsewhere", bridges, 0xf6, 0, 0, 1,
         0x02},
        {"a single card comes from the broken half", bridges, 0xfc, 0, 0, 1, 0x04},
        {"four cards are one half", bridges, 0xff, 0, 0, 4, 0x0f},
        {"four cards with one half broken are the other", bridges, 0xfd, 0, 0, 4, 0xf0},
        {"three cards stay on one half", bridges, 0xff, 0, 0, 3, 0x07},
        {"three cards of a broken half, so that the other stays whole", bridges, 0xfb, 0, 0, 3,
         0x0b},
        {"near cards decide between equal pairs", bridges, 0xff, 0, 0xf0, 2, 0x30},
        {"links come before near cards", bridges, 0x5f, 0, 0xf0, 2, 0x03},
        {"a card that must be there gets its own partner", bridges, 0xff, 0x40, 0, 2, 0xc0},
        {"cards that must be there need not be free", bridges, 0x0f, 0x40, 0, 2, 0x41},
        {"two double links of a square", squares, 0xff, 0, 0, 2, 0x09},
        {"a square of its own before two halves", squares, 0xff, 0, 0, 4, 0x0f},
        {"the other square stays whole although a double link leads there", squares, 0xf1, 0, 0, 1,
         0x01},
        {"without better links both cards are on one NUMA node", flat, 0x0f, 0, 0, 2, 0x05},
        {"and on the one that is near", flat, 0x0f, 0, 0x0a, 2, 0x0a},
        {"a single card comes from the broken NUMA node", flat, 0x0d, 0, 0, 1, 0x08},
        {"unless the other one is near", flat, 0x0d, 0, 0x05, 1, 0x01},
        {"the weakest link counts before the sum", kite, 0x0f, 0, 0, 3, 0x0e},
        {"all that are free", kite, 0x0d, 0, 0, 3, 0x0d},
        {"more than are free: none", kite, 0x0d, 0, 0, 4, 0},
        {"no card: none", kite, 0x0f, 0, 0, 0, 0},
        {"more that must be there than are wanted: none", kite, 0x0f, 0x03, 0, 1, 0},
        {"a card that must be there and is not in the machine: none", kite, 0x0f, 0x10, 0, 2, 0},
        {"free cards that are not in the machine do not count", kite, 0xf1, 0, 0, 2, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct links l;
        machine(rows[i].machine, &l);
        const struct links_ask ask = {.free = rows[i].free,
                                      .must = rows[i].must,
                                      .near = rows[i].near,
                                      .count = rows[i].count};
        expect_int(rows[i].row, (int64_t)rows[i].expected, (int64_t)links_choose(&l, &ask));
    }
    expect_done();
}

static void a_link_is_as_good_as_its_weaker_direction(void **state)
{
    (void)state;
    struct links l;
    machine("GPU0 X NV9 PIX 0 0\nGPU1 SYS X PIX 0 0\nGPU2 PIX PIX X 0 0\n", &l);
    const struct links_ask ask = {.free = 7, .count = 2};
    expect_int("NV9 one way and SYS the other is SYS", 5, (int64_t)links_choose(&l, &ask));
    machine("GPU0 X X PIX 0 0\nGPU1 X X PIX 0 0\nGPU2 PIX PIX X 0 0\n", &l);
    expect_int("X between two cards is no link", 5, (int64_t)links_choose(&l, &ask));
    expect_done();
}

static void a_machine_without_links_goes_by_numa_nodes(void **state)
{
    (void)state;
    struct gpu_card cards[] = {{.numa = 0}, {.numa = 1}, {.numa = 0}, {.numa = -1}};
    const struct gpu_inventory inv = {.cards = cards, .cards_len = 4};
    struct links l;
    links_of(&inv, &l);
    expect_int("two cards", 5,
               (int64_t)links_choose(&l, &(struct links_ask){.free = 15, .count = 2}));
    expect_int("the first is the best of what is alone", 2,
               (int64_t)links_choose(&l, &(struct links_ask){.free = 15, .count = 1}));
    expect_done();
}

/* Every request size; near and must at random. */
static void compare_with_brute(const char *row, const struct links *l, uint64_t *seed, int times)
{
    uint64_t all = (UINT64_C(1) << l->len) - 1;
    for (int i = 0; i < times; i++) {
        struct links_ask ask = {.free = links_kit_random(seed) & all};
        if (links_kit_random(seed) % 2)
            ask.near = links_kit_random(seed) & all;
        if (links_kit_random(seed) % 4 == 0)
            ask.must = links_kit_random(seed) & links_kit_random(seed) & ask.free;
        for (ask.count = 1; ask.count <= l->len; ask.count++) {
            bool possible = __builtin_popcountll(ask.free) >= (int)ask.count &&
                            __builtin_popcountll(ask.must) <= (int)ask.count;
            uint64_t expected = possible ? links_kit_brute(l, &ask) : 0;
            uint64_t got = links_choose(l, &ask);
            if (expected != got)
                print_error("%s: %zu of 0x%llx, must 0x%llx, near 0x%llx\n", row, ask.count,
                            (unsigned long long)ask.free, (unsigned long long)ask.must,
                            (unsigned long long)ask.near);
            expect_int(row, (int64_t)expected, (int64_t)got);
        }
    }
}

static void the_choice_is_that_of_trying_all(void **state)
{
    (void)state;
    static const struct {
        const char *row, *machine;
    } rows[] = {{"bridges", bridges}, {"squares", squares}, {"flat", flat}, {"kite", kite}};
    uint64_t seed = 7;
    struct links l;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        machine(rows[i].machine, &l);
        compare_with_brute(rows[i].row, &l, &seed, 100);
    }
    for (size_t n = 2; n <= 8; n++)
        for (int i = 0; i < 40; i++) {
            struct gpu_inventory inv;
            links_kit_invent(&seed, n, &arena, &inv);
            links_of(&inv, &l);
            compare_with_brute("an invented machine", &l, &seed, 4);
        }
    expect_done();
}

/* The largest inventory, with links that nothing is known about: bounded, and the same each
 * time. */
static void many_cards_end_in_time_and_with_an_answer(void **state)
{
    (void)state;
    uint64_t seed = 3;
    struct gpu_inventory inv;
    struct links l;
    for (int i = 0; i < 6; i++) {
        links_kit_invent(&seed, GPU_CARDS_MAX, &arena, &inv);
        links_of(&inv, &l);
        for (size_t count = 1; count <= GPU_CARDS_MAX; count += 21) {
            const struct links_ask ask = {.free = UINT64_MAX, .count = count};
            uint64_t set = links_choose(&l, &ask);
            expect_int("as many as asked for", (int64_t)count, __builtin_popcountll(set));
            expect_true("the same again", set == links_choose(&l, &ask));
        }
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_best_links_are_chosen, setup, teardown),
        cmocka_unit_test_setup_teardown(a_link_is_as_good_as_its_weaker_direction, setup, teardown),
        cmocka_unit_test_setup_teardown(a_machine_without_links_goes_by_numa_nodes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_choice_is_that_of_trying_all, setup, teardown),
        cmocka_unit_test_setup_teardown(many_cards_end_in_time_and_with_an_answer, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

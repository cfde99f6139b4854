// SPDX-License-Identifier: Apache-2.0
/* In the asan variant (ARENA_DEBUG) each allocation is its own: the rows about blocks hold only
 * without it. */
#include "lib/base/arena.h"

#include "test/unit/lib/base/expect.h"

#if defined(ARENA_DEBUG) && ARENA_DEBUG
static const bool debug = true;
#else
static const bool debug = false;
#endif

static bool all_are(const unsigned char *p, size_t n, unsigned char want)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != want)
            return false;
    return true;
}

static void memory_is_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    static const size_t sizes[] = {0,   1,   15,   16,   17,    100,   975,
                                   976, 977, 1024, 5000, 65535, 65536, 200000};
    enum { SIZES = sizeof sizes / sizeof sizes[0], ROUNDS = 20 };
    struct arena a;
    unsigned char *got[SIZES * ROUNDS];
    arena_init(&a, 0);
    for (int pass = 0; pass < 3; pass++) { /* the later passes see dirty memory again */
        for (size_t i = 0; i < SIZES * ROUNDS; i++) {
            size_t n = sizes[i % SIZES];
            got[i] = arena_alloc(&a, n);
            expect_int("aligned to 16", 0, (int64_t)((uintptr_t)got[i] % 16));
            expect_true("zeroed", all_are(got[i], n, 0));
            memset(got[i], (int)(i % 255) + 1, n);
        }
        for (size_t i = 0; i < SIZES * ROUNDS; i++) {
            expect_true("nobody wrote here",
                        all_are(got[i], sizes[i % SIZES], (unsigned char)(i % 255 + 1)));
            for (size_t k = 0; k < i; k++)
                if (got[i] == got[k])
                    fail_msg("%zu and %zu have the same address", i, k);
        }
        arena_reset(&a);
    }
    arena_deinit(&a);
    expect_done();
}

static void strings(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 64);
    const char *first = arena_strdup(&a, "first");
    expect_str("strdup", "first", first);
    expect_str("strndup takes n bytes", "fir", arena_strndup(&a, "first", 3));
    expect_str("of nothing", "", arena_strndup(&a, NULL, 0));
    expect_str("printf", "n1/GPU0", arena_printf(&a, "%s/GPU%d", "n1", 0));
    for (int n = 120; n < 140; n++) { /* both sides of the small buffer */
        const char *s = arena_printf(&a, "%0*d", n, 7);
        expect_int("a long one", n, (int64_t)strlen(s));
        expect_int("ends as it should", '7', s[n - 1]);
    }
    void *aligned = arena_alloc(&a, 8);
    expect_int("what follows a string is aligned", 0, (int64_t)((uintptr_t)aligned % 16));
    expect_str("the first is still there", "first", first);
    arena_deinit(&a);
    expect_done();
}

/* A string leaves the next free byte anywhere; the padding behind it counts when the block is
 * nearly full. */
static void strings_and_structs_mixed(void **state)
{
    (void)state;
    for (size_t len = 0; len < 40; len++) {
        struct arena a;
        size_t asked = 0;
        arena_init(&a, 256);
        for (int i = 0; i < 2000; i++) {
            memset(arena_strndup(&a, "0123456789012345678901234567890123456789", len), 'x', len);
            memset(arena_alloc(&a, 16 + len), 'y', 16 + len);
            asked += 16 + 2 * len + 1;
        }
        expect_true("all of it is inside the blocks", arena_bytes(&a) >= asked);
        arena_deinit(&a);
    }
    expect_done();
}

static void arrays(void **state)
{
    (void)state;
    struct arena a = {0}; /* as good as arena_init(&a, 0) */
    int64_t *n = arena_new(&a, int64_t, 10);
    for (int i = 0; i < 10; i++)
        expect_int("zeroed", 0, n[i]);
    expect_true("an array of none", arena_new(&a, int64_t, 0) != NULL);
    arena_deinit(&a);
    expect_done();
}

static void blocks_double_and_big_ones_stand_alone(void **state)
{
    (void)state;
    if (debug)
        return;
    struct arena a;
    arena_init(&a, 1024);
    expect_int("nothing is taken before it is needed", 0, (int64_t)arena_bytes(&a));
    (void)arena_alloc(&a, 1);
    expect_int("one block", 1024, (int64_t)arena_bytes(&a));
    for (int i = 0; i < 900 / 16; i++)
        (void)arena_alloc(&a, 16);
    expect_int("still one block", 1024, (int64_t)arena_bytes(&a));
    (void)arena_alloc(&a, 512);
    expect_int("the second is twice as big", 1024 + 2048, (int64_t)arena_bytes(&a));

    size_t before = arena_bytes(&a);
    unsigned char *p = arena_alloc(&a, 16);
    (void)arena_alloc(&a, 100000);
    size_t own = arena_bytes(&a) - before;
    expect_true("a big request takes hardly more than it asks", own >= 100000 && own < 100100);
    expect_true("and the block in use stays in use",
                (unsigned char *)arena_alloc(&a, 16) == p + 16);

    while (a.next_block_bytes < 65536)
        (void)arena_alloc(&a, 512);
    before = arena_bytes(&a);
    while (arena_bytes(&a) == before)
        (void)arena_alloc(&a, 512);
    expect_int("blocks grow to 64 KiB", 65536, (int64_t)(arena_bytes(&a) - before));
    before = arena_bytes(&a);
    while (arena_bytes(&a) == before)
        (void)arena_alloc(&a, 512);
    expect_int("and not further", 65536, (int64_t)(arena_bytes(&a) - before));

    arena_reset(&a);
    expect_int("reset keeps the biggest ordinary block", 65536, (int64_t)arena_bytes(&a));
    for (int i = 0; i < 60000 / 512; i++)
        (void)arena_alloc(&a, 512);
    expect_int("and the next round uses it", 65536, (int64_t)arena_bytes(&a));
    arena_deinit(&a);
    expect_int("nothing is left", 0, (int64_t)arena_bytes(&a));
    (void)arena_alloc(&a, 8);
    expect_true("it may be used again", arena_bytes(&a) > 0);
    arena_deinit(&a);
    expect_done();
}

static void a_big_request_may_come_first(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 1); /* less than a block can be */
    unsigned char *big = arena_alloc(&a, 70000);
    unsigned char *big2 = arena_alloc(&a, 70000);
    unsigned char *small = arena_alloc(&a, 10);
    memset(big, 1, 70000);
    memset(big2, 2, 70000);
    memset(small, 3, 10);
    expect_true("they are apart", all_are(big, 70000, 1) && all_are(big2, 70000, 2));
    arena_reset(&a);
    expect_true("big blocks are not kept", arena_bytes(&a) < 70000);
    arena_deinit(&a);
    arena_init(&a, 0);
    (void)arena_alloc(&a, 70000);
    arena_reset(&a);
    expect_int("if there is no other, nothing is", 0, (int64_t)arena_bytes(&a));
    arena_reset(&a);
    arena_deinit(&a);
    arena_deinit(&a);
    expect_done();
}

static void no_byte_is_lost_between_strings_and_structs(void **state)
{
    (void)state;
    if (debug)
        return;
    for (size_t len = 0; len < 20; len++) {
        struct arena a;
        enum { PARTS = 30 };
        unsigned char *structs[PARTS], *strings[PARTS];
        size_t bytes = PARTS * (24 + len + 1);
        arena_init_exact(&a, bytes);
        size_t before = arena_bytes(&a);
        for (int i = 0; i < PARTS; i++) {
            structs[i] = (unsigned char *)arena_new(&a, int64_t, 3);
            expect_int("aligned", 0, (int64_t)((uintptr_t)structs[i] % _Alignof(int64_t)));
            memset(structs[i], 'a', 24);
            strings[i] = (unsigned char *)arena_strndup(&a, "01234567890123456789", len);
            memset(strings[i], 'b', len);
        }
        expect_int("all fits in one block of its size", (int64_t)before, (int64_t)arena_bytes(&a));
        for (int i = 0; i < PARTS; i++)
            expect_true("nobody wrote here", all_are(structs[i], 24, 'a') &&
                                                 all_are(strings[i], len, 'b') &&
                                                 strings[i][len] == '\0');
        (void)arena_strdup(&a, "");
        expect_int("one byte more is a small block more", (int64_t)before + 256,
                   (int64_t)arena_bytes(&a));
        arena_deinit(&a);
    }
    expect_done();
}

static void scratch_on_the_callers_memory(void **state)
{
    (void)state;
    _Alignas(16) unsigned char memory[1024];
    struct arena a;
    memset(memory, 0xee, sizeof memory);
    for (int round = 0; round < 3; round++) {
        arena_init_on(&a, memory, sizeof memory);
        unsigned char *zeroed = arena_alloc(&a, 100);
        expect_true("zeroed", all_are(zeroed, 100, 0));
        expect_str("a string", "abc", arena_strdup(&a, "abc"));
        if (!debug) {
            expect_true("inside the memory", zeroed > memory && zeroed < memory + sizeof memory);
            expect_int("nothing from the heap", 0, (int64_t)arena_bytes(&a));
        }
        char *last = arena_strndup(&a, "x", 1);
        for (int i = 0; i < 100; i++) /* more than there is */
            memset(arena_alloc(&a, 64), 'y', 64);
        expect_str("what lies there stays when the heap has to help", "x", last);
        expect_true("from the heap", arena_bytes(&a) >= 100 * 64 - sizeof memory);
        arena_reset(&a);
        expect_true("after a reset too", all_are(arena_alloc(&a, 700), 700, 0));
        arena_deinit(&a);
        expect_int("nothing is left", 0, (int64_t)arena_bytes(&a));
    }
    expect_done();
}

struct huge {
    char bytes[1 << 20];
};

static void overflowing_array(void)
{
    struct arena a = {0};
    volatile size_t n = SIZE_MAX / (1 << 20) + 1; /* the product is 0 modulo 2^64 */
    (void)arena_new(&a, struct huge, n);
}

static void overflowing_block(void)
{
    struct arena a = {0};
    volatile size_t n = SIZE_MAX - 8;
    (void)arena_alloc(&a, n);
}

static void overflowing_string(void)
{
    struct arena a = {0};
    volatile size_t n = SIZE_MAX;
    (void)arena_strndup(&a, "x", n);
}

static void absurd_sizes_abort(void **state)
{
    (void)state;
    expect_abort("n * sizeof wraps", overflowing_array);
    expect_abort("a block cannot be that big", overflowing_block);
    expect_abort("a string cannot be that long", overflowing_string);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(strings),
        cmocka_unit_test(strings_and_structs_mixed),
        cmocka_unit_test(arrays),
        cmocka_unit_test(blocks_double_and_big_ones_stand_alone),
        cmocka_unit_test(a_big_request_may_come_first),
        cmocka_unit_test(no_byte_is_lost_between_strings_and_structs),
        cmocka_unit_test(scratch_on_the_callers_memory),
        cmocka_unit_test(absurd_sizes_abort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

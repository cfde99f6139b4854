// SPDX-License-Identifier: Apache-2.0
#include "lib/base/vec.h"

#include "test/unit/lib/base/expect.h"

struct names VEC(const char *);

static void it_grows_and_keeps_what_it_has(void **state)
{
    (void)state;
    struct VEC(int) v = {0};
    for (int i = 0; i < 1000; i++) {
        vec_push(&v, i * 3);
        expect_int("length", i + 1, (int64_t)v.len);
        expect_true("room", v.cap >= v.len);
    }
    for (int i = 0; i < 1000; i++)
        expect_int("item", i * 3, v.items[i]);
    vec_deinit(&v);
    expect_true("released", v.items == NULL && v.len == 0 && v.cap == 0);
    vec_push(&v, 7);
    expect_int("it may be used again", 7, v.items[0]);
    vec_deinit(&v);
    vec_deinit(&v);
    expect_done();
}

static void reserving(void **state)
{
    (void)state;
    struct names v = {0};
    size_t none = 0;
    vec_reserve(&v, none);
    expect_true("nothing needs no memory", v.items == NULL);
    vec_reserve(&v, 100);
    expect_true("at least what was asked", v.cap >= 100);
    const char **before = v.items;
    size_t cap = v.cap;
    for (size_t i = 0; i < cap; i++)
        vec_push(&v, "x");
    expect_true("what was reserved is not moved", v.items == before && v.cap == cap);
    vec_push(&v, "y");
    expect_true("one more grows it", v.cap > cap);
    expect_str("and is there", "y", v.items[cap]);
    expect_true("asking for less changes nothing",
                vec_grow_(v.items, &v.cap, 1, sizeof *v.items) == v.items);
    vec_deinit(&v);
    expect_done();
}

static void removing_swaps_the_last_one_in(void **state)
{
    (void)state;
    struct names v = {0};
    vec_push(&v, "a");
    vec_push(&v, "b");
    vec_push(&v, "c");
    vec_remove_swap(&v, 0);
    expect_int("one is gone", 2, (int64_t)v.len);
    expect_str("the last took its place", "c", v.items[0]);
    expect_str("the others stay", "b", v.items[1]);
    vec_remove_swap(&v, 1);
    expect_int("the last one may be removed", 1, (int64_t)v.len);
    expect_str("and the rest stays", "c", v.items[0]);
    vec_deinit(&v);
    expect_done();
}

static void too_many(void)
{
    size_t cap = 0;
    (void)vec_grow_(NULL, &cap, SIZE_MAX / 4, 16);
}

static void absurd_sizes_abort(void **state)
{
    (void)state;
    expect_abort("n * sizeof wraps", too_many);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_grows_and_keeps_what_it_has),
        cmocka_unit_test(reserving),
        cmocka_unit_test(removing_swaps_the_last_one_in),
        cmocka_unit_test(absurd_sizes_abort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

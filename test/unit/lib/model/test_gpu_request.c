// SPDX-License-Identifier: Apache-2.0
/* What no table of manifests can say; the rest is in requests.json. */
#include "lib/model/gpu_request.h"

#include "lib/model/names.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

static void hostile_amounts_are_held_and_never_asked_of_a_card(void **state)
{
    (void)state;
    const struct {
        const char *row;
        struct fixture_pod pod;
        int64_t gib, percent, cards;
        bool legal;
    } rows[] = {
        {"memory", {.name = "p", .c = {{.gib = INT64_MAX}}}, GPU_REQUEST_MAX, 0, 0, false},
        {"memory of two containers",
         {.name = "p", .containers = 2, .c = {{.gib = INT64_MAX / 2}, {.gib = INT64_MAX / 2}}},
         GPU_REQUEST_MAX,
         0,
         0,
         false},
        {"compute",
         {.name = "p", .c = {{.gib = 1, .percent = INT64_MAX}}},
         1,
         GPU_REQUEST_MAX,
         0,
         false},
        {"cards", {.name = "p", .c = {{.cards = INT64_MAX}}}, 0, 0, GPU_REQUEST_MAX, true},
        {"memory and cards",
         {.name = "p", .c = {{.gib = 1, .cards = INT64_MAX}}},
         1,
         0,
         GPU_REQUEST_MAX,
         false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod *p = fixture_make_pod(&rows[i].pod);
        struct gpu_request r;
        gpu_request_read(p, &p->arena, &r, NULL);
        expect_int(rows[i].row, rows[i].gib, r.total[GPU_REQUEST_MEM]);
        expect_int(rows[i].row, rows[i].percent, r.total[GPU_REQUEST_CORE]);
        expect_int(rows[i].row, rows[i].cards, r.total[GPU_REQUEST_CARDS]);
        expect_int(rows[i].row, rows[i].legal, r.illegal == NULL);
        pod_free(p);
    }
    expect_done();
}

static void the_largest_first(void **state)
{
    (void)state;
    struct gpu_request_share shares[] = {{0, 3, 0}, {1, 8, 0}, {2, 3, 0}, {3, 5, 0}, {4, 8, 0}};
    struct gpu_request r = {.shares = shares, .shares_len = 5};
    static const size_t expected[] = {1, 4, 3, 0, 2};
    struct arena a;
    arena_init(&a, 0);
    const size_t *order = gpu_request_largest_first(&r, &a);
    for (size_t i = 0; i < 5; i++)
        expect_int("equal ones in order", (int64_t)expected[i], (int64_t)order[i]);
    arena_deinit(&a);
    expect_done();
}

static void more_errors_than_are_told(void **state)
{
    (void)state;
    struct request_errors e = {.len = 0};
    struct arena a;
    arena_init(&a, 0);
    for (int i = 0; i < REQUEST_ERRORS_MAX + 3; i++)
        request_errors_add(&e, &a, "error %d", i);
    expect_int("as many as there are places", REQUEST_ERRORS_MAX, (int64_t)e.len);
    expect_int("the others are counted", 3, (int64_t)e.left_out);
    expect_str("the first", "error 0", request_errors_first(&e));
    arena_deinit(&a);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_amounts_are_held_and_never_asked_of_a_card),
        cmocka_unit_test(the_largest_first),
        cmocka_unit_test(more_errors_than_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

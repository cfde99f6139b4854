// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/gpu_accounts_shape.h"

#include "lib/model/names.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

static void what_is_missing_in_words(void **state)
{
    (void)state;
    const struct {
        const char *row;
        struct fixture_pod pod;
        const char *shape;
    } rows[] = {
        {"no GPU", {.name = "p"}, NULL},
        {"one share", {.name = "p", .c = {{.gib = 3}}}, "no card with 3 GiB"},
        {"memory and compute",
         {.name = "p", .c = {{.gib = 3, .percent = 30}}},
         "no card with 3 GiB and 30 % of its compute"},
        {"two containers",
         {.name = "p", .containers = 2, .c = {{.gib = 3}, {.gib = 5}}},
         "no cards with 3 GiB + 5 GiB"},
        {"spread over two cards",
         {.name = "p", .c = {{.gib = 8}}, .labels = PAIRS(NAME_RES_GPU_COUNT, "2")},
         "no 2 cards with 4 GiB each"},
        {"whole cards", {.name = "p", .c = {{.cards = 2}}}, NULL},
        {"an init container: all of the pod on one card",
         {.name = "p",
          .containers = 2,
          .c = {{.gib = 3}, {.gib = 1}},
          .has_init = true,
          .init = {.gib = 5}},
         "no card with 5 GiB"},
        {"a sidecar is like a container",
         {.name = "p", .c = {{.gib = 3}}, .has_init = true, .init = {.gib = 5, .sidecar = true}},
         "no cards with 3 GiB + 5 GiB"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod *p = fixture_make_pod(&rows[i].pod);
        struct gpu_request r;
        gpu_request_read(p, &p->arena, &r, NULL);
        expect_str(rows[i].row, rows[i].shape, gpu_accounts_shape(&r, &p->arena));
        pod_free(p);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

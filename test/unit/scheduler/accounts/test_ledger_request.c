// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/ledger_request.h"

#include "lib/model/names.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

static void requests(void **state)
{
    (void)state;
    const struct {
        const char *row;
        struct fixture_pod pod;
        bool any;
        int64_t gib, percent, cards;
        const char *illegal, *shape;
    } rows[] = {
        {"no GPU", {.name = "p"}, false, 0, 0, 0, NULL, NULL},
        {"one share", {.name = "p", .c = {{.gib = 3}}}, true, 3, 0, 0, NULL, "no card with 3 GiB"},
        {"memory and compute",
         {.name = "p", .c = {{.gib = 3, .percent = 30}}},
         true,
         3,
         30,
         0,
         NULL,
         "no card with 3 GiB and 30 % of its compute"},
        {"two containers",
         {.name = "p", .containers = 2, .c = {{.gib = 3}, {.gib = 5}}},
         true,
         8,
         0,
         0,
         NULL,
         "no cards with 3 GiB + 5 GiB"},
        {"spread over two cards",
         {.name = "p", .c = {{.gib = 8}}, .labels = PAIRS(NAME_RES_GPU_COUNT, "2")},
         true,
         8,
         0,
         0,
         NULL,
         "no 2 cards with 4 GiB each"},
        {"whole cards", {.name = "p", .c = {{.cards = 2}}}, true, 0, 0, 2, NULL, NULL},
        {"a larger init container counts, on one card",
         {.name = "p", .c = {{.gib = 3}}, .has_init = true, .init = {.gib = 5}},
         true,
         5,
         0,
         0,
         NULL,
         "no card with 5 GiB"},
        {"a sidecar counts beside the containers",
         {.name = "p", .c = {{.gib = 3}}, .has_init = true, .init = {.gib = 5, .sidecar = true}},
         true,
         8,
         0,
         0,
         NULL,
         "no card with 8 GiB"},
        {"compute without memory",
         {.name = "p", .c = {{.percent = 30}}},
         true,
         0,
         30,
         0,
         "container c0 asks for aliyun.com/gpu-core.percentage without aliyun.com/gpu-mem",
         "*"},
        {"compute that is no multiple of 5",
         {.name = "p", .c = {{.gib = 1, .percent = 31}}},
         true,
         1,
         31,
         0,
         "container c0: aliyun.com/gpu-core.percentage must be a multiple of 5: 31",
         "*"},
        {"shared and whole",
         {.name = "p", .c = {{.gib = 1, .cards = 1}}},
         true,
         1,
         0,
         1,
         "a pod cannot ask for aliyun.com/gpu-mem and aliyun.com/gpu together",
         "*"},
        {"memory that cannot be divided",
         {.name = "p", .c = {{.gib = 7}}, .labels = PAIRS(NAME_RES_GPU_COUNT, "2")},
         true,
         7,
         0,
         0,
         "container c0: aliyun.com/gpu-mem must be a multiple of the label aliyun.com/gpu-count: 7 "
         "and 2",
         "*"},
        {"compute on several cards",
         {.name = "p", .c = {{.gib = 8, .percent = 5}}, .labels = PAIRS(NAME_RES_GPU_COUNT, "2")},
         true,
         8,
         5,
         0,
         "container c0: aliyun.com/gpu-core.percentage cannot be spread over several cards",
         "*"},
        {"a count that is none",
         {.name = "p", .c = {{.gib = 8}}, .labels = PAIRS(NAME_RES_GPU_COUNT, "two")},
         true,
         8,
         0,
         0,
         "label aliyun.com/gpu-count: not an integer: 'two'",
         "*"},
        {"a count of 0",
         {.name = "p", .c = {{.gib = 8}}, .labels = PAIRS(NAME_RES_GPU_COUNT, "0")},
         true,
         8,
         0,
         0,
         "label aliyun.com/gpu-count: must be between 1 and 64: '0'",
         "*"},
        {"a count of 64 can be",
         {.name = "p", .c = {{.gib = 64}}, .labels = PAIRS(NAME_RES_GPU_COUNT, "64")},
         true,
         64,
         0,
         0,
         NULL,
         "no 64 cards with 1 GiB each"},
        {"an init container and several cards",
         {.name = "p",
          .c = {{.gib = 8}},
          .has_init = true,
          .init = {.gib = 2},
          .labels = PAIRS(NAME_RES_GPU_COUNT, "2")},
         true,
         8,
         0,
         0,
         "a pod with GPU memory in an init container cannot be spread over several cards (label "
         "aliyun.com/gpu-count)",
         "*"},
        {"a hostile amount is held, and never asked of a card",
         {.name = "p", .c = {{.gib = INT64_MAX}}},
         true,
         LEDGER_MAX,
         0,
         0,
         "container c0 asks for more of aliyun.com/gpu-mem than any card has",
         "*"},
        {"hostile cards",
         {.name = "p", .c = {{.cards = INT64_MAX}}},
         true,
         0,
         0,
         LEDGER_MAX,
         NULL,
         NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod *p = fixture_make_pod(&rows[i].pod);
        struct ledger_request r;
        ledger_request_of(p, &p->arena, &r);
        expect_int(rows[i].row, rows[i].any, r.any);
        expect_int(rows[i].row, rows[i].gib, r.hold_gib);
        expect_int(rows[i].row, rows[i].percent, r.hold_percent);
        expect_int(rows[i].row, rows[i].cards, r.hold_cards);
        expect_str(rows[i].row, rows[i].illegal, r.illegal);
        if (rows[i].shape == NULL || strcmp(rows[i].shape, "*") != 0)
            expect_str(rows[i].row, rows[i].shape, r.shape);
        pod_free(p);
    }
    expect_done();
}

static void claims_are_believed_only_if_they_add_up(void **state)
{
    (void)state;
    const struct {
        const char *row;
        struct fixture_pod pod;
        struct claim_share shares[3];
        size_t shares_len;
        int32_t group[3];
        size_t group_len;
        bool met;
    } rows[] = {
        {"equal", {.name = "p", .c = {{.gib = 3}}}, {{0, 1, 3, 0}}, 1, {0}, 0, true},
        {"too little", {.name = "p", .c = {{.gib = 3}}}, {{0, 1, 2, 0}}, 1, {0}, 0, false},
        {"too much", {.name = "p", .c = {{.gib = 3}}}, {{0, 1, 4, 0}}, 1, {0}, 0, false},
        {"nothing", {.name = "p", .c = {{.gib = 3}}}, {{0}}, 0, {0}, 0, false},
        {"in parts",
         {.name = "p", .c = {{.gib = 3}}},
         {{0, 0, 1, 0}, {0, 1, 2, 0}},
         2,
         {0},
         0,
         true},
        {"a negative part that makes the sum right",
         {.name = "p", .c = {{.gib = 3}}},
         {{0, 0, 5, 0}, {0, 1, -2, 0}},
         2,
         {0},
         0,
         false},
        {"the memory right and the compute missing",
         {.name = "p", .c = {{.gib = 3, .percent = 30}}},
         {{0, 1, 3, 0}},
         1,
         {0},
         0,
         false},
        {"compute that was not asked for",
         {.name = "p", .c = {{.gib = 3}}},
         {{0, 1, 3, 5}},
         1,
         {0},
         0,
         false},
        {"both right",
         {.name = "p", .c = {{.gib = 3, .percent = 30}}},
         {{0, 1, 3, 30}},
         1,
         {0},
         0,
         true},
        {"the sum right and the containers not",
         {.name = "p", .containers = 2, .c = {{.gib = 3}, {.gib = 4}}},
         {{0, 0, 4, 0}, {1, 0, 3, 0}},
         2,
         {0},
         0,
         false},
        {"a container that does not exist",
         {.name = "p", .c = {{.gib = 3}}},
         {{0, 0, 3, 0}, {7, 0, 3, 0}},
         2,
         {0},
         0,
         false},
        {"cards that were not asked for",
         {.name = "p", .c = {{.gib = 3}}},
         {{0, 0, 3, 0}},
         1,
         {2},
         1,
         false},
        {"whole cards", {.name = "p", .c = {{.cards = 2}}}, {{0}}, 0, {0, 3}, 2, true},
        {"one whole card less", {.name = "p", .c = {{.cards = 2}}}, {{0}}, 0, {0}, 1, false},
        {"the same card twice", {.name = "p", .c = {{.cards = 2}}}, {{0}}, 0, {3, 3}, 2, false},
        {"an init container that needs more, without its share",
         {.name = "p", .c = {{.gib = 3}}, .has_init = true, .init = {.gib = 5}},
         {{0, 0, 3, 0}},
         1,
         {0},
         0,
         false},
        {"an init container that needs more, with its share",
         {.name = "p", .c = {{.gib = 3}}, .has_init = true, .init = {.gib = 5}},
         {{0, 0, 3, 0}, {1, 0, 2, 0}},
         2,
         {0},
         0,
         true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod *p = fixture_make_pod(&rows[i].pod);
        struct ledger_request r;
        struct claim_share shares[3];
        int32_t group[3];
        memcpy(shares, rows[i].shares, sizeof shares);
        memcpy(group, rows[i].group, sizeof group);
        struct claim c = {.shares = shares,
                          .shares_len = rows[i].shares_len,
                          .group = group,
                          .group_len = rows[i].group_len};
        ledger_request_of(p, &p->arena, &r);
        expect_int(rows[i].row, rows[i].met, ledger_request_is_met(&r, &c, &p->arena));
        pod_free(p);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),
        cmocka_unit_test(claims_are_believed_only_if_they_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

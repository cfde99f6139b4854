// SPDX-License-Identifier: Apache-2.0
/* Which grants add up to the request, those among them that no annotation can say. */
#include "lib/model/grant.h"
#include "lib/model/names.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

static void grants_are_believed_only_if_they_add_up(void **state)
{
    (void)state;
    const struct {
        const char *row;
        struct fixture_pod pod;
        struct grant_share shares[3];
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
        struct gpu_request r;
        struct grant_share shares[3];
        int32_t group[3];
        memcpy(shares, rows[i].shares, sizeof shares);
        memcpy(group, rows[i].group, sizeof group);
        struct grant c = {.shares = shares,
                          .shares_len = rows[i].shares_len,
                          .group = group,
                          .group_len = rows[i].group_len};
        gpu_request_read(p, &p->arena, &r, NULL);
        expect_int(rows[i].row, rows[i].met, grant_adds_up(&c, p, &r, NULL) == 0);
        pod_free(p);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grants_are_believed_only_if_they_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

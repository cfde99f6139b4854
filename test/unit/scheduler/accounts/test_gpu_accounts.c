// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/gpu_accounts.h"

#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

static void inventories(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text;
        bool known;
        const char *problem;
        enum gpu_accounts_no no;
    } rows[] = {
        {"none", NULL, false, "none published", GPU_ACCOUNTS_NO_INVENTORY},
        {"emptied", "", false, "none published", GPU_ACCOUNTS_NO_INVENTORY},
        {"another version", "{\"v\":2}", false,
         "unreadable: gpu inventory: v: only version 1 is known", GPU_ACCOUNTS_NO_INVENTORY},
        {"on its way to another mode",
         "{\"v\":1,\"mode\":\"cgpu\",\"switchingTo\":\"mps\",\"cards\":[]}", true, NULL,
         GPU_ACCOUNTS_SWITCHING},
        {"no cards", "{\"v\":1,\"mode\":\"cgpu\",\"cards\":[]}", true, NULL, GPU_ACCOUNTS_NO_CARD},
    };
    struct arena a;
    struct gpu_accounts l;
    struct gpu_request r;
    struct gpu_accounts_why why;
    arena_init(&a, 0);
    gpu_accounts_init(&l);
    struct pod *p = POD(.name = "p", .c = {{.gib = 1}});
    gpu_request_read(p, &p->arena, &r, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gpu_accounts_set_inventory(&l, rows[i].text, NULL);
        expect_int(rows[i].row, rows[i].known, l.known);
        expect_str(rows[i].row, rows[i].problem, l.problem);
        expect_int(rows[i].row, false, gpu_accounts_choose(&l, &r, &a, NULL, &why));
        expect_int(rows[i].row, rows[i].no, why.no);
    }
    gpu_accounts_set_inventory(&l, fixture_inventory(&a, "cgpu", "15,7"), NULL);
    expect_int("size of a card", 7, gpu_accounts_card_gib(&l, 1));
    expect_int("size of a card that is not there", 0, gpu_accounts_card_gib(&l, 2));
    pod_free(p);
    gpu_accounts_deinit(&l);
    arena_deinit(&a);
    expect_done();
}

static void what_is_nowhere_is_everywhere(void **state)
{
    (void)state;
    struct arena a;
    struct gpu_accounts l;
    struct gpu_accounts_why why;
    arena_init(&a, 0);
    gpu_accounts_init(&l);
    gpu_accounts_set_inventory(&l, fixture_inventory(&a, "cgpu", "15,15"), NULL);
    uint64_t empty = gpu_accounts_digest(&l);
    struct pod *three = POD(.name = "a", .c = {{.gib = 3}}),
               *p = POD(.name = "b", .c = {{.gib = 13}}), *q = POD(.name = "c", .c = {{.gib = 12}}),
               *whole = POD(.name = "d", .c = {{.cards = 1}});
    struct gpu_request r3, rp, rq, rw;
    gpu_request_read(three, &a, &r3, NULL);
    gpu_request_read(p, &a, &rp, NULL);
    gpu_request_read(q, &a, &rq, NULL);
    gpu_request_read(whole, &a, &rw, NULL);
    struct grant_share far = {0, 5, 3, 0};
    struct grant nowhere = {.shares = &far, .shares_len = 1};

    gpu_accounts_account(&l, &(struct grant){0}, false, &r3, 1);
    expect_int("no claim: held by its request", 3, l.unplaced_gib);
    expect_true("off every card", !gpu_accounts_choose(&l, &rp, &a, NULL, &why));
    expect_true("and no more than that", gpu_accounts_choose(&l, &rq, &a, NULL, &why));
    gpu_accounts_account(&l, &nowhere, true, &r3, 1);
    expect_int("a card that does not exist is no claim", 6, l.unplaced_gib);
    gpu_accounts_account(&l, &nowhere, true, &r3, -1);
    gpu_accounts_account(&l, &(struct grant){0}, false, &r3, -1);
    expect_true("all gone", gpu_accounts_digest(&l) == empty);

    gpu_accounts_account(&l, &(struct grant){0}, false, &rw, 1);
    expect_true("a whole card that nobody knows may be any",
                !gpu_accounts_choose(&l, &rq, &a, NULL, &why));
    gpu_accounts_set_inventory(&l, fixture_inventory(&a, "topology", "15,15"), NULL);
    expect_true("a new inventory knows no pods yet", gpu_accounts_choose(&l, &rw, &a, NULL, &why));
    gpu_accounts_account(&l, &(struct grant){0}, false, &rw, 1);
    expect_true("no whole card beside it", !gpu_accounts_choose(&l, &rw, &a, NULL, &why));
    expect_int("and the reason says so", GPU_ACCOUNTS_UNPLACED, why.no);
    pod_free(three);
    pod_free(p);
    pod_free(q);
    pod_free(whole);
    gpu_accounts_deinit(&l);
    arena_deinit(&a);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inventories),
        cmocka_unit_test(what_is_nowhere_is_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

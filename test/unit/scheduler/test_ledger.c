// SPDX-License-Identifier: Apache-2.0
#include "scheduler/ledger.h"

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

/* One card's number, GiB and percent held on it; used to set the scene. */
struct held {
    int32_t card;
    int64_t gib, percent;
};

/* Shares as text: "0:1=3" is container 0 on card 1 with 3 GiB; percent behind a slash. Whole cards: "group 0,1". */
static const char *shown(const struct claim *c, struct arena *a)
{
    AUTO_STRBUF b;
    strbuf_init(&b);
    for (size_t i = 0; i < c->shares_len; i++) {
        strbuf_addf(&b, "%s%u:%d=%lld", i > 0 ? " " : "", c->shares[i].container, c->shares[i].card,
                    (long long)c->shares[i].gib);
        if (c->shares[i].percent > 0)
            strbuf_addf(&b, "/%lld", (long long)c->shares[i].percent);
    }
    for (size_t i = 0; i < c->group_len; i++)
        strbuf_addf(&b, "%s%d", i > 0 ? "," : "group ", c->group[i]);
    return arena_strdup(a, strbuf_str(&b));
}

static void choices(void **state)
{
    (void)state;
    const struct {
        const char *row;
        const char *mode, *cards, *placement;
        struct held held[3];
        struct fixture_pod pod;
        const char *choice; /* NULL: refused */
        enum ledger_no no;
        int64_t largest, free_cards;
    } rows[] = {
        {"exactly the size of a card",
         "cgpu",
         "15",
         NULL,
         {{0}},
         {.name = "p", .c = {{.gib = 15}}},
         "0:0=15",
         0,
         0,
         0},
        {"one more",
         "cgpu",
         "15",
         NULL,
         {{0}},
         {.name = "p", .c = {{.gib = 16}}},
         NULL,
         LEDGER_NO_CARD,
         15,
         0},
        {"binpack takes the fullest card that fits",
         "cgpu",
         "15,15,15",
         NULL,
         {{1, 6, 0}, {2, 10, 0}},
         {.name = "p", .c = {{.gib = 6}}},
         "0:1=6",
         0,
         0,
         0},
        {"an unknown placement is binpack",
         "share",
         "15,15",
         "sideways",
         {{1, 6, 0}},
         {.name = "p", .c = {{.gib = 6}}},
         "0:1=6",
         0,
         0,
         0},
        {"spread takes the emptiest",
         "cgpu",
         "15,15,15",
         "spread",
         {{0, 1, 0}, {1, 6, 0}},
         {.name = "p", .c = {{.gib = 6}}},
         "0:2=6",
         0,
         0,
         0},
        {"equal cards: the first",
         "mps",
         "15,15",
         "spread",
         {{0}},
         {.name = "p", .c = {{.gib = 6}}},
         "0:0=6",
         0,
         0,
         0},
        {"free memory on several cards does not add up",
         "cgpu",
         "15,15",
         NULL,
         {{0, 8, 0}, {1, 8, 0}},
         {.name = "p", .c = {{.gib = 8}}},
         NULL,
         LEDGER_NO_CARD,
         7,
         0},
        {"a sick card is not taken",
         "cgpu",
         "15*,15",
         NULL,
         {{0}},
         {.name = "p", .c = {{.gib = 6}}},
         "0:1=6",
         0,
         0,
         0},
        {"compute must be free, too",
         "core_mem",
         "15,15",
         NULL,
         {{0, 1, 80}, {1, 1, 70}},
         {.name = "p", .c = {{.gib = 2, .percent = 30}}},
         "0:1=2/30",
         0,
         0,
         0},
        {"compute that is not free",
         "core_mem",
         "15,15",
         NULL,
         {{0, 1, 80}, {1, 1, 75}},
         {.name = "p", .c = {{.gib = 2, .percent = 30}}},
         NULL,
         LEDGER_NO_CARD,
         14,
         0},
        {"compute in a mode without it",
         "cgpu",
         "15,15",
         NULL,
         {{0}},
         {.name = "p", .c = {{.gib = 2, .percent = 30}}},
         NULL,
         LEDGER_WRONG_MODE,
         0,
         0},
        {"memory in a mode with compute",
         "core_mem",
         "15",
         NULL,
         {{0}},
         {.name = "p", .c = {{.gib = 2}}},
         "0:0=2",
         0,
         0,
         0},
        {"two containers fill two cards",
         "cgpu",
         "8,8",
         NULL,
         {{0}},
         {.name = "p", .containers = 2, .c = {{.gib = 8}, {.gib = 8}}},
         "0:0=8 1:1=8",
         0,
         0,
         0},
        {"two containers share a card",
         "cgpu",
         "8,8",
         NULL,
         {{0}},
         {.name = "p", .containers = 2, .c = {{.gib = 4}, {.gib = 4}}},
         "0:0=4 1:0=4",
         0,
         0,
         0},
        {"two containers and one card",
         "cgpu",
         "8",
         NULL,
         {{0}},
         {.name = "p", .containers = 2, .c = {{.gib = 8}, {.gib = 8}}},
         NULL,
         LEDGER_NO_CARD,
         8,
         0},
        {"spread finds the way that the rule alone misses",
         "cgpu",
         "8,5",
         "spread",
         {{0}},
         {.name = "p", .containers = 2, .c = {{.gib = 5}, {.gib = 8}}},
         "0:1=5 1:0=8",
         0,
         0,
         0},
        {"a container without a GPU has no share",
         "cgpu",
         "8",
         NULL,
         {{0}},
         {.name = "p", .containers = 2, .c = {{.cpu_milli = 5}, {.gib = 8}}},
         "1:0=8",
         0,
         0,
         0},
        {"over two cards",
         "cgpu",
         "8,8,8",
         NULL,
         {{1, 1, 0}, {2, 6, 0}},
         {.name = "p", .c = {{.gib = 8}}, .labels = PAIRS(NAME_RES_GPU_COUNT, "2")},
         "0:0=4 0:1=4",
         0,
         0,
         0},
        {"over more cards than fit",
         "cgpu",
         "8,8,8",
         NULL,
         {{1, 5, 0}, {2, 6, 0}},
         {.name = "p", .c = {{.gib = 8}}, .labels = PAIRS(NAME_RES_GPU_COUNT, "2")},
         NULL,
         LEDGER_NO_CARD,
         8,
         0},
        {"with an init container all is on one card",
         "cgpu",
         "6,8",
         NULL,
         {{0}},
         {.name = "p", .c = {{.gib = 3}}, .has_init = true, .init = {.gib = 7}},
         "0:1=3 1:1=4",
         0,
         0,
         0},
        {"with an init container that fits nowhere",
         "cgpu",
         "6,6",
         NULL,
         {{0}},
         {.name = "p", .c = {{.gib = 3}}, .has_init = true, .init = {.gib = 7}},
         NULL,
         LEDGER_NO_CARD,
         6,
         0},
        {"whole cards",
         "topology",
         "15,15,15",
         NULL,
         {{0}},
         {.name = "p", .c = {{.cards = 2}}},
         "group 0,1",
         0,
         0,
         0},
        {"whole cards beside a share and a sick one",
         "topology",
         "15,15,15*,15",
         NULL,
         {{1, 1, 0}},
         {.name = "p", .c = {{.cards = 2}}},
         "group 0,3",
         0,
         0,
         0},
        {"more whole cards than are free",
         "topology",
         "15,15,15*,15",
         NULL,
         {{1, 1, 0}},
         {.name = "p", .c = {{.cards = 3}}},
         NULL,
         LEDGER_TOO_FEW_CARDS,
         0,
         2},
        {"whole cards in a shared mode",
         "cgpu",
         "15",
         NULL,
         {{0}},
         {.name = "p", .c = {{.cards = 1}}},
         NULL,
         LEDGER_WRONG_MODE,
         0,
         0},
        {"a share in topology mode",
         "topology",
         "15",
         NULL,
         {{0}},
         {.name = "p", .c = {{.gib = 1}}},
         NULL,
         LEDGER_WRONG_MODE,
         0,
         0},
        {"a share in default mode",
         "default",
         "15",
         NULL,
         {{0}},
         {.name = "p", .c = {{.gib = 1}}},
         NULL,
         LEDGER_WRONG_MODE,
         0,
         0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arena a;
        struct ledger l;
        struct ledger_request r;
        struct ledger_why why, again;
        struct claim claim = {0};
        arena_init(&a, 0);
        ledger_init(&l);
        ledger_set_inventory(&l, fixture_inventory(&a, rows[i].mode, rows[i].cards),
                             rows[i].placement);
        for (size_t k = 0; k < 3; k++) {
            l.cards[rows[i].held[k].card].used_gib += rows[i].held[k].gib;
            l.cards[rows[i].held[k].card].used_percent += rows[i].held[k].percent;
        }
        struct pod *p = fixture_make_pod(&rows[i].pod);
        ledger_request_of(p, &p->arena, &r);
        uint64_t before = ledger_digest(&l);
        bool fits = ledger_choose(&l, &r, &a, &claim, &why);
        expect_str(rows[i].row, rows[i].choice, fits ? shown(&claim, &a) : NULL);
        expect_int(rows[i].row, rows[i].no, why.no);
        if (!fits) {
            expect_int(rows[i].row, rows[i].largest, why.largest_gib);
            expect_int(rows[i].row, rows[i].free_cards, why.free_cards);
        } else {
            struct error err = ERROR_INIT;
            expect_int(rows[i].row, 0, claim_check(&claim, p, &l.inventory, &err));
            expect_true(rows[i].row, ledger_request_is_met(&r, &claim, &a));
        }
        expect_int("asking without taking says the same", fits,
                   ledger_choose(&l, &r, &a, NULL, &again));
        expect_true("choosing changes nothing", ledger_digest(&l) == before);
        pod_free(p);
        ledger_deinit(&l);
        arena_deinit(&a);
    }
    expect_done();
}

static void inventories(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text;
        bool known;
        const char *problem;
        enum ledger_no no;
    } rows[] = {
        {"none", NULL, false, "none published", LEDGER_NO_INVENTORY},
        {"emptied", "", false, "none published", LEDGER_NO_INVENTORY},
        {"another version", "{\"v\":2}", false,
         "unreadable: gpu inventory: v: only version 1 is known", LEDGER_NO_INVENTORY},
        {"on its way to another mode",
         "{\"v\":1,\"mode\":\"cgpu\",\"switchingTo\":\"mps\",\"cards\":[]}", true, NULL,
         LEDGER_SWITCHING},
        {"no cards", "{\"v\":1,\"mode\":\"cgpu\",\"cards\":[]}", true, NULL, LEDGER_NO_CARD},
    };
    struct arena a;
    struct ledger l;
    struct ledger_request r;
    struct ledger_why why;
    arena_init(&a, 0);
    ledger_init(&l);
    struct pod *p = POD(.name = "p", .c = {{.gib = 1}});
    ledger_request_of(p, &p->arena, &r);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ledger_set_inventory(&l, rows[i].text, NULL);
        expect_int(rows[i].row, rows[i].known, l.known);
        expect_str(rows[i].row, rows[i].problem, l.problem);
        expect_int(rows[i].row, false, ledger_choose(&l, &r, &a, NULL, &why));
        expect_int(rows[i].row, rows[i].no, why.no);
    }
    ledger_set_inventory(&l, fixture_inventory(&a, "cgpu", "15,7"), NULL);
    expect_int("size of a card", 7, ledger_card_gib(&l, 1));
    expect_int("size of a card that is not there", 0, ledger_card_gib(&l, 2));
    pod_free(p);
    ledger_deinit(&l);
    arena_deinit(&a);
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

static void what_is_nowhere_is_everywhere(void **state)
{
    (void)state;
    struct arena a;
    struct ledger l;
    struct ledger_why why;
    arena_init(&a, 0);
    ledger_init(&l);
    ledger_set_inventory(&l, fixture_inventory(&a, "cgpu", "15,15"), NULL);
    uint64_t empty = ledger_digest(&l);
    struct pod *three = POD(.name = "a", .c = {{.gib = 3}}),
               *p = POD(.name = "b", .c = {{.gib = 13}}), *q = POD(.name = "c", .c = {{.gib = 12}}),
               *whole = POD(.name = "d", .c = {{.cards = 1}});
    struct ledger_request r3, rp, rq, rw;
    ledger_request_of(three, &a, &r3);
    ledger_request_of(p, &a, &rp);
    ledger_request_of(q, &a, &rq);
    ledger_request_of(whole, &a, &rw);
    struct claim_share far = {0, 5, 3, 0};
    struct claim nowhere = {.shares = &far, .shares_len = 1};

    ledger_account(&l, &(struct claim){0}, false, &r3, 1);
    expect_int("no claim: held by its request", 3, l.unplaced_gib);
    expect_true("off every card", !ledger_choose(&l, &rp, &a, NULL, &why));
    expect_true("and no more than that", ledger_choose(&l, &rq, &a, NULL, &why));
    ledger_account(&l, &nowhere, true, &r3, 1);
    expect_int("a card that does not exist is no claim", 6, l.unplaced_gib);
    ledger_account(&l, &nowhere, true, &r3, -1);
    ledger_account(&l, &(struct claim){0}, false, &r3, -1);
    expect_true("all gone", ledger_digest(&l) == empty);

    ledger_account(&l, &(struct claim){0}, false, &rw, 1);
    expect_true("a whole card that nobody knows may be any",
                !ledger_choose(&l, &rq, &a, NULL, &why));
    ledger_set_inventory(&l, fixture_inventory(&a, "topology", "15,15"), NULL);
    expect_true("a new inventory knows no pods yet", ledger_choose(&l, &rw, &a, NULL, &why));
    ledger_account(&l, &(struct claim){0}, false, &rw, 1);
    expect_true("no whole card beside it", !ledger_choose(&l, &rw, &a, NULL, &why));
    expect_int("and the reason says so", LEDGER_UNPLACED, why.no);
    pod_free(three);
    pod_free(p);
    pod_free(q);
    pod_free(whole);
    ledger_deinit(&l);
    arena_deinit(&a);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),
        cmocka_unit_test(choices),
        cmocka_unit_test(inventories),
        cmocka_unit_test(claims_are_believed_only_if_they_add_up),
        cmocka_unit_test(what_is_nowhere_is_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Which CPUs a pod gets: rows with what is taken on a node of 16 cores (2 NUMA nodes, 2 L3 groups
 * of 4 cores in each, 2 threads: core 0 is CPUs 0 and 16), what is asked for, and the choice or the
 * reason.
 */
#include "scheduler/accounts/cpu_accounts.h"

#include <string.h>

#include "lib/model/names.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

#define SINGLE "{\"numaTopologyPolicy\":\"SingleNUMANode\"}"
#define RESTRICTED "{\"numaTopologyPolicy\":\"Restricted\"}"
#define ALONE "{\"numaTopologyPolicy\":\"SingleNUMANode\",\"singleNUMANodeExclusive\":\"Required\"}"
#define RATHER_ALONE \
    "{\"numaTopologyPolicy\":\"BestEffort\",\"singleNUMANodeExclusive\":\"Preferred\"}"
#define TRUE "cpuset-scheduler", "true"
#define REQUIRED(spec) "cpuset-scheduler", "required", NAME_ANN_NUMA_SPEC, spec
#define BURST TRUE, "cpu-policy", "static-burst"
#define SHARED TRUE, "cosched.io/cpuset-shared", "true"
#define CPUS(n) .c = {{.cpu_milli = (n)*INT64_C(1000)}}

static struct arena arena;
static struct cpu_shapes shapes;
static struct cpu_accounts book;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, 0);
    cpu_shapes_init(&shapes);
    book = (struct cpu_accounts){0};
    const char *text = fixture_topology(&arena, 2, 2, 4, 2, NULL);
    cpu_accounts_set_shape(&book, cpu_shapes_take(&shapes, text));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cpu_accounts_deinit(&book);
    cpu_shapes_deinit(&shapes);
    arena_deinit(&arena);
    return 0;
}

/* A pod on these CPUs, of which so many are its own; with sign -1 it goes. */
static void take_shared(struct cpu_accounts *b, const char *cpus, uint32_t own, bool shared,
                        int sign)
{
    struct cpu_request r = {
        .each = &own, .each_len = 1, .burst = true, .cpus = own, .shared = shared};
    struct cpu_grant_part part = {.container = 0};
    struct cpu_grant c = {.parts = &part, .len = 1};
    if (cpus == NULL)
        return;
    assert_int_equal(cpuset_parse(cpus, &part.cpus, NULL), 0);
    if (own == 0)
        own = cpuset_count(&part.cpus);
    cpu_accounts_account(b, &c, &r, sign);
}

static void take(struct cpu_accounts *b, const char *cpus, uint32_t own, int sign)
{
    take_shared(b, cpus, own, false, sign);
}

/* "c0 0:0-3 c1 0:4-5": container, NUMA node, CPUs. */
static const char *shown(const struct cpu_grant *c, const struct pod *p)
{
    AUTO_STRBUF b = {0};
    for (size_t i = 0; i < c->len; i++) {
        uint32_t k = c->parts[i].container;
        strbuf_addf(&b, "%s%s %d:", i > 0 ? " " : "",
                    k < p->containers_len ? p->containers[k].name
                                          : p->init_containers[k - p->containers_len].name,
                    (int)c->parts[i].numa);
        cpuset_print(&c->parts[i].cpus, &b);
    }
    return arena_strdup(&arena, strbuf_str(&b));
}

static void choices(void **state)
{
    (void)state;
    const struct {
        const char *row;
        const char *taken;               /* by a pod of its own */
        const char *shared, *shared_too; /* by pods that share */
        const char *lent;                /* CPUs of a burst pod, of which so many are its own: */
        uint32_t own;
        struct fixture_pod pod;
        const char *choice; /* NULL: refused */
        enum cpu_accounts_no no;
        int64_t want, free;
    } rows[] = {
        {"four CPUs are two cores", .pod = {.name = "p", .annotations = PAIRS(TRUE), CPUS(4)},
         .choice = "c0 0:0-1,16-17"},
        {"a whole NUMA node", .pod = {.name = "p", .annotations = PAIRS(TRUE), CPUS(16)},
         .choice = "c0 0:0-7,16-23"},
        {"the rest of one, tightly", .taken = "8-13,24-29",
         .pod = {.name = "p", .annotations = PAIRS(TRUE), CPUS(4)}, .choice = "c0 1:14-15,30-31"},
        {"two NUMA nodes when none has enough", .taken = "0,8",
         .pod = {.name = "p", .annotations = PAIRS(TRUE), CPUS(16)},
         .choice = "c0 0:4-7,20-23 c0 1:12-15,28-31"},
        {"all that there is", .pod = {.name = "p", .annotations = PAIRS(TRUE), CPUS(32)},
         .choice = "c0 0:0-7,16-23 c0 1:8-15,24-31"},
        {"one more", .pod = {.name = "p", .annotations = PAIRS(TRUE), CPUS(33)},
         .no = CPU_ACCOUNTS_TOO_FEW, .want = 33, .free = 32},
        {"what others have is not there", .taken = "0-1",
         .pod = {.name = "p", .annotations = PAIRS(TRUE), CPUS(31)}, .no = CPU_ACCOUNTS_TOO_FEW,
         .want = 31, .free = 30},
        {"containers side by side, the larger one first",
         .pod = {.name = "p",
                 .annotations = PAIRS(TRUE),
                 .containers = 2,
                 .c = {{.cpu_milli = 2000}, {.cpu_milli = 6000}}},
         .choice = "c0 0:3,19 c1 0:0-2,16-18"},
        {"an init container is on CPUs of the pod",
         .pod = {.name = "p",
                 .annotations = PAIRS(TRUE),
                 CPUS(4),
                 .has_init = true,
                 .init = {.cpu_milli = 2000}},
         .choice = "c0 0:0-1,16-17 init 0:0,16"},
        {"a sidecar has its own",
         .pod = {.name = "p",
                 .annotations = PAIRS(TRUE),
                 CPUS(4),
                 .has_init = true,
                 .init = {.cpu_milli = 2000, .sidecar = true}},
         .choice = "c0 0:0-1,16-17 init 0:2,18"},
        {"one NUMA node is insisted on", .taken = "0,8",
         .pod = {.name = "p", .annotations = PAIRS(REQUIRED(SINGLE)), CPUS(16)},
         .no = CPU_ACCOUNTS_NO_NUMA, .want = 16, .free = 15},
        {"and found", .taken = "0",
         .pod = {.name = "p", .annotations = PAIRS(REQUIRED(SINGLE)), CPUS(16)},
         .choice = "c0 1:8-15,24-31"},
        {"restricted: not more NUMA nodes than on an empty node", .taken = "0,8",
         .pod = {.name = "p", .annotations = PAIRS(REQUIRED(RESTRICTED)), CPUS(16)},
         .no = CPU_ACCOUNTS_TOO_MANY_NUMA, .want = 1, .free = 2},
        {"restricted: two where two are needed", .taken = "0,8",
         .pod = {.name = "p", .annotations = PAIRS(REQUIRED(RESTRICTED)), CPUS(17)},
         .choice = "c0 0:1-7,16-23 c0 1:9,25"},
        {"restricted: more than there is",
         .pod = {.name = "p", .annotations = PAIRS(REQUIRED(RESTRICTED)), CPUS(40)},
         .no = CPU_ACCOUNTS_TOO_FEW, .want = 40, .free = 32},
        {"not beside a pod on several NUMA nodes", .taken = "7-8",
         .pod = {.name = "p", .annotations = PAIRS(REQUIRED(ALONE)), CPUS(2)},
         .no = CPU_ACCOUNTS_NO_NUMA, .want = 2, .free = 0},
        {"preferred: beside it where there is no other", .taken = "7-8",
         .pod = {.name = "p", .annotations = PAIRS(REQUIRED(RATHER_ALONE)), CPUS(2)},
         .choice = "c0 0:4,20"},
        {"but beside one on one", .taken = "7",
         .pod = {.name = "p", .annotations = PAIRS(REQUIRED(ALONE)), CPUS(2)},
         .choice = "c0 0:4,20"},
        {"static-burst has an L3 group", .pod = {.name = "p", .annotations = PAIRS(BURST), CPUS(4)},
         .choice = "c0 0:0-3,16-19"},
        {"an untouched one if there is one", .taken = "0",
         .pod = {.name = "p", .annotations = PAIRS(BURST), CPUS(4)}, .choice = "c0 0:4-7,20-23"},
        {"otherwise what is left of one", .taken = "0,4,8,12",
         .pod = {.name = "p", .annotations = PAIRS(BURST), CPUS(4)}, .choice = "c0 0:1-3,16-19"},
        {"two groups for more than one holds",
         .pod = {.name = "p", .annotations = PAIRS(BURST), CPUS(9)}, .choice = "c0 0:0-7,16-23"},
        {"CPUs on loan are not free", .lent = "0-7,16-23", .own = 4,
         .pod = {.name = "p", .annotations = PAIRS(TRUE), CPUS(4)}, .choice = "c0 1:8-9,24-25"},
        {"but can be called back", .taken = "8-15,24-31", .lent = "0-7,16-23", .own = 4,
         .pod = {.name = "p", .annotations = PAIRS(TRUE), CPUS(12)}, .no = CPU_ACCOUNTS_LENT,
         .want = 12, .free = 0},
        {"not those that are the borrower's own", .taken = "8-15,24-31", .lent = "0-7,16-23",
         .own = 4, .pod = {.name = "p", .annotations = PAIRS(TRUE), CPUS(13)},
         .no = CPU_ACCOUNTS_TOO_FEW, .want = 13, .free = 0},
        {"shared ones are not taken while some are free", .taken = "0-7,16-23",
         .pod = {.name = "p", .annotations = PAIRS(SHARED), CPUS(2)}, .choice = "c0 1:8,24"},
        {"never those of a pod that does not share", .taken = "0-14,16-31",
         .pod = {.name = "p", .annotations = PAIRS(SHARED), CPUS(2)}, .no = CPU_ACCOUNTS_TOO_FEW,
         .want = 2, .free = 1},
        {"nor those that it borrows", .lent = "0-31", .own = 1,
         .pod = {.name = "p", .annotations = PAIRS(SHARED), CPUS(2)}, .no = CPU_ACCOUNTS_LENT,
         .want = 2, .free = 0},
        {"of two pods on the same CPUs both must share", .taken = "0-31", .lent = "0-31", .own = 32,
         .shared = "0-31", .pod = {.name = "p", .annotations = PAIRS(SHARED), CPUS(2)},
         .no = CPU_ACCOUNTS_TOO_FEW, .want = 2, .free = 0},
        {"those of one that shares, beside one that does not", .taken = "0-15", .shared = "16-31",
         .pod = {.name = "p", .annotations = PAIRS(SHARED), CPUS(2)}, .choice = "c0 0:16-17"},
        {"its CPUs are nobody's who does not", .shared = "0-31",
         .pod = {.name = "p", .annotations = PAIRS(TRUE), CPUS(2)}, .no = CPU_ACCOUNTS_TOO_FEW,
         .want = 2, .free = 0},
        {"all free ones first, then those with the fewest pods", .shared = "0-14,16-31",
         .shared_too = "0-13,16-31", .pod = {.name = "p", .annotations = PAIRS(SHARED), CPUS(2)},
         .choice = "c0 1:14-15"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pod *p = fixture_make_pod(&rows[i].pod);
        const struct cpu_request *r = cpu_request_read(p, &p->arena, NULL);
        uint32_t own = rows[i].own;
        uint64_t before = cpu_accounts_digest(&book);
        struct cpu_grant got;
        struct cpu_accounts_why no = {0};
        take(&book, rows[i].taken, 0, 1);
        take(&book, rows[i].lent, own, 1);
        take_shared(&book, rows[i].shared, 0, true, 1);
        take_shared(&book, rows[i].shared_too, 0, true, 1);
        bool room = cpu_accounts_has_capacity(&book, r, &no);
        bool chosen = cpu_accounts_choose(&book, p, r, NULL, &arena, &got);
        if (chosen)
            cpu_accounts_lend(&book, p, r, &arena, &got);
        expect_int("filter and reserve agree", room, chosen);
        expect_str(rows[i].row, rows[i].choice, chosen ? shown(&got, p) : NULL);
        if (!room) {
            expect_int(rows[i].row, rows[i].no, no.no);
            expect_int(rows[i].row, rows[i].want, no.want);
            expect_int(rows[i].row, rows[i].free, no.free);
        }
        take_shared(&book, rows[i].shared_too, 0, true, -1);
        take_shared(&book, rows[i].shared, 0, true, -1);
        take(&book, rows[i].lent, own, -1);
        take(&book, rows[i].taken, 0, -1);
        expect_true("as before", cpu_accounts_digest(&book) == before);
        expect_true("as before", cpuset_is_empty(&book.owned) && cpuset_is_empty(&book.lent));
        pod_free(p);
    }
    expect_done();
}

static void near_the_cards(void **state)
{
    (void)state;
    static const int32_t one[] = {1}, elsewhere[] = {7};
    const struct {
        const char *row, *taken;
        struct cpu_accounts_near near;
        const char *choice;
    } rows[] = {
        {"on the NUMA node of the card", NULL, {one, 1}, "c0 1:8-9,24-25"},
        {"elsewhere when that is full", "8-14,24-30", {one, 1}, "c0 0:0-1,16-17"},
        {"a NUMA node without CPUs", NULL, {elsewhere, 1}, "c0 0:0-1,16-17"},
    };
    struct pod *p = POD(.name = "p", .annotations = PAIRS(TRUE), CPUS(4));
    const struct cpu_request *r = cpu_request_read(p, &p->arena, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cpu_grant got;
        take(&book, rows[i].taken, 0, 1);
        assert_true(cpu_accounts_choose(&book, p, r, &rows[i].near, &arena, &got));
        expect_str(rows[i].row, rows[i].choice, shown(&got, p));
        take(&book, rows[i].taken, 0, -1);
    }
    pod_free(p);
    expect_done();
}

/* On four NUMA nodes of four CPUs each. */
static void apart_from_pods_of_the_other_sort(void **state)
{
    (void)state;
    const struct {
        const char *row, *taken;
        struct fixture_pod plain, wishes;
        const char *choice, *wished;
    } rows[] = {
        {"on one: not beside a pod on two, though it is tighter there",
         "3-4",
         {.name = "p", .annotations = PAIRS(TRUE), CPUS(2)},
         {.name = "p", .annotations = PAIRS(REQUIRED(RATHER_ALONE)), CPUS(2)},
         "c0 0:0-1",
         "c0 2:8-9"},
        {"on two: not beside a pod on one",
         "0",
         {.name = "p", .annotations = PAIRS(TRUE), CPUS(6)},
         {.name = "p", .annotations = PAIRS(REQUIRED(RATHER_ALONE)), CPUS(6)},
         "c0 0:1-3 c0 1:4-6",
         "c0 1:4-7 c0 2:8-9"},
        {"what cannot be had is not insisted on",
         "3-4,11-12",
         {.name = "p", .annotations = PAIRS(TRUE), CPUS(2)},
         {.name = "p", .annotations = PAIRS(REQUIRED(RATHER_ALONE)), CPUS(2)},
         "c0 0:0-1",
         "c0 0:0-1"},
    };
    struct cpu_accounts wide = {0};
    cpu_accounts_set_shape(&wide,
                           cpu_shapes_take(&shapes, fixture_topology(&arena, 4, 1, 4, 1, NULL)));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pod *plain = fixture_make_pod(&rows[i].plain),
                   *wishes = fixture_make_pod(&rows[i].wishes);
        const struct cpu_request *r = cpu_request_read(wishes, &wishes->arena, NULL);
        struct cpu_grant got;
        int64_t before = cpu_accounts_score(&wide, r);
        take(&wide, rows[i].taken, 0, 1);
        assert_true(cpu_accounts_choose(&wide, plain, cpu_request_read(plain, &plain->arena, NULL),
                                        NULL, &arena, &got));
        expect_str(rows[i].row, rows[i].choice, shown(&got, plain));
        assert_true(cpu_accounts_choose(&wide, wishes, r, NULL, &arena, &got));
        expect_str(rows[i].row, rows[i].wished, shown(&got, wishes));
        bool had = strcmp(rows[i].choice, rows[i].wished) != 0;
        expect_true("a node where it cannot be had is worth less",
                    had || cpu_accounts_score(&wide, r) < before);
        take(&wide, rows[i].taken, 0, -1);
        pod_free(plain);
        pod_free(wishes);
    }
    cpu_accounts_deinit(&wide);
    expect_done();
}

static void no_topology(void **state)
{
    (void)state;
    struct pod *p = POD(.name = "p", .annotations = PAIRS(TRUE), CPUS(4));
    const struct cpu_request *r = cpu_request_read(p, &p->arena, NULL);
    struct cpu_accounts none = {0}, bad = {0};
    struct cpu_accounts_why no;
    struct cpu_grant got;
    cpu_accounts_set_shape(&bad, cpu_shapes_take(&shapes, "{\"v\":9}"));
    expect_true("none", !cpu_accounts_has_capacity(&none, r, &no));
    expect_int("none", CPU_ACCOUNTS_NO_TOPOLOGY, no.no);
    expect_true("none", !cpu_accounts_choose(&none, p, r, NULL, &arena, &got));
    expect_true("one that cannot be read", !cpu_accounts_has_capacity(&bad, r, &no));
    expect_int("one that cannot be read", CPU_ACCOUNTS_NO_TOPOLOGY, no.no);
    expect_str("one that cannot be read", "unreadable: cpu topology: v: only version 1 is known",
               bad.shape->problem);
    take(&bad, "0-3", 0, 1);
    take(&bad, "0-3", 0, -1);
    cpu_accounts_deinit(&bad);
    pod_free(p);
    expect_done();
}

static void better_places_score_higher(void **state)
{
    (void)state;
    /* From good to bad, for four CPUs. */
    static const char *const taken[] = {
        "2-3,18-19,4-15,20-31",                       /* exactly fits an L3 group and a NUMA node */
        "0-1,16-17",                                  /* exactly fits an L3 group */
        "0,16",                                       /* one core is left over in it */
        NULL,                                         /* an empty node */
        "0-2,4-6,8-10,12-14,16-18,20-22,24-26,28-30", /* an L3 group has 2 */
        "0-6,16-23,8-15,24-30",                       /* 1 and 1 in two NUMA nodes: no room */
    };
    struct pod *p = POD(.name = "p", .annotations = PAIRS(TRUE), CPUS(4));
    const struct cpu_request *r = cpu_request_read(p, &p->arena, NULL);
    int64_t last = 101;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        take(&book, taken[i], 0, 1);
        int64_t score = cpu_accounts_score(&book, r);
        if (score >= last)
            fail_msg("row %zu scores %lld, the one before it %lld", i, (long long)score,
                     (long long)last);
        last = score;
        take(&book, taken[i], 0, -1);
    }
    pod_free(p);
}

static void one_shape_for_equal_nodes(void **state)
{
    (void)state;
    const char *text = fixture_topology(&arena, 1, 1, 2, 1, "0");
    const struct cpu_shape *x = cpu_shapes_take(&shapes, text), *y = cpu_shapes_take(&shapes, text);
    expect_true("the same", x == y);
    expect_int("usable ones", 1, cpuset_count(&x->layout.usable));
    size_t n = map_count(&shapes.by_text);
    cpu_shapes_give(&shapes, x);
    expect_int("still held", (int64_t)n, (int64_t)map_count(&shapes.by_text));
    cpu_shapes_give(&shapes, y);
    expect_int("gone", (int64_t)n - 1, (int64_t)map_count(&shapes.by_text));
    expect_true("none", cpu_shapes_take(&shapes, NULL) == NULL);
    expect_true("none", cpu_shapes_take(&shapes, "") == NULL);
    cpu_shapes_give(&shapes, NULL);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(choices, setup, teardown),
        cmocka_unit_test_setup_teardown(near_the_cards, setup, teardown),
        cmocka_unit_test_setup_teardown(apart_from_pods_of_the_other_sort, setup, teardown),
        cmocka_unit_test_setup_teardown(no_topology, setup, teardown),
        cmocka_unit_test_setup_teardown(better_places_score_higher, setup, teardown),
        cmocka_unit_test_setup_teardown(one_shape_for_equal_nodes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

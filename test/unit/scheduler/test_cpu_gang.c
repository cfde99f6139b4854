// SPDX-License-Identifier: Apache-2.0
/*
 * Gangs whose members have pinned CPUs: all members or none, with lent CPUs, and with cards.
 */
#include "lib/model/names.h"
#include "scheduler/cycle/cycle.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cycle/cpu_lending.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"
#include "scheduler/framework/pipeline.h"
#include "scheduler/framework/equivalence.h"

#define PIN "cpuset-scheduler", "true"
#define BURST PIN, "cpu-policy", "static-burst"
#define GANG(n) NAME_LABEL_GANG_NAME, "g", NAME_LABEL_GANG_MIN, n
#define ALL_8                                                                                    \
    "{\"c0\":{\"0\":{\"elems\":{\"0\":{},\"1\":{},\"2\":{},\"3\":{},\"4\":{},\"5\":{},\"6\":{}," \
    "\"7\":{}}}}}"

static struct cluster cluster;
static struct pipeline pipeline; /* on it */
static struct arena arena, specs;
static const struct cluster_hooks *const hooks = NULL; /* no hooks */

static int setup(void **state)
{
    (void)state;
    cluster_init(&cluster, NAME_SCHEDULER);
    pipeline_init(&pipeline, &cluster);
    arena_init(&arena, 0);
    arena_init(&specs, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pipeline_deinit(&pipeline);
    cluster_deinit(&cluster);
    arena_deinit(&arena);
    arena_deinit(&specs);
    return 0;
}

/* One L3 group of eight CPUs. */
static void put_node(const char *name, const char *reserved)
{
    cluster_put_node(
        &cluster, NODE(.name = name, .topology = fixture_topology(&specs, 1, 1, 8, 1, reserved)));
}

static void put_member(const char *name, const char *min, int64_t cpus)
{
    cluster_put_pod(&cluster,
                    POD(.name = name, .labels = PAIRS(GANG(min)), .annotations = PAIRS(PIN),
                        .c = {{.cpu_milli = cpus * 1000}}),
                    hooks);
}

static struct cycle_result run(void)
{
    struct plan plan;
    struct cycle_result r;
    arena_reset(&arena);
    plan_begin(&plan, &cluster);
    cycle_run(&pipeline, cluster_find_pod(&cluster, "d/a")->gang, &plan, &arena, &r);
    plan_end(&plan);
    return r;
}

/* "n:0-3", or NULL while it has none. */
static const char *shown(const char *key)
{
    const struct cluster_pod *cp = cluster_find_pod(&cluster, key);
    struct cpuset all;
    AUTO_STRBUF b = {0};
    if (cp->on == NULL)
        return NULL;
    cpu_grant_of(&cp->grant.cpus, 0, &all);
    strbuf_addf(&b, "%s:", cp->on->name);
    cpuset_print(&all, &b);
    return arena_strdup(&specs, strbuf_str(&b));
}

static void all_or_none(void **state)
{
    (void)state;
    const struct {
        const char *row;
        const char *reserved; /* on n */
        bool second;          /* there is another node, m */
        int64_t cpus;         /* of each member */
        const char *a, *b;    /* NULL: neither is placed, and: */
        const char *why;
    } rows[] = {
        {"fits as a whole", NULL, false, 4, "n:0-3", "n:4-7", NULL},
        {"one CPU short: nothing is held", "7", false, 4, NULL, NULL,
         "gang d/g: room for 1 of 2 pods; pod b: 0/1 nodes fit: 1 has fewer than 4 CPUs to pin "
         "(most free: 3 on n)"},
        {"one on each node", NULL, true, 5, "m:0-4", "n:0-4", NULL},
        {"one CPU short on one of two nodes", "0-3", true, 5, NULL, NULL,
         "gang d/g: room for 1 of 2 pods; pod b: 0/2 nodes fit: 1 has too little cpu (asked: 5, "
         "largest free: 3 on m), 1 has fewer than 5 CPUs to pin (most free: 4 on n)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_node("n", rows[i].reserved);
        if (rows[i].second)
            put_node("m", NULL);
        put_member("a", "2", rows[i].cpus);
        put_member("b", "2", rows[i].cpus);
        uint64_t before = cluster_digest(&cluster);
        struct cycle_result r = run();
        expect_int(rows[i].row, rows[i].a != NULL ? CYCLE_PLACED : CYCLE_NO_CAPACITY, r.verdict);
        expect_str(rows[i].row, rows[i].why, r.sentence);
        expect_str(rows[i].row, rows[i].a, shown("d/a"));
        expect_str(rows[i].row, rows[i].b, shown("d/b"));
        if (rows[i].a == NULL)
            expect_true(rows[i].row, cluster_digest(&cluster) == before);
        cluster_remove_pod(&cluster, "d/a", NULL, hooks);
        cluster_remove_pod(&cluster, "d/b", NULL, hooks);
        cluster_remove_node(&cluster, "m");
    }
    expect_done();
}

static void put_borrower(const char *text)
{
    cluster_put_pod(
        &cluster,
        POD(.name = "z", .node = "n",
            .annotations = PAIRS(BURST, NAME_ANN_CPUSET, text, NAME_ANN_CPUSET_APPLIED, text),
            .c = {{.cpu_milli = 2000}}),
        hooks);
}

/* The borrower has two of its own and six on loan. What each member finds alone is not what they
 * need together. */
static void loans_are_called_back_for_all_members_at_once(void **state)
{
    (void)state;
    AUTO_STRBUF text = {0};
    struct cpu_grant left;
    put_node("n", NULL);
    put_borrower(ALL_8);
    put_member("a", "2", 3);
    put_member("b", "2", 3);
    struct cycle_result r = run();
    expect_int("not yet", CYCLE_NO_CAPACITY, r.verdict);
    expect_str("why",
               "gang d/g: room for 0 of 2 pods; pod a: 0/1 nodes fit: 1 has CPUs to pin only when "
               "those on loan are given back (asked: 3, most free: 0 on n); waits for pod d/z to "
               "give back CPUs 2-7 on n",
               r.sentence);
    assert_int_equal(r.recalls_len, 1);
    expect_int("both are nominated", 2, (int64_t)r.nominations_len);
    cpuset_print(&r.recalls[0].cpus, &text);
    expect_str("all that they need", "2-7", strbuf_str(&text));
    cluster_grant_reclaim(r.recalls[0].pod, &r.recalls[0].cpus);
    cpu_lending_left(r.recalls[0].pod, &arena, &left);
    strbuf_reset(&text);
    cpu_grant_encode(&left, r.recalls[0].pod->pod, &text);
    put_borrower(arena_strdup(&specs, strbuf_str(&text)));
    expect_int("given back", CYCLE_PLACED, run().verdict);
    expect_str("a", "n:2-4", shown("d/a"));
    expect_str("b", "n:5-7", shown("d/b"));
    expect_done();
}

/* Two CPUs are free: the first member takes them, and only the second needs the loan. */
static void what_is_free_is_not_called_back(void **state)
{
    (void)state;
    put_node("n", NULL);
    put_borrower(
        "{\"c0\":{\"0\":{\"elems\":{\"0\":{},\"1\":{},\"2\":{},\"3\":{},\"4\":{},\"5\":{}}}}}");
    put_member("a", "2", 2);
    put_member("b", "2", 2);
    struct cycle_result r = run();
    expect_int("not yet", CYCLE_NO_CAPACITY, r.verdict);
    assert_int_equal(r.recalls_len, 1);
    expect_int("as many as the second needs", 2, cpuset_count(&r.recalls[0].cpus));
    expect_int("both are nominated", 2, (int64_t)r.nominations_len);
    expect_done();
}

static void more_than_the_loan_calls_nothing_back(void **state)
{
    (void)state;
    put_node("n", NULL);
    put_borrower(ALL_8);
    put_member("a", "2", 3);
    put_member("b", "2", 4);
    struct cycle_result r = run();
    expect_int("no room", CYCLE_NO_CAPACITY, r.verdict);
    expect_int("nothing is reclaimed", 0, (int64_t)r.recalls_len);
    expect_int("and nothing promised", 0, (int64_t)r.nominations_len);
    expect_done();
}

/* A borrower that is stuck needs only its own, not loans of its own at another's expense. */
static void nobody_gives_back_for_another_loan(void **state)
{
    (void)state;
    put_node("n", NULL);
    put_borrower(ALL_8);
    cluster_put_pod(
        &cluster, POD(.name = "a", .annotations = PAIRS(BURST), .c = {{.cpu_milli = 2000}}), hooks);
    struct cycle_result r = run();
    assert_int_equal(r.recalls_len, 1);
    expect_int("its own", 2, cpuset_count(&r.recalls[0].cpus));
    expect_done();
}

/* Two that borrow, on one L3 group: the loan of the first is not in the way of the second, and what
 * is left at the end is lent to the first. */
static void members_that_borrow(void **state)
{
    (void)state;
    const struct {
        const char *row;
        int64_t cpus;
        const char *a, *b;
    } rows[] = {
        {"all is their own", 4, "n:0-3", "n:4-7"},
        {"what is left", 3, "n:0-2,6-7", "n:3-5"},
    };
    put_node("n", NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (const char *const *name = (const char *const[]){"a", "b", NULL}; *name; name++)
            cluster_put_pod(&cluster,
                            POD(.name = *name, .labels = PAIRS(GANG("2")),
                                .annotations = PAIRS(BURST),
                                .c = {{.cpu_milli = rows[i].cpus * 1000}}),
                            hooks);
        expect_int(rows[i].row, CYCLE_PLACED, run().verdict);
        expect_str(rows[i].row, rows[i].a, shown("d/a"));
        expect_str(rows[i].row, rows[i].b, shown("d/b"));
        const struct cpu_accounts *book = &cluster_find_node(&cluster, "n")->cpus;
        expect_int("their own", 2 * rows[i].cpus, cpuset_count(&book->owned));
        expect_int("lent", 8 - 2 * rows[i].cpus, cpuset_count(&book->lent));
        cluster_remove_pod(&cluster, "d/a", NULL, hooks);
        cluster_remove_pod(&cluster, "d/b", NULL, hooks);
        expect_true("nothing is left behind",
                    cpuset_is_empty(&book->owned) && cpuset_is_empty(&book->lent));
    }
    expect_done();
}

#define CARD(i, numa)                                                                         \
    "{\"i\":" i ",\"uuid\":\"GPU-" i "\",\"model\":\"Tesla T4\",\"mib\":15360,\"numa\":" numa \
    ",\"pci\":\"0000:3b:00." i "\",\"health\":\"ok\"}"
#define INSISTS(policy) \
    "cpuset-scheduler", "required", NAME_ANN_NUMA_SPEC, "{\"numaTopologyPolicy\":\"" policy "\"}"

/* Two NUMA nodes of four CPUs, a card on each; three CPUs of NUMA node 0 are taken, and its card,
 * which has more free memory, is tried first. */
static void cards_where_the_cpus_are(void **state)
{
    (void)state;
    const struct {
        const char *row;
        const char *const *annotations;
        int64_t cpus, gib;
        int32_t card;
        const char *on;
    } rows[] = {
        {"who insists has the other card, where the CPUs are", PAIRS(INSISTS("SingleNUMANode")), 2,
         4, 1, "n:4-5"},
        {"with any policy", PAIRS(INSISTS("BestEffort")), 2, 4, 1, "n:4-5"},
        {"the card that is taken first if that has enough", PAIRS(INSISTS("SingleNUMANode")), 1, 4,
         0, "n:3"},
        {"where the other card has too little: apart from it", PAIRS(INSISTS("SingleNUMANode")), 2,
         11, 0, "n:4-5"},
        {"who only wishes keeps the card that is best for the cluster", PAIRS(PIN), 2, 4, 0,
         "n:4-5"},
    };
    cluster_put_node(
        &cluster,
        NODE(.name = "n", .gib = 30, .placement = "spread",
             .topology = fixture_topology(&specs, 2, 1, 4, 1, NULL),
             .inventory =
                 "{\"v\":1,\"mode\":\"share\",\"switchingTo\":null,\"isolation\":\"none\",\"cards\":[" CARD(
                     "0", "0") "," CARD("1", "1") "]}"));
    cluster_put_pod(
        &cluster,
        POD(.name = "x", .node = "n",
            .annotations = PAIRS(PIN, NAME_ANN_CPUSET,
                                 "{\"c0\":{\"0\":{\"elems\":{\"0\":{},\"1\":{},\"2\":{}}}"
                                 "}}"),
            .c = {{.cpu_milli = 3000}}),
        hooks);
    cluster_put_pod(&cluster,
                    POD(.name = "y", .node = "n",
                        .annotations = PAIRS(NAME_ANN_ALLOCATION, "{\"0\":{\"0\":2}}"),
                        .c = {{.gib = 2}}),
                    hooks);
    cluster_put_pod(&cluster,
                    POD(.name = "z", .node = "n",
                        .annotations = PAIRS(NAME_ANN_ALLOCATION, "{\"0\":{\"1\":5}}"),
                        .c = {{.gib = 5}}),
                    hooks);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cluster_put_pod(&cluster,
                        POD(.name = "a", .annotations = rows[i].annotations,
                            .c = {{.cpu_milli = rows[i].cpus * 1000, .gib = rows[i].gib}}),
                        hooks);
        expect_int(rows[i].row, CYCLE_PLACED, run().verdict);
        expect_str(rows[i].row, rows[i].on, shown("d/a"));
        const struct grant *c = &cluster_find_pod(&cluster, "d/a")->grant;
        assert_int_equal(c->shares_len, 1);
        expect_int(rows[i].row, rows[i].card, c->shares[0].card);
        expect_int(rows[i].row, rows[i].gib, c->shares[0].gib);
        cluster_remove_pod(&cluster, "d/a", NULL, hooks);
    }
    expect_done();
}

/* The same with two unused cards: nothing favours the one that is tried first. */
static void a_card_like_the_other(void **state)
{
    (void)state;
    const struct {
        const char *row, *mode;
        const char *const *labels;
        struct fixture_container c;
        int32_t card;
        const char *on;
    } rows[] = {
        {"the card where the CPUs are", "share", NULL, {.cpu_milli = 2000, .gib = 4}, 1, "n:4-5"},
        {"the first one if that has enough",
         "share",
         NULL,
         {.cpu_milli = 1000, .gib = 4},
         0,
         "n:3"},
        {"a whole one", "topology", NULL, {.cpu_milli = 2000, .cards = 1}, 1, "n:4-5"},
        {"in a job the links count",
         "topology",
         PAIRS("gpu-topology", "j", "gpu-topology-replica", "1"),
         {.cpu_milli = 2000, .cards = 1},
         0,
         "n:4-5"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool whole = str_eq(rows[i].mode, "topology");
        cluster_put_node(
            &cluster,
            NODE(.name = "n", .gib = whole ? 0 : 30, .cards = whole ? 2 : 0,
                 .topology = fixture_topology(&specs, 2, 1, 4, 1, NULL),
                 .inventory = arena_printf(
                     &specs,
                     "{\"v\":1,\"mode\":\"%s\",\"switchingTo\":null,\"isolation\":\"none\","
                     "\"cards\":[" CARD("0", "0") "," CARD("1", "1") "]}",
                     rows[i].mode)));
        cluster_put_pod(
            &cluster,
            POD(.name = "x", .node = "n",
                .annotations = PAIRS(PIN, NAME_ANN_CPUSET,
                                     "{\"c0\":{\"0\":{\"elems\":{\"0\":{},\"1\":{},\"2\":{}}}}}"),
                .c = {{.cpu_milli = 3000}}),
            hooks);
        cluster_put_pod(
            &cluster,
            POD(.name = "a", .annotations = PAIRS(PIN), .labels = rows[i].labels, .c = {rows[i].c}),
            hooks);
        expect_int(rows[i].row, CYCLE_PLACED, run().verdict);
        expect_str(rows[i].row, rows[i].on, shown("d/a"));
        const struct grant *c = &cluster_find_pod(&cluster, "d/a")->grant;
        assert_int_equal(c->shares_len + c->group_len, 1);
        expect_int(rows[i].row, rows[i].card, whole ? c->group[0] : c->shares[0].card);
        cluster_remove_pod(&cluster, "d/a", NULL, hooks);
    }
    expect_done();
}

/* Between nodes: the one where both are on one NUMA node, though the other is as tight and comes
 * first. */
static void the_node_with_both_on_one_numa_node(void **state)
{
    (void)state;
    static const char taken[] =
        "{\"c0\":{\"0\":{\"elems\":{\"0\":{},\"1\":{},\"2\":{},\"3\":{}}}}}";
    for (const char *const *name = (const char *const[]){"apart", "together", NULL}; *name;
         name++) {
        bool apart = str_eq(*name, "apart");
        cluster_put_node(
            &cluster,
            NODE(.name = *name, .gib = 15, .topology = fixture_topology(&specs, 2, 1, 4, 1, NULL),
                 .inventory = arena_printf(
                     &specs,
                     "{\"v\":1,\"mode\":\"share\",\"switchingTo\":null,\"isolation\":\"none\","
                     "\"cards\":[%s]}",
                     apart ? CARD("0", "0") : CARD("0", "1"))));
        cluster_put_pod(&cluster,
                        POD(.name = arena_printf(&specs, "x-%s", *name), .node = *name,
                            .annotations = PAIRS(PIN, NAME_ANN_CPUSET, taken),
                            .c = {{.cpu_milli = 4000}}),
                        hooks);
    }
    cluster_put_pod(
        &cluster, POD(.name = "a", .annotations = PAIRS(PIN), .c = {{.cpu_milli = 2000, .gib = 4}}),
        hooks);
    expect_int("placed", CYCLE_PLACED, run().verdict);
    expect_str("with its card", "together:4-5", shown("d/a"));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_or_none, setup, teardown),
        cmocka_unit_test_setup_teardown(loans_are_called_back_for_all_members_at_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_free_is_not_called_back, setup, teardown),
        cmocka_unit_test_setup_teardown(more_than_the_loan_calls_nothing_back, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_gives_back_for_another_loan, setup, teardown),
        cmocka_unit_test_setup_teardown(members_that_borrow, setup, teardown),
        cmocka_unit_test_setup_teardown(cards_where_the_cpus_are, setup, teardown),
        cmocka_unit_test_setup_teardown(a_card_like_the_other, setup, teardown),
        cmocka_unit_test_setup_teardown(the_node_with_both_on_one_numa_node, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/gpu_prices.h"

#include "lib/model/names.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/framework/pipeline.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"
#include "scheduler/framework/equivalence.h"

static struct cluster c;
static struct pipeline pipeline; /* on it */
static struct arena arena;

static int setup(void **state)
{
    (void)state;
    cluster_init(&c, NAME_SCHEDULER);
    pipeline_init(&pipeline, &c);
    arena_init(&arena, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pipeline_deinit(&pipeline);
    cluster_deinit(&c);
    arena_deinit(&arena);
    return 0;
}

#define MODEL(name) PAIRS(NAME_LABEL_ACCEL_NAME, name)

static void put_node(const char *name, const char *cards, const char *placement, const char *model,
                     int64_t cpu_milli)
{
    (void)cluster_put_node(&c, NODE(.name = name, .cpu_milli = cpu_milli, .gib = 1000,
                                    .memory_bytes = INT64_C(1) << 40, .placement = placement,
                                    .inventory = fixture_inventory(&arena, "cgpu", cards),
                                    .labels = MODEL(model)));
}

static struct cluster_pod *put_pod(const char *name, int64_t gib, const char *spec)
{
    struct pod *p = POD(.name = name, .spec = spec, .c = {{.gib = gib, .cpu_milli = 1000}});
    AUTO_STRBUF key = {0};
    strbuf_adds(&key, p->key);
    (void)cluster_put_pod(&c, p, NULL);
    return cluster_find_pod(&c, strbuf_str(&key));
}

/* "n1/0": the node and the card. */
static const char *place(struct cluster_pod *cp)
{
    struct pipeline_choice choice;
    gpu_prices_refresh(&c);
    pipeline_choose(&pipeline, cp, &arena, &choice);
    if (choice.node == NULL)
        return "nowhere";
    cluster_assume(&c, cp, choice.node, &choice.grant);
    if (choice.grant.shares_len == 0)
        return choice.node->name;
    return arena_printf(&arena, "%s/%d", choice.node->name, choice.grant.shares[0].card);
}

static void learns_what_pods_ask_for(void **state)
{
    (void)state;
    static const struct {
        const char *row, *spec;
        uint64_t models; /* a, b, c are the bits 0, 1, 2 */
    } rows[] = {
        {"any", NULL, 0},
        {"by nodeSelector", "\"nodeSelector\":{\"" NAME_LABEL_ACCEL_NAME "\":\"b\"}", 2},
        {"another label", "\"nodeSelector\":{\"disk\":\"ssd\"}", 0},
        {"two of them",
         "\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"
         "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"" NAME_LABEL_ACCEL_NAME
         "\",\"operator\":\"In\",\"values\":[\"a\",\"c\"]}]}]}}}",
         5},
        {"all but one",
         "\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"
         "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"" NAME_LABEL_ACCEL_NAME
         "\",\"operator\":\"NotIn\",\"values\":[\"a\"]}]}]}}}",
         6},
        {"a term that says nothing of it",
         "\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"
         "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"" NAME_LABEL_ACCEL_NAME
         "\",\"operator\":\"In\",\"values\":[\"a\"]}]},{\"matchExpressions\":[{\"key\":\"disk\","
         "\"operator\":\"Exists\"}]}]}}}",
         0},
    };
    put_node("n1", "16", NULL, "a", 8000);
    put_node("n2", "16", NULL, "b", 8000);
    put_node("n3", "16", NULL, "c", 8000);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        c.gpu_prices->demand = (struct demand){0};
        (void)put_pod(arena_printf(&arena, "p%zu", i), 4, rows[i].spec);
        const struct demand *d = &c.gpu_prices->demand;
        expect_int(rows[i].row, 1, (int64_t)d->seen);
        expect_int(rows[i].row, (int64_t)rows[i].models,
                   d->sets_len > 0 ? (int64_t)d->sets[0].models : 0);
        (void)put_pod(arena_printf(&arena, "p%zu", i), 4, rows[i].spec);
        expect_int("a newer version is the same pod", 1, (int64_t)d->seen);
    }
    (void)put_pod("cpu", 0, NULL);
    expect_int("a pod without cards", 1, (int64_t)c.gpu_prices->demand.seen);
    (void)cluster_put_pod(
        &c, POD(.name = "whole", .c = {{.other = NAME_RES_NVIDIA_GPU, .other_amount = 2}}), NULL);
    expect_int("whole cards of others", 2, (int64_t)c.gpu_prices->demand.seen);
    expect_done();
}

static void keeps_what_others_need(void **state)
{
    (void)state;
    put_node("n1", "16", NULL, "a", 64000);
    put_node("n2", "16", NULL, "a", 64000);
    expect_str("the first", "n1/0", place(put_pod("p1", 10, NULL)));
    expect_str("on a card that is used", "n1/0", place(put_pod("p2", 6, NULL)));
    expect_str("where there is room", "n2/0", place(put_pod("p3", 6, NULL)));
    expect_str("into the rest of ten", "n2/0", place(put_pod("p4", 10, NULL)));
    expect_done();
}

static void the_label_decides_the_card(void **state)
{
    (void)state;
    put_node("n1", "16,16,16", "spread", "a", 64000);
    expect_str("spread", "n1/0", place(put_pod("p1", 4, NULL)));
    expect_str("spread", "n1/1", place(put_pod("p2", 4, NULL)));
    expect_str("spread", "n1/2", place(put_pod("p3", 4, NULL)));
    put_node("n1", "16,16,16", "binpack", "a", 64000);
    expect_str("binpack", "n1/0", place(put_pod("p4", 4, NULL)));
    expect_str("binpack", "n1/0", place(put_pod("p5", 4, NULL)));
    expect_done();
}

/* What is cheap by the card may be dear by the GiB: 16 of 80 are a fifth of a card, 16 of 16 a
 * whole one. */
static void a_small_card_is_not_spared_at_the_cost_of_a_large_one(void **state)
{
    (void)state;
    put_node("n1", "16,24,80", NULL, "a", 64000);
    struct cluster_pod *large = put_pod("large", 80, NULL);
    struct cluster_pod *middle = put_pod("middle", 24, NULL);
    expect_str("the one of its size", "n1/0", place(put_pod("small", 16, NULL)));
    expect_str("so is this", "n1/1", place(middle));
    expect_str("and all have room", "n1/2", place(large));
    expect_done();
}

/* The same between nodes: 8 of 80 GiB are a tenth of a card, 8 of 16 half of one, and both are 8
 * GiB. */
static void between_nodes_gib_count_and_not_cards(void **state)
{
    (void)state;
    put_node("n1", "80", NULL, "a", 64000);
    put_node("n2", "16", NULL, "b", 64000);
    struct cluster_pod *large = put_pod("large", 80, NULL);
    expect_str("small ones to the small card", "n2/0", place(put_pod("p1", 8, NULL)));
    expect_str("as long as it has room", "n2/0", place(put_pod("p2", 8, NULL)));
    expect_str("so the large one finds its card", "n1/0", place(large));
    expect_done();
}

static const char *links_of_four(const char *near, const char *far)
{
    AUTO_STRBUF b = {0};
    strbuf_adds(&b, "{\"v\":1,\"mode\":\"topology\",\"cards\":[");
    for (int i = 0; i < 4; i++)
        strbuf_addf(&b, "%s{\"i\":%d,\"uuid\":\"u%d\",\"mib\":16384,\"health\":\"ok\"}",
                    i > 0 ? "," : "", i, i);
    strbuf_adds(&b, "],\"links\":[");
    for (int i = 0; i < 16; i++)
        strbuf_addf(&b, "%s\"%s\"%s",
                    i % 4 > 0 ? ","
                    : i > 0   ? ",["
                              : "[",
                    i / 4 == i % 4       ? "X"
                    : i / 8 == i % 4 / 2 ? near
                                         : far,
                    i % 4 == 3 ? "]" : "");
    strbuf_adds(&b, "]}");
    return arena_strdup(&arena, strbuf_str(&b));
}

static const char *place_whole(const char *name, int64_t cards)
{
    (void)cluster_put_pod(&c, POD(.name = name, .c = {{.cards = cards, .cpu_milli = 100}}), NULL);
    return place(cluster_find_pod(&c, arena_printf(&arena, "d/%s", name)));
}

/* A pod alone, that is: the pods of a job are placing_job's. */
static void whole_cards_go_where_the_links_are_best(void **state)
{
    (void)state;
    static const struct {
        const char *name, *near, *far;
    } nodes[] = {{"n1", "PIX", "SYS"}, {"n2", "NV4", "SYS"}, {"n3", "NV2", "NV2"}};
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++)
        (void)cluster_put_node(&c, NODE(.name = nodes[i].name, .cpu_milli = 64000, .cards = 4,
                                        .memory_bytes = INT64_C(1) << 40,
                                        .inventory = links_of_four(nodes[i].near, nodes[i].far)));
    expect_str("a pair: four NVLinks", "n2", place_whole("pair", 2));
    expect_str("three: all of them with two", "n3", place_whole("three", 3));
    expect_str("the next pair: the other one with four", "n2", place_whole("pair2", 2));
    expect_str("one: where one is left over", "n3", place_whole("one", 1));
    expect_str("two: what is left", "n1", place_whole("pair3", 2));
    expect_done();
}

static void spares_the_model_that_others_insist_on(void **state)
{
    (void)state;
    put_node("n1", "16,16", NULL, "rare", 64000);
    put_node("n2", "16,16,16,16", NULL, "common", 64000);
    for (int i = 0; i < 8; i++)
        (void)put_pod(arena_printf(&arena, "w%d", i), 16,
                      "\"nodeSelector\":{\"" NAME_LABEL_ACCEL_NAME "\":\"rare\"}");
    expect_str("whom any will do", "n2/0", place(put_pod("any", 16, NULL)));
    expect_str(
        "who insists", "n1/0",
        place(put_pod("one", 16, "\"nodeSelector\":{\"" NAME_LABEL_ACCEL_NAME "\":\"rare\"}")));
    expect_done();
}

static struct cluster_pod *put_cpu_pod(const char *name, int64_t cpu_milli)
{
    (void)cluster_put_pod(&c, POD(.name = name, .c = {{.cpu_milli = cpu_milli}}), NULL);
    return cluster_find_pod(&c, arena_printf(&arena, "d/%s", name));
}

static void leaves_cards_their_cpu(void **state)
{
    (void)state;
    put_node("n1", "16,16,16,16", NULL, "a", 16000);
    (void)cluster_put_node(&c, NODE(.name = "n2", .cpu_milli = 16000));
    for (int i = 0; i < 8; i++) /* 2 CPUs go with a card */
        (void)cluster_put_pod(
            &c, POD(.name = arena_printf(&arena, "w%d", i), .c = {{.gib = 16, .cpu_milli = 2000}}),
            NULL);
    expect_str("goes where no card needs it", "n2", place(put_cpu_pod("cpu", 10000)));
    expect_str("and if there is no other, there", "n1", place(put_cpu_pod("more", 10000)));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(learns_what_pods_ask_for, setup, teardown),
        cmocka_unit_test_setup_teardown(keeps_what_others_need, setup, teardown),
        cmocka_unit_test_setup_teardown(the_label_decides_the_card, setup, teardown),
        cmocka_unit_test_setup_teardown(a_small_card_is_not_spared_at_the_cost_of_a_large_one,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(between_nodes_gib_count_and_not_cards, setup, teardown),
        cmocka_unit_test_setup_teardown(whole_cards_go_where_the_links_are_best, setup, teardown),
        cmocka_unit_test_setup_teardown(spares_the_model_that_others_insist_on, setup, teardown),
        cmocka_unit_test_setup_teardown(leaves_cards_their_cpu, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

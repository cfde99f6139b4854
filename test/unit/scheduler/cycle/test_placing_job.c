// SPDX-License-Identifier: Apache-2.0
/*
 * gpu-topology jobs: on which nodes their pods go, which cards they get, and what they see.
 */
#include "scheduler/cycle/placing_job.h"

#include "lib/model/names.h"
#include "scheduler/cycle/cycle.h"
#include "scheduler/cache/topology_job.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/model/links_kit.h"
#include "test/unit/scheduler/fixture.h"
#include "scheduler/framework/pipeline.h"
#include "scheduler/framework/equivalence.h"

static struct cluster c;
static struct pipeline pipeline; /* on it */
static struct arena a;

static int setup(void **state)
{
    (void)state;
    cluster_init(&c, NAME_SCHEDULER);
    pipeline_init(&pipeline, &c);
    arena_init(&a, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pipeline_deinit(&pipeline);
    cluster_deinit(&c);
    arena_deinit(&a);
    return 0;
}

/* Pairs by bridges, halves by NUMA nodes; or all far from each other. */
static const char bridges[] = "GPU0 X NV4 NODE NODE SYS SYS SYS SYS 0 0\n"
                              "GPU1 NV4 X NODE NODE SYS SYS SYS SYS 0 0\n"
                              "GPU2 NODE NODE X NV4 SYS SYS SYS SYS 0 0\n"
                              "GPU3 NODE NODE NV4 X SYS SYS SYS SYS 0 0\n"
                              "GPU4 SYS SYS SYS SYS X NV4 NODE NODE 1 1\n"
                              "GPU5 SYS SYS SYS SYS NV4 X NODE NODE 1 1\n"
                              "GPU6 SYS SYS SYS SYS NODE NODE X NV4 1 1\n"
                              "GPU7 SYS SYS SYS SYS NODE NODE NV4 X 1 1\n";
static const char crossed[] = "GPU0 X SYS NV4 SYS 0 0\nGPU1 SYS X SYS NV4 0 0\n"
                              "GPU2 NV4 SYS X SYS 0 0\nGPU3 SYS NV4 SYS X 0 0\n";
static const char far4[] = "GPU0 X SYS SYS SYS 0 0\nGPU1 SYS X SYS SYS 0 0\n"
                           "GPU2 SYS SYS X SYS 0 0\nGPU3 SYS SYS SYS X 0 0\n";
static const char far2[] = "GPU0 X SYS 0 0\nGPU1 SYS X 0 0\n";

static void put_node(const char *name, const char *machine)
{
    struct gpu_inventory inv;
    struct error err = ERROR_INIT;
    AUTO_STRBUF b = {0};
    if (links_kit_parse(machine, &a, &inv, &err) < 0)
        fail_msg("%s: %s", machine, err.text);
    inv.mode = GPU_MODE_TOPOLOGY;
    gpu_inventory_encode(&inv, &b);
    (void)cluster_put_node(
        &c, NODE(.name = name, .cards = (int64_t)inv.cards_len, .inventory = strbuf_str(&b)));
}

static void put_pod(const struct fixture_pod *f)
{
    (void)cluster_put_pod(&c, fixture_make_pod(f), NULL);
}

/* Pods named from `first` on, of job j. */
static void put_job(char first, int n, int64_t cards, const char *size)
{
    for (int i = 0; i < n; i++) {
        char name[] = {(char)(first + i), '\0'};
        put_pod(&(struct fixture_pod){
            .name = name,
            .labels = PAIRS(NAME_LABEL_TOPOLOGY_JOB, "j", NAME_LABEL_TOPOLOGY_REPLICA, size),
            .c = {{.cards = cards}}});
    }
}

static void put_holder(const char *name, const char *node, int64_t cards, const char *group)
{
    put_pod(&(struct fixture_pod){.name = name,
                                  .node = node,
                                  .annotations =
                                      PAIRS(NAME_ANN_GPU_GROUP, group, NAME_ANN_GPU_VISIBLE, group),
                                  .c = {{.cards = cards}}});
}

static void add_list(struct strbuf *b, const int32_t *cards, size_t n)
{
    for (size_t i = 0; i < n; i++)
        strbuf_addf(b, "%s%d", i > 0 ? "," : "", cards[i]);
}

/* "a@n1:0,1/0,1,2,3": the node, what it holds, what it sees; of pods a to z. */
static const char *run(const char *gang)
{
    struct gang *g = map_get(&c.gangs, gang);
    struct plan plan;
    struct cycle_result result;
    AUTO_STRBUF b = {0};
    assert_non_null(g);
    plan_begin(&plan, &c);
    cycle_run(&pipeline, g, &plan, &a, &result);
    plan_end(&plan);
    for (char name = 'a'; name <= 'z'; name++) {
        char key[] = {'d', '/', name, '\0'};
        const struct cluster_pod *cp = cluster_find_pod(&c, key);
        if (cp == NULL)
            continue;
        strbuf_addf(&b, "%s%c@%s", b.len > 0 ? " " : "", name, cp->on ? cp->on->name : "-");
        if (cp->on == NULL)
            continue;
        strbuf_addc(&b, ':');
        add_list(&b, cp->grant.group, cp->grant.group_len);
        strbuf_addc(&b, '/');
        add_list(&b, cp->grant.visible, cp->grant.visible_len);
    }
    return arena_strdup(&a, strbuf_str(&b));
}

static void a_job_is_on_one_node_and_sees_all_its_cards(void **state)
{
    (void)state;
    put_node("n1", far2);
    put_node("n2", bridges);
    put_node("n3", far4);
    put_job('a', 2, 2, "2");
    expect_str("the node with the better links, each pod a bridge of the same half",
               "a@n2:0,1/0,1,2,3 b@n2:2,3/0,1,2,3", run("gang d/j"));
    expect_done();
}

static void fewer_cards_stay_over_where_links_are_the_same(void **state)
{
    (void)state;
    put_node("n1", far4);
    put_node("n2", far2);
    put_job('a', 2, 1, "2");
    expect_str("the small node", "a@n2:0/0,1 b@n2:1/0,1", run("gang d/j"));
    expect_done();
}

static void single_cards_of_a_job_go_together(void **state)
{
    (void)state;
    put_node("n1", crossed);
    put_job('a', 2, 1, "2");
    expect_str("both ends of one bridge", "a@n1:0/0,2 b@n1:2/0,2", run("gang d/j"));
    expect_done();
}

static void as_few_nodes_as_can_be(void **state)
{
    (void)state;
    put_node("n1", far2);
    put_node("n2", far2);
    put_node("n3", far4);
    put_node("n4", far4);
    put_holder("h", "n4", 1, "3");
    put_job('a', 3, 2, "3");
    const char *got = run("gang d/j");
    expect_true(got, strstr(got, "@n1") == NULL && strstr(got, "@n2") == NULL);
    expect_true(got, strstr(got, "a@-") == NULL && strstr(got, "c@-") == NULL);
    expect_done();
}

static void more_nodes_where_members_do_not_divide_evenly(void **state)
{
    (void)state;
    put_node("n1", far4);
    put_node("n2", far4);
    put_node("n3", far4);
    put_holder("h", "n1", 1, "3");
    put_holder("i", "n2", 1, "3");
    put_holder("k", "n3", 1, "3");
    put_job('a', 3, 2, "3");
    expect_str("two nodes have six cards, but not three pairs",
               "a@n1:0,1/0,1 b@n2:0,1/0,1 c@n3:0,1/0,1 h@n1:3/3 i@n2:3/3 k@n3:3/3",
               run("gang d/j"));
    expect_done();
}

static void a_job_that_does_not_fit_holds_nothing(void **state)
{
    (void)state;
    put_node("n1", far4);
    put_job('a', 3, 2, "3");
    expect_str("room for two of three", "a@- b@- c@-", run("gang d/j"));
    put_node("n2", far2);
    const char *got = run("gang d/j");
    expect_true(got, strstr(got, "@-") == NULL);
    expect_done();
}

static void a_job_of_unknown_size_goes_as_far_as_it_is_there(void **state)
{
    (void)state;
    put_node("n1", far2);
    put_node("n2", bridges);
    put_job('a', 1, 2, "true");
    expect_str("the first alone", "a@n2:0,1/0,1", run("gang d/j"));
    put_job('b', 1, 2, "true");
    expect_str("the second beside it", "a@n2:0,1/0,1 b@n2:2,3/0,1,2,3", run("gang d/j"));
    expect_done();
}

static void others_of_a_gang_are_no_peers(void **state)
{
    (void)state;
    put_node("n1", far4);
    for (char name = 'a'; name < 'c'; name++) {
        char text[] = {name, '\0'};
        put_pod(&(struct fixture_pod){
            .name = text,
            .labels = PAIRS(NAME_LABEL_GANG_NAME, "g", NAME_LABEL_GANG_MIN, "2"),
            .c = {{.cards = 1}}});
    }
    expect_str("each sees its own card", "a@n1:0/0 b@n1:1/1", run("gang d/g"));
    expect_done();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_job_is_on_one_node_and_sees_all_its_cards),
        TEST(fewer_cards_stay_over_where_links_are_the_same),
        TEST(single_cards_of_a_job_go_together),
        TEST(as_few_nodes_as_can_be),
        TEST(more_nodes_where_members_do_not_divide_evenly),
        TEST(a_job_that_does_not_fit_holds_nothing),
        TEST(a_job_of_unknown_size_goes_as_far_as_it_is_there),
        TEST(others_of_a_gang_are_no_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

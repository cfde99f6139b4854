// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cache/cluster.h"

#include "scheduler/cache/gangs.h"
#include "test/unit/scheduler/model_kit.h"

static struct cluster_pod *pod(const char *key)
{
    struct cluster_pod *cp = cluster_find_pod(&c, key);
    assert_non_null(cp);
    return cp;
}

static struct cluster_node *node(const char *name)
{
    struct cluster_node *cn = cluster_find_node(&c, name);
    assert_non_null(cn);
    return cn;
}

/* "0:1=3" for shares of one container; what nobody knows as "?3". */
static const char *cards_of(const char *name)
{
    AUTO_STRBUF b;
    strbuf_init(&b);
    const struct gpu_accounts *l = &node(name)->gpu_accounts;
    for (size_t i = 0; i < l->inventory.cards_len; i++)
        strbuf_addf(&b, "%s%lld", i > 0 ? " " : "", (long long)l->cards[i].used_gib);
    if (l->unplaced_gib > 0)
        strbuf_addf(&b, " ?%lld", (long long)l->unplaced_gib);
    return arena_strdup(&arena, strbuf_str(&b));
}

static void put_gpu_node(const char *name, const char *cards)
{
    (void)cluster_put_node(
        &c, NODE(.name = name, .gib = 30,
                 .inventory = cards == NULL ? NULL : fixture_inventory(&arena, "cgpu", cards)));
}

static struct grant on_card(int32_t card, int64_t gib)
{
    struct grant grant = {.shares = arena_new(&arena, struct grant_share, 1), .shares_len = 1};
    grant.shares[0] = (struct grant_share){.container = 0, .card = card, .gib = gib};
    return grant;
}

static void a_pod_comes_is_assumed_confirmed_and_goes(void **state)
{
    (void)state;
    expect_int("a new node", EVENT_NODE_ADDED, cluster_put_node(&c, NODE(.name = "n1")));
    expect_int("a new pod", EVENT_GANG, EVENTS(.name = "p", .c = {{.cpu_milli = 500}}));
    uint64_t pending = cluster_digest(&c);
    expect_true("may be placed", cluster_pod_is_schedulable(pod("d/p")));
    cluster_assume(&c, pod("d/p"), node("n1"), &(struct grant){0});
    expect_int("holds room at once", 500, node("n1")->used.cpu_milli);
    expect_int("and a pod place", 1, node("n1")->used.pods);
    expect_true("is not placed twice", !cluster_pod_is_schedulable(pod("d/p")));
    cluster_forget(&c, pod("d/p"));
    expect_true("forgotten leaves no trace", cluster_digest(&c) == pending);
    cluster_assume(&c, pod("d/p"), node("n1"), &(struct grant){0});
    (void)PUT(.name = "p", .c = {{.cpu_milli = 500}}, .labels = PAIRS("a", "b"));
    expect_int("a label does not confirm", CLUSTER_ASSUMED, pod("d/p")->state);
    expect_int("confirmed, no room comes free", 0,
               EVENTS(.name = "p", .node = "n1", .c = {{.cpu_milli = 500}}) & EVENT_POD_GONE);
    expect_int("bound", CLUSTER_BOUND, pod("d/p")->state);
    expect_int("counted once", 500, node("n1")->used.cpu_milli);
    expect_int("a DELETE of another uid", 0, cluster_remove_pod(&c, "d/p", "other", NULL));
    expect_int("the DELETE", EVENT_POD_GONE, cluster_remove_pod(&c, "d/p", "u-p", NULL));
    expect_int("nothing is held", 0, node("n1")->used.cpu_milli);
    expect_int("a second one", 0, cluster_remove_pod(&c, "d/p", "u-p", NULL));
    expect_true("gone", cluster_find_pod(&c, "d/p") == NULL);
    expect_done();
}

static void a_pod_that_ends_holds_nothing(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1"));
    static const char *const phases[] = {"Succeeded", "Failed"};
    for (size_t i = 0; i < 2; i++) {
        (void)PUT(.name = "p", .node = "n1", .c = {{.cpu_milli = 500}});
        expect_int(
            phases[i], EVENT_POD_GONE,
            EVENTS(.name = "p", .node = "n1", .phase = phases[i], .c = {{.cpu_milli = 500}}));
        expect_int(phases[i], 0, node("n1")->used.cpu_milli);
        expect_true(phases[i], cluster_find_pod(&c, "d/p") == NULL);
    }
    (void)PUT(.name = "p", .node = "n1", .terminating = true, .c = {{.cpu_milli = 500}});
    expect_int("a terminating pod holds all", 500, node("n1")->used.cpu_milli);
    expect_done();
}

static void a_pod_is_where_the_api_server_says(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1"));
    (void)cluster_put_node(&c, NODE(.name = "n2"));
    (void)PUT(.name = "p", .c = {{.cpu_milli = 500}});
    cluster_assume(&c, pod("d/p"), node("n1"), &(struct grant){0});
    expect_true("bound elsewhere: room comes free",
                EVENTS(.name = "p", .node = "n2", .c = {{.cpu_milli = 500}}) & EVENT_POD_GONE);
    expect_int("not here", 0, node("n1")->used.cpu_milli);
    expect_int("there", 500, node("n2")->used.cpu_milli);
    expect_true("made again under its name: room comes free",
                EVENTS(.name = "p", .uid = "new", .c = {{.cpu_milli = 100}}) & EVENT_POD_GONE);
    expect_int("the old one is gone", 0, node("n2")->used.cpu_milli);
    expect_int("the new one waits", CLUSTER_PENDING, pod("d/p")->state);
    expect_done();
}

static void a_resize_counts(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1"));
    (void)PUT(.name = "p", .node = "n1", .c = {{.cpu_milli = 500}});
    expect_int("larger: nothing comes free", 0,
               EVENTS(.name = "p", .node = "n1", .c = {{.cpu_milli = 900}}) & EVENT_POD_GONE);
    expect_int("larger", 900, node("n1")->used.cpu_milli);
    expect_true("smaller: room comes free",
                EVENTS(.name = "p", .node = "n1", .c = {{.cpu_milli = 200}}) & EVENT_POD_GONE);
    expect_int("smaller", 200, node("n1")->used.cpu_milli);
    expect_done();
}

static void a_node_that_is_gone_keeps_its_pods(void **state)
{
    (void)state;
    put_gpu_node("n1", "15,15");
    (void)PUT(.name = "p", .node = "n1", .c = {{.gib = 3}},
              .annotations = PAIRS(NAME_ANN_ALLOCATION, "{\"0\":{\"1\":3}}"));
    uint64_t before = cluster_digest(&c);
    expect_str("on its card", "0 3", cards_of("n1"));
    (void)cluster_remove_node(&c, "n1");
    expect_true("the node is not there", node("n1")->node == NULL);
    expect_int("the pod still is", 1, (int64_t)node("n1")->pods.len);
    (void)cluster_remove_node(&c, "n1");
    put_gpu_node("n1", "15,15");
    expect_true("back, everything is as before", cluster_digest(&c) == before);
    (void)cluster_remove_node(&c, "n1");
    (void)cluster_remove_pod(&c, "d/p", NULL, NULL);
    expect_true("with its last pod it goes", cluster_find_node(&c, "n1") == NULL);
    (void)PUT(.name = "q", .node = "unheard-of", .c = {{.cpu_milli = 5}});
    expect_int("a pod may come before its node", 5, node("unheard-of")->used.cpu_milli);
    expect_int("unknown names do nothing", 0, cluster_remove_node(&c, "never"));
    expect_done();
}

static void an_assumed_pod_survives_its_node(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1"));
    (void)PUT(.name = "p");
    cluster_assume(&c, pod("d/p"), node("n1"), &(struct grant){0});
    (void)cluster_remove_node(&c, "n1");
    cluster_forget(&c, pod("d/p"));
    expect_true("the node goes with what held it", cluster_find_node(&c, "n1") == NULL);
    expect_true("the pod waits again", cluster_pod_is_schedulable(pod("d/p")));
    expect_done();
}

static void claims(void **state)
{
    (void)state;
    const struct {
        const char *row, *allocation, *core;
        int64_t gib, percent;
        const char *cards;
    } rows[] = {
        {"right", "{\"0\":{\"1\":3}}", NULL, 3, 0, "0 3"},
        {"absent", NULL, NULL, 3, 0, "0 0 ?3"},
        {"emptied", "", NULL, 3, 0, "0 0 ?3"},
        {"not JSON", "3 on card 1", NULL, 3, 0, "0 0 ?3"},
        {"too little", "{\"0\":{\"1\":1}}", NULL, 3, 0, "0 0 ?3"},
        {"a card that is not there", "{\"0\":{\"7\":3}}", NULL, 3, 0, "0 0 ?3"},
        {"half of it on a card that is not there", "{\"0\":{\"1\":1,\"7\":2}}", NULL, 3, 0,
         "0 0 ?3"},
        {"compute missing", "{\"0\":{\"1\":3}}", NULL, 3, 30, "0 0 ?3"},
        {"compute right", "{\"0\":{\"1\":3}}", "{\"0\":{\"1\":30}}", 3, 30, "0 3"},
        {"a claim of a pod that asks for nothing", "{\"0\":{\"1\":3}}", NULL, 0, 0, "0 0"},
    };
    put_gpu_node("n1", "15,15");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *both[] = {NAME_ANN_ALLOCATION, rows[i].allocation, NAME_ANN_CORE, rows[i].core,
                              NULL};
        if (rows[i].core == NULL)
            both[2] = NULL;
        (void)PUT(.name = "p", .node = "n1",
                  .c = {{.gib = rows[i].gib, .percent = rows[i].percent}},
                  .annotations = rows[i].allocation != NULL ? both : NULL);
        expect_str(rows[i].row, rows[i].cards, cards_of("n1"));
        (void)cluster_remove_pod(&c, "d/p", NULL, NULL);
        expect_str(rows[i].row, "0 0", cards_of("n1"));
    }
    expect_done();
}

static void a_grant_is_read_once(void **state)
{
    (void)state;
    put_gpu_node("n1", "15,15");
    (void)PUT(.name = "p", .c = {{.gib = 3}},
              .annotations = PAIRS(NAME_ANN_ALLOCATION, "{\"0\":{\"1\":3}}"));
    expect_str("a pod that is not bound claims nothing", "0 0", cards_of("n1"));
    struct grant ours = on_card(0, 3);
    cluster_assume(&c, pod("d/p"), node("n1"), &ours);
    ours.shares[0].card = 1;
    expect_str("what we assume is copied", "3 0", cards_of("n1"));
    expect_true("another leader's Binding won, on the other card: room comes free here",
                EVENTS(.name = "p", .node = "n1", .c = {{.gib = 3}},
                       .annotations = PAIRS(NAME_ANN_ALLOCATION, "{\"0\":{\"1\":3}}")) &
                    EVENT_POD_GONE);
    expect_str("the truth is in the annotation", "0 3", cards_of("n1"));
    (void)PUT(.name = "p", .node = "n1", .c = {{.gib = 3}},
              .annotations = PAIRS(NAME_ANN_ALLOCATION, "{\"0\":{\"0\":3}}"));
    expect_str("edited later it changes nothing", "0 3", cards_of("n1"));
    (void)PUT(.name = "p", .node = "n1", .c = {{.gib = 3}},
              .annotations = PAIRS(NAME_ANN_ALLOCATION, "{\"0\":{\"0\":3}}", NAME_ANN_GPU_CONFIRMED,
                                   "{\"0\":{\"1\":3}}"));
    expect_str("nor when the plugin has confirmed another", "0 3", cards_of("n1"));
    (void)PUT(.name = "p", .node = "n1", .c = {{.gib = 3}},
              .annotations = PAIRS(NAME_ANN_ALLOCATION, "{\"0\":{\"0\":3,\"1\":3}}",
                                   NAME_ANN_GPU_CONFIRMED, "{\"0\":{\"0\":3,\"1\":3}}"));
    expect_str("a claim of two cards that the plugin is correcting is held on every card", "0 0 ?3",
               cards_of("n1"));
    expect_true("unless the node's plugin confirms it: room comes free where it was",
                EVENTS(.name = "p", .node = "n1", .c = {{.gib = 3}},
                       .annotations = PAIRS(NAME_ANN_ALLOCATION, "{\"0\":{\"0\":3}}",
                                            NAME_ANN_GPU_CONFIRMED, "{\"0\":{\"0\":3}}")) &
                    EVENT_POD_GONE);
    expect_str("then that is the truth", "3 0", cards_of("n1"));
    (void)PUT(.name = "q", .node = "n1", .c = {{.gib = 2}});
    expect_str("a pod that came by another way is on any card", "3 0 ?2", cards_of("n1"));
    (void)PUT(.name = "q", .node = "n1", .c = {{.gib = 2}},
              .annotations = PAIRS(NAME_ANN_ALLOCATION, "{\"0\":{\"1\":2}}", NAME_ANN_GPU_CONFIRMED,
                                   "{\"0\":{\"1\":2}}"));
    expect_str("until the plugin says on which", "3 2", cards_of("n1"));
    (void)cluster_remove_pod(&c, "d/q", NULL, NULL);
    expect_str("and goes from there", "3 0", cards_of("n1"));
    expect_done();
}

static void an_inventory_goes_and_comes(void **state)
{
    (void)state;
    put_gpu_node("n1", "15,15");
    (void)PUT(.name = "p", .node = "n1", .c = {{.gib = 3}},
              .annotations = PAIRS(NAME_ANN_ALLOCATION, "{\"0\":{\"1\":3}}"));
    uint64_t before = cluster_digest(&c);
    put_gpu_node("n1", NULL);
    expect_str("without an inventory it is held somewhere", " ?3", cards_of("n1"));
    put_gpu_node("n1", "15");
    expect_str("its card is missing: held on all others", "0 ?3", cards_of("n1"));
    put_gpu_node("n1", "15,15");
    expect_true("back, everything is as before", cluster_digest(&c) == before);
    expect_done();
}

static void node_events(void **state)
{
    (void)state;
    const struct {
        const char *row;
        struct fixture_node n;
        uint32_t events;
    } rows[] = {
        {"the same", {.name = "n"}, 0},
        {"less CPU", {.name = "n", .cpu_milli = 1000}, 0},
        {"more CPU", {.name = "n", .cpu_milli = 9000}, EVENT_NODE_CAPACITY},
        {"another resource", {.name = "n", .gib = 5}, EVENT_NODE_CAPACITY},
        {"a label", {.name = "n", .labels = PAIRS("a", "b")}, EVENT_NODE_LABELS},
        {"cordoned", {.name = "n", .unschedulable = true}, EVENT_NODE_TAINTS},
        {"a taint",
         {.name = "n", .taints = "[{\"key\":\"a\",\"effect\":\"NoSchedule\"}]"},
         EVENT_NODE_TAINTS},
        {"an inventory", {.name = "n", .inventory = "{\"v\":1}"}, EVENT_NODE_GPU},
        {"a placement", {.name = "n", .placement = "spread"}, EVENT_NODE_GPU | EVENT_NODE_LABELS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)cluster_put_node(&c, NODE(.name = "n"));
        expect_int(rows[i].row, rows[i].events,
                   cluster_put_node(&c, fixture_make_node(&rows[i].n)));
        (void)cluster_remove_node(&c, "n");
    }
    expect_done();
}

static void hostile_amounts_come_and_go(void **state)
{
    (void)state;
    put_gpu_node("n1", "15,15");
    (void)PUT(.name = "small", .node = "n1", .c = {{.cpu_milli = 700, .gib = 2}});
    uint64_t before = cluster_digest(&c);
    /* The largest amounts that there are: two of them overflow. */
    (void)PUT(.name = "a", .node = "n1", .c = {{.cpu_milli = INT64_MAX - 1, .gib = INT64_MAX - 1}});
    (void)PUT(.name = "b", .node = "n1", .c = {{.cpu_milli = INT64_MAX - 1, .gib = INT64_MAX - 1}});
    expect_int("held at the end", INT64_MAX, node("n1")->used.cpu_milli);
    (void)cluster_remove_pod(&c, "d/a", NULL, NULL);
    expect_int("one left: still more than everything", INT64_MAX, node("n1")->used.cpu_milli);
    (void)cluster_remove_pod(&c, "d/b", NULL, NULL);
    expect_int("none left: exact again", 700, node("n1")->used.cpu_milli);
    expect_true("everything is", cluster_digest(&c) == before);
    /* More than there is: to the kubelet that is nothing. */
    (void)PUT(.name = "a", .node = "n1", .c = {{.cpu_milli = INT64_MAX, .gib = INT64_MAX}});
    expect_int("holds nothing of the node", 700, node("n1")->used.cpu_milli);
    expect_str("nor of its cards", "0 0 ?2", cards_of("n1"));
    struct cluster_pod *waits = PUT(.name = "w", .c = {{.cpu_milli = INT64_MAX}});
    expect_int("and while it waits asks for all", RESOURCES_TOO_LARGE, waits->request.cpu_milli);
    expect_done();
}

static int64_t used_of_x(void)
{
    int64_t value = 0;
    (void)resource_vector_get(&node("n1")->used, resource_vector_id(&c.names, "a.b/x"), &value);
    return value;
}

static void only_what_a_node_offers_is_counted(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1"));
    (void)PUT(.name = "p", .node = "n1", .c = {{.other = "a.b/x", .other_amount = 3}});
    expect_int("names that tenants invent cost nothing", 0, node("n1")->used.extra_len);
    (void)cluster_put_node(&c, NODE(.name = "n1", .other = "a.b/x", .other_amount = 5));
    expect_int("now it offers this one", 3, used_of_x());
    (void)PUT(.name = "q", .node = "n1", .c = {{.other = "a.b/x", .other_amount = 1}});
    expect_int("one more", 4, used_of_x());
    (void)cluster_put_node(&c, NODE(.name = "n1"));
    expect_int("no longer", 0, node("n1")->used.extra_len);
    (void)cluster_put_node(&c, NODE(.name = "n1", .other = "a.b/x", .other_amount = 5));
    (void)cluster_remove_node(&c, "n1");
    expect_int("gone, its pods are not", 0, node("n1")->used.extra_len);
    (void)cluster_put_node(&c, NODE(.name = "n1", .other = "a.b/x", .other_amount = 5));
    expect_int("there again", 4, used_of_x());
    expect_done();
}

static void a_pod_that_cannot_be_read(void **state)
{
    (void)state;
    put_gpu_node("n1", "15,15");
    (void)PUT(.name = "first", .node = "n1", .c = {{.cpu_milli = 500, .gib = 3}},
              .annotations = PAIRS(NAME_ANN_ALLOCATION, "{\"0\":{\"1\":3}}"));
    uint64_t before = cluster_digest(&c);
    expect_int("a version that cannot be read: nothing comes free", 0,
               EVENTS(.name = "first", .unreadable = true));
    expect_true("it holds what it held", cluster_digest(&c) == before);
    expect_str("also of the cards", "0 3", cards_of("n1"));
    expect_true("it can be read again",
                EVENTS(.name = "first", .node = "n1", .c = {{.cpu_milli = 400, .gib = 3}}) ==
                    EVENT_POD_GONE);
    expect_int("smaller", 400, node("n1")->used.cpu_milli);
    (void)PUT(.name = "first", .unreadable = true, .terminating = true);
    expect_true("that it is going can be read", pod("d/first")->pod->terminating);
    expect_int("going is not gone", 400, node("n1")->used.cpu_milli);
    expect_int("that it has ended as well", EVENT_POD_GONE,
               EVENTS(.name = "first", .unreadable = true, .phase = "Failed"));
    expect_int("then it holds nothing", 0, node("n1")->used.cpu_milli);

    before = cluster_digest(&c);
    (void)PUT(.name = "z", .unreadable = true);
    expect_true("one that never could is not there", cluster_digest(&c) == before);

    (void)PUT(.name = "p", .c = {{.gib = 2}});
    (void)PUT(.name = "p", .unreadable = true, .terminating = true);
    expect_true("one that waits, and goes", !cluster_pod_is_schedulable(pod("d/p")));
    (void)PUT(.name = "p", .c = {{.gib = 2}});
    struct grant two = on_card(0, 2);
    cluster_assume(&c, pod("d/p"), node("n1"), &two);
    (void)PUT(.name = "p", .unreadable = true);
    expect_int("assumed, and not seen bound yet: still", CLUSTER_ASSUMED, pod("d/p")->state);
    expect_str("with its card", "2 0", cards_of("n1"));
    expect_done();
}

static void the_digest_does_not_know_the_way(void **state)
{
    (void)state;
    struct cluster other;
    cluster_init(&other, NAME_SCHEDULER);
    (void)cluster_put_node(&c, NODE(.name = "a"));
    (void)cluster_put_node(&c, NODE(.name = "b"));
    (void)PUT(.name = "p", .node = "a", .c = {{.other = "x.y/z", .other_amount = 1}});
    (void)PUT(.name = "q", .node = "a", .c = {{.other = "a.b/c", .other_amount = 1}});
    (void)cluster_put_pod(
        &other, POD(.name = "q", .node = "a", .c = {{.other = "a.b/c", .other_amount = 1}}), NULL);
    (void)cluster_put_node(&other, NODE(.name = "b"));
    (void)cluster_put_pod(&other, POD(.name = "gone", .node = "b"), NULL);
    (void)cluster_put_node(&other, NODE(.name = "a"));
    (void)cluster_put_pod(
        &other, POD(.name = "p", .node = "a", .c = {{.other = "x.y/z", .other_amount = 1}}), NULL);
    (void)cluster_remove_pod(&other, "d/gone", NULL, NULL);
    expect_true("equal states, equal digests", cluster_digest(&c) == cluster_digest(&other));
    (void)cluster_put_pod(&other, POD(.name = "r", .node = "b"), NULL);
    expect_true("one pod more, another digest", cluster_digest(&c) != cluster_digest(&other));
    cluster_deinit(&other);
    expect_done();
}

static void forgetting_what_is_not_assumed(void)
{
    (void)PUT(.name = "p", .node = "n1");
    cluster_forget(&c, pod("d/p"));
}

static void only_an_assumption_can_be_forgotten(void **state)
{
    (void)state;
    expect_abort("a bound pod cannot be forgotten", forgetting_what_is_not_assumed);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_pod_comes_is_assumed_confirmed_and_goes),
        T(a_pod_that_ends_holds_nothing),
        T(a_pod_is_where_the_api_server_says),
        T(a_resize_counts),
        T(a_node_that_is_gone_keeps_its_pods),
        T(an_assumed_pod_survives_its_node),
        T(claims),
        T(a_grant_is_read_once),
        T(an_inventory_goes_and_comes),
        T(node_events),
        T(hostile_amounts_come_and_go),
        T(only_what_a_node_offers_is_counted),
        T(a_pod_that_cannot_be_read),
        T(the_digest_does_not_know_the_way),
        T(only_an_assumption_can_be_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

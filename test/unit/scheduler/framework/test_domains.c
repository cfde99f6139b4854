// SPDX-License-Identifier: Apache-2.0
/*
 * Topology spread and inter-pod affinity, case by case, as kube-scheduler has them: which nodes are
 * open to a pod, which is best, and the words when none is. That counting and remembering are right
 * is in test_properties.
 *
 * The cluster: a1 and a2 in zone a, b1 in zone b, x without a zone; each has the label host.
 */
#include "scheduler/framework/domains.h"

#include "test/unit/scheduler/model_kit.h"

#define WEB PAIRS("app", "web")
#define DB PAIRS("app", "db")
#define SELECTS(app) "\"labelSelector\":{\"matchLabels\":{\"app\":\"" app "\"}}"
#define TERM(key, app) "{\"topologyKey\":\"" key "\"," SELECTS(app) "}"
#define WEIGHED(weight, term) "{\"weight\":" #weight ",\"podAffinityTerm\":" term "}"
#define REQUIRED "\"requiredDuringSchedulingIgnoredDuringExecution\""
#define PREFERRED "\"preferredDuringSchedulingIgnoredDuringExecution\""
#define AFFINITY(terms) "\"affinity\":{\"podAffinity\":{" REQUIRED ":[" terms "]}}"
#define ANTI(terms) "\"affinity\":{\"podAntiAffinity\":{" REQUIRED ":[" terms "]}}"
#define NEAR(terms) "\"affinity\":{\"podAffinity\":{" PREFERRED ":[" terms "]}}"
#define FAR(terms) "\"affinity\":{\"podAntiAffinity\":{" PREFERRED ":[" terms "]}}"
#define CONSTRAINT(key, skew, more)                   \
    "{\"topologyKey\":\"" key "\",\"maxSkew\":" #skew \
    ",\"whenUnsatisfiable\":\"DoNotSchedule\"," SELECTS("web") more "}"
#define SOFT(key)             \
    "{\"topologyKey\":\"" key \
    "\",\"maxSkew\":1,\"whenUnsatisfiable\":\"ScheduleAnyway\"," SELECTS("web") "}"
#define SPREAD(constraints) "\"topologySpreadConstraints\":[" constraints "]"

static int setup_nodes(void **state)
{
    (void)setup(state);
    (void)cluster_put_node(&c, NODE(.name = "a1", .labels = PAIRS("zone", "a", "host", "a1")));
    (void)cluster_put_node(&c, NODE(.name = "a2", .labels = PAIRS("zone", "a", "host", "a2")));
    (void)cluster_put_node(&c, NODE(.name = "b1", .labels = PAIRS("zone", "b", "host", "b1")));
    (void)cluster_put_node(&c, NODE(.name = "x", .labels = PAIRS("host", "x")));
    return 0;
}

static void which_nodes_are_open(void **state)
{
    const struct {
        const char *row;
        struct fixture_pod placed[4];
        struct fixture_pod pod;
        const char *open;
    } rows[] = {
        {"nobody is there", {{0}}, {.spec = ANTI(TERM("zone", "web"))}, "a1 a2 b1 x"},
        /* anti-affinity */
        {"a zone with such a pod is closed, a node without a zone is open",
         {{.node = "a1", .labels = WEB}},
         {.spec = ANTI(TERM("zone", "web"))},
         "b1 x"},
        {"a host with such a pod is closed",
         {{.node = "a1", .labels = WEB}},
         {.spec = ANTI(TERM("host", "web"))},
         "a2 b1 x"},
        {"another label",
         {{.node = "a1", .labels = DB}},
         {.spec = ANTI(TERM("zone", "web"))},
         "a1 a2 b1 x"},
        {"another namespace",
         {{.node = "a1", .labels = WEB, .ns = "e"}},
         {.spec = ANTI(TERM("zone", "web"))},
         "a1 a2 b1 x"},
        {"another namespace that the term names",
         {{.node = "a1", .labels = WEB, .ns = "e"}},
         {.spec = ANTI("{\"topologyKey\":\"zone\",\"namespaces\":[\"e\"]," SELECTS("web") "}")},
         "b1 x"},
        {"every namespace",
         {{.node = "a1", .labels = WEB, .ns = "e"}},
         {.spec = ANTI("{\"topologyKey\":\"zone\",\"namespaceSelector\":{}," SELECTS("web") "}")},
         "b1 x"},
        {"a terminating pod still counts",
         {{.node = "a1", .labels = WEB, .terminating = true}},
         {.spec = ANTI(TERM("zone", "web"))},
         "b1 x"},
        {"two terms, each by itself",
         {{.node = "a1", .labels = WEB}, {.node = "b1", .labels = DB}},
         {.spec = ANTI(TERM("host", "web") "," TERM("zone", "db"))},
         "a2 x"},
        {"a term without a selector means nobody",
         {{.node = "a1", .labels = WEB}},
         {.spec = ANTI("{\"topologyKey\":\"zone\"}")},
         "a1 a2 b1 x"},
        /* anti-affinity of placed pods */
        {"a placed pod does not want this one in its zone",
         {{.node = "a1", .labels = DB, .spec = ANTI(TERM("zone", "web"))}},
         {.labels = WEB},
         "b1 x"},
        {"nor on its host",
         {{.node = "a1", .labels = DB, .spec = ANTI(TERM("host", "web"))}},
         {.labels = WEB},
         "a2 b1 x"},
        {"a placed pod does not mind this one",
         {{.node = "a1", .labels = DB, .spec = ANTI(TERM("zone", "db"))}},
         {.labels = WEB},
         "a1 a2 b1 x"},
        {"a placed pod without a zone closes no zone",
         {{.node = "x", .labels = DB, .spec = ANTI(TERM("zone", "web"))}},
         {.labels = WEB},
         "a1 a2 b1 x"},
        /* affinity */
        {"the zone of such a pod, and no other",
         {{.node = "b1", .labels = WEB}},
         {.spec = AFFINITY(TERM("zone", "web"))},
         "b1"},
        {"the host of such a pod",
         {{.node = "a2", .labels = WEB}},
         {.spec = AFFINITY(TERM("host", "web"))},
         "a2"},
        {"no such pod anywhere", {{0}}, {.spec = AFFINITY(TERM("zone", "web"))}, ""},
        {"the first of its kind goes anywhere where the label is",
         {{0}},
         {.labels = WEB, .spec = AFFINITY(TERM("zone", "web"))},
         "a1 a2 b1"},
        {"the second does not",
         {{.node = "a2", .labels = WEB}},
         {.labels = WEB, .spec = AFFINITY(TERM("zone", "web"))},
         "a1 a2"},
        {"the first by host",
         {{0}},
         {.labels = WEB, .spec = AFFINITY(TERM("host", "web"))},
         "a1 a2 b1 x"},
        {"the second by host",
         {{.node = "x", .labels = WEB}},
         {.labels = WEB, .spec = AFFINITY(TERM("host", "web"))},
         "x"},
        {"such a pod where the label is not does not count",
         {{.node = "x", .labels = WEB}},
         {.labels = WEB, .spec = AFFINITY(TERM("zone", "web"))},
         "a1 a2 b1"},
        {"one pod must match all terms",
         {{.node = "a1", .labels = WEB}, {.node = "a2", .labels = DB}},
         {.spec = AFFINITY(TERM("zone", "web") "," TERM("zone", "db"))},
         ""},
        {"one pod that matches all, by zone and by host",
         {{.node = "a1", .labels = PAIRS("app", "web", "tier", "x")}},
         {.spec = AFFINITY(
              TERM("zone", "web") ",{\"topologyKey\":\"host\",\"labelSelector\":{\"matchLabels\":{"
                                  "\"tier\":\"x\"}}}")},
         "a1"},
        /* spread */
        {"a node without the label is closed",
         {{0}},
         {.labels = WEB, .spec = SPREAD(CONSTRAINT("zone", 1, ""))},
         "a1 a2 b1"},
        {"one in a: the next goes to b",
         {{.node = "a1", .labels = WEB}},
         {.labels = WEB, .spec = SPREAD(CONSTRAINT("zone", 1, ""))},
         "b1"},
        {"a larger skew",
         {{.node = "a1", .labels = WEB}},
         {.labels = WEB, .spec = SPREAD(CONSTRAINT("zone", 2, ""))},
         "a1 a2 b1"},
        {"a pod that does not select itself adds nothing",
         {{.node = "a1", .labels = WEB}},
         {.labels = DB, .spec = SPREAD(CONSTRAINT("zone", 1, ""))},
         "a1 a2 b1"},
        {"a terminating pod does not count",
         {{.node = "a1", .labels = WEB, .terminating = true}},
         {.labels = WEB, .spec = SPREAD(CONSTRAINT("zone", 1, ""))},
         "a1 a2 b1"},
        {"a pod of another namespace does not count",
         {{.node = "a1", .labels = WEB, .ns = "e"}},
         {.labels = WEB, .spec = SPREAD(CONSTRAINT("zone", 1, ""))},
         "a1 a2 b1"},
        {"by host",
         {{.node = "a1", .labels = WEB}, {.node = "b1", .labels = WEB}},
         {.labels = WEB, .spec = SPREAD(CONSTRAINT("host", 1, ""))},
         "a2 x"},
        {"by zone and by host: x has no zone and is no domain of either",
         {{.node = "a1", .labels = WEB}, {.node = "b1", .labels = WEB}},
         {.labels = WEB, .spec = SPREAD(CONSTRAINT("zone", 1, "") "," CONSTRAINT("host", 1, ""))},
         "a2"},
        {"fewer domains than asked for: the least counts as 0",
         {{.node = "a1", .labels = WEB}, {.node = "b1", .labels = WEB}},
         {.labels = WEB, .spec = SPREAD(CONSTRAINT("zone", 1, ",\"minDomains\":3"))},
         ""},
        {"as many domains as asked for",
         {{.node = "a1", .labels = WEB}, {.node = "b1", .labels = WEB}},
         {.labels = WEB, .spec = SPREAD(CONSTRAINT("zone", 1, ",\"minDomains\":2"))},
         "a1 a2 b1"},
        {"a zone that the node selector leaves out is no domain",
         {{.node = "a1", .labels = WEB}},
         {.labels = WEB,
          .spec = "\"nodeSelector\":{\"zone\":\"a\"}," SPREAD(CONSTRAINT("zone", 1, ""))},
         "a1 a2"},
        {"unless the policy says so",
         {{.node = "a1", .labels = WEB}},
         {.labels = WEB,
          .spec = "\"nodeSelector\":{\"zone\":\"a\"}," SPREAD(
              CONSTRAINT("zone", 1, ",\"nodeAffinityPolicy\":\"Ignore\""))},
         ""},
        {"a soft constraint closes nothing",
         {{.node = "a1", .labels = WEB}},
         {.labels = WEB, .spec = SPREAD(SOFT("zone"))},
         "a1 a2 b1 x"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int k = 0; k < 4; k++) {
            struct fixture_pod f = rows[i].placed[k];
            f.name = arena_printf(&arena, "placed%d", k);
            if (f.node != NULL)
                (void)put(&f);
        }
        struct fixture_pod f = rows[i].pod;
        f.name = "p";
        struct cluster_pod *p = put(&f);
        const char *open = open_nodes(p);
        expect_str(rows[i].row, rows[i].open, open);
        expect_int(rows[i].row, open[0] != '\0', best(p) != NULL);
        (void)teardown(state);
        (void)setup_nodes(state);
    }
    expect_done();
}

static void tainted_nodes_are_domains_unless_the_policy_says_so(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "b1", .labels = PAIRS("zone", "b", "host", "b1"),
                                    .taints = "[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]"));
    (void)put(&(struct fixture_pod){.name = "w", .node = "a1", .labels = WEB});
    struct cluster_pod *p = put(&(struct fixture_pod){
        .name = "p", .labels = WEB, .spec = SPREAD(CONSTRAINT("zone", 1, ""))});
    expect_str("ignored: b is empty, and closed", "", open_nodes(p));
    struct cluster_pod *q = put(&(struct fixture_pod){
        .name = "q",
        .labels = WEB,
        .spec = SPREAD(CONSTRAINT("zone", 1, ",\"nodeTaintsPolicy\":\"Honor\""))});
    expect_str("honored: there is one zone", "a1 a2", open_nodes(q));
    (void)cluster_put_node(&c, NODE(.name = "b1", .labels = PAIRS("zone", "b", "host", "b1")));
    expect_str("the taint gone: two again", "b1", open_nodes(q));
    expect_done();
}

static void the_words(void **state)
{
    const struct {
        const char *row;
        struct fixture_pod placed, pod;
        const char *says;
        uint32_t wakes;
    } rows[] = {
        {"affinity",
         {0},
         {.spec = AFFINITY(TERM("zone", "web"))},
         "0/4 nodes fit: 3 have no pod in the same zone that the pod's affinity asks for, 1 has no "
         "label zone that the pod's affinity needs",
         EVENT_POD_COUNTED | EVENT_POD_LEFT | EVENT_NODE_GONE | EVENT_NODE_LABELS |
             EVENT_NAMESPACE},
        {"spread",
         {.name = "w", .node = "a1", .labels = WEB},
         {.labels = WEB,
          .spec = "\"nodeSelector\":{\"zone\":\"a\"}," SPREAD(
              CONSTRAINT("zone", 1, ",\"nodeAffinityPolicy\":\"Ignore\""))},
         "0/4 nodes fit: 2 do not match the pod's node selector or affinity, 2 would break the "
         "spread over zone (max skew 1)",
         EVENT_POD_COUNTED | EVENT_POD_LEFT | EVENT_NODE_LABELS | EVENT_NODE_TAINTS |
             EVENT_NODE_GONE},
        {"anti-affinity of the pod",
         {.name = "w", .node = "a1", .labels = WEB},
         {.spec = "\"nodeSelector\":{\"zone\":\"a\"}," ANTI(TERM("zone", "web"))},
         "0/4 nodes fit: 2 do not match the pod's node selector or affinity, 2 have a pod in the "
         "same zone that the pod's anti-affinity forbids",
         EVENT_POD_COUNTED | EVENT_POD_LEFT | EVENT_NODE_GONE | EVENT_NODE_LABELS |
             EVENT_NAMESPACE},
        {"anti-affinity of a placed one",
         {.name = "w", .node = "a1", .spec = ANTI(TERM("zone", "web"))},
         {.labels = WEB, .spec = "\"nodeSelector\":{\"zone\":\"a\"}"},
         "0/4 nodes fit: 2 do not match the pod's node selector or affinity, 2 have a pod in the "
         "same zone whose anti-affinity forbids this pod",
         EVENT_POD_COUNTED | EVENT_POD_LEFT | EVENT_NODE_GONE | EVENT_NODE_LABELS |
             EVENT_NAMESPACE},
        {"no label to spread over",
         {0},
         {.labels = WEB,
          .spec = "\"nodeSelector\":{\"host\":\"x\"}," SPREAD(CONSTRAINT("zone", 1, ""))},
         "0/4 nodes fit: 3 do not match the pod's node selector or affinity, 1 has no label zone to "
         "spread over",
         EVENT_POD_COUNTED | EVENT_POD_LEFT | EVENT_NODE_LABELS | EVENT_NODE_TAINTS |
             EVENT_NODE_GONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pipeline_choice choice;
        struct fixture_pod f = rows[i].pod;
        f.name = "p";
        if (rows[i].placed.name != NULL)
            (void)put(&rows[i].placed);
        pipeline_choose(&pipeline, put(&f), &arena, &choice);
        expect_str(rows[i].row, rows[i].says, reasons_sentence(&choice.why, &arena));
        expect_int(rows[i].row, rows[i].wakes | EVENT_NODE_ADDED, choice.wakes);
        (void)teardown(state);
        (void)setup_nodes(state);
    }
    expect_done();
}

static void the_best_node(void **state)
{
    const struct {
        const char *row;
        struct fixture_pod placed[2];
        struct fixture_pod pod;
        const char *best;
    } rows[] = {
        {"near such a pod",
         {{.node = "b1", .labels = WEB}},
         {.spec = NEAR(WEIGHED(50, TERM("zone", "web")))},
         "b1"},
        {"far from such a pod",
         {{.node = "a1", .labels = WEB}},
         {.spec = FAR(WEIGHED(50, TERM("zone", "web")))},
         "b1"},
        {"far from such a pod, by host",
         {{.node = "a1", .labels = WEB}},
         {.spec = FAR(WEIGHED(50, TERM("host", "web")))},
         "a2"},
        {"the heavier wish wins",
         {{.node = "a1", .labels = WEB}, {.node = "b1", .labels = DB}},
         {.spec = NEAR(WEIGHED(10, TERM("zone", "web")) "," WEIGHED(90, TERM("zone", "db")))},
         "b1"},
        {"a placed pod wants this one near",
         {{.node = "b1", .labels = DB, .spec = NEAR(WEIGHED(50, TERM("zone", "web")))}},
         {.labels = WEB},
         "b1"},
        {"a placed pod wants this one far",
         {{.node = "a1", .labels = DB, .spec = FAR(WEIGHED(50, TERM("zone", "web")))}},
         {.labels = WEB},
         "b1"},
        {"a soft spread over zones",
         {{.node = "a1", .labels = WEB}},
         {.labels = WEB, .spec = SPREAD(SOFT("zone"))},
         "b1"},
        {"a soft spread over hosts",
         {{.node = "a1", .labels = WEB}},
         {.labels = WEB, .spec = SPREAD(SOFT("host"))},
         "a2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int k = 0; k < 2; k++) {
            struct fixture_pod f = rows[i].placed[k];
            f.name = arena_printf(&arena, "placed%d", k);
            if (f.node != NULL)
                (void)put(&f);
        }
        struct fixture_pod f = rows[i].pod;
        f.name = "p";
        expect_str(rows[i].row, rows[i].best, best(put(&f)));
        (void)teardown(state);
        (void)setup_nodes(state);
    }
    expect_done();
}

static void put_namespace(const char *name, const char *team)
{
    AUTO_JSON *doc = NULL;
    struct object *o = NULL;
    struct error err = ERROR_INIT;
    const char *text = arena_printf(
        &arena, "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"team\":\"%s\"}}}", name, team);
    assert_int_equal(json_parse(&doc, text, strlen(text), &err), 0);
    assert_int_equal(decode_namespace(json_root(doc), &o, &err), 0);
    (void)api_objects_put(c.objects, API_OBJECTS_NAMESPACES, o);
}

static void namespaces_are_selected_by_their_labels(void **state)
{
    (void)state;
    (void)put(&(struct fixture_pod){.name = "w", .ns = "e", .node = "a1", .labels = WEB});
    struct cluster_pod *p = put(&(struct fixture_pod){
        .name = "p",
        .spec = ANTI(
            "{\"topologyKey\":\"zone\",\"namespaceSelector\":{\"matchLabels\":{\"team\":\"x\"}}," SELECTS(
                "web") "}")});
    expect_str("a namespace that nobody knows", "a1 a2 b1 x", open_nodes(p));
    put_namespace("e", "x");
    expect_str("one that is meant", "b1 x", open_nodes(p));
    put_namespace("e", "y");
    expect_str("one that is not meant any more", "a1 a2 b1 x", open_nodes(p));
    expect_done();
}

static void nodes_move_between_domains(void **state)
{
    (void)state;
    (void)put(&(struct fixture_pod){.name = "w", .node = "a1", .labels = WEB});
    struct cluster_pod *p =
        put(&(struct fixture_pod){.name = "p", .spec = ANTI(TERM("zone", "web"))});
    expect_str("before", "b1 x", open_nodes(p));
    (void)cluster_put_node(&c, NODE(.name = "a2", .labels = PAIRS("zone", "c", "host", "a2")));
    expect_str("a2 moved out", "a2 b1 x", open_nodes(p));
    (void)cluster_put_node(&c, NODE(.name = "a1", .labels = PAIRS("zone", "b", "host", "a1")));
    struct cluster_pod *q = put(&(struct fixture_pod){
        .name = "q", .c = {{.cpu_milli = 1}}, .spec = ANTI(TERM("zone", "web"))});
    expect_str("a1 moved to b, for a class that is new", "a2 x", open_nodes(q));
    expect_str("and for one that is not", "a2 x", open_nodes(p));
    (void)cluster_put_node(&c, NODE(.name = "a2", .labels = PAIRS("zone", "b", "host", "a1")));
    expect_str("two nodes of one host", "x", open_nodes(p));
    expect_done();
}

/* A pod may name any key. */
static void keys_that_nobody_uses_are_freed(void **state)
{
    (void)state;
    enum { KEYS = 1000 };
    pipeline.classes->budget = 64 * 1024;
    struct cluster_pod *first = put(&(struct fixture_pod){
        .name = "first", .c = {{.cpu_milli = 2}}, .spec = ANTI(TERM("zone", "web"))});
    for (int i = 0; i < KEYS; i++) {
        const char *spec =
            arena_printf(&arena, ANTI("{\"topologyKey\":\"k%d\"," SELECTS("web") "}"), i);
        expect_true("it goes somewhere",
                    best(put(&(struct fixture_pod){.name = arena_printf(&arena, "p%d", i),
                                                   .spec = spec})) != NULL);
    }
    expect_true("as many as the classes in use, and some that are idle",
                map_count(&c.topologies->by_key) <=
                    map_count(&pipeline.classes->by_text) + TOPOLOGIES_IDLE_MAX);
    expect_true("few classes are in use", map_count(&pipeline.classes->by_text) < KEYS / 2);
    (void)put(&(struct fixture_pod){.name = "w", .node = "a1", .labels = WEB});
    expect_str("one that was used before all others", "b1 x", open_nodes(first));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(which_nodes_are_open, setup_nodes, teardown),
        cmocka_unit_test_setup_teardown(tainted_nodes_are_domains_unless_the_policy_says_so,
                                        setup_nodes, teardown),
        cmocka_unit_test_setup_teardown(the_words, setup_nodes, teardown),
        cmocka_unit_test_setup_teardown(the_best_node, setup_nodes, teardown),
        cmocka_unit_test_setup_teardown(namespaces_are_selected_by_their_labels, setup_nodes,
                                        teardown),
        cmocka_unit_test_setup_teardown(nodes_move_between_domains, setup_nodes, teardown),
        cmocka_unit_test_setup_teardown(keys_that_nobody_uses_are_freed, setup_nodes, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

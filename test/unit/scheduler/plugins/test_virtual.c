// SPDX-License-Identifier: Apache-2.0
/*
 * Who goes to virtual nodes, and what is said. Lone pods first; how gangs stay together is the
 * second half.
 */

#include "test/unit/scheduler/model_kit.h"
#include "scheduler/cycle/virtual_explain.h"

#define PROVIDER                                                                      \
    "{\"key\":\"virtual-kubelet.io/provider\",\"value\":\"alibabacloud\",\"effect\":" \
    "\"NoSchedule\"}"
#define VK(n, cpus)                                                        \
    {                                                                      \
        .name = (n), .cpu_milli = (cpus)*1000, .taints = "[" PROVIDER "]", \
        .labels = PAIRS("type", "virtual-kubelet", NAME_LABEL_HOSTNAME, n) \
    }
#define REAL(n, cpus)                                                                  \
    {                                                                                  \
        .name = (n), .cpu_milli = (cpus)*1000, .labels = PAIRS(NAME_LABEL_HOSTNAME, n) \
    }
#define ECI .annotations = PAIRS(NAME_ANN_BURST, "eci")
#define ONLY .annotations = PAIRS(NAME_ANN_BURST, "eci_only")
#define EVERYTHING "\"tolerations\":[{\"operator\":\"Exists\"}]"
#define AFFINITY(term)                                                                             \
    EVERYTHING ",\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution" \
               "\":{\"nodeSelectorTerms\":[{" term "}]}}}"

static void put_namespace(const char *name, const char *labels)
{
    struct error err = ERROR_INIT;
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    struct object *o = NULL;
    strbuf_addf(&text, "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u-%s\",\"labels\":{%s}}}", name,
                name, labels);
    if (json_parse(&doc, strbuf_str(&text), text.len, &err) < 0 ||
        decode_namespace(json_root(doc), &o, &err) < 0)
        fail_msg("%s", err.text);
    (void)api_objects_put(c.objects, API_OBJECTS_NAMESPACES, o);
}

static void put_nodes(const struct fixture_node *nodes, size_t len)
{
    for (size_t i = 0; i < len && nodes[i].name != NULL; i++)
        (void)cluster_put_node(&c, fixture_make_node(&nodes[i]));
}

static const char *says(struct cluster_pod *cp)
{
    struct pipeline_choice choice;
    pipeline_choose(&pipeline, cp, &arena, &choice);
    return choice.node != NULL ? choice.node->name : reasons_sentence(&choice.why, &arena);
}

static void where_a_pod_goes(void **state)
{
    (void)state;
    const struct {
        const char *row;
        struct fixture_node nodes[3];
        struct fixture_pod pod;
        const char *expected; /* the node, or what it says */
    } rows[] = {
        {"not set: waits, however much room there is",
         {REAL("n1", 1), VK("vk-1", 64)},
         {.name = "p", CPU(2000)},
         "0/2 nodes fit: 1 has too little cpu even when empty (asked: 2, largest: 1 on n1), 1 is "
         "virtual and the pod does not burst; no node could ever take it"},
        {"not set, and tolerates everything: waits as well",
         {REAL("n1", 1), VK("vk-1", 64)},
         {.name = "p", CPU(2000), .spec = EVERYTHING},
         "0/2 nodes fit: 1 has too little cpu even when empty (asked: 2, largest: 1 on n1), 1 is "
         "virtual and the pod does not burst; no node could ever take it"},
        {"its nodeSelector asks for virtual nodes",
         {VK("vk-1", 64)},
         {.name = "p", .spec = EVERYTHING ",\"nodeSelector\":{\"type\":\"virtual-kubelet\"}"},
         "vk-1"},
        {"so it does, but the taint is its own business",
         {VK("vk-1", 64)},
         {.name = "p", .spec = "\"nodeSelector\":{\"type\":\"virtual-kubelet\"}"},
         "0/1 nodes fit: 1 has the taint virtual-kubelet.io/provider=alibabacloud:NoSchedule that "
         "the pod does not tolerate"},
        {"its nodeSelector names that node",
         {VK("vk-1", 64)},
         {.name = "p",
          .spec = EVERYTHING ",\"nodeSelector\":{\"kubernetes.io/hostname\":\"vk-1\"}"},
         "vk-1"},
        {"a nodeSelector that says nothing of virtual nodes",
         {{.name = "vk-1", .labels = PAIRS("type", "virtual-kubelet", "zone", "z")}},
         {.name = "p", .spec = "\"nodeSelector\":{\"zone\":\"z\"}"},
         "0/1 nodes fit: 1 is virtual and the pod does not burst"},
        {"its affinity asks for virtual nodes",
         {VK("vk-1", 64)},
         {.name = "p",
          .spec = AFFINITY("\"matchExpressions\":[{\"key\":\"type\",\"operator\":\"In\","
                           "\"values\":[\"x\",\"virtual-kubelet\"]}]")},
         "vk-1"},
        {"its affinity names that node, as a DaemonSet's does",
         {VK("vk-1", 64)},
         {.name = "p",
          .spec = AFFINITY("\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\","
                           "\"values\":[\"vk-1\"]}]")},
         "vk-1"},
        {"an affinity to anything but real nodes' kind is not asking",
         {VK("vk-1", 64)},
         {.name = "p",
          .spec = AFFINITY("\"matchExpressions\":[{\"key\":\"type\",\"operator\":\"NotIn\","
                           "\"values\":[\"real\"]}]")},
         "0/1 nodes fit: 1 is virtual and the pod does not burst"},
        {"eci: the real one while it has room",
         {REAL("n1", 2), VK("vk-1", 64)},
         {.name = "p", CPU(2000), ECI},
         "n1"},
        {"eci: the virtual one when it has not",
         {REAL("n1", 2), VK("vk-1", 64)},
         {.name = "p", CPU(2001), ECI},
         "vk-1"},
        {"eci: judged by every filter, not by room alone",
         {{.name = "n1", .unschedulable = true}, VK("vk-1", 64)},
         {.name = "p", ECI},
         "vk-1"},
        {"eci: another taint of a virtual node is not tolerated",
         {{.name = "vk-1",
           .labels = PAIRS("type", "virtual-kubelet"),
           .taints = "[" PROVIDER ",{\"key\":\"spot\",\"effect\":\"NoSchedule\"}]"}},
         {.name = "p", ECI},
         "0/1 nodes fit: 1 has the taint spot:NoSchedule that the pod does not tolerate"},
        {"eci: nor the provider's on a node that is not virtual",
         {{.name = "n1", .taints = "[" PROVIDER "]"}, VK("vk-1", 1)},
         {.name = "p", CPU(2000), ECI},
         "0/2 nodes fit: 1 has too little cpu even when empty (asked: 2, largest: 1 on vk-1), 1 "
         "has the taint virtual-kubelet.io/provider=alibabacloud:NoSchedule that the pod does not "
         "tolerate; no node could ever take it"},
        {"eci: there is no virtual node",
         {REAL("n1", 1)},
         {.name = "p", CPU(2000), ECI},
         "0/1 nodes fit: 1 has too little cpu even when empty (asked: 2, largest: 1 on n1); no "
         "node could ever take it; the cluster has no virtual node to burst to"},
        {"eci_only: not on a real one, however empty",
         {REAL("n1", 64), VK("vk-1", 2)},
         {.name = "p", CPU(2000), ONLY},
         "vk-1"},
        {"eci_only: waits for a virtual one",
         {REAL("n1", 64), VK("vk-1", 2)},
         {.name = "p", CPU(2001), ONLY},
         "0/2 nodes fit: 1 has too little cpu even when empty (asked: 2001m, largest: 2 on vk-1), "
         "1 is not virtual and the pod asks for virtual nodes only; no node could ever take it"},
        {"eci_only: there is no virtual node",
         {REAL("n1", 64), REAL("n2", 64)},
         {.name = "p", ONLY},
         "0/2 nodes fit: the pod asks for virtual nodes only, and the cluster has none"},
        {"the pod's label is eci_only",
         {REAL("n1", 64), VK("vk-1", 2)},
         {.name = "p", .labels = PAIRS(NAME_LABEL_ECI, "true")},
         "vk-1"},
        {"and counts more than the annotation",
         {REAL("n1", 64), VK("vk-1", 2)},
         {.name = "p", .labels = PAIRS(NAME_LABEL_ECI, "true"), ECI},
         "vk-1"},
        {"the label with another value means nothing",
         {REAL("n1", 64), VK("vk-1", 2)},
         {.name = "p", .labels = PAIRS(NAME_LABEL_ECI, "yes")},
         "n1"},
        {"the namespace's label is eci_only",
         {REAL("n1", 64), VK("vk-1", 2)},
         {.name = "p", .ns = "elastic"},
         "vk-1"},
        {"a claim's problem is not hidden behind virtual nodes",
         {REAL("n1", 64), VK("vk-1", 2)},
         {.name = "p",
          .spec = "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"x\"}}]"},
         "0/2 nodes fit: claim d/x does not exist"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fresh();
        put_namespace("elastic", "\"" NAME_LABEL_ECI "\":\"true\"");
        put_namespace("d", "\"" NAME_LABEL_ECI "\":\"false\"");
        put_nodes(rows[i].nodes, 3);
        struct cluster_pod *cp = put(&rows[i].pod);
        expect_str(rows[i].row, rows[i].expected, says(cp));
        struct pipeline_choice scanned;
        pipeline_scan(&pipeline, cp, &arena, &scanned);
        expect_str(rows[i].row, rows[i].expected,
                   scanned.node != NULL ? scanned.node->name
                                        : reasons_sentence(&scanned.why, &arena));
    }
    expect_done();
}

static void a_namespace_that_changes_its_mind(void **state)
{
    (void)state;
    put_nodes((const struct fixture_node[]){REAL("n1", 8), VK("vk-1", 8)}, 2);
    struct cluster_pod *cp = PUT(.name = "p");
    expect_str("no such namespace yet", "n1", says(cp));
    put_namespace("d", "\"" NAME_LABEL_ECI "\":\"true\"");
    expect_str("its label is heard of at once", "vk-1", says(cp));
    put_namespace("d", "");
    expect_str("and its going", "n1", says(cp));
    expect_done();
}

static void a_node_that_becomes_virtual(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    put_nodes(
        (const struct fixture_node[]){REAL("n1", 1), {.name = "x", .labels = PAIRS("a", "b")}}, 2);
    struct cluster_pod *cp = PUT(.name = "p", CPU(2000), ECI);
    expect_str("it is real", "x", says(cp));
    expect_str("so nothing bursts", NULL,
               virtual_explain(&pipeline, cp, cluster_find_node(&c, "x"), &arena));
    expect_int("by the options", 0, cluster_set_virtuals(&c, "a=b", "c=d", &err));
    expect_int("one is virtual", 1, (int64_t)c.virtual_nodes);
    expect_str(
        "and is burst to",
        "bursting to virtual node x: 0/1 real nodes fit: 1 has too little cpu even when empty "
        "(asked: 2, largest: 1 on n1)",
        virtual_explain(&pipeline, cp, cluster_find_node(&c, "x"), &arena));
    (void)cluster_put_node(&c, NODE(.name = "x", .labels = PAIRS("a", "c")));
    expect_int("none is, without the label", 0, (int64_t)c.virtual_nodes);
    (void)cluster_put_node(&c, NODE(.name = "x", .labels = PAIRS("a", "b")));
    (void)cluster_remove_node(&c, "x");
    expect_int("nor when it is gone", 0, (int64_t)c.virtual_nodes);
    expect_done();
}

/* ---- what is told when it happens ---- */

static const char *bursts_of(const struct cycle_result *r)
{
    AUTO_STRBUF b = {0};
    for (size_t i = 0; i < r->virtuals_len; i++)
        strbuf_addf(&b, "%s%s: %s", i > 0 ? "\n" : "", r->virtuals[i].pod->pod->name,
                    r->virtuals[i].sentence);
    return arena_strdup(&arena, strbuf_str(&b));
}

static void the_sentence(void **state)
{
    (void)state;
    struct cycle_result r;
    put_nodes((const struct fixture_node[]){REAL("n1", 2), REAL("n2", 1), VK("vk-1", 64)}, 3);
    PUT(.name = "a", CPU(2000), ECI);
    (void)run_gang("pod d/a", &r);
    expect_str("on a real node nothing is said", "", bursts_of(&r));
    PUT(.name = "b", CPU(2000), ECI);
    (void)run_gang("pod d/b", &r);
    expect_str(
        "the virtual one is not among those that do not fit",
        "b: bursting to virtual node vk-1: 0/2 real nodes fit: 1 has too little cpu (asked: 2, "
        "largest free: 0 on n1), 1 has too little cpu even when empty (asked: 2, largest: 1 on n2)",
        bursts_of(&r));
    PUT(.name = "c", CPU(2000), ONLY);
    (void)run_gang("pod d/c", &r);
    expect_str("who wants nothing else bursts without a word", "", bursts_of(&r));
    (void)cluster_remove_pod(&c, "d/a", NULL, NULL);
    PUT(.name = "e", CPU(2000), ECI);
    (void)run_gang("pod d/e", &r);
    expect_str("room came free: real again", "b@vk-1 c@vk-1 e@n1", places(NULL));
    expect_done();
}

static void nobody_is_sent_away_for_a_pod_that_can_burst(void **state)
{
    (void)state;
    struct cycle_result r;
    put_nodes((const struct fixture_node[]){REAL("n1", 2), VK("vk-1", 2)}, 2);
    PUT(.name = "low", .node = "n1", CPU(2000));
    PUT(.name = "a", CPU(2000), ECI, .priority = 10);
    (void)run_gang("pod d/a", &r);
    expect_int("it bursts", CYCLE_PLACED, r.verdict);
    expect_int("no victim", 0, (int64_t)r.victims_len);
    PUT(.name = "b", CPU(2000), ECI, .priority = 10);
    (void)run_gang("pod d/b", &r);
    expect_int("no room of any kind", CYCLE_NO_CAPACITY, r.verdict);
    expect_int("now one goes", 1, (int64_t)r.victims_len);
    expect_done();
}

/* ---- gangs ---- */

static void gangs(void **state)
{
    (void)state;
    const struct {
        const char *row;
        enum cluster_gang_pools how;
        int64_t real, virtual; /* CPUs */
        const char *min;
        struct fixture_pod pods[5];
        const char *expected;
    } rows[] = {
#define M(n) {.name = (n), CPU(1000), ECI}
#define ON(n, at)                                 \
    {                                             \
        .name = (n), CPU(1000), ECI, .node = (at) \
    }
        {"on real nodes if it fits",
         CLUSTER_GANG_TOGETHER,
         3,
         9,
         "3",
         {M("a"), M("b"), M("c")},
         "a@n1 b@n1 c@n1"},
        {"else on virtual nodes, though some are free",
         CLUSTER_GANG_TOGETHER,
         2,
         3,
         "3",
         {M("a"), M("b"), M("c")},
         "a@vk-1 b@vk-1 c@vk-1"},
        {"else on both",
         CLUSTER_GANG_TOGETHER,
         2,
         2,
         "3",
         {M("a"), M("b"), M("c")},
         "a@n1 b@n1 c@vk-1"},
        {"never partly", CLUSTER_GANG_TOGETHER, 1, 1, "3", {M("a"), M("b"), M("c")}, "a@- b@- c@-"},
        {"whole: real", CLUSTER_GANG_WHOLE, 3, 9, "3", {M("a"), M("b"), M("c")}, "a@n1 b@n1 c@n1"},
        {"whole: virtual",
         CLUSTER_GANG_WHOLE,
         2,
         3,
         "3",
         {M("a"), M("b"), M("c")},
         "a@vk-1 b@vk-1 c@vk-1"},
        {"whole: not on both",
         CLUSTER_GANG_WHOLE,
         2,
         2,
         "3",
         {M("a"), M("b"), M("c")},
         "a@- b@- c@-"},
        {"by member: real first, each for itself",
         CLUSTER_GANG_MEMBER,
         2,
         3,
         "3",
         {M("a"), M("b"), M("c")},
         "a@n1 b@n1 c@vk-1"},
        {"beyond the quorum each is on its own",
         CLUSTER_GANG_TOGETHER,
         2,
         9,
         "2",
         {M("a"), M("b"), M("c")},
         "a@n1 b@n1 c@vk-1"},
        {"whole: beyond the quorum too",
         CLUSTER_GANG_WHOLE,
         2,
         9,
         "2",
         {M("a"), M("b"), M("c")},
         "a@n1 b@n1 c@-"},
        {"a member came back to those on a virtual node: stays with them",
         CLUSTER_GANG_TOGETHER,
         9,
         3,
         "3",
         {ON("a", "vk-1"), ON("b", "vk-1"), M("c")},
         "a@vk-1 b@vk-1 c@vk-1"},
        {"to those on real nodes: real first",
         CLUSTER_GANG_TOGETHER,
         9,
         3,
         "3",
         {ON("a", "n1"), ON("b", "n1"), M("c")},
         "a@n1 b@n1 c@n1"},
        {"and where these are full, on the virtual one after all",
         CLUSTER_GANG_TOGETHER,
         2,
         3,
         "3",
         {ON("a", "n1"), ON("b", "n1"), M("c")},
         "a@n1 b@n1 c@vk-1"},
        {"members that do not burst keep to real nodes, the others follow",
         CLUSTER_GANG_TOGETHER,
         3,
         9,
         "3",
         {{.name = "a", CPU(1000)}, M("b"), M("c")},
         "a@n1 b@n1 c@n1"},
        {"or not",
         CLUSTER_GANG_TOGETHER,
         1,
         9,
         "3",
         {{.name = "a", CPU(1000)}, M("b"), M("c")},
         "a@n1 b@vk-1 c@vk-1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cycle_result r;
        fresh();
        c.gang_pools = rows[i].how;
        put_nodes(
            (const struct fixture_node[]){REAL("n1", rows[i].real), VK("vk-1", rows[i].virtual)},
            2);
        for (size_t k = 0; k < 5 && rows[i].pods[k].name != NULL; k++) {
            struct fixture_pod f = rows[i].pods[k];
            f.labels = MEMBER("g", rows[i].min);
            (void)put(&f);
        }
        (void)run_gang("gang d/g", &r);
        expect_str(rows[i].row, rows[i].expected, places(NULL));
    }
    expect_done();
}

static void what_gangs_say(void **state)
{
    (void)state;
    struct cycle_result r;
    put_nodes((const struct fixture_node[]){REAL("n1", 2), VK("vk-1", 3)}, 2);
    PUT(.name = "a", .labels = MEMBER("g", "3"), CPU(1000), ECI);
    PUT(.name = "b", .labels = MEMBER("g", "3"), CPU(1000), ECI);
    PUT(.name = "c", .labels = MEMBER("g", "3"), CPU(1000), ECI);
    (void)run_gang("gang d/g", &r);
    expect_str("why they do not use what is free",
               "a: bursting to virtual node vk-1 with its gang\n"
               "b: bursting to virtual node vk-1 with its gang\n"
               "c: bursting to virtual node vk-1 with its gang",
               bursts_of(&r));
    fresh();
    c.gang_pools = CLUSTER_GANG_WHOLE;
    put_nodes((const struct fixture_node[]){REAL("n1", 2), VK("vk-1", 2)}, 2);
    PUT(.name = "a", .labels = MEMBER("g", "3"), CPU(1000), ECI);
    PUT(.name = "b", .labels = MEMBER("g", "3"), CPU(1000), ECI);
    PUT(.name = "c", .labels = MEMBER("g", "3"), CPU(1000), ECI);
    (void)run_gang("gang d/g", &r);
    expect_str("why not on both",
               "gang d/g: room for 2 of 3 pods; pod c: 0/2 nodes fit: 1 has too little cpu (asked: "
               "1, largest free: 0 on n1), 1 is virtual and the gang is to stay on real nodes",
               r.sentence);
    expect_true("room anywhere may help", (r.wakes & EVENT_POD_GONE) != 0);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(where_a_pod_goes),
        T(a_namespace_that_changes_its_mind),
        T(a_node_that_becomes_virtual),
        T(the_sentence),
        T(nobody_is_sent_away_for_a_pod_that_can_burst),
        T(gangs),
        T(what_gangs_say),
    };
    return cmocka_run_group_tests_name("scheduler/plugins/virtual", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The pipeline and its plugins: what each filter refuses and what it says, which node is best,
 * which events wake.
 */
#include "scheduler/framework/pipeline.h"

#include "test/unit/scheduler/model_kit.h"

static const char cgpu[] =
    "{\"v\":1,\"mode\":\"cgpu\",\"cards\":[{\"i\":0,\"uuid\":\"a\",\"mib\":8192,\"health\":\"ok\"}]}";
static const char topology[] =
    "{\"v\":1,\"mode\":\"topology\",\"cards\":[{\"i\":0,\"uuid\":\"a\",\"mib\":8192,\"health\":"
    "\"ok\"}]}";
/* Card 0 is sick, card 1 is small. */
#define SICK(mode)                                                                     \
    "{\"v\":1,\"mode\":\"" mode                                                        \
    "\",\"cards\":[{\"i\":0,\"uuid\":\"a\",\"mib\":15360,\"health\":\"sick\",\"why\":" \
    "\"XID 79: the card has fallen off the bus\"},"                                    \
    "{\"i\":1,\"uuid\":\"b\",\"mib\":8192,\"health\":\"ok\"}]}"
static const char switching[] = "{\"v\":1,\"mode\":\"cgpu\",\"switchingTo\":\"mps\",\"cards\":[]}";
static const char virtual_taint[] =
    "[{\"key\":\"virtual-kubelet.io/provider\",\"value\":\"alibabacloud\",\"effect\":\"NoSchedule\"}]";
static const char two_taints[] =
    "[{\"key\":\"virtual-kubelet.io/provider\",\"value\":\"alibabacloud\",\"effect\":\"NoSchedule\"},"
    "{\"key\":\"own\",\"effect\":\"NoExecute\"}]";

#define VIRTUAL PAIRS("type", "virtual-kubelet")
#define BURST(how) PAIRS(NAME_ANN_BURST, how)

/* The sentence, or NULL where the pod fits. */
static const char *refusal(struct cluster_pod *cp, uint32_t *wakes)
{
    struct pipeline_choice choice;
    pipeline_choose(&pipeline, cp, &arena, &choice);
    if (wakes != NULL)
        *wakes = choice.wakes;
    return choice.node != NULL ? NULL : reasons_sentence(&choice.why, &arena);
}

static void one_pod_one_node(void **state)
{
    (void)state;
    const struct {
        const char *row;
        struct fixture_pod pod;
        struct fixture_node node;
        const char *says; /* behind "0/1 nodes fit: 1 "; NULL: it fits */
        uint32_t wakes;   /* besides EVENT_NODE_ADDED */
    } rows[] = {
        {"fits", {.name = "p"}, {.name = "n"}, NULL, 0},
        /* fit */
        {"memory to the last byte",
         {.name = "p", .c = {{.memory_bytes = 1024}}},
         {.name = "n", .memory_bytes = 1024},
         NULL,
         0},
        {"one byte more",
         {.name = "p", .c = {{.memory_bytes = 1025}}},
         {.name = "n", .memory_bytes = 1024},
         "has too little memory even when empty (asked: 1025, largest: 1Ki on n); no node could "
         "ever take it",
         EVENT_NODE_CAPACITY | EVENT_POD_GONE},
        {"no pod place",
         {.name = "p"},
         {.name = "n", .pods = -1},
         "has no pod place left",
         EVENT_NODE_CAPACITY | EVENT_POD_GONE},
        {"a resource that is not offered",
         {.name = "p", .c = {{.other = "a.b/c", .other_amount = 1}}},
         {.name = "n"},
         "does not offer a.b/c",
         EVENT_NODE_CAPACITY | EVENT_POD_GONE},
        {"none of a resource that is not offered",
         {.name = "p", .c = {{.other = "a.b/c", .other_amount = -1}}},
         {.name = "n"},
         NULL,
         0},
        {"a resource that is offered with 0",
         {.name = "p", .c = {{.other = "a.b/c", .other_amount = 1}}},
         {.name = "n", .other = "a.b/c", .other_amount = -1},
         "has too little a.b/c even when empty (asked: 1, largest: 0 on n); no node could ever "
         "take it",
         EVENT_NODE_CAPACITY | EVENT_POD_GONE},
        {"enough of a resource",
         {.name = "p", .c = {{.other = "a.b/c", .other_amount = 2}}},
         {.name = "n", .other = "a.b/c", .other_amount = 2},
         NULL,
         0},
        {"a hostile amount",
         {.name = "p", .c = {{.cpu_milli = INT64_MAX}}},
         {.name = "n"},
         "has too little cpu even when empty (asked: 9223372036854775807m, largest: 8 on n); no "
         "node could ever take it",
         EVENT_NODE_CAPACITY | EVENT_POD_GONE},
        /* taints */
        {"cordoned",
         {.name = "p"},
         {.name = "n", .unschedulable = true},
         "is cordoned",
         EVENT_NODE_TAINTS},
        {"a taint",
         {.name = "p"},
         {.name = "n", .taints = "[{\"key\":\"a\",\"value\":\"b\",\"effect\":\"NoExecute\"}]"},
         "has the taint a=b:NoExecute that the pod does not tolerate",
         EVENT_NODE_TAINTS},
        {"a taint without a value",
         {.name = "p"},
         {.name = "n", .taints = "[{\"key\":\"a\",\"effect\":\"NoSchedule\"}]"},
         "has the taint a:NoSchedule that the pod does not tolerate",
         EVENT_NODE_TAINTS},
        {"a soft taint",
         {.name = "p"},
         {.name = "n", .taints = "[{\"key\":\"a\",\"effect\":\"PreferNoSchedule\"}]"},
         NULL,
         0},
        {"a taint that is tolerated",
         {.name = "p", .spec = "\"tolerations\":[{\"key\":\"a\",\"operator\":\"Exists\"}]"},
         {.name = "n", .taints = "[{\"key\":\"a\",\"effect\":\"NoSchedule\"}]"},
         NULL,
         0},
        /* affinity */
        {"a selector",
         {.name = "p", .spec = "\"nodeSelector\":{\"zone\":\"a\"}"},
         {.name = "n", .labels = PAIRS("zone", "b")},
         "does not match the pod's node selector or affinity",
         EVENT_NODE_LABELS},
        {"a selector that matches",
         {.name = "p", .spec = "\"nodeSelector\":{\"zone\":\"a\"}"},
         {.name = "n", .labels = PAIRS("zone", "a")},
         NULL,
         0},
        {"required affinity",
         {.name = "p",
          .spec =
              "\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":"
              "{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"zone\",\"operator\":"
              "\"Exists\"}]}]}}}"},
         {.name = "n"},
         "does not match the pod's node selector or affinity",
         EVENT_NODE_LABELS},
        /* compute class and GPU series */
        {"another compute class",
         {.name = "p", .labels = PAIRS(NAME_LABEL_COMPUTE_CLASS, "gpu")},
         {.name = "n", .labels = PAIRS(NAME_LABEL_COMPUTE_CLASS, "gpu-hpn")},
         "has alibabacloud.com/compute-class=gpu-hpn, which is not what the pod asks for",
         EVENT_NODE_LABELS},
        {"the same compute class, another series",
         {.name = "p",
          .labels = PAIRS(NAME_LABEL_COMPUTE_CLASS, "gpu", NAME_LABEL_GPU_MODEL_SERIES, "A")},
         {.name = "n",
          .labels = PAIRS(NAME_LABEL_COMPUTE_CLASS, "gpu", NAME_LABEL_GPU_MODEL_SERIES, "B")},
         "has alibabacloud.com/gpu-model-series=B, which is not what the pod asks for",
         EVENT_NODE_LABELS},
        {"the same of both",
         {.name = "p",
          .labels = PAIRS(NAME_LABEL_COMPUTE_CLASS, "gpu", NAME_LABEL_GPU_MODEL_SERIES, "A")},
         {.name = "n",
          .labels = PAIRS(NAME_LABEL_COMPUTE_CLASS, "gpu", NAME_LABEL_GPU_MODEL_SERIES, "A")},
         NULL,
         0},
        {"a node without these labels",
         {.name = "p",
          .labels = PAIRS(NAME_LABEL_COMPUTE_CLASS, "gpu", NAME_LABEL_GPU_MODEL_SERIES, "A")},
         {.name = "n"},
         NULL,
         0},
        {"a node with an empty one",
         {.name = "p", .labels = PAIRS(NAME_LABEL_COMPUTE_CLASS, "gpu")},
         {.name = "n", .labels = PAIRS(NAME_LABEL_COMPUTE_CLASS, "")},
         NULL,
         0},
        {"a pod without these labels",
         {.name = "p"},
         {.name = "n", .labels = PAIRS(NAME_LABEL_COMPUTE_CLASS, "gpu")},
         NULL,
         0},
        /* burst */
        {"a virtual node",
         {.name = "p"},
         {.name = "n", .labels = VIRTUAL},
         "is virtual and the pod does not burst",
         EVENT_NODE_LABELS | EVENT_NAMESPACE | EVENT_POLICY},
        {"a virtual node that the pod selects",
         {.name = "p", .spec = "\"nodeSelector\":{\"type\":\"virtual-kubelet\"}"},
         {.name = "n", .labels = VIRTUAL},
         NULL,
         0},
        {"a pod that bursts",
         {.name = "p", .annotations = BURST("eci")},
         {.name = "n", .labels = VIRTUAL, .taints = virtual_taint},
         NULL,
         0},
        {"the provider's taint and no other",
         {.name = "p", .annotations = BURST("eci")},
         {.name = "n", .labels = VIRTUAL, .taints = two_taints},
         "has the taint own:NoExecute that the pod does not tolerate",
         EVENT_NODE_TAINTS},
        {"the provider's taint on a real node",
         {.name = "p", .annotations = BURST("eci")},
         {.name = "n", .taints = virtual_taint},
         "has the taint virtual-kubelet.io/provider=alibabacloud:NoSchedule that the pod does not "
         "tolerate; the cluster has no virtual node to burst to",
         EVENT_NODE_TAINTS | EVENT_NODE_LABELS | EVENT_NAMESPACE | EVENT_POLICY},
        {"a burst that nobody knows",
         {.name = "p", .annotations = BURST("maybe")},
         {.name = "n", .labels = VIRTUAL},
         "is virtual and the pod does not burst",
         EVENT_NODE_LABELS | EVENT_NAMESPACE | EVENT_POLICY},
        /* features */
        {"a feature that the node does not declare",
         {.name = "p", .spec = "\"hostNetwork\":true,\"hostUsers\":false"},
         {.name = "n"},
         "does not declare the feature UserNamespacesHostNetworkSupport",
         EVENT_NODE_FEATURES},
        /* gpu */
        {"a share",
         {.name = "p", .c = {{.gib = 8}}},
         {.name = "n", .gib = 16, .inventory = cgpu},
         NULL,
         0},
        {"a share larger than the card",
         {.name = "p", .c = {{.gib = 9}}},
         {.name = "n", .gib = 16, .inventory = cgpu},
         "has no card with 9 GiB even when empty (largest: 8 GiB on n/GPU0); no node could ever "
         "take it",
         EVENT_NODE_GPU | EVENT_POD_GONE},
        {"no inventory",
         {.name = "p", .c = {{.gib = 8}}},
         {.name = "n", .gib = 16},
         "has no GPU inventory (none published)",
         EVENT_NODE_GPU | EVENT_POD_GONE},
        {"another mode",
         {.name = "p", .c = {{.gib = 8}}},
         {.name = "n", .gib = 16, .inventory = topology},
         "is in mode topology",
         EVENT_NODE_GPU | EVENT_POD_GONE},
        {"a mode on its way",
         {.name = "p", .c = {{.gib = 8}}},
         {.name = "n", .gib = 16, .inventory = switching},
         "is switching to mode mps",
         EVENT_NODE_GPU | EVENT_POD_GONE},
        {"a whole card",
         {.name = "p", .c = {{.cards = 1}}},
         {.name = "n", .cards = 1, .inventory = topology},
         NULL,
         0},
        {"two of one",
         {.name = "p", .c = {{.cards = 2}}},
         {.name = "n", .cards = 2, .inventory = topology},
         "has fewer than 2 cards even when empty (most: 1 on n); no node could ever take it",
         EVENT_NODE_GPU | EVENT_POD_GONE},
        /* health: what the kubelet reports goes down with a sick card a moment later, and then it
         * is fit that refuses */
        {"a sick card that has the room",
         {.name = "p", .c = {{.gib = 12}}},
         {.name = "n", .gib = 23, .inventory = SICK("cgpu")},
         "has GPU0 unhealthy (XID 79) and too little free beside it (on n)",
         EVENT_NODE_GPU | EVENT_POD_GONE},
        {"the same, when the kubelet knows",
         {.name = "p", .c = {{.gib = 12}}},
         {.name = "n", .gib = 8, .inventory = SICK("cgpu")},
         "has GPU0 unhealthy (XID 79) and too little free beside it (on n)",
         EVENT_NODE_CAPACITY | EVENT_POD_GONE},
        {"a sick card that is too small itself",
         {.name = "p", .c = {{.gib = 16}}},
         {.name = "n", .gib = 23, .inventory = SICK("cgpu")},
         "has no card with 16 GiB even when empty (largest: 15 GiB on n/GPU0); no node could ever "
         "take it",
         EVENT_NODE_GPU | EVENT_POD_GONE},
        {"too small, and the kubelet knows",
         {.name = "p", .c = {{.gib = 16}}},
         {.name = "n", .gib = 8, .inventory = SICK("cgpu")},
         "has no card with 16 GiB even when empty (largest: 15 GiB on n/GPU0); no node could ever "
         "take it",
         EVENT_NODE_CAPACITY | EVENT_POD_GONE},
        {"a sick card in another mode",
         {.name = "p", .c = {{.gib = 12}}},
         {.name = "n", .gib = 23, .inventory = SICK("topology")},
         "is in mode topology",
         EVENT_NODE_GPU | EVENT_POD_GONE},
        {"two whole cards, one of them sick",
         {.name = "p", .c = {{.cards = 2}}},
         {.name = "n", .cards = 1, .inventory = SICK("topology")},
         "has GPU0 unhealthy (XID 79) and too little free beside it (on n)",
         EVENT_NODE_CAPACITY | EVENT_POD_GONE},
        {"three of two, one of them sick",
         {.name = "p", .c = {{.cards = 3}}},
         {.name = "n", .cards = 3, .inventory = SICK("topology")},
         "has fewer than 3 cards even when empty (most: 2 on n); no node could ever take it",
         EVENT_NODE_GPU | EVENT_POD_GONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t wakes;
        fresh();
        (void)cluster_put_node(&c, fixture_make_node(&rows[i].node));
        const char *expected =
            rows[i].says != NULL ? arena_printf(&arena, "0/1 nodes fit: 1 %s", rows[i].says) : NULL;
        expect_str(rows[i].row, expected, refusal(put(&rows[i].pod), &wakes));
        expect_int(rows[i].row, rows[i].wakes | EVENT_NODE_ADDED, wakes);
    }
    expect_done();
}

static void whole_cards_beside_unknown_ones(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n", .cards = 4,
                                    .inventory = fixture_inventory(&arena, "topology", "8,8,8")));
    PUT(.name = "x", .node = "n", .c = {{.cards = 1}});
    expect_str("any card may be taken",
               "0/1 nodes fit: 1 has pods with GPUs on cards that are not known",
               refusal(PUT(.name = "p", .c = {{.cards = 1}}), NULL));
    expect_done();
}

static void the_best_node(void **state)
{
    (void)state;
    const struct {
        const char *row;
        struct fixture_pod pod;
        struct fixture_node nodes[3];
        const char *best;
    } rows[] = {
        {"equal nodes: by name", {.name = "p"}, {{.name = "b"}, {.name = "a"}, {.name = "c"}}, "a"},
        {"the one that stays emptiest",
         {.name = "p", .c = {{.cpu_milli = 1000}}},
         {{.name = "a", .cpu_milli = 2000}, {.name = "b", .cpu_milli = 4000}},
         "b"},
        {"a full one is not in the race",
         {.name = "p", .c = {{.cpu_milli = 1000}}},
         {{.name = "a", .cpu_milli = 900}, {.name = "b", .cpu_milli = 1000}},
         "b"},
        {"real before virtual, however full",
         {.name = "p", .c = {{.cpu_milli = 1000}}, .annotations = BURST("eci")},
         {{.name = "a", .labels = VIRTUAL, .cpu_milli = 64000}, {.name = "b", .cpu_milli = 1000}},
         "b"},
        {"virtual where the real ones are full",
         {.name = "p", .c = {{.cpu_milli = 1001}}, .annotations = BURST("eci")},
         {{.name = "a", .labels = VIRTUAL, .cpu_milli = 64000}, {.name = "b", .cpu_milli = 1000}},
         "a"},
        {"what the pod prefers",
         {.name = "p",
          .spec = "\"affinity\":{\"nodeAffinity\":{"
                  "\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":10,"
                  "\"preference\":{\"matchExpressions\":[{\"key\":\"zone\",\"operator\":\"In\","
                  "\"values\":[\"z\"]}]}}]}}"},
         {{.name = "a"}, {.name = "b", .labels = PAIRS("zone", "z")}},
         "b"},
        {"no soft taint before one before two",
         {.name = "p"},
         {{.name = "a",
           .taints = "[{\"key\":\"a\",\"effect\":\"PreferNoSchedule\"},{\"key\":\"b\",\"effect\":"
                     "\"PreferNoSchedule\"}]"},
          {.name = "b", .taints = "[{\"key\":\"a\",\"effect\":\"PreferNoSchedule\"}]"},
          {.name = "c"}},
         "c"},
        {"a soft taint that is tolerated",
         {.name = "p", .spec = "\"tolerations\":[{\"key\":\"a\",\"operator\":\"Exists\"}]"},
         {{.name = "a", .taints = "[{\"key\":\"a\",\"effect\":\"PreferNoSchedule\"}]"},
          {.name = "b"}},
         "a"},
        {"CPU and memory used evenly",
         {.name = "p", .c = {{.cpu_milli = 2000, .memory_bytes = INT64_C(1) << 30}}},
         {{.name = "a", .cpu_milli = 4000, .memory_bytes = INT64_C(8) << 30},
          {.name = "b", .cpu_milli = 8000, .memory_bytes = INT64_C(4) << 30}},
         "b"},
        {"the one that has the image",
         {.name = "p", .image = "registry/app:v1"},
         {{.name = "a", .image = "registry/app:v2", .image_bytes = INT64_C(1) << 30},
          {.name = "b", .image = "registry/app:v1", .image_bytes = INT64_C(1) << 30}},
         "b"},
        {"a small image is not worth it",
         {.name = "p", .image = "registry/app:v1"},
         {{.name = "a"}, {.name = "b", .image = "registry/app:v1", .image_bytes = 23 << 20}},
         "a"},
        {"amounts beyond everything",
         {.name = "p"},
         {{.name = "a", .memory_bytes = 1}, {.name = "b", .memory_bytes = INT64_MAX}},
         "a"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int backwards = 0; backwards < 2; backwards++) {
            fresh();
            for (size_t k = 0; k < 3; k++) {
                const struct fixture_node *f = &rows[i].nodes[backwards ? 2 - k : k];
                if (f->name != NULL)
                    (void)cluster_put_node(&c, fixture_make_node(f));
            }
            PUT(.name = "x", .node = "unknown");
            expect_str(rows[i].row, rows[i].best, best(put(&rows[i].pod)));
        }
    expect_done();
}

static void host_ports(void **state)
{
    (void)state;
#define PORT(ip, protocol, port)                                                                   \
    "{\"containerPort\":1,\"hostIP\":\"" ip "\",\"protocol\":\"" protocol "\",\"hostPort\":" #port \
    "}"
    const struct {
        const char *row, *has, *wants, *says;
    } rows[] = {
        {"another port", PORT("", "TCP", 80), PORT("", "TCP", 81), NULL},
        {"the same port", PORT("", "TCP", 80), PORT("", "TCP", 80), "80/TCP"},
        {"another protocol", PORT("", "TCP", 80), PORT("", "UDP", 80), NULL},
        {"another address", PORT("10.0.0.1", "TCP", 80), PORT("10.0.0.2", "TCP", 80), NULL},
        {"the same address", PORT("10.0.0.1", "TCP", 80), PORT("10.0.0.1", "TCP", 80),
         "10.0.0.1:80/TCP"},
        {"every address against one", PORT("10.0.0.1", "TCP", 80), PORT("0.0.0.0", "TCP", 80),
         "80/TCP"},
        {"one against every address", PORT("", "UDP", 80), PORT("10.0.0.1", "UDP", 80),
         "10.0.0.1:80/UDP"},
        {"the second of two", PORT("", "TCP", 80), PORT("", "TCP", 79) "," PORT("", "TCP", 80),
         "80/TCP"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t wakes;
        fresh();
        (void)cluster_put_node(&c, NODE(.name = "n"));
        PUT(.name = "x", .node = "n", .ports = rows[i].has);
        struct cluster_pod *p = PUT(.name = "p", .ports = rows[i].wants);
        const char *says = refusal(p, &wakes);
        expect_str(
            rows[i].row,
            rows[i].says != NULL
                ? arena_printf(&arena, "0/1 nodes fit: 1 has the host port %s taken", rows[i].says)
                : NULL,
            says);
        if (says != NULL)
            expect_int("wakes", EVENT_NODE_ADDED | EVENT_POD_GONE, wakes);
        (void)cluster_remove_pod(&c, "d/x", NULL, NULL);
        expect_str("the other one gone: fits", "n", best(p));
        expect_int("nothing is left behind", 0, (int64_t)cluster_find_node(&c, "n")->ports.len);
    }
    expect_done();
}

static void put_device_class(const char *text)
{
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = NULL;
    struct device_class *class = NULL;
    if (json_parse(&doc, text, strlen(text), &err) < 0 ||
        decode_device_class(json_root(doc), &class, &err) < 0)
        fail_msg("%s", err.text);
    (void)api_objects_put(c.objects, API_OBJECTS_DEVICE_CLASSES, &class->object);
}

/* The class of the pod remembers its refusal: it is asked anew when DeviceClasses come. */
static void a_resource_that_only_a_device_class_offers(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "a"));
    struct cluster_pod *cp =
        PUT(.name = "p", .c = {{.other = "example.com/gpu", .other_amount = 1}});
    expect_str("nobody offers it", "0/1 nodes fit: 1 does not offer example.com/gpu",
               refusal(cp, NULL));
    put_device_class("{\"metadata\":{\"name\":\"gpu.example.com\"},"
                     "\"spec\":{\"extendedResourceName\":\"example.com/gpu\"}}");
    expect_str("a DeviceClass does",
               "0/1 nodes fit: 1 has example.com/gpu only by dynamic resource allocation "
               "(DeviceClass gpu.example.com), which is not supported by this scheduler",
               refusal(cp, NULL));
    (void)cluster_put_node(&c, NODE(.name = "b", .other = "example.com/gpu", .other_amount = 1));
    expect_str("a device plugin does as well", "b", best(cp));
    expect_done();
}

static void full_nodes_first(void **state)
{
    (void)state;
    c.packing = CLUSTER_FULLEST_FIRST;
    (void)cluster_put_node(&c, NODE(.name = "a"));
    (void)cluster_put_node(&c, NODE(.name = "b"));
    (void)cluster_put_node(&c, NODE(.name = "c", .cpu_milli = 100));
    PUT(.name = "x", .node = "b", .c = {{.cpu_milli = 4000, .memory_bytes = INT64_C(8) << 30}});
    expect_str("the fullest that has room", "b",
               best(PUT(.name = "p", .c = {{.cpu_milli = 800, .memory_bytes = INT64_C(1) << 30}})));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_resource_that_only_a_device_class_offers),
        T(host_ports),
        T(full_nodes_first),
        T(one_pod_one_node),
        T(whole_cards_beside_unknown_ones),
        T(the_best_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "lib/model/policy.h"

#include "test/unit/lib/base/expect.h"

static void keys_that_no_policy_gives(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        bool reserved;
    } rows[] = {
        {"tier", false},
        {"example.com/tier", false},
        {"kubernetes.io", false}, /* a name without a domain */
        {"mykubernetes.io/x", false},
        {"x-k8s.io/x", false},
        {"k8s.aliyun.com/resource-policy-wait-for-ecs-scaling", false},
        {"kubernetes.io/x", true},
        {"app.kubernetes.io/name", true},
        {"k8s.io/x", true},
        {"a.b.k8s.io/x", true},
        {"cosched.io/x", true},
        {"cosched.io/cpuset-shared", true},
        {"cosched.io/inject", true},
        {"local.cosched.io/x", true},
        {"cpuset", true},
        {"cpuset-scheduler", true},
        {"cpu-policy", true},
        {"ALIYUN_COM_GPU_MEM_IDX", true},
        {"scheduler.framework.gpushare.allocation", true},
        {"gpushare.alibabacloud.com/core-percentage", true},
        {"alibabacloud.com/burst-resource", true},
        {"alibabacloud.com/eci", true},
        {"alibabacloud.com/compute-class", true},
        {"aliyun.com/gpu-count", true},
        {"gpu-topology", true},
        {"gpu-topology-replica", true},
        {"scheduling.x-k8s.io/pod-group", true},
        {"pod-group.scheduling.sigs.k8s.io", true},
        {"gang.scheduling.koordinator.sh/name", true},
        {"ack.node.gpu.schedule", true},
        {"aliyun.accelerator/nvidia_count", true},
        {"virtual-kubelet.io/provider", true},
        {"aliyun.com/gpu-mem", true},
        {"aliyun.com/gpu-memory", false},
        {"type", false}, /* by which virtual nodes are known, and a name that is everybody's */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_int(rows[i].key, rows[i].reserved, policy_key_is_reserved(rows[i].key));
    expect_done();
}

static void times_are_numbers_with_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms; /* -1: it is none */
    } rows[] = {
        {"15m", 900000},
        {"90s", 90000},
        {"500ms", 500},
        {"1h30m", 5400000},
        {"1m1ms", 60001},
        {"366h", 1317600000},
        {NULL, -1},
        {"", -1},
        {"15", -1},
        {"m", -1},
        {"0s", -1},
        {"0m0s", -1},
        {"1.5h", -1},
        {"-1m", -1},
        {" 1m", -1},
        {"1m ", -1},
        {"1d", -1},
        {"99999999h", -1},
        {"9223372036854775807h", -1},
        {"8784h", 31622400000},
        {"8785h", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t ms = -1;
        bool is = policy_parse_duration(rows[i].text, &ms);
        expect_int(rows[i].text != NULL ? rows[i].text : "(NULL)", rows[i].ms, is ? ms : -1);
    }
    expect_done();
}

static void a_unit_has_nodes_of_its_kind_with_its_labels(void **state)
{
    (void)state;
    struct label pool[] = {{"pool", "a"}}, both[] = {{"pool", "a"}, {"zone", "z"}};
    struct labels none = {0}, a = {pool, 1}, more = {both, 2};
    static const bool virtual_of[] = {
        [POLICY_ECS] = false, [POLICY_ELASTIC] = false, [POLICY_ECI] = true, [POLICY_ACS] = true};
    for (int kind = POLICY_ECS; kind <= POLICY_ACS; kind++) {
        struct policy_unit any = {.resource = (enum policy_resource)kind},
                           some = {.resource = (enum policy_resource)kind, .node_selector = a};
        const char *name = policy_resource_name(any.resource);
        for (int is_virtual = 0; is_virtual < 2; is_virtual++) {
            bool right = virtual_of[kind] == is_virtual;
            expect_int(name, right, policy_unit_has_node(&any, &none, is_virtual));
            expect_int(name, right, policy_unit_has_node(&some, &more, is_virtual));
            expect_int(name, false, policy_unit_has_node(&some, &none, is_virtual));
        }
    }
    expect_done();
}

static void the_older_one_comes_first_then_the_name(void **state)
{
    (void)state;
    struct policy a = {.object = {.name = "a"}, .created_ns = 2},
                  b = {.object = {.name = "b"}, .created_ns = 1},
                  c = {.object = {.name = "c"}, .created_ns = 2};
    expect_true("older", policy_order(&b, &a) < 0);
    expect_true("younger", policy_order(&a, &b) > 0);
    expect_true("of the same age by name", policy_order(&a, &c) < 0);
    expect_int("itself", 0, policy_order(&a, &a));
    expect_done();
}

/* Every field that says something makes two policies differ; what does not, does not. */
static void what_says_the_same_is_equal(void **state)
{
    (void)state;
    struct label one[] = {{"x", "1"}};
    const char *keys[] = {"k"};
    struct policy_unit unit = {.max = -1}, other = {.max = 2};
    struct policy_unit gives = {.max = -1, .pod_annotations = {one, 1}};
    struct policy_unit limit = {.max = -1, .has_max_resources = true};
    const struct policy base = {
        .object = {.name = "p", .uid = "u"}, .units = &unit, .units_len = 1, .timeout_ms = 5};
    struct policy rows[12];
    size_t n = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        rows[i] = base;
    rows[n++].object.uid = "v";
    rows[n++].created_ns = 1;
    rows[n++].invalid = "no";
    rows[n++].selector = (struct labels){one, 1};
    rows[n++].units_len = 0;
    rows[n++].units = &other;
    rows[n++].units = &gives;
    rows[n++].units = &limit;
    rows[n++].preempt_before_next = true;
    rows[n++].ignore_previous = true;
    rows[n].match_keys = keys;
    rows[n++].match_keys_len = 1;
    rows[n++].timeout_ms = 6;
    expect_true("the same", policy_equal(&base, &base));
    for (size_t i = 0; i < n; i++)
        if (policy_equal(&base, &rows[i]))
            fail_msg("row %zu: says something else", i);
    struct policy newer = base;
    newer.object.resource_version = "2";
    expect_true("another version of it", policy_equal(&base, &newer));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_that_no_policy_gives),
        cmocka_unit_test(times_are_numbers_with_units),
        cmocka_unit_test(a_unit_has_nodes_of_its_kind_with_its_labels),
        cmocka_unit_test(the_older_one_comes_first_then_the_name),
        cmocka_unit_test(what_says_the_same_is_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

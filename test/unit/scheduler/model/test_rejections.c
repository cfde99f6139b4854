// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/rejections.h"

#include "test/unit/scheduler/model_kit.h"

static int setup_node(void **state)
{
    (void)setup(state);
    (void)cluster_put_node(&c, NODE(.name = "n1", .other = "a.b/c", .other_amount = 4));
    return 0;
}

/* A pod that its kubelet failed for that reason. It asks for CPU and one a.b/c. */
static void reject(const char *reason, int64_t age_ms, int64_t now_ms)
{
    struct pod *p = POD(.name = "gone", .node = "n1", .phase = "Failed",
                        .c = {{.cpu_milli = 100, .other = "a.b/c", .other_amount = 1}});
    p->status_reason = reason;
    rejections_note(&c, p, age_ms, now_ms);
    pod_free(p);
}

/* What a pod is told that asks for 100m of CPU, and for a.b/c if it likes; "": it fits. */
static const char *said(bool wants_device)
{
    struct pod *p =
        POD(.name = wants_device ? "device" : "cpu", .c = {{.cpu_milli = 100,
                                                            .other = wants_device ? "a.b/c" : NULL,
                                                            .other_amount = wants_device ? 1 : 0}});
    const char *key = p->key;
    struct pipeline_choice choice, slow;
    (void)cluster_put_pod(&c, p, NULL);
    struct cluster_pod *cp = cluster_find_pod(&c, key);
    pipeline_choose(&pipeline, cp, &arena, &choice);
    pipeline_scan(&pipeline, cp, &arena, &slow);
    expect_true("the quick way says what the slow way says", choice.node == slow.node);
    return choice.node != NULL ? "" : reasons_sentence(&choice.why, &arena);
}

static void which_reasons_count(void **state)
{
    static const char cpu[] = "0/1 nodes fit: 1 has just sent a pod back for want of cpu";
    static const char device[] = "0/1 nodes fit: 1 has just sent a pod back for want of a.b/c";
    static const struct row {
        const char *sentence, *reason, *for_cpu, *for_device;
    } rows[] = {
        {"CPU was missing", "OutOfcpu", cpu, cpu},
        {"a device was missing", "OutOfa.b/c", "", device},
        {"a device plugin said no", "UnexpectedAdmissionError", "", device},
        {"no place for a pod", "OutOfpods",
         "0/1 nodes fit: 1 has just sent a pod back for want of pods",
         "0/1 nodes fit: 1 has just sent a pod back for want of pods"},
        {"memory, which nobody asks for", "OutOfmemory", "", ""},
        {"another reason", "Evicted", "", ""},
        {"no reason", NULL, "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        reject(rows[i].reason, 0, 1000);
        expect_str(rows[i].sentence, rows[i].for_cpu, said(false));
        expect_str(rows[i].sentence, rows[i].for_device, said(true));
        (void)teardown(state);
        (void)setup_node(state);
    }
    expect_done();
}

static void it_is_over_after_a_while(void **state)
{
    (void)state;
    int64_t next_ms = 0;
    reject("OutOfcpu", 0, 1000);
    expect_int("nothing is over", 0, rejections_expire(&c, 1000 + REJECTIONS_MS - 1, &next_ms));
    expect_int("it will be", 1000 + REJECTIONS_MS, next_ms);
    reject("OutOfcpu", 0, 2000);
    expect_int("a second one makes it longer", 0,
               rejections_expire(&c, 1000 + REJECTIONS_MS, &next_ms));
    expect_true("still", said(false)[0] != '\0');
    expect_int("over: room appears", EVENT_NODE_CAPACITY,
               rejections_expire(&c, 2000 + REJECTIONS_MS, &next_ms));
    expect_int("nothing to wait for", -1, next_ms);
    expect_str("it fits again", "", said(false));
    reject("OutOfcpu", REJECTIONS_MS, 5000);
    expect_str("old news is no news", "", said(false));
    reject("OutOfcpu", REJECTIONS_MS - 1, 5000);
    expect_int("nearly old", 0, rejections_expire(&c, 5000, &next_ms));
    expect_int("for a moment", 5001, next_ms);
    (void)rejections_expire(&c, 5001, &next_ms);
    reject("UnexpectedAdmissionError", 0, 6000);
    expect_true("a device plugin that was away", said(true)[0] != '\0');
    (void)rejections_expire(&c, 6000 + REJECTIONS_DEVICE_MS - 1, &next_ms);
    expect_int("is expected back soon", 6000 + REJECTIONS_DEVICE_MS, next_ms);
    expect_int("then there is room", EVENT_NODE_CAPACITY,
               rejections_expire(&c, 6000 + REJECTIONS_DEVICE_MS, &next_ms));
    expect_str("for its replacement", "", said(true));
    expect_int("if it fits nowhere else", 6000 + REJECTIONS_MS, next_ms);
    expect_done();
}

/* Where a pod goes that wants a device. */
static const char *goes_to(void)
{
    struct pod *p =
        POD(.name = "device", .c = {{.cpu_milli = 100, .other = "a.b/c", .other_amount = 1}});
    struct pipeline_choice choice, slow;
    (void)cluster_put_pod(&c, p, NULL);
    struct cluster_pod *cp = cluster_find_pod(&c, p->key);
    pipeline_choose(&pipeline, cp, &arena, &choice);
    pipeline_scan(&pipeline, cp, &arena, &slow);
    expect_true("the quick way says what the slow way says", choice.node == slow.node);
    return choice.node != NULL ? choice.node->name : "nowhere";
}

static void a_node_that_is_open_again_is_the_last_resort(void **state)
{
    (void)state;
    int64_t next_ms;
    expect_str("both are equal, so the first by name", "n1", goes_to());
    (void)cluster_put_node(
        &c, NODE(.name = "n2", .cpu_milli = 200, .other = "a.b/c", .other_amount = 1));
    expect_str("one of them is much emptier", "n1", goes_to());
    reject("UnexpectedAdmissionError", 0, 1000);
    expect_str("it is closed", "n2", goes_to());
    expect_int("it is open again", EVENT_NODE_CAPACITY,
               rejections_expire(&c, 1000 + REJECTIONS_DEVICE_MS, &next_ms));
    expect_str("and the other one is better all the same", "n2", goes_to());
    reject("UnexpectedAdmissionError", 0, 7000);
    (void)cluster_remove_node(&c, "n2");
    expect_str("closed again by a second one", "nowhere", goes_to());
    (void)rejections_expire(&c, 7000 + REJECTIONS_DEVICE_MS, &next_ms);
    expect_str("the last resort is one", "n1", goes_to());
    (void)cluster_put_node(
        &c, NODE(.name = "n2", .cpu_milli = 200, .other = "a.b/c", .other_amount = 1));
    expect_int("all is over", EVENT_NODE_CAPACITY,
               rejections_expire(&c, 7000 + REJECTIONS_MS, &next_ms));
    expect_str("and forgotten", "n1", goes_to());
    expect_done();
}

static void a_node_that_goes_and_comes_back_is_still_avoided(void **state)
{
    (void)state;
    reject("OutOfcpu", 0, 1000);
    (void)cluster_remove_node(&c, "n1");
    (void)cluster_put_node(&c, NODE(.name = "n1"));
    expect_str("it is the same kubelet",
               "0/1 nodes fit: 1 has just sent a pod back for want of cpu", said(false));
    int64_t next_ms;
    (void)cluster_remove_node(&c, "n1");
    expect_int("over while it is away", EVENT_NODE_CAPACITY,
               rejections_expire(&c, 1000 + REJECTIONS_MS, &next_ms));
    (void)cluster_put_node(&c, NODE(.name = "n1"));
    expect_str("and forgotten", "", said(false));
    expect_done();
}

static void a_pod_without_devices_lacked_cpus(void **state)
{
    (void)state;
    struct pod *p = POD(.name = "gone", .node = "n1", .phase = "Failed", .c = {{.cpu_milli = 100}});
    p->status_reason = "UnexpectedAdmissionError";
    rejections_note(&c, p, 0, 1000);
    pod_free(p);
    expect_str("the kubelet's own managers said no",
               "0/1 nodes fit: 1 has just sent a pod back for want of cpu", said(false));
    expect_done();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_node, teardown)
    const struct CMUnitTest tests[] = {
        TEST(which_reasons_count), TEST(a_pod_without_devices_lacked_cpus),
        TEST(it_is_over_after_a_while), TEST(a_node_that_is_open_again_is_the_last_resort),
        TEST(a_node_that_goes_and_comes_back_is_still_avoided)};
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}

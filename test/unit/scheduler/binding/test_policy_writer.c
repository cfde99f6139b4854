// SPDX-License-Identifier: Apache-2.0
/*
 * What is written for ResourcePolicies, by the whole shell on the API server's twin: a status when
 * it has changed, deletion costs when a policy changes, labels where the server left them out, and
 * Events for what is wrong.
 */
#include "scheduler/binding/policy_writer.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/kube/decode.h"
#include "lib/kube/http.h"
#include "lib/model/names.h"
#include "scheduler/binding/policy_status.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/sched_loop_kit.h"

static struct sched_loop_kit k;

static int setup(void **state)
{
    (void)state;
    sched_loop_kit_init(&k, &(struct sched_loop_options){0});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sched_loop_kit_deinit(&k);
    return 0;
}

#define POOL(name) .labels = PAIRS("pool", name)
#define APP PAIRS("app", "web")
#define PUT(...) SEND(&k.intake, INTAKE_PODS, REFLECTOR_PUT, POD(__VA_ARGS__))
#define UNIT(pool, more) "{\"resource\":\"ecs\",\"nodeSelector\":{\"pool\":\"" pool "\"}" more "}"

static struct policy *policy_with(const char *name, const char *uid, const char *units)
{
    struct error err = ERROR_INIT;
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    struct policy *p = NULL;
    strbuf_addf(&text,
                "{\"metadata\":{\"namespace\":\"d\",\"name\":\"%s\",\"uid\":\"%s\","
                "\"creationTimestamp\":\"2026-01-01T00:00:0%zuZ\"},\"spec\":{\"selector\":{\"app\":"
                "\"web\"},\"strategy\":\"prefer\",\"units\":[%s]}}",
                name, uid, strlen(name) % 10, units);
    if (json_parse(&doc, strbuf_str(&text), text.len, &err) < 0 ||
        decode_resource_policy(json_root(doc), &p, &err) < 0)
        fail_msg("%s", err.text);
    return p;
}
#define POLICY(name, units) \
    SEND(&k.intake, INTAKE_POLICIES, REFLECTOR_PUT, policy_with(name, "u-" name, units))

static void put_nodes(void)
{
    RESET(&k.intake, INTAKE_NODES, NODE(.name = "n1", .cpu_milli = 2000, POOL("a")),
          NODE(.name = "n2", .cpu_milli = 2000, POOL("b")));
}

static void a_status_is_written_when_it_has_changed(void **state)
{
    (void)state;
    put_nodes();
    POLICY("p", UNIT("a", ",\"max\":1") "," UNIT("b", ""));
    sched_loop_kit_start(&k);
    sched_loop_kit_await(&k, "PATCH", "/resourcepolicies/p/status", 1);
    expect_int(
        "both units are empty", 1,
        shell_count(
            k.twin, "PATCH",
            "{\"metadata\":{\"uid\":\"u-p\"},\"status\":{\"phase\":\"InForce\","
            "\"message\":\"\",\"waiting\":0,\"summary\":\"ecs 0/1, ecs 0\",\"units\":[{\"unit\":0,\"resource\":"
            "\"ecs\",\"pods\":0,\"max\":1},{\"unit\":1,\"resource\":\"ecs\",\"pods\":"
            "0}]}}"));
    POLICY("p", UNIT("a", ",\"max\":1") "," UNIT("b", "")); /* as our own write comes back */
    PUT(.name = "x", .labels = APP, .c = {{.cpu_milli = 1000}});
    PUT(.name = "y", .labels = APP, .c = {{.cpu_milli = 1000}});
    sched_loop_kit_await(&k, "POST", "/binding", 2);
    sched_loop_kit_await(
        &k, "PATCH",
        "\"pods\":1,\"max\":1,\"skipped\":\"is at its max of 1 pods\"},{\"unit\":1,"
        "\"resource\":\"ecs\",\"pods\":1}",
        1);
    expect_int("written when it differs, and not before", 2,
               shell_count(k.twin, "PATCH", "/resourcepolicies/"));
    PUT(.name = "z", .labels = APP, .c = {{.cpu_milli = 4000}});
    sched_loop_kit_await(&k, "PATCH", "\"waiting\":1", 1);
    expect_true(
        "it says of each unit why it is passed by",
        shell_count(k.twin, "PATCH",
                    "\"max\":1,\"skipped\":\"is at its max of 1 pods\"},{\"unit\":1,"
                    "\"resource\":\"ecs\",\"pods\":1,\"skipped\":\"0/1 of its nodes fit: 1 has "
                    "too little cpu even when empty (asked: 4, largest: 2 on n2)\"}") > 0);
    expect_done();
}

/* Each unit may cost a look at all nodes: a user who may write policies cannot saturate the
 * loop. */
static void statuses_that_cost_much_are_computed_in_parts(void **state)
{
    enum { MANY_NODES = 1500, UNITS = 12 };
    (void)state;
    AUTO_STRBUF units = {0};
    char name[16];
    for (int i = 0; i < MANY_NODES; i++) {
        (void)str_format(name, sizeof name, "n%d", i);
        SEND(&k.intake, INTAKE_NODES, REFLECTOR_PUT, NODE(.name = name, .cpu_milli = 100));
    }
    for (int i = 0; i < UNITS; i++)
        strbuf_adds(&units, i > 0 ? ",{\"resource\":\"ecs\"}" : "{\"resource\":\"ecs\"}");
    POLICY("p", strbuf_str(&units));
    POLICY("pp", strbuf_str(&units));
    PUT(.name = "z", .labels = APP, .c = {{.cpu_milli = 4000}});
    sched_loop_kit_start(&k);
    uint64_t before = 0, most = 0;
    for (int64_t end = clock_mono_ms() + SHELL_WAIT_MS;
         shell_count(k.twin, "PATCH", "/resourcepolicies/") < 2 && clock_mono_ms() < end;) {
        loop_once(k.loop, 5);
        uint64_t now = policy_writer_looked(k.sched.policy_writer);
        most = now - before > most ? now - before : most;
        before = now;
    }
    expect_true("each was written", shell_count(k.twin, "PATCH", "/pp/status") > 0);
    expect_true("all units were looked at", before > (uint64_t)MANY_NODES * UNITS);
    expect_true("in parts", most <= POLICY_STATUS_LOOKS + MANY_NODES + 8);
    expect_done();
}

/* A look costs a pass over all pods, whether something is found or not. */
static void a_status_is_not_looked_at_all_the_time(void **state)
{
    enum { SHORT_MS = POLICY_WRITER_DELAY_MS * 3 / 2 };
    (void)state;
    put_nodes();
    POLICY("p", UNIT("a", ""));
    sched_loop_kit_start(&k);
    sched_loop_kit_await(&k, "PATCH", "/resourcepolicies/p/status", 1);
    sched_loop_kit_run(&k, POLICY_WRITER_STATUS_MS + SHORT_MS);
    int64_t before_ms = clock_mono_ms();
    PUT(.name = "other", .node = "n2");
    sched_loop_kit_run(&k, SHORT_MS); /* nothing to write */
    PUT(.name = "z", .labels = APP, .c = {{.cpu_milli = 4000}});
    sched_loop_kit_run(&k, SHORT_MS);
    int64_t written = (int64_t)shell_count(k.twin, "PATCH", "/resourcepolicies/");
    /* else the machine is too slow to tell */
    if (clock_mono_ms() - before_ms < POLICY_WRITER_STATUS_MS)
        expect_int("not so soon after the last look", 1, written);
    sched_loop_kit_await(&k, "PATCH", "\"waiting\":1", 1);
    expect_done();
}

static void policies_that_are_not_as_they_should_be(void **state)
{
    (void)state;
    put_nodes();
    POLICY("bad", "{\"resource\":\"moon\"}");
    sched_loop_kit_start(&k);
    sched_loop_kit_await(&k, "POST", "InvalidPolicy", 1);
    sched_loop_kit_await(&k, "PATCH", "\"phase\":\"Invalid\"", 1);
    expect_int("on the policy", 1, shell_count(k.twin, "POST", "\"kind\":\"ResourcePolicy\""));
    POLICY("bad", "{\"resource\":\"moon\"}");
    POLICY("forbidden", "{\"resource\":\"ecs\",\"podLabels\":{\"cosched.io/x\":\"y\"}}");
    sched_loop_kit_await(&k, "POST", "PolicyIgnoredInPart", 1);
    expect_int("the same is not said again", 1, shell_count(k.twin, "POST", "InvalidPolicy"));
    expect_done();
}

#define COST(n) \
    "{\"" NAME_ANN_DELETION_COST "\":\"" n "\",\"" NAME_ANN_DELETION_COST_OURS "\":\"" n "\"}"
#define HAS(n) .annotations = PAIRS(NAME_ANN_DELETION_COST, n, NAME_ANN_DELETION_COST_OURS, n)

static void costs_follow_the_policy(void **state)
{
    (void)state;
    put_nodes();
    PUT(.name = "x", .labels = APP, .node = "n1");
    PUT(.name = "y", .labels = APP, .node = "n2");
    PUT(.name = "other", .node = "n2");
    PUT(.name = "own", .labels = APP, .node = "n2",
        .annotations = PAIRS(NAME_ANN_DELETION_COST, "7"));
    sched_loop_kit_start(&k);
    sched_loop_kit_run(&k, 2 * POLICY_WRITER_DELAY_MS);
    expect_int("without a policy nothing is written", 0, shell_count(k.twin, "PATCH", NULL));
    POLICY("p", UNIT("a", "") "," UNIT("b", ""));
    sched_loop_kit_await(&k, "PATCH", COST("64"), 1);
    sched_loop_kit_await(&k, "PATCH", COST("63"), 1);
    expect_int("the first unit's is higher", 1, shell_count(k.twin, "PATCH", "/pods/x/status"));
    sched_loop_kit_await(&k, "POST", "DeletionCostConflict", 1);
    sched_loop_kit_run(&k, 2 * POLICY_WRITER_DELAY_MS);
    expect_int("the user's own is not touched", 0, shell_count(k.twin, "PATCH", "/pods/own/"));
    expect_int("nor are pods without a policy", 0, shell_count(k.twin, "PATCH", "/pods/other/"));
    expect_int("each is sent once", 2, shell_count(k.twin, "PATCH", "/pods/"));
    PUT(.name = "x", .labels = APP, .node = "n1", HAS("64"));
    PUT(.name = "y", .labels = APP, .node = "n2", HAS("63"));
    POLICY("p", UNIT("b", "") "," UNIT("a", ""));
    sched_loop_kit_await(&k, "PATCH", COST("64"), 2);
    sched_loop_kit_await(&k, "PATCH", COST("63"), 2);
    expect_int("the order was turned round", 2, shell_count(k.twin, "PATCH", "/pods/y/status"));
    PUT(.name = "x", .labels = APP, .node = "n1", HAS("63"));
    PUT(.name = "y", .labels = APP, .node = "n2", HAS("64"));
    SEND(&k.intake, INTAKE_POLICIES, REFLECTOR_DELETE, policy_with("p", "u-p", UNIT("a", "")));
    sched_loop_kit_await(
        &k, "PATCH",
        "{\"" NAME_ANN_DELETION_COST "\":null,\"" NAME_ANN_DELETION_COST_OURS "\":null}", 2);
    expect_int("the conflict was told once", 1,
               shell_count(k.twin, "POST", "DeletionCostConflict"));
    expect_done();
}

/* What a Binding to the only unit wrote. */
#define BOUND                                                                    \
    .annotations = PAIRS(NAME_ANN_UNIT, "p/0/u-p", NAME_ANN_DELETION_COST, "64", \
                         NAME_ANN_DELETION_COST_OURS, "64")

static void labels_that_an_older_server_left_out(void **state)
{
    (void)state;
    put_nodes();
    POLICY("p", UNIT("a", ",\"podLabels\":{\"tier\":\"own\"}"));
    sched_loop_kit_start(&k);
    PUT(.name = "x", .labels = APP);
    PUT(.name = "y", .labels = APP);
    sched_loop_kit_await(&k, "POST", "/binding", 2);
    expect_int("they are in the Binding", 2,
               shell_count(k.twin, "POST", "\"labels\":{\"tier\":\"own\"}"));
    PUT(.name = "x", .labels = APP, .node = "n1", BOUND);
    PUT(.name = "y", .labels = PAIRS("app", "web", "tier", "own"), .node = "n1", BOUND);
    sched_loop_kit_await(&k, "PATCH", "\"labels\":{\"tier\":\"own\"}", 1);
    sched_loop_kit_run(&k, 2 * POLICY_WRITER_DELAY_MS);
    expect_int("patched where they are missing", 1, shell_count(k.twin, "PATCH", "/pods/x/status"));
    expect_int("and nowhere else", 1, shell_count(k.twin, "PATCH", "\"labels\":{\"tier\":"));
    expect_done();
}

static void several_policies(void **state)
{
    (void)state;
    put_nodes();
    POLICY("p", UNIT("a", ""));
    POLICY("young", UNIT("b", ""));
    sched_loop_kit_start(&k);
    PUT(.name = "x", .labels = APP);
    sched_loop_kit_await(
        &k, "POST", "ResourcePolicy p holds for it, the oldest that selects it; not: young", 1);
    expect_done();
}

static void several_policies_of_a_pod_that_waits(void **state)
{
    (void)state;
    put_nodes();
    POLICY("p", UNIT("a", ",\"max\":0"));
    POLICY("young", UNIT("b", ""));
    sched_loop_kit_start(&k);
    PUT(.name = "x", .labels = APP);
    sched_loop_kit_await(
        &k, "POST", "ResourcePolicy p holds for it, the oldest that selects it; not: young", 1);
    POLICY("p", UNIT("a", ",\"max\":1"));
    sched_loop_kit_await(&k, "POST", "/binding", 1);
    sched_loop_kit_run(&k, 2 * POLICY_WRITER_DELAY_MS);
    expect_int("it is told once", 1, shell_count(k.twin, "POST", "SeveralPolicies"));
    expect_done();
}

static void a_label_that_it_has_is_kept_and_told(void **state)
{
    (void)state;
    put_nodes();
    POLICY("p", UNIT("a", ",\"podLabels\":{\"tier\":\"first\"}"));
    sched_loop_kit_start(&k);
    PUT(.name = "x", .labels = PAIRS("app", "web", "tier", "mine"));
    PUT(.name = "y", .labels = PAIRS("app", "web", "tier", "first"));
    sched_loop_kit_await(&k, "POST", "/binding", 2);
    sched_loop_kit_await(&k, "POST",
                         "It keeps its label tier=mine, and not first: ResourcePolicy p", 1);
    expect_int("of the one that differs", 1, shell_count(k.twin, "POST", "It keeps its label"));
    expect_int("and no Binding says otherwise", 0,
               shell_count(k.twin, "POST", "\"labels\":{\"tier\""));
    expect_done();
}

static void costs_follow_a_node_into_another_unit(void **state)
{
    (void)state;
    put_nodes();
    POLICY("p", UNIT("a", "") "," UNIT("b", ""));
    PUT(.name = "x", .labels = APP, .node = "n1", HAS("64"));
    sched_loop_kit_start(&k);
    sched_loop_kit_await(&k, "PATCH", "/resourcepolicies/p/status", 1);
    int64_t began_ms = clock_mono_ms();
    SEND(&k.intake, INTAKE_NODES, REFLECTOR_PUT, NODE(.name = "n1", .cpu_milli = 2000, POOL("b")));
    sched_loop_kit_await(&k, "PATCH", COST("63"), 1);
    expect_true("and not only when all pods are gone through anyway",
                clock_mono_ms() - began_ms < POLICY_WRITER_SCAN_MS);
    expect_done();
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    kube_http_global_init();
    const struct CMUnitTest tests[] = {
        T(a_status_is_written_when_it_has_changed),
        T(a_status_is_not_looked_at_all_the_time),
        T(statuses_that_cost_much_are_computed_in_parts),
        T(policies_that_are_not_as_they_should_be),
        T(costs_follow_the_policy),
        T(labels_that_an_older_server_left_out),
        T(a_label_that_it_has_is_kept_and_told),
        T(costs_follow_a_node_into_another_unit),
        T(several_policies_of_a_pod_that_waits),
        T(several_policies),
    };
    int failed = cmocka_run_group_tests_name("scheduler/policing", tests, NULL, NULL);
    kube_http_global_cleanup();
    return failed;
}

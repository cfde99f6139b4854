// SPDX-License-Identifier: Apache-2.0
/* The life of a pod on a simulated node, as a table of what happens when. Time is a parameter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "test/local/nodes/life.h"

static const int64_t second = 1000 * 1000 * 1000;
static const int64_t t0 = 1800000000LL * 1000 * 1000 * 1000;

static struct podview *view(const char *spec, const char *metadata)
{
    AUTO_STRBUF text;
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    struct podview *v = NULL;
    strbuf_init(&text);
    strbuf_addf(&text,
                "{\"metadata\":{\"name\":\"p\",\"namespace\":\"default\",\"uid\":\"u-1\"%s},"
                "\"spec\":{\"nodeName\":\"n\",%s}}",
                metadata, spec);
    if (json_parse(&doc, strbuf_str(&text), text.len, &err) < 0 ||
        podview_decode(json_root(doc), &v, &err) < 0)
        fail_msg("%s: %s", strbuf_str(&text), err.text);
    return v;
}

/* Starts what is due and lets end what is over, as the node does. Returns how many were started. */
static int go(struct life *l, int64_t now)
{
    int started = 0;
    size_t i;
    (void)life_tick(l, now);
    while ((i = life_due(l, now)) != LIFE_NONE) {
        life_started(l, i, now, "id");
        started++;
        (void)life_tick(l, now);
    }
    return started;
}

static const char *phase(const struct life *l)
{
    static const char *const names[] = {"Pending", "Running", "Succeeded", "Failed", "Unknown"};
    return names[life_phase(l)];
}

#define ONE(command) "\"containers\":[{\"name\":\"a\",\"image\":\"i\",\"command\":" command "}]"

static void test_how_pods_end(void **state)
{
    (void)state;
    const struct {
        const char *sentence, *spec, *metadata;
        int after_s;
        const char *phase;
        int64_t restarts;
    } rows[] = {
        {"a server runs", ONE("[\"nginx\"]"), "", 100000, "Running", 0},
        {"sleep in a Job is not over before its time",
         "\"restartPolicy\":\"Never\"," ONE("[\"sleep\",\"5\"]"), "", 4, "Running", 0},
        {"and is at its time", "\"restartPolicy\":\"Never\"," ONE("[\"sleep\",\"5\"]"), "", 5,
         "Succeeded", 0},
        {"an exit code is a failure", "\"restartPolicy\":\"Never\"," ONE("[\"false\"]"), "", 1,
         "Failed", 0},
        {"OnFailure: success ends it", "\"restartPolicy\":\"OnFailure\"," ONE("[\"true\"]"), "", 1,
         "Succeeded", 0},
        {"OnFailure: a failure is tried at once, then after 10 s",
         "\"restartPolicy\":\"OnFailure\"," ONE("[\"false\"]"), "", 9, "Running", 1},
        {"there is the second restart", "\"restartPolicy\":\"OnFailure\"," ONE("[\"false\"]"), "",
         10, "Running", 2},
        {"the third comes 20 s later", "\"restartPolicy\":\"OnFailure\"," ONE("[\"false\"]"), "",
         30, "Running", 3},
        {"Always: success is run again too", ONE("[\"true\"]"), "", 9, "Running", 1},
        {"the annotation says how long a server runs",
         "\"restartPolicy\":\"Never\"," ONE("[\"nginx\"]"),
         ",\"annotations\":{\"local.cosched.io/run-seconds\":\"7\"}", 7, "Succeeded", 0},
        {"and how it ends", "\"restartPolicy\":\"Never\"," ONE("[\"nginx\"]"),
         ",\"annotations\":{\"local.cosched.io/run-seconds\":\"7\",\"local.cosched.io/"
         "exit-code\":\"3\"}",
         7, "Failed", 0},
        {"an annotation that is not a number says nothing",
         "\"restartPolicy\":\"Never\"," ONE("[\"nginx\"]"),
         ",\"annotations\":{\"local.cosched.io/run-seconds\":\"soon\"}", 7, "Running", 0},
        {"one of two containers runs on",
         "\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"a\",\"command\":[\"true\"]},"
         "{\"name\":\"b\"}]",
         "", 5, "Running", 0},
        {"one of two containers failed",
         "\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"a\",\"command\":[\"false\"]},"
         "{\"name\":\"b\",\"command\":[\"sleep\",\"2\"]}]",
         "", 5, "Failed", 0},
        {"a sidecar does not keep a pod alive",
         "\"restartPolicy\":\"Never\",\"initContainers\":[{\"name\":\"s\",\"restartPolicy\":"
         "\"Always\"}]," ONE("[\"sleep\",\"1\"]"),
         "", 1, "Succeeded", 0},
        {"an init container that fails for good ends the pod",
         "\"restartPolicy\":\"Never\",\"initContainers\":[{\"name\":\"s\",\"command\":"
         "[\"false\"]}]," ONE("[\"true\"]"),
         "", 1, "Failed", 0},
        {"an init container that fails is tried again",
         "\"initContainers\":[{\"name\":\"s\",\"command\":[\"false\"]}]," ONE("[\"true\"]"), "", 1,
         "Pending", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct podview *v = view(rows[i].spec, rows[i].metadata);
        struct life l;
        life_init(&l, v);
        life_admit(&l, t0, 0);
        for (int s = 0; s <= rows[i].after_s && s <= 1000; s++)
            go(&l, t0 + s * second);
        if (strcmp(phase(&l), rows[i].phase) != 0 || l.containers[0].restarts != rows[i].restarts)
            fail_msg("%s: expected %s, %d restarts; got %s, %d", rows[i].sentence, rows[i].phase,
                     (int)rows[i].restarts, phase(&l), (int)l.containers[0].restarts);
        life_deinit(&l);
        podview_free(v);
    }
}

static void test_it_says_when_to_look_again(void **state)
{
    (void)state;
    struct podview *v = view("\"restartPolicy\":\"OnFailure\","
                             "\"initContainers\":[{\"name\":\"i\",\"command\":[\"sleep\",\"2\"]}],"
                             "\"containers\":[{\"name\":\"a\",\"command\":[\"sh\",\"-c\",\"sleep "
                             "3; exit 1\"]}]",
                             "");
    struct life l;
    int64_t now = t0;
    life_init(&l, v);
    assert_int_equal(life_next_ns(&l), LIFE_NEVER); /* not admitted */
    life_admit(&l, now, 100);
    assert_int_equal(go(&l, now), 0); /* the sandbox is not there */
    /* Jumping from one moment to the next, nothing is missed and no moment comes twice. */
    const int64_t moments_ms[] = {100, 2100, 5100, 8100, 18100, 21100, 41100, 44100};
    for (size_t i = 0; i < sizeof moments_ms / sizeof moments_ms[0]; i++) {
        int64_t next = life_next_ns(&l);
        assert_int_equal((next - t0) / 1000000, moments_ms[i]);
        assert_true(next > now || i == 0);
        now = next;
        (void)go(&l, now);
    }
    assert_string_equal(phase(&l), "Running");
    life_deinit(&l);
    podview_free(v);
}

static void test_containers_start_in_order(void **state)
{
    (void)state;
    struct podview *v = view("\"initContainers\":[{\"name\":\"one\",\"command\":[\"sleep\",\"1\"]},"
                             "{\"name\":\"side\",\"restartPolicy\":\"Always\"},{\"name\":\"two\"}],"
                             "\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}]",
                             "");
    struct life l;
    life_init(&l, v);
    life_admit(&l, t0, 0);
    assert_int_equal(life_due(&l, t0), 0);
    life_started(&l, 0, t0, "x");
    assert_int_equal(life_due(&l, t0), LIFE_NONE);
    assert_true(life_tick(&l, t0 + second));
    for (size_t i = 1; i < 5; i++) { /* the second init step, without a command, is over at once */
        assert_int_equal(life_due(&l, t0 + second), i);
        assert_string_equal(phase(&l), i < 4 ? "Pending" : "Running");
        life_started(&l, i, t0 + second, "x");
        (void)life_tick(&l, t0 + second);
    }
    assert_int_equal(life_due(&l, t0 + second), LIFE_NONE);
    assert_int_equal(life_next_ns(&l), LIFE_NEVER);
    life_deinit(&l);
    podview_free(v);
}

static void test_a_start_that_fails_is_tried_again(void **state)
{
    (void)state;
    struct podview *v = view(ONE("[\"nginx\"]"), "");
    struct life l;
    struct life_host h = {"192.0.2.1", "10.64.0.2"};
    AUTO_STRBUF text;
    strbuf_init(&text);
    life_init(&l, v);
    life_admit(&l, t0, 0);
    life_failed(&l, 0, t0, "CreateContainerConfigError", "no");
    assert_int_equal(life_due(&l, t0 + 9 * second), LIFE_NONE);
    life_print(&l, &h, t0, &text);
    assert_non_null(strstr(strbuf_str(&text),
                           "{\"reason\":\"CreateContainerConfigError\",\"message\":\"no\"}"));
    assert_int_equal(life_next_ns(&l), t0 + 10 * second);
    assert_int_equal(life_due(&l, t0 + 10 * second), 0);
    life_deinit(&l);
    podview_free(v);
}

static void test_termination(void **state)
{
    (void)state;
    struct podview *v = view(ONE("[\"nginx\"]"), "");
    struct life l;
    life_init(&l, v);
    life_admit(&l, t0, 0);
    go(&l, t0);
    life_terminate(&l, t0 + second, 1000);
    life_terminate(&l, t0 + second, 5000); /* the earlier end counts */
    assert_int_equal(life_next_ns(&l), t0 + 2 * second);
    assert_false(life_tick(&l, t0 + 2 * second - 1));
    assert_false(life_is_over(&l));
    assert_true(life_tick(&l, t0 + 2 * second));
    assert_true(life_is_over(&l));
    assert_string_equal(phase(&l), "Failed");
    assert_int_equal(l.containers[0].exit_code, 137);
    assert_int_equal(life_due(&l, t0 + 100 * second), LIFE_NONE);
    assert_int_equal(life_next_ns(&l), LIFE_NEVER);
    life_deinit(&l);

    life_init(&l, v); /* one that was never admitted ends as well */
    life_terminate(&l, t0, 0);
    assert_true(life_tick(&l, t0));
    assert_true(life_is_over(&l));
    life_deinit(&l);
    podview_free(v);
}

static void test_rejection_is_for_good(void **state)
{
    (void)state;
    struct podview *v = view(ONE("[\"nginx\"]"), "");
    struct life l;
    struct life_host h = {"192.0.2.1", "10.64.0.2"};
    AUTO_STRBUF text;
    strbuf_init(&text);
    life_init(&l, v);
    life_reject(&l, t0, "OutOfcpu", "Pod was rejected: no");
    assert_int_equal(life_due(&l, t0), LIFE_NONE);
    assert_true(life_is_over(&l));
    life_print(&l, &h, t0, &text);
    assert_string_equal(strbuf_str(&text),
                        "{\"metadata\":{\"uid\":\"u-1\"},\"status\":{\"phase\":\"Failed\","
                        "\"startTime\":\"2027-01-15T08:00:00Z\",\"reason\":\"OutOfcpu\","
                        "\"message\":\"Pod was rejected: no\"}}");
    life_deinit(&l);
    podview_free(v);
}

static json *condition(json *status, const char *type)
{
    for (struct json_iter it = json_iter(json_get(status, "conditions")); json_next(&it);)
        if (str_eq(json_get_str(it.value, "type"), type))
            return it.value;
    return NULL;
}

static void test_the_status(void **state)
{
    (void)state;
    struct podview *v =
        view("\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"a\",\"image\":"
             "\"i\",\"command\":[\"sleep\",\"5\"]},{\"name\":\"b\",\"image\":\"i\","
             "\"command\":[\"sleep\",\"6\"]}]",
             "");
    struct life l;
    struct life_host h = {"192.0.2.1", "10.64.0.2"};
    const struct {
        const char *sentence;
        int64_t at_ms;
        const char *phase, *ip, *sandbox, *ready, *reason, *state_a;
    } rows[] = {
        {"being made", 0, "Pending", NULL, "False", "False", "ContainersNotReady", "waiting"},
        {"runs", 100, "Running", "10.64.0.2", "True", "True", NULL, "running"},
        {"a is over", 5100, "Running", "10.64.0.2", "True", "False", "ContainersNotReady",
         "terminated"},
        {"b too", 6100, "Succeeded", "10.64.0.2", "False", "False", "PodCompleted", "terminated"},
    };
    life_init(&l, v);
    life_admit(&l, t0, 100);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_STRBUF text;
        AUTO_JSON *doc = NULL;
        struct error err = ERROR_INIT;
        strbuf_init(&text);
        go(&l, t0 + rows[i].at_ms * 1000000);
        life_print(&l, &h, t0 + rows[i].at_ms * 1000000, &text);
        assert_int_equal(json_parse(&doc, strbuf_str(&text), text.len, &err), 0);
        json *s = json_get(json_root(doc), "status");
        json *ready = condition(s, "Ready");
        json *a = json_at(json_get(s, "containerStatuses"), 0);
        bool ok = str_eq(json_get_str(s, "phase"), rows[i].phase) &&
                  str_eq(json_get_str(s, "podIP"), rows[i].ip) &&
                  str_eq(json_get_str(s, "hostIP"), "192.0.2.1") &&
                  str_eq(json_get_str(condition(s, "PodReadyToStartContainers"), "status"),
                         rows[i].sandbox) &&
                  str_eq(json_get_str(ready, "status"), rows[i].ready) &&
                  str_eq(json_get_str(ready, "reason"), rows[i].reason) &&
                  str_eq(json_get_str(condition(s, "ContainersReady"), "status"), rows[i].ready) &&
                  str_eq(json_get_str(condition(s, "Initialized"), "status"), "True") &&
                  condition(s, "PodScheduled") == NULL &&
                  json_get(json_get(a, "state"), rows[i].state_a) != NULL;
        if (!ok)
            fail_msg("%s: %s", rows[i].sentence, strbuf_str(&text));
        if (i == 1) {
            /* A reason of before is taken away. */
            assert_true(json_is_null(json_get(ready, "reason")));
            assert_string_equal(json_get_str(a, "containerID"), "containerd://id");
        }
    }
    life_deinit(&l);
    podview_free(v);
}

static void test_a_restarted_kubelet_goes_on(void **state)
{
    (void)state;
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    struct podview *v = NULL;
    static const char text[] =
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\",\"uid\":\"u\"},\"spec\":{"
        "\"containers\":[{\"name\":\"a\",\"command\":[\"sleep\",\"60\"]},{\"name\":\"b\","
        "\"command\":[\"false\"]}]},\"status\":{\"phase\":\"Running\",\"podIP\":\"10.64.0.9\","
        "\"startTime\":\"2027-01-15T08:00:00Z\",\"containerStatuses\":[{\"name\":\"a\","
        "\"restartCount\":2,\"containerID\":\"containerd://aa\",\"state\":{\"running\":{"
        "\"startedAt\":\"2027-01-15T08:00:10Z\"}}},{\"name\":\"b\",\"restartCount\":1,"
        "\"containerID\":\"containerd://bb\",\"state\":{\"waiting\":{\"reason\":"
        "\"CrashLoopBackOff\"}},\"lastState\":{\"terminated\":{\"exitCode\":1,\"startedAt\":"
        "\"2027-01-15T08:00:20Z\",\"finishedAt\":\"2027-01-15T08:00:20Z\"}}}]}}";
    assert_int_equal(json_parse(&doc, text, sizeof text - 1, &err), 0);
    assert_int_equal(podview_decode(json_root(doc), &v, &err), 0);
    assert_string_equal(v->ip, "10.64.0.9");
    struct life l;
    life_init(&l, v);
    assert_true(life_adopt(&l));
    assert_int_equal(l.containers[0].state, LIFE_RUNNING);
    assert_string_equal(l.containers[0].id, "aa");
    assert_int_equal(l.containers[0].restarts, 2);
    /* b waits 10 s from its end, a ends 60 s from its start. */
    assert_int_equal((life_next_ns(&l) - t0) / second, 30);
    assert_int_equal(go(&l, t0 + 30 * second), 1);
    assert_int_equal(l.containers[1].restarts, 2);
    life_deinit(&l);
    podview_free(v);

    v = view(ONE("[\"nginx\"]"), ""); /* a new pod has nothing to take over */
    life_init(&l, v);
    assert_false(life_adopt(&l));
    assert_string_equal(v->qos, "BestEffort");
    life_deinit(&l);
    podview_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_pods_end),
        cmocka_unit_test(test_it_says_when_to_look_again),
        cmocka_unit_test(test_containers_start_in_order),
        cmocka_unit_test(test_a_start_that_fails_is_tried_again),
        cmocka_unit_test(test_termination),
        cmocka_unit_test(test_rejection_is_for_good),
        cmocka_unit_test(test_the_status),
        cmocka_unit_test(test_a_restarted_kubelet_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

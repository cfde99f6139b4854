// SPDX-License-Identifier: Apache-2.0
/*
 * What is written to a waiting pod, and when. Time is an argument; the writes go to the API
 * server's twin. Events have their own tests.
 */
#include "scheduler/binding/pod_writer.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/kube/http.h"
#include "lib/model/names.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"
#include "test/unit/scheduler/shell_kit.h"

enum { SEEN_MS = 5000, LONG_MS = 60000 };

static struct twin *twin;
static struct kube_config *config;
static struct cluster c;
static struct pod_trace trace;
static struct queue_why why; /* of all gangs */
static struct pod_writer *status;

static _Atomic int asked; /* calls of is_busy */

static bool is_busy(void *arg)
{
    (void)arg;
    atomic_fetch_add(&asked, 1);
    return false;
}

static void start(int64_t queue)
{
    struct error err = ERROR_INIT;
    struct kube_options options = twin_options();
    struct pod_writer_config sc = {
        .events = {.queue = queue, .qps = 1000}, .trace = &trace, .is_busy = is_busy};
    if (pod_writer_start(&status, config, &options, &sc, &err) < 0)
        fail_msg("%s", err.text);
}

static int setup(void **state)
{
    (void)state;
    asked = 0;
    twin = twin_start(NULL, false);
    config = twin_config(twin);
    cluster_init(&c, NAME_SCHEDULER);
    pod_trace_init(&trace);
    why = (struct queue_why){0};
    start(0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pod_writer_stop(status, 0);
    pod_trace_deinit(&trace);
    cluster_deinit(&c);
    kube_config_free(config);
    twin_stop(twin);
    return 0;
}

/* Every write that was asked for has an answer. */
static void drain(void)
{
    pod_writer_stop(status, LONG_MS);
    status = NULL;
}

/* A pod that waits, alone, for what `class` stands for. */
static struct gang *waiting(const struct fixture_pod *f, uint64_t class)
{
    (void)cluster_put_pod(&c, fixture_make_pod(f), NULL);
    AUTO_STRBUF key = {0};
    strbuf_addf(&key, "d/%s", f->name);
    struct cluster_pod *cp = cluster_find_pod(&c, strbuf_str(&key));
    assert_non_null(cp);
    pod_trace_see(&trace, cp, (int64_t)SEEN_MS * 1000);
    why = (struct queue_why){.sentence = "0/3 nodes fit: all are full", .class = class};
    return cp->gang;
}
#define WAITING(class, ...) waiting(&(struct fixture_pod){__VA_ARGS__}, class)

static void a_pod_is_told_after_a_second_and_again_when_the_class_changes(void **state)
{
    (void)state;
    struct gang *g = WAITING(7, .name = "p");
    int64_t told = SEEN_MS + POD_WRITER_FIRST_MS;
    expect_int("too early", told, pod_writer_report_waiting(status, g, &why, told - 1));
    expect_int("now", -1, pod_writer_report_waiting(status, g, &why, told));
    expect_int("it knows", -1, pod_writer_report_waiting(status, g, &why, told + 1));
    expect_int("and still does much later", -1,
               pod_writer_report_waiting(status, g, &why, told + LONG_MS));
    why.class = 8;
    int64_t again = told + POD_WRITER_AGAIN_MS;
    expect_int("another class, too soon", again,
               pod_writer_report_waiting(status, g, &why, again - 1));
    why.for_gang = true;
    expect_int("now again", -1, pod_writer_report_waiting(status, g, &why, again));
    drain();
    expect_int("two writes", 2, shell_count(twin, "PATCH", NULL));
    expect_int("to the status of the pod", 2,
               shell_count(twin, "PATCH", "/namespaces/d/pods/p/status"));
    expect_int("only of this very pod", 2, shell_count(twin, "PATCH", "\"uid\":\"u-p\""));
    expect_int("room is missing", 1, shell_count(twin, "PATCH", "\"reason\":\"Unschedulable\""));
    expect_int("pods are missing", 1, shell_count(twin, "PATCH", "\"reason\":\"WaitingForGang\""));
    expect_int("in our words, and when that was so", 2,
               shell_count(twin, "PATCH",
                           "\"message\":\"0/3 nodes fit: all are full" POD_WRITER_SEEN "20"));
    expect_done();
}

static void pods_that_do_not_wait_are_not_told(void **state)
{
    (void)state;
    struct fixture_pod rows[] = {
        {.name = "gated", .gated = true},
        {.name = "terminating", .terminating = true},
        {.name = "bound", .node = "n1", .labels = PAIRS(NAME_LABEL_GANG_BARE, "g")}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_int(
            rows[i].name, -1,
            pod_writer_report_waiting(status, waiting(&rows[i], 7), &why, SEEN_MS + LONG_MS));
    drain();
    expect_int("nothing is written", 0, shell_count(twin, "PATCH", NULL));
    expect_done();
}

static void what_the_pod_says_already_is_not_written_again(void **state)
{
    (void)state;
    struct gang *g = WAITING(7, .name = "p");
    struct cluster_pod *cp = g->members.items[0];
    static const struct row {
        const char *sentence, *status, *reason, *message;
        int writes;
    } rows[] = {
        {"the same, from the leader before us", "False", "Unschedulable",
         "0/3 nodes fit: all are full" POD_WRITER_SEEN "2026-11-16T09:30:00Z)", 0},
        {"the same, from before there were times", "False", "Unschedulable",
         "0/3 nodes fit: all are full", 0},
        {"a longer one", "False", "Unschedulable", "0/3 nodes fit: all are full of pods", 1},
        {"another sentence", "False", "Unschedulable", "0/2 nodes fit: all are full", 1},
        {"another reason", "False", "WaitingForGang", "0/3 nodes fit: all are full", 1},
        {"no condition yet", NULL, NULL, NULL, 1},
    };
    int writes = 0;
    int64_t now = SEEN_MS;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cp->pod->scheduled = (struct pod_condition){.type = "PodScheduled",
                                                    .status = rows[i].status,
                                                    .reason = rows[i].reason,
                                                    .message = rows[i].message};
        why.class ++;
        expect_int(rows[i].sentence, -1,
                   pod_writer_report_waiting(status, g, &why, now += LONG_MS));
        writes += rows[i].writes;
        shell_await(twin, "PATCH", NULL, writes);
    }
    drain();
    expect_int("no more than those", writes, shell_count(twin, "PATCH", NULL));
    expect_int("the time of the change only where it is one", 1,
               shell_count(twin, "PATCH", "lastTransitionTime"));
    expect_done();
}

static void a_pod_that_changed_is_looked_at_again(void **state)
{
    (void)state;
    static const struct row {
        const char *sentence;
        int get_status;
        const char *get;
        int writes;
    } rows[] = {
        {"still waits: written with its new version", 200,
         "{\"metadata\":{\"uid\":\"u-p\",\"resourceVersion\":\"77\"},\"spec\":{}}", 2},
        {"was bound: a late False would be a lie", 200,
         "{\"metadata\":{\"uid\":\"u-p\",\"resourceVersion\":\"77\"},\"spec\":{\"nodeName\":\"n1\"}}",
         1},
        {"is another pod by now", 200,
         "{\"metadata\":{\"uid\":\"u-other\",\"resourceVersion\":\"77\"},\"spec\":{}}", 1},
        {"is gone", 404, "{}", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (i > 0)
            (void)setup(state);
        struct gang *g = WAITING(7, .name = "p");
        twin_script(twin, 409, "", "{}");
        twin_script(twin, rows[i].get_status, "", rows[i].get);
        (void)pod_writer_report_waiting(status, g, &why, SEEN_MS + LONG_MS);
        drain();
        expect_int(rows[i].sentence, rows[i].writes, shell_count(twin, "PATCH", NULL));
        expect_int(rows[i].sentence, rows[i].writes - 1,
                   shell_count(twin, "PATCH", "\"resourceVersion\":\"77\""));
        if (i + 1 < sizeof rows / sizeof rows[0])
            (void)teardown(state);
    }
    expect_done();
}

static void a_server_that_is_away_is_waited_for(void **state)
{
    (void)state;
    struct gang *g = WAITING(7, .name = "p");
    for (int i = 0; i < 6; i++)
        twin_fault(twin, TWIN_OTHER, TWIN_RESET);
    (void)pod_writer_report_waiting(status, g, &why, SEEN_MS + LONG_MS);
    drain();
    expect_int("six times in vain, then written", 7, shell_count(twin, "PATCH", NULL));
    expect_done();
}

static void a_server_that_says_no_for_one_pod_does_not_hold_up_the_others(void **state)
{
    (void)state;
    struct gang *p = WAITING(7, .name = "p"), *q = WAITING(7, .name = "q");
    for (int i = 0; i < 20; i++)
        twin_script(twin, i < 5 ? 500 : 200, "", "{}");
    (void)pod_writer_report_waiting(status, p, &why, SEEN_MS + LONG_MS);
    (void)pod_writer_report_waiting(status, q, &why, SEEN_MS + LONG_MS);
    drain();
    expect_int("the one is given up after a few times", 5, shell_count(twin, "PATCH", "/pods/p/"));
    expect_int("the other is told", 1, shell_count(twin, "PATCH", "/pods/q/"));
    expect_done();
}

static void what_finds_no_room_in_the_queue_is_said_later(void **state)
{
    (void)state;
    struct gang *g = WAITING(1, .name = "p");
    int64_t now = SEEN_MS + POD_WRITER_FIRST_MS;
    twin_fault(twin, TWIN_OTHER, TWIN_HANG);
    expect_int("the first", -1, pod_writer_report_waiting(status, g, &why, now));
    shell_await(twin, "PATCH", NULL, 1); /* and it hangs */
    for (int i = 0; i < POD_WRITER_QUEUE; i++) {
        why.class ++;
        expect_int("there is room", -1,
                   pod_writer_report_waiting(status, g, &why, now += POD_WRITER_AGAIN_MS));
    }
    why.class ++;
    now += POD_WRITER_AGAIN_MS;
    expect_int("full: not told, due again", now + POD_WRITER_AGAIN_MS,
               pod_writer_report_waiting(status, g, &why, now));
    pod_writer_stop(status, 0);
    status = NULL;
    expect_done();
}

static struct gang *gang_of(int members)
{
    for (int i = 0; i < members; i++) {
        AUTO_STRBUF name = {0};
        strbuf_addf(&name, "m-%02d", i);
        (void)cluster_put_pod(
            &c,
            fixture_make_pod(&(struct fixture_pod){
                .name = strbuf_str(&name),
                .labels = PAIRS("pod-group.scheduling.sigs.k8s.io/name", "g",
                                "pod-group.scheduling.sigs.k8s.io/min-available", "3")}),
            NULL);
    }
    struct gang *g = cluster_find_pod(&c, "d/m-00")->gang;
    expect_int("all are members", members, (int64_t)g->members.len);
    for (size_t i = 0; i < g->members.len; i++)
        pod_trace_see(&trace, g->members.items[i], (int64_t)SEEN_MS * 1000);
    why.sentence = "room for 2 of 3 pods";
    why.class = 7;
    return g;
}

static void each_member_has_an_event_for_each_class(void **state)
{
    (void)state;
    drain();
    start(100);
    struct gang *g = gang_of(3);
    (void)pod_writer_report_waiting(status, g, &why, SEEN_MS + LONG_MS);
    shell_await(twin, "POST", "/events", 3);
    shell_await(twin, "PATCH", "/pods/", 3);
    expect_int("the second member too", 1, shell_count(twin, "POST", "\"name\":\"m-01\""));
    why.class = 8;
    why.sentence = "room for 1 of 3 pods";
    (void)pod_writer_report_waiting(status, g, &why, SEEN_MS + 2 * LONG_MS);
    drain();
    expect_int("each member is told twice", 6, shell_count(twin, "PATCH", "/pods/"));
    expect_int("by as many Events", 6, shell_count(twin, "POST", "/events"));
    expect_int("which have a time of their own", 0, shell_count(twin, "POST", POD_WRITER_SEEN));
    expect_done();
}

/* More than POD_WRITER_MEMBERS: the last Events come one by one, with the slow refresh. */
static void the_events_of_a_large_gang_are_spread_out(void **state)
{
    (void)state;
    drain();
    start(100);
    struct gang *g = gang_of(POD_WRITER_MEMBERS + 2);
    int64_t now = SEEN_MS + LONG_MS;
    (void)pod_writer_report_waiting(status, g, &why, now);
    shell_await(twin, "POST", "/events", POD_WRITER_MEMBERS);
    expect_true("one more", pod_writer_refresh(status, g, &why, now));
    expect_true("and the last", pod_writer_refresh(status, g, &why, now));
    expect_true("all know", !pod_writer_refresh(status, g, &why, now));
    drain();
    expect_int("one Event for each", POD_WRITER_MEMBERS + 2, shell_count(twin, "POST", "/events"));
    expect_int("and one condition", POD_WRITER_MEMBERS + 2, shell_count(twin, "PATCH", "/pods/"));
    expect_done();
}

static void other_amounts_are_told_one_member_at_a_time(void **state)
{
    (void)state;
    drain();
    start(100);
    struct gang *g = gang_of(2);
    int64_t now = SEEN_MS + LONG_MS;
    expect_true("who was not told yet is not refreshed", !pod_writer_refresh(status, g, &why, now));
    (void)pod_writer_report_waiting(status, g, &why, now);
    shell_await(twin, "PATCH", "/pods/", 2);
    why.sentence = "room for 1 of 3 pods";
    expect_int("of the same class: nobody is due", -1,
               pod_writer_report_waiting(status, g, &why, now + POD_WRITER_AGAIN_MS));
    expect_true("too soon", !pod_writer_refresh(status, g, &why, now + POD_WRITER_AGAIN_MS - 1));
    now += POD_WRITER_AGAIN_MS;
    expect_true("one", pod_writer_refresh(status, g, &why, now));
    shell_await(twin, "PATCH", "room for 1 of 3 pods", 1);
    expect_true("the other", pod_writer_refresh(status, g, &why, now));
    expect_true("both know", !pod_writer_refresh(status, g, &why, now + LONG_MS));
    drain();
    expect_int("a condition each", 2, shell_count(twin, "PATCH", "room for 1 of 3 pods"));
    expect_int("and no other Event", 2, shell_count(twin, "POST", "/events"));
    expect_done();
}

/* Each write takes a token first; the rate itself is tested in test_rate_limit.c. */
static void each_write_waits_for_its_turn(void **state)
{
    (void)state;
    (void)pod_writer_report_waiting(status, WAITING(7, .name = "a"), &why, SEEN_MS + LONG_MS);
    (void)pod_writer_report_waiting(status, WAITING(7, .name = "b"), &why, SEEN_MS + LONG_MS);
    drain();
    expect_int("both are told in the end", 2, shell_count(twin, "PATCH", "/pods/"));
    expect_true("after asking whether Bindings wait", asked >= 2);
    expect_done();
}

enum kind { NOMINATED, SATISFIED, CPUSET, METADATA, POLICY, GROUP, KINDS };

static void write_kind(enum kind kind)
{
    static const struct policy policy = {.object = {.ns = "d", .name = "o", .uid = "u-o"}};
    static const struct pod_group group = {
        .ns = "d", .name = "o", .uid = "u-o", .api = POD_GROUP_X};
    static const struct progress now = {.phase = "Running"};
    struct label one = {.key = "k", .value = "v"};
    struct pod *p = fixture_make_pod(&(struct fixture_pod){.name = "p"});
    if (kind == NOMINATED)
        pod_writer_report_nominated(status, p, "n1");
    else if (kind == SATISFIED)
        pod_writer_record_satisfied(status, p, "d/g");
    else if (kind == CPUSET)
        pod_writer_write_cpuset(status, p, "{}");
    else if (kind == METADATA)
        expect_true("taken", pod_writer_write_metadata(status, p, &(struct labels){&one, 1}, NULL));
    else if (kind == POLICY)
        expect_true("taken", pod_writer_write_policy(status, &policy, "{\"a\":1}"));
    else
        pod_writer_report_group(status, &group, &now);
    pod_free(p);
}

static void each_kind_of_write_has_its_own_ways(void **state)
{
    static const char same[] = "{\"metadata\":{\"uid\":\"u-p\"},\"spec\":{}}";
    static const struct {
        const char *sentence, *path, *type, *text;
        bool at_once;
        int after_conflict, looks, after_500; /* writes, reads, writes */
    } rows[KINDS] = {
        [NOMINATED] = {"a nomination", "/api/v1/namespaces/d/pods/p/status?",
                       "strategic-merge-patch", "nominatedNodeName\":\"n1\"", true, 2, 1, 2},
        [SATISFIED] = {"a quorum", "/pods/p/status?", "strategic-merge-patch",
                       NAME_ANN_GANG_SATISFIED "\":\"d/g\"", false, 2, 1, 2},
        [CPUSET] = {"a cpuset", "/pods/p/status?", "strategic-merge-patch", NAME_ANN_CPUSET, false,
                    2, 1, 2},
        [METADATA] = {"metadata", "/pods/p/status?", "/merge-patch", "\"k\":\"v\"", false, 1, 0, 2},
        [POLICY] = {"a policy", "/namespaces/d/resourcepolicies/o/status?", "/merge-patch",
                    "{\"a\":1}", false, 1, 0, 2},
        [GROUP] = {"a PodGroup",
                   "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/d/podgroups/o/status?",
                   "/merge-patch", "\"phase\":\"Running\"", false, 1, 0, 1},
    };
    for (enum kind k = 0; k < KINDS; k++) {
        for (int conflict = 0; conflict < 2; conflict++) {
            (void)teardown(state);
            (void)setup(state);
            twin_script(twin, conflict ? 409 : 500, "", "{}");
            twin_script(twin, 200, "", same);
            twin_script(twin, 200, "", "{}");
            write_kind(k);
            drain();
            int writes = conflict ? rows[k].after_conflict : rows[k].after_500;
            expect_int(rows[k].sentence, writes, shell_count(twin, "PATCH", rows[k].path));
            expect_int(rows[k].sentence, writes, shell_count(twin, "PATCH", rows[k].type));
            expect_int(rows[k].sentence, writes, shell_count(twin, "PATCH", rows[k].text));
            expect_int(rows[k].sentence, conflict ? rows[k].looks : 0,
                       shell_count(twin, "GET", NULL));
            expect_int("waits for its turn", !rows[k].at_once, asked > 0);
        }
    }
    expect_done();
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    kube_http_global_init();
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_pod_is_told_after_a_second_and_again_when_the_class_changes),
        TEST(pods_that_do_not_wait_are_not_told),
        TEST(what_the_pod_says_already_is_not_written_again),
        TEST(a_pod_that_changed_is_looked_at_again),
        TEST(a_server_that_is_away_is_waited_for),
        TEST(a_server_that_says_no_for_one_pod_does_not_hold_up_the_others),
        TEST(what_finds_no_room_in_the_queue_is_said_later),
        TEST(each_member_has_an_event_for_each_class),
        TEST(the_events_of_a_large_gang_are_spread_out),
        TEST(other_amounts_are_told_one_member_at_a_time),
        TEST(each_write_waits_for_its_turn),
        TEST(each_kind_of_write_has_its_own_ways),
    };
#undef TEST
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return failed;
}

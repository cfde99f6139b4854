// SPDX-License-Identifier: Apache-2.0
/*
 * What a waiting pod is told, and when. Time is an argument; the writes go to the API server's twin. Events have no room here: they have tests of their own.
 */
#include "scheduler/binding/status.h"

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
static struct status *status;

static _Atomic int asked; /* how often somebody wanted to know whether Bindings wait */

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
    struct status_config sc = {.events = {.queue = queue, .qps = 1000}, .is_busy = is_busy};
    if (status_start(&status, config, &options, &sc, &err) < 0)
        fail_msg("%s", err.text);
}

static int setup(void **state)
{
    (void)state;
    asked = 0;
    twin = twin_start(NULL, false);
    config = twin_config(twin);
    cluster_init(&c, NAME_SCHEDULER);
    start(0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    status_stop(status, 0);
    cluster_deinit(&c);
    kube_config_free(config);
    twin_stop(twin);
    return 0;
}

/* Every write that was asked for has an answer. */
static void drain(void)
{
    status_stop(status, LONG_MS);
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
    cp->seen_us = (int64_t)SEEN_MS * 1000;
    cp->gang->why.sentence = mem_strdup("0/3 nodes fit: all are full");
    cp->gang->why.class = class;
    return cp->gang;
}
#define WAITING(class, ...) waiting(&(struct fixture_pod){__VA_ARGS__}, class)

static void a_pod_is_told_after_a_second_and_again_when_the_class_changes(void **state)
{
    (void)state;
    struct gang *g = WAITING(7, .name = "p");
    int64_t told = SEEN_MS + STATUS_FIRST_MS;
    expect_int("too early", told, status_tell_waiting(status, g, told - 1));
    expect_int("now", -1, status_tell_waiting(status, g, told));
    expect_int("it knows", -1, status_tell_waiting(status, g, told + 1));
    expect_int("and still does much later", -1, status_tell_waiting(status, g, told + LONG_MS));
    g->why.class = 8;
    int64_t again = told + STATUS_AGAIN_MS;
    expect_int("another class, too soon", again, status_tell_waiting(status, g, again - 1));
    g->why.for_gang = true;
    expect_int("now again", -1, status_tell_waiting(status, g, again));
    drain();
    expect_int("two writes", 2, shell_count(twin, "PATCH", NULL));
    expect_int("to the status of the pod", 2,
               shell_count(twin, "PATCH", "/namespaces/d/pods/p/status"));
    expect_int("only of this very pod", 2, shell_count(twin, "PATCH", "\"uid\":\"u-p\""));
    expect_int("room is missing", 1, shell_count(twin, "PATCH", "\"reason\":\"Unschedulable\""));
    expect_int("pods are missing", 1, shell_count(twin, "PATCH", "\"reason\":\"WaitingForGang\""));
    expect_int("in our words", 2,
               shell_count(twin, "PATCH", "\"message\":\"0/3 nodes fit: all are full\""));
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
        expect_int(rows[i].name, -1,
                   status_tell_waiting(status, waiting(&rows[i], 7), SEEN_MS + LONG_MS));
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
         "0/3 nodes fit: all are full", 0},
        {"another sentence", "False", "Unschedulable", "0/2 nodes fit: all are full", 1},
        {"another reason", "False", "WaitingForGang", "0/3 nodes fit: all are full", 1},
        {"no condition yet", NULL, NULL, NULL, 1},
    };
    int writes = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cp->pod->scheduled = (struct pod_condition){.type = "PodScheduled",
                                                    .status = rows[i].status,
                                                    .reason = rows[i].reason,
                                                    .message = rows[i].message};
        cp->told_ms = 0;
        cp->told_class = 0;
        expect_int(rows[i].sentence, -1, status_tell_waiting(status, g, SEEN_MS + LONG_MS));
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
        (void)status_tell_waiting(status, g, SEEN_MS + LONG_MS);
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
    (void)status_tell_waiting(status, g, SEEN_MS + LONG_MS);
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
    (void)status_tell_waiting(status, p, SEEN_MS + LONG_MS);
    (void)status_tell_waiting(status, q, SEEN_MS + LONG_MS);
    drain();
    expect_int("the one is given up after a few times", 5, shell_count(twin, "PATCH", "/pods/p/"));
    expect_int("the other is told", 1, shell_count(twin, "PATCH", "/pods/q/"));
    expect_done();
}

static void what_finds_no_room_in_the_queue_is_said_later(void **state)
{
    (void)state;
    struct gang *g = WAITING(1, .name = "p");
    int64_t now = SEEN_MS + STATUS_FIRST_MS;
    twin_fault(twin, TWIN_OTHER, TWIN_HANG);
    expect_int("the first", -1, status_tell_waiting(status, g, now));
    shell_await(twin, "PATCH", NULL, 1); /* and it hangs */
    for (int i = 0; i < STATUS_QUEUE; i++) {
        g->why.class ++;
        expect_int("there is room", -1, status_tell_waiting(status, g, now += STATUS_AGAIN_MS));
    }
    g->why.class ++;
    now += STATUS_AGAIN_MS;
    expect_int("full: not told, due again", now + STATUS_AGAIN_MS,
               status_tell_waiting(status, g, now));
    status_stop(status, 0);
    status = NULL;
    expect_done();
}

static void a_gang_has_one_event_for_each_class(void **state)
{
    (void)state;
    drain();
    start(100);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"a", "b", "c"};
        (void)cluster_put_pod(
            &c,
            fixture_make_pod(&(struct fixture_pod){
                .name = names[i],
                .labels = PAIRS("pod-group.scheduling.sigs.k8s.io/name", "g",
                                "pod-group.scheduling.sigs.k8s.io/min-available", "3")}),
            NULL);
    }
    struct gang *g = cluster_find_pod(&c, "d/a")->gang;
    expect_int("three members", 3, (int64_t)g->members.len);
    g->why.sentence = mem_strdup("room for 2 of 3 pods");
    g->why.class = 7;
    for (size_t i = 0; i < g->members.len; i++)
        g->members.items[i]->seen_us = (int64_t)SEEN_MS * 1000;
    (void)status_tell_waiting(status, g, SEEN_MS + LONG_MS);
    shell_await(twin, "POST", "/events", 1);
    shell_await(twin, "PATCH", "/pods/", 3);
    g->why.class = 8;
    free(g->why.sentence);
    g->why.sentence = mem_strdup("room for 1 of 3 pods");
    (void)status_tell_waiting(status, g, SEEN_MS + 2 * LONG_MS);
    drain();
    expect_int("each member is told twice", 6, shell_count(twin, "PATCH", "/pods/"));
    expect_int("two Events in all", 2, shell_count(twin, "POST", "/events"));
    expect_done();
}

/* How many that are in a second is pace's own test: here, that each write asks it first. */
static void each_write_waits_for_its_turn(void **state)
{
    (void)state;
    (void)status_tell_waiting(status, WAITING(7, .name = "a"), SEEN_MS + LONG_MS);
    (void)status_tell_waiting(status, WAITING(7, .name = "b"), SEEN_MS + LONG_MS);
    drain();
    expect_int("both are told in the end", 2, shell_count(twin, "PATCH", "/pods/"));
    expect_true("after asking whether Bindings wait", asked >= 2);
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
        TEST(a_gang_has_one_event_for_each_class),
        TEST(each_write_waits_for_its_turn),
    };
#undef TEST
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return failed;
}

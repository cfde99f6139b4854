// SPDX-License-Identifier: Apache-2.0
/*
 * Gangs whose Bindings are held back: none goes before the quorum may go, and one that cannot go
 * takes the gang with it only if the quorum needs it.
 */
#include "scheduler/binding/gang_bind.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/kube/http.h"
#include "lib/model/names.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/sched_loop_kit.h"
#include "test/unit/scheduler/storage_kit.h"

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

#define TWO PAIRS(NAME_LABEL_GANG_NAME, "g", NAME_LABEL_GANG_MIN, "2")
#define USES_CLAIM "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c\"}}]"
#define SEEN_CLAIM(version, annotations, more)                                            \
    "{'kind':'PersistentVolumeClaim','metadata':{'name':'c','namespace':'d','uid':'u-c'," \
    "'resourceVersion':'" version "','annotations':{" annotations                         \
    "}},'spec':{'storageClassName':'s','resources':{'requests':{'storage':'1Gi'}}" more "}}"
#define SELECTED "'volume.kubernetes.io/selected-node':'n'"
#define SEEN_BOUND \
    SEEN_CLAIM("8", SELECTED ",'pv.kubernetes.io/bind-completed':'yes'", ",'volumeName':'v'")
#define SEEN_VOLUME                                                                         \
    "{'kind':'PersistentVolume','metadata':{'name':'v','uid':'u-v','resourceVersion':'9'}," \
    "'spec':{'storageClassName':'s','capacity':{'storage':'1Gi'},"                          \
    "'claimRef':{'namespace':'d','name':'c','uid':'u-c'}},'status':{'phase':'Bound'}}"

static void await(const char *what, bool (*is_so)(void))
{
    for (int64_t end = clock_mono_ms() + SHELL_WAIT_MS; !is_so(); loop_once(k.loop, 5))
        if (clock_mono_ms() >= end)
            fail_msg("never: %s", what);
}

static bool is_written(void)
{
    return volumes_waiting(k.volumes) == 1;
}

static bool is_over(void)
{
    return gang_bind_pending(k.sched.gang_bind) == 0;
}

static bool is_taken_back(void)
{
    return sched_loop_kit_find(&k, "d/b")->state == CLUSTER_PENDING;
}

static bool a_is_taken_back(void)
{
    return sched_loop_kit_find(&k, "d/a")->state == CLUSTER_PENDING;
}

static int bindings(void)
{
    return shell_count(k.twin, "POST", "/binding?timeout");
}

/* Pod a waits for the claim c, b and perhaps more go as they are. */
static void put_gang(bool third)
{
    RESET(&k.intake, INTAKE_NODES, NODE(.name = "n"));
    storage_kit_send(&k.intake, LATE_CLASS);
    storage_kit_send(&k.intake, SEEN_CLAIM("5", "", ""));
    sched_loop_kit_start(&k);
    twin_script_for(k.twin, "/persistentvolumeclaims/", 200, "",
                    "{\"metadata\":{\"uid\":\"u-c\",\"resourceVersion\":\"5\"},\"spec\":{}}");
    twin_script_for(k.twin, "/persistentvolumeclaims/", 200, "",
                    "{\"metadata\":{\"uid\":\"u-c\",\"resourceVersion\":\"6\",\"annotations\":"
                    "{\"volume.kubernetes.io/selected-node\":\"n\"}},\"spec\":{}}");
    SEND(&k.intake, INTAKE_PODS, REFLECTOR_PUT,
         POD(.name = "a", .labels = TWO, .spec = USES_CLAIM));
    if (third)
        SEND(&k.intake, INTAKE_PODS, REFLECTOR_PUT, POD(.name = "c", .labels = TWO));
    SEND(&k.intake, INTAKE_PODS, REFLECTOR_PUT, POD(.name = "b", .labels = TWO));
}

static void begin(void)
{
    put_gang(false);
    await("the node is written into the claim", is_written);
    sched_loop_kit_settle(&k);
    expect_int("assumed", CLUSTER_ASSUMED, sched_loop_kit_find(&k, "d/b")->state);
    expect_int("held back", 1, (int64_t)gang_bind_pending(k.sched.gang_bind));
    expect_int("nobody is bound before the claim is", 0, bindings());
}

static void claims_are_bound_first(void **state)
{
    (void)state;
    begin();
    storage_kit_send(&k.intake, SEEN_BOUND);
    sched_loop_kit_settle(&k);
    expect_int("nor before its volume is seen", 0, bindings());
    storage_kit_send(&k.intake, SEEN_VOLUME);
    sched_loop_kit_await(&k, "POST", "/pods/a/binding?timeout", 1);
    sched_loop_kit_await(&k, "POST", "/pods/b/binding?timeout", 1);
    expect_int("nothing is held back", 0, (int64_t)gang_bind_pending(k.sched.gang_bind));
    expect_done();
}

static void a_claim_that_cannot_be_bound_takes_the_gang_back(void **state)
{
    (void)state;
    begin();
    storage_kit_send(&k.intake, SEEN_CLAIM("7", "", "")); /* the node was given back */
    await("the others are taken back", is_taken_back);
    struct cluster_pod *b = sched_loop_kit_find(&k, "d/b");
    expect_int("all of them", CLUSTER_PENDING, sched_loop_kit_find(&k, "d/a")->state);
    expect_int("nobody was bound", 0, bindings());
    expect_int("nothing is held back", 0, (int64_t)gang_bind_pending(k.sched.gang_bind));
    expect_int("the room is free", 0, (int64_t)cluster_find_node(&k.sched.cluster, "n")->used.pods);
    expect_int("it was one attempt", 1, sched_loop_kit_entry(&k, b->gang)->attempts);
    expect_int("after which it waits", GANG_BACKOFF, queue_state(&k.sched.queue, b->gang));
    expect_done();
}

static void beyond_the_quorum_claims_keep_nobody_waiting(void **state)
{
    (void)state;
    put_gang(true);
    sched_loop_kit_await(&k, "POST", "/pods/b/binding?timeout", 1);
    sched_loop_kit_await(&k, "POST", "/pods/c/binding?timeout", 1);
    await("the node is written into the claim", is_written);
    expect_int("nothing is held back", 0, (int64_t)gang_bind_pending(k.sched.gang_bind));
    expect_int("the third has its place", CLUSTER_ASSUMED, sched_loop_kit_find(&k, "d/a")->state);
    expect_int("but no Binding yet", 2, bindings());
    storage_kit_send(&k.intake, SEEN_BOUND);
    storage_kit_send(&k.intake, SEEN_VOLUME);
    sched_loop_kit_await(&k, "POST", "/pods/a/binding?timeout", 1);
    expect_int("it followed alone", 3, bindings());
    expect_done();
}

static void beyond_the_quorum_a_claim_fails_alone(void **state)
{
    (void)state;
    put_gang(true);
    sched_loop_kit_await(&k, "POST", "/binding?timeout", 2);
    await("the node is written into the claim", is_written);
    storage_kit_send(&k.intake,
                     "{'kind':'PersistentVolumeClaim','metadata':{'name':'c','namespace':'d','uid':"
                     "'another'},'spec':{'storageClassName':'s','resources':{'requests':{'storage':"
                     "'1Gi'}}}}");
    sched_loop_kit_await(&k, "POST", "claim d/c is gone", 1);
    expect_true("the others are where they were", sched_loop_kit_find(&k, "d/b")->on != NULL &&
                                                      sched_loop_kit_find(&k, "d/c")->on != NULL);
    expect_done();
}

static bool is_expired(void)
{
    return a_is_taken_back() && is_taken_back() && is_over();
}

static void claims_that_take_too_long_take_the_gang_back(void **state)
{
    (void)state;
    struct pod_group *group = fixture_make_group("g", 2, false);
    group->schedule_timeout_s = 1;
    RESET(&k.intake, INTAKE_POD_GROUPS, group);
    begin();
    await("the time is over", is_expired);
    expect_int("nobody was bound", 0, bindings());
    expect_int("the room is free", 0, (int64_t)cluster_find_node(&k.sched.cluster, "n")->used.pods);
    sched_loop_kit_await(
        &k, "POST", "its claims were not bound within 1 s (scheduleTimeoutSeconds of its gang)", 1);
    expect_int("who had no part in it is told nothing", 0,
               shell_count(k.twin, "POST", "claims of its gang"));
    expect_done();
}

static void a_member_that_goes_takes_the_gang_back(void **state)
{
    (void)state;
    begin();
    SEND(&k.intake, INTAKE_PODS, REFLECTOR_DELETE, POD(.name = "b", .labels = TWO));
    await("it is dissolved", is_over);
    sched_loop_kit_settle(&k);
    expect_int("below its quorum it holds nothing", CLUSTER_PENDING,
               sched_loop_kit_find(&k, "d/a")->state);
    expect_int("nobody was bound", 0, bindings());
    expect_done();
}

/* ---- dry runs ---- */

static void put_three(int refused)
{
    sched_loop_kit_dryrun(&k);
    RESET(&k.intake, INTAKE_NODES, NODE(.name = "n"));
    sched_loop_kit_start(&k);
    for (int i = 0; i < refused; i++)
        twin_script(k.twin, 403, "", "{\"message\":\"not here\"}");
    RESET(&k.intake, INTAKE_PODS, POD(.name = "a", .labels = TWO), POD(.name = "b", .labels = TWO),
          POD(.name = "c", .labels = TWO));
    sched_loop_kit_settle(&k);
}

/* How many requests were made before the first real Binding. */
static int dry_before_real(void)
{
    int dry = 0;
    for (size_t i = 0;; i++) {
        AUTO_STRBUF request = {0};
        if (!twin_request(k.twin, i, &request))
            return dry;
        bool is_dry = strstr(strbuf_str(&request), "dryRun=All") != NULL;
        if (!is_dry && strstr(strbuf_str(&request), "/binding?timeout") != NULL)
            dry = 0; /* from the last to the first: only what is before all of these counts */
        dry += is_dry;
    }
}

static void all_are_asked_before_the_first_is_bound(void **state)
{
    (void)state;
    put_three(0);
    sched_loop_kit_await(&k, "POST", "/binding?timeout", 3);
    expect_int("asked", 3, shell_count(k.twin, "POST", "/binding?dryRun=All"));
    expect_int("all before", 3, dry_before_real());
    expect_done();
}

static void who_would_be_refused_takes_the_gang_back(void **state)
{
    (void)state;
    put_three(2);
    await("it is dissolved", is_over);
    static const char *const pods[] = {"d/a", "d/b", "d/c"};
    sched_loop_kit_settle(&k);
    for (size_t i = 0; i < 3; i++)
        expect_int(pods[i], CLUSTER_PENDING, sched_loop_kit_find(&k, pods[i])->state);
    expect_int("nobody was bound", 0, bindings());
    expect_done();
}

static void beyond_the_quorum_a_refusal_is_its_own(void **state)
{
    (void)state;
    put_three(1);
    sched_loop_kit_await(&k, "POST", "/binding?timeout", 2);
    await("it is over", is_over);
    sched_loop_kit_run(&k, 50);
    expect_int("the two others", 2, bindings());
    expect_done();
}

static void a_server_that_does_not_answer_refuses_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        twin_fault(k.twin, TWIN_OTHER, TWIN_500);
    put_three(0);
    sched_loop_kit_await(&k, "POST", "/binding?timeout", 3);
    expect_int("asked", 3, shell_count(k.twin, "POST", "/binding?dryRun=All"));
    expect_done();
}

/* ---- after a crash ---- */

static void a_gang_that_was_bound_in_part_comes_first(void **state)
{
    (void)state;
    RESET(&k.intake, INTAKE_NODES, NODE(.name = "n", .cpu_milli = 2000));
    RESET(&k.intake, INTAKE_PODS,
          POD(.name = "important", .priority = 9, .c = {{.cpu_milli = 1000}}),
          POD(.name = "a", .node = "n", .labels = TWO, .created_s = 5, .c = {{.cpu_milli = 1000}}),
          POD(.name = "b", .labels = TWO, .created_s = 5, .c = {{.cpu_milli = 1000}}));
    sched_loop_kit_start(&k);
    sched_loop_kit_settle(&k);
    expect_int("its last member has the room", CLUSTER_ASSUMED,
               sched_loop_kit_find(&k, "d/b")->state);
    expect_int("not who is more important", CLUSTER_PENDING,
               sched_loop_kit_find(&k, "d/important")->state);
    expect_done();
}

static void gangs_that_go_as_one_are_finished_as_one(void **state)
{
    (void)state;
    static const char list[] = "[\"d/g\",\"d/h\"]";
    const char *const *one = PAIRS(NAME_LABEL_GANG_NAME, "g", NAME_LABEL_GANG_MIN, "1");
    const char *const *other = PAIRS(NAME_LABEL_GANG_NAME, "h", NAME_LABEL_GANG_MIN, "1");
    const char *const *both = PAIRS(NAME_ANN_GANG_GROUPS, list);
    RESET(&k.intake, INTAKE_NODES, NODE(.name = "n", .cpu_milli = 2000));
    RESET(&k.intake, INTAKE_PODS,
          POD(.name = "important", .priority = 9, .c = {{.cpu_milli = 1000}}),
          POD(.name = "a", .node = "n", .labels = one, .annotations = both,
              .c = {{.cpu_milli = 1000}}),
          POD(.name = "b", .labels = other, .annotations = both, .c = {{.cpu_milli = 1000}}));
    sched_loop_kit_start(&k);
    sched_loop_kit_settle(&k);
    expect_int("the second gang has the room", CLUSTER_ASSUMED,
               sched_loop_kit_find(&k, "d/b")->state);
    expect_done();
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    kube_http_global_init();
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(claims_are_bound_first),
        TEST(a_claim_that_cannot_be_bound_takes_the_gang_back),
        TEST(beyond_the_quorum_claims_keep_nobody_waiting),
        TEST(beyond_the_quorum_a_claim_fails_alone),
        TEST(claims_that_take_too_long_take_the_gang_back),
        TEST(a_member_that_goes_takes_the_gang_back),
        TEST(all_are_asked_before_the_first_is_bound),
        TEST(who_would_be_refused_takes_the_gang_back),
        TEST(beyond_the_quorum_a_refusal_is_its_own),
        TEST(a_server_that_does_not_answer_refuses_nothing),
        TEST(a_gang_that_was_bound_in_part_comes_first),
        TEST(gangs_that_go_as_one_are_finished_as_one),
    };
#undef TEST
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return failed;
}

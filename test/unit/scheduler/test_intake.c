// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/failures.h"
#include "scheduler/intake.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/kube/http.h"
#include "lib/model/names.h"
#include "scheduler/cache/gangs.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/kube/decode_kit.h"
#include "test/unit/scheduler/fixture.h"
#include "test/unit/scheduler/shell_kit.h"

static struct loop *loop;
static struct cluster c;
static struct queue q;
static struct pod_trace trace;
static struct failures failures;
static struct intake in;
static int changes;

static void changed(void *arg)
{
    (void)arg;
    changes++;
}

static int setup(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    changes = 0;
    cluster_init(&c, NAME_SCHEDULER);
    queue_init(&q, &c);
    pod_trace_init(&trace);
    failures_init(&failures);
    if (loop_new(&loop, &err) < 0 ||
        intake_init(&in, loop, &c, &q, &trace, &failures, changed, NULL, &err) < 0)
        fail_msg("%s", err.text);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    intake_deinit(&in);
    loop_free(loop);
    queue_deinit(&q);
    pod_trace_deinit(&trace);
    failures_deinit(&failures);
    cluster_deinit(&c);
    return 0;
}

#define GANG(min) PAIRS(NAME_LABEL_GANG_NAME, "g", NAME_LABEL_GANG_MIN, min)

static void it_is_synced_when_every_collection_was_listed(void **state)
{
    (void)state;
    for (enum intake_kind k = INTAKE_NODES; k < INTAKE_KINDS; k++) {
        expect_true("not yet", !intake_is_synced(&in));
        RESET_EMPTY(&in, k);
    }
    expect_true("now", intake_is_synced(&in));
    expect_int("each message is a change", INTAKE_KINDS, changes);
    expect_done();
}

static void a_change_alone_is_no_list(void **state)
{
    (void)state;
    for (enum intake_kind k = INTAKE_PODS; k < INTAKE_KINDS; k++)
        RESET_EMPTY(&in, k);
    SEND(&in, INTAKE_NODES, REFLECTOR_PUT, NODE(.name = "n1"));
    expect_true("nodes were not listed", !intake_is_synced(&in));
    expect_done();
}

static void a_version_that_is_not_kept_is_not_looked_at_again(void **state)
{
    (void)state;
    SEND(&in, INTAKE_NODES, REFLECTOR_PUT, NODE(.name = "n1"));
    SEND(&in, INTAKE_PODS, REFLECTOR_PUT, POD(.name = "p"));
    struct cluster_pod *p = cluster_find_pod(&c, "d/p");
    int64_t seen_us = pod_trace_seen_us(&trace, p);
    expect_true("seen", seen_us > 0);
    (void)cluster_assume(&c, p, cluster_find_node(&c, "n1"), &(struct grant){0});
    SEND(&in, INTAKE_PODS, REFLECTOR_PUT, POD(.name = "p", .unreadable = true));
    expect_true("what is assumed stays", p->pod->unreadable == NULL);
    expect_int("and was seen when it was", seen_us, pod_trace_seen_us(&trace, p));
    expect_done();
}

static void a_first_list_may_come_in_parts(void **state)
{
    (void)state;
    for (enum intake_kind k = INTAKE_NODES; k < INTAKE_KINDS; k++)
        if (k != INTAKE_PODS)
            RESET_EMPTY(&in, k);
    SEND(&in, INTAKE_PODS, REFLECTOR_PART, POD(.name = "a", .node = "n1"));
    SEND(&in, INTAKE_PODS, REFLECTOR_PART, POD(.name = "b"));
    expect_true("a part is no list", !intake_is_synced(&in));
    SEND(&in, INTAKE_PODS, REFLECTOR_LISTED, POD(.name = "c"));
    expect_true("the last one makes it one", intake_is_synced(&in));
    expect_int("all are there", 3, (int64_t)map_count(&c.pods));
    RESET(&in, INTAKE_PODS, POD(.name = "b"));
    expect_int("a later list holds alone", 1, (int64_t)map_count(&c.pods));
    expect_done();
}

static void what_a_broken_list_brought_is_dropped_by_the_next(void **state)
{
    (void)state;
    SEND(&in, INTAKE_PODS, REFLECTOR_PART, POD(.name = "a", .node = "n1"));
    RESET(&in, INTAKE_PODS, POD(.name = "b"));
    expect_true("not in the whole list", cluster_find_pod(&c, "d/a") == NULL);
    expect_true("in it", cluster_find_pod(&c, "d/b") != NULL);
    expect_done();
}

static void a_list_drops_what_is_not_in_it(void **state)
{
    (void)state;
    RESET(&in, INTAKE_NODES, NODE(.name = "n1"), NODE(.name = "n2"));
    RESET(&in, INTAKE_PODS, POD(.name = "a", .node = "n1"), POD(.name = "b", .node = "n2"));
    struct gang *parked = NULL;
    SEND(&in, INTAKE_PODS, REFLECTOR_PUT, POD(.name = "waits"));
    while ((parked = queue_pop(&q, 0)) == NULL)
        ;
    queue_wait(&q, parked, EVENT_POD_GONE, 0);

    RESET(&in, INTAKE_PODS, POD(.name = "b", .node = "n2"), POD(.name = "waits"));
    expect_true("gone", cluster_find_pod(&c, "d/a") == NULL);
    expect_true("stays", cluster_find_pod(&c, "d/b") != NULL);
    expect_int("its room is free", 0, (int64_t)cluster_find_node(&c, "n1")->pods.len);
    expect_int("and whoever waits for room hears of it", GANG_ACTIVE, queue_state(&q, parked));

    RESET(&in, INTAKE_NODES, NODE(.name = "n1"));
    expect_true("a node that is gone but has a pod is a name only",
                cluster_find_node(&c, "n2")->node == NULL);
    RESET(&in, INTAKE_PODS, POD(.name = "c"));
    expect_true("and goes with the pod", cluster_find_node(&c, "n2") == NULL);
    expect_int("one pod is left", 1, (int64_t)map_count(&c.pods));
    expect_int("one gang as well", 1, (int64_t)map_count(&c.gangs));
    RESET_EMPTY(&in, INTAKE_PODS);
    expect_int("none", 0, (int64_t)map_count(&c.gangs));
    expect_int("the queue let go of it", 0, (int64_t)queue_len(&q, GANG_ACTIVE));
    expect_done();
}

static void a_pod_made_again_between_two_lists_is_another_pod(void **state)
{
    (void)state;
    RESET(&in, INTAKE_NODES, NODE(.name = "n1"));
    RESET(&in, INTAKE_PODS, POD(.name = "a", .uid = "old"));
    struct grant none = {0};
    cluster_assume(&c, cluster_find_pod(&c, "d/a"), cluster_find_node(&c, "n1"), &none);
    RESET(&in, INTAKE_PODS, POD(.name = "a", .uid = "new"));
    expect_int("nothing was assumed for the new one", CLUSTER_PENDING,
               cluster_find_pod(&c, "d/a")->state);
    expect_int("its room is free", 0, (int64_t)cluster_find_node(&c, "n1")->pods.len);
    SEND(&in, INTAKE_PODS, REFLECTOR_DELETE, POD(.name = "a", .uid = "old"));
    expect_true("a late DELETE of the old one does nothing", cluster_find_pod(&c, "d/a") != NULL);
    SEND(&in, INTAKE_PODS, REFLECTOR_DELETE, POD(.name = "a", .uid = "new"));
    expect_true("its own does", cluster_find_pod(&c, "d/a") == NULL);
    expect_done();
}

static void an_assumption_outlives_a_list_that_does_not_know_yet(void **state)
{
    (void)state;
    RESET(&in, INTAKE_NODES, NODE(.name = "n1"));
    RESET(&in, INTAKE_PODS, POD(.name = "a"));
    struct grant none = {0};
    cluster_assume(&c, cluster_find_pod(&c, "d/a"), cluster_find_node(&c, "n1"), &none);
    RESET(&in, INTAKE_PODS, POD(.name = "a"));
    expect_int("still assumed", CLUSTER_ASSUMED, cluster_find_pod(&c, "d/a")->state);
    RESET(&in, INTAKE_PODS, POD(.name = "a", .node = "n1"));
    expect_int("confirmed", CLUSTER_BOUND, cluster_find_pod(&c, "d/a")->state);
    expect_done();
}

static void the_first_sight_of_a_pod_is_kept(void **state)
{
    (void)state;
    SEND(&in, INTAKE_PODS, REFLECTOR_PUT, POD(.name = "a"));
    int64_t seen_us = pod_trace_seen_us(&trace, cluster_find_pod(&c, "d/a"));
    expect_true("noted", seen_us > 0);
    SEND(&in, INTAKE_PODS, REFLECTOR_PUT, POD(.name = "a", .priority = 5));
    expect_int("and kept", seen_us, pod_trace_seen_us(&trace, cluster_find_pod(&c, "d/a")));
    expect_done();
}

static void finished_pods_count_for_their_gang_only(void **state)
{
    (void)state;
    RESET(&in, INTAKE_PODS, POD(.name = "a", .phase = "Succeeded", .labels = GANG("2")),
          POD(.name = "b", .labels = GANG("2")), POD(.name = "alone", .phase = "Succeeded"),
          POD(.name = "f", .phase = "Failed", .labels = GANG("2")));
    struct gang *g = map_get(&c.gangs, "gang d/g");
    assert_non_null(g);
    expect_int("the one that succeeded and the one that waits", 2, gangs_count_existing(g));
    expect_true("others are forgotten", cluster_find_pod(&c, "d/alone") == NULL);
    expect_true("failed ones too", cluster_find_pod(&c, "d/f") == NULL);
    expect_done();
}

static void each_api_group_of_podgroups_has_its_own_list(void **state)
{
    (void)state;
    /* The object does not say which: the watch that it came from does. */
    RESET(&in, INTAKE_POD_GROUPS, fixture_make_group("g", 2, true));
    RESET(&in, INTAKE_POD_GROUPS_X, fixture_make_group("g", 3, false));
    RESET(&in, INTAKE_PODS,
          POD(.name = "a", .labels = PAIRS("pod-group.scheduling.sigs.k8s.io", "g")));
    struct gang *g = map_get(&c.gangs, "gang d/g");
    assert_non_null(g);
    expect_int("the one of sigs wins", 2, g->min_available);
    RESET_EMPTY(&in, INTAKE_POD_GROUPS);
    expect_int("the other one holds where it goes", 3, g->min_available);
    SEND(&in, INTAKE_POD_GROUPS_X, REFLECTOR_DELETE, fixture_make_group("g", 3, true));
    expect_int("none", 0, g->min_available);
    expect_done();
}

static struct object *namespace_of(const char *text)
{
    struct object *o = NULL;
    AUTO_JSON *doc = decode_kit_parse(text);
    if (decode_namespace(json_root(doc), &o, NULL) < 0)
        fail_msg("%s", text);
    return o;
}

static struct object *grant_of(const char *text)
{
    struct pvc *o = NULL;
    AUTO_JSON *doc = decode_kit_parse(text);
    if (decode_pvc(json_root(doc), &o, NULL) < 0)
        fail_msg("%s", text);
    return &o->object;
}

static void small_objects_go_to_their_stores(void **state)
{
    (void)state;
    struct gang *parked = NULL;
    SEND(&in, INTAKE_PODS, REFLECTOR_PUT, POD(.name = "waits"));
    while ((parked = queue_pop(&q, 0)) == NULL)
        ;
    queue_wait(&q, parked, EVENT_VOLUME, 0);
    RESET(&in, INTAKE_NAMESPACES, namespace_of("{'metadata':{'name':'a','labels':{'x':'1'}}}"),
          namespace_of("{'metadata':{'name':'b'}}"));
    expect_str("a namespace", "1", labels_get(api_objects_namespace_labels(c.objects, "a"), "x"));
    expect_int("which helps nobody who waits for a volume", GANG_PARKED, queue_state(&q, parked));
    SEND(&in, INTAKE_CLAIMS, REFLECTOR_PUT,
         grant_of("{'metadata':{'name':'c','namespace':'d','uid':'u'}}"));
    expect_true("a claim", api_objects_find_pvc(c.objects, "d", "c") != NULL);
    expect_int("which does", GANG_ACTIVE, queue_state(&q, parked));
    RESET(&in, INTAKE_NAMESPACES, namespace_of("{'metadata':{'name':'b'}}"));
    expect_true("a list drops what is not in it",
                api_objects_namespace_labels(c.objects, "a") == NULL);
    expect_true("and nothing of other kinds", api_objects_find_pvc(c.objects, "d", "c") != NULL);
    SEND(&in, INTAKE_CLAIMS, REFLECTOR_DELETE,
         grant_of("{'metadata':{'name':'c','namespace':'d','uid':'older'}}"));
    expect_true("a late DELETE", api_objects_find_pvc(c.objects, "d", "c") != NULL);
    SEND(&in, INTAKE_CLAIMS, REFLECTOR_DELETE,
         grant_of("{'metadata':{'name':'c','namespace':'d','uid':'u'}}"));
    expect_true("gone", api_objects_find_pvc(c.objects, "d", "c") == NULL);
    expect_done();
}

static void await(bool (*is)(const char *key), const char *key)
{
    for (int64_t end_ms = clock_mono_ms() + SHELL_WAIT_MS; !is(key); loop_once(loop, 20))
        if (clock_mono_ms() >= end_ms)
            fail_msg("not in time: %s", key);
}

static bool is_known(const char *key)
{
    return cluster_find_pod(&c, key) != NULL;
}

static bool is_gone(const char *key)
{
    return !is_known(key);
}

static bool is_synced(const char *what)
{
    (void)what;
    return intake_is_synced(&in);
}

static void from_the_api_server_to_the_model(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct twin *twin = twin_start(NULL, false);
    struct kube_config *kube = twin_config(twin);
    struct kube_options options = twin_options();
    /* Lists of the other kinds; a watch that gets one of them says so and lists again. */
    for (int i = 0; i < 512; i++)
        twin_script(twin, 200, "", "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
    twin_put(twin, "plain", NULL);
    twin_put(twin, "huge", "\"spec\":{\"nodeName\":\"n1\",\"overhead\":{\"cpu\":\"1e30\"}}");
    twin_put(twin, "never", "\"spec\":[]");
    if (intake_start(&in, kube, &options, &err) < 0)
        fail_msg("%s", err.text);
    await(is_synced, "each collection was listed");
    expect_true("Failed pods are not even asked for",
                shell_count(twin, "GET", "fieldSelector=status.phase%21%3DFailed") > 0);
    expect_true("a pod of the list", is_known("ns/plain"));
    expect_true("of any size", is_known("ns/huge"));
    expect_true("one that cannot be read is not", !is_known("ns/never"));
    AUTO_STRBUF text = {0};
    metrics_render(&text);
    expect_true("and is counted",
                strstr(strbuf_str(&text), "\ncosched_scheduler_unreadable_pods_total 1\n") != NULL);
    twin_put(twin, "plain", "\"spec\":[]");
    twin_put(twin, "new", NULL);
    await(is_known, "ns/new");
    expect_true("a version that cannot be read: the last good one stays", is_known("ns/plain"));
    twin_delete(twin, "huge");
    await(is_gone, "ns/huge");
    expect_true("its node goes with it", cluster_find_node(&c, "n1") == NULL);
    intake_deinit(&in);
    in.mailbox = NULL;
    kube_config_free(kube);
    twin_stop(twin);
    expect_done();
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    kube_http_global_init();
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(it_is_synced_when_every_collection_was_listed),
        TEST(a_change_alone_is_no_list),
        TEST(a_version_that_is_not_kept_is_not_looked_at_again),
        TEST(a_first_list_may_come_in_parts),
        TEST(what_a_broken_list_brought_is_dropped_by_the_next),
        TEST(a_list_drops_what_is_not_in_it),
        TEST(a_pod_made_again_between_two_lists_is_another_pod),
        TEST(an_assumption_outlives_a_list_that_does_not_know_yet),
        TEST(the_first_sight_of_a_pod_is_kept),
        TEST(finished_pods_count_for_their_gang_only),
        TEST(each_api_group_of_podgroups_has_its_own_list),
        TEST(small_objects_go_to_their_stores),
        TEST(from_the_api_server_to_the_model),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}

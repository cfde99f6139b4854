// SPDX-License-Identifier: Apache-2.0
/* What a deletion of an owner, namespace or node deletes too; and what a budget allows. */
#include "test/unit/local/controllers_rig.h"

#define TEMPLATE                                                                            \
    "{\"metadata\":{\"labels\":{\"app\":\"x\"}},\"spec\":{\"containers\":[{\"name\":\"c\"," \
    "\"image\":\"i\"}]}}"

static int up(void **state)
{
    *state = rig_up(true);
    rig_settle(*state);
    return 0;
}

static int down(void **state)
{
    rig_down(*state);
    return 0;
}

static void make_deployment(struct rig *r, const char *ns)
{
    rig_make(r, &kind_deployments, ns,
             "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"web\"},"
             "\"spec\":{\"replicas\":2,\"selector\":{\"matchLabels\":{\"app\":\"x\"}},"
             "\"template\":" TEMPLATE "}}");
    rig_settle(r);
    rig_expect_count(rig_list(r, &kind_pods, ns, NULL), 2);
}

static void make_pod(struct rig *r, const char *name, const char *meta, const char *spec)
{
    char text[1000];
    str_format(text, sizeof text,
               "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\"%s},\"spec\":{"
               "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]%s}}",
               name, meta, spec);
    rig_make(r, &kind_pods, "default", text);
}

static void delete (struct rig *r, const struct kind *k, const char *ns, const char *name,
                    enum api_propagation how)
{
    struct error err = ERROR_INIT;
    rig_check(api_delete(r->api, k, ns, name, NULL, -1, how, &err), &err, name);
}

static void in_the_background_all_go(void **state)
{
    struct rig *r = *state;
    make_deployment(r, "default");
    delete (r, &kind_deployments, "default", "web", API_BACKGROUND);
    assert_null(store_get(r->store, &kind_deployments, "default", "web"));
    rig_settle(r);
    rig_expect_count(rig_list(r, &kind_replicasets, "default", NULL), 0);
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 0);
}

static void in_the_foreground_the_owner_goes_last(void **state)
{
    struct rig *r = *state;
    make_deployment(r, "default");
    /* A pod that holds on. */
    struct rig_list pods = rig_list(r, &kind_pods, "default", NULL);
    rig_set(r, &kind_pods, "default", pods.names[0], NULL, "metadata|finalizers",
            "[\"example.com/hold\"]");
    delete (r, &kind_deployments, "default", "web", API_FOREGROUND);
    rig_settle(r);
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 1);
    assert_non_null(store_get(r->store, &kind_deployments, "default", "web"));
    rig_expect_count(rig_list(r, &kind_replicasets, "default", "foregroundDeletion"), 1);
    rig_set(r, &kind_pods, "default", pods.names[0], NULL, "metadata|finalizers", "[]");
    rig_settle(r);
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 0);
    rig_expect_count(rig_list(r, &kind_replicasets, "default", NULL), 0);
    assert_null(store_get(r->store, &kind_deployments, "default", "web"));
}

static void orphans_stay(void **state)
{
    struct rig *r = *state;
    make_deployment(r, "default");
    struct rig_list sets = rig_list(r, &kind_replicasets, "default", NULL);
    delete (r, &kind_deployments, "default", "web", API_ORPHAN);
    rig_settle(r);
    assert_null(store_get(r->store, &kind_deployments, "default", "web"));
    rig_expect(r, &kind_replicasets, "default", sets.names[0], "metadata|ownerReferences", "");
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 2);
}

static void whoever_has_another_owner_stays(void **state)
{
    struct rig *r = *state;
    make_pod(r, "one", "", "");
    make_pod(r, "two", "", "");
    char meta[500], uid[64];
    str_format(uid, sizeof uid, "%s", rig_read(r, &kind_pods, "default", "two", "metadata|uid"));
    str_format(meta, sizeof meta,
               ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"one\","
               "\"uid\":\"%s\"},{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"two\",\"uid\":"
               "\"%s\"}]",
               rig_read(r, &kind_pods, "default", "one", "metadata|uid"), uid);
    make_pod(r, "child", meta, "");
    rig_settle(r);
    delete (r, &kind_pods, "default", "one", API_BACKGROUND);
    rig_settle(r);
    assert_non_null(store_get(r->store, &kind_pods, "default", "child"));
    rig_expect(r, &kind_pods, "default", "child", "metadata|ownerReferences|0|name", "two");
    delete (r, &kind_pods, "default", "two", API_BACKGROUND);
    rig_settle(r);
    assert_null(store_get(r->store, &kind_pods, "default", "child"));
}

static void a_child_of_nobody_goes(void **state)
{
    struct rig *r = *state;
    make_pod(r, "late",
             ",\"ownerReferences\":[{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":\"x\","
             "\"uid\":\"11111111-2222-3333-4444-555555555555\"}]",
             "");
    make_pod(r, "foreign",
             ",\"ownerReferences\":[{\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\",\"name\":"
             "\"x\",\"uid\":\"11111111-2222-3333-4444-555555555556\"}]",
             "");
    rig_settle(r);
    assert_null(store_get(r->store, &kind_pods, "default", "late"));
    assert_non_null(store_get(r->store, &kind_pods, "default", "foreign")); /* unknown */
}

static void the_pods_of_a_deleted_job_lose_their_finalizer(void **state)
{
    struct rig *r = *state;
    rig_make(
        r, &kind_jobs, "default",
        "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"j\"},\"spec\":{"
        "\"template\":{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"c\","
        "\"image\":\"i\"}]}}}}");
    rig_settle(r);
    rig_expect_count(rig_list(r, &kind_pods, "default", "job-tracking"), 1);
    delete (r, &kind_jobs, "default", "j", API_BACKGROUND);
    rig_settle(r);
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 0);
}

/* ---- namespaces ---- */

static void a_namespace_is_emptied_before_it_goes(void **state)
{
    struct rig *r = *state;
    rig_make(r, &kind_namespaces, NULL,
             "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"t\"}}");
    rig_settle(r);
    rig_expect(r, &kind_service_accounts, "t", "default", "metadata|name", "default");
    make_deployment(r, "t");
    struct rig_list pods = rig_list(r, &kind_pods, "t", NULL);
    rig_set(r, &kind_pods, "t", pods.names[0], NULL, "metadata|finalizers",
            "[\"example.com/hold\"]");
    delete (r, &kind_namespaces, NULL, "t", API_BACKGROUND);
    rig_settle(r);
    rig_expect(r, &kind_namespaces, NULL, "t", "status|phase", "Terminating");
    rig_expect_count(rig_list(r, &kind_pods, "t", NULL), 1);
    rig_expect_count(rig_list(r, &kind_deployments, "t", NULL), 0);
    struct error err = ERROR_INIT;
    assert_int_equal(
        rig_try(r, &kind_pods, "t",
                "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"},"
                "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
                &err),
        -1);
    assert_string_equal(err.text, "pods \"a\" is forbidden: unable to create new content in "
                                  "namespace t because it is being terminated");
    assert_int_equal(err.http_status, 403);
    rig_set(r, &kind_pods, "t", pods.names[0], NULL, "metadata|finalizers", "[]");
    rig_settle(r);
    assert_null(store_get(r->store, &kind_namespaces, NULL, "t"));
    rig_expect_count(rig_list(r, &kind_events, "t", NULL), 0);
    /* And a new one of that name is like any other. */
    rig_make(r, &kind_namespaces, NULL,
             "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"t\"}}");
    rig_settle(r);
    rig_expect(r, &kind_service_accounts, "t", "default", "metadata|name", "default");
}

/* ---- nodes ---- */

static void wait_gone(struct rig *r, const char *pod)
{
    int64_t end = clock_mono_ms() + 20000;
    while (store_get(r->store, &kind_pods, "default", pod)) {
        if (clock_mono_ms() > end)
            fail_msg("%s is still there", pod);
        loop_once(r->loop, 100);
    }
}

static void pods_of_vanished_and_hollow_nodes_go(void **state)
{
    struct rig *r = *state;
    rig_make(r, &kind_nodes, NULL,
             "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"gone\"}}");
    rig_make(r, &kind_nodes, NULL,
             "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"served\"}}");
    rig_make(r, &kind_nodes, NULL,
             "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"hollow\","
             "\"annotations\":{\"" CONTROLLERS_HOLLOW "\":\"true\"}}}");
    make_pod(r, "g", "", ",\"nodeName\":\"gone\"");
    make_pod(r, "s", "", ",\"nodeName\":\"served\",\"terminationGracePeriodSeconds\":1");
    make_pod(r, "h", "", ",\"nodeName\":\"hollow\",\"terminationGracePeriodSeconds\":1");
    make_pod(r, "k", "", ",\"nodeName\":\"hollow\"");
    delete (r, &kind_nodes, NULL, "gone", API_BACKGROUND);
    delete (r, &kind_pods, "default", "s", API_BACKGROUND);
    delete (r, &kind_pods, "default", "h", API_BACKGROUND);
    rig_settle(r);
    assert_non_null(store_get(r->store, &kind_pods, "default", "h")); /* has a second left */
    wait_gone(r, "h");
    wait_gone(r, "g");
    assert_non_null(store_get(r->store, &kind_pods, "default", "s")); /* its kubelet's business */
    assert_non_null(store_get(r->store, &kind_pods, "default", "k"));
}

/* ---- budgets ---- */

static void a_budget_knows_what_it_allows(void **state)
{
    struct rig *r = *state;
    rig_make(
        r, &kind_pdbs, "default",
        "{\"apiVersion\":\"policy/v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{\"name\":"
        "\"b\"},\"spec\":{\"minAvailable\":\"50%\",\"selector\":{\"matchLabels\":{\"app\":"
        "\"x\"}}}}");
    rig_settle(r);
    rig_expect(r, &kind_pdbs, "default", "b", "status|expectedPods", "0");
    rig_expect(r, &kind_pdbs, "default", "b", "status|disruptionsAllowed", "0");
    make_deployment(r, "default");
    rig_expect(r, &kind_pdbs, "default", "b", "status|expectedPods", "2");
    rig_expect(r, &kind_pdbs, "default", "b", "status|desiredHealthy", "1");
    rig_expect(r, &kind_pdbs, "default", "b", "status|conditions|DisruptionAllowed|reason",
               "InsufficientPods");
    struct rig_list pods = rig_list(r, &kind_pods, "default", NULL);
    rig_phase(r, "default", pods.names[0], "Running");
    rig_phase(r, "default", pods.names[1], "Running");
    rig_settle(r);
    rig_expect(r, &kind_pdbs, "default", "b", "status|currentHealthy", "2");
    rig_expect(r, &kind_pdbs, "default", "b", "status|disruptionsAllowed", "1");
    rig_expect(r, &kind_pdbs, "default", "b", "status|conditions|DisruptionAllowed|status", "True");
    rig_set(r, &kind_pdbs, "default", "b", NULL, "spec",
            "{\"maxUnavailable\":0,\"selector\":{\"matchLabels\":{\"app\":\"x\"}}}");
    rig_settle(r);
    rig_expect(r, &kind_pdbs, "default", "b", "status|disruptionsAllowed", "0");
    rig_expect(r, &kind_pdbs, "default", "b", "status|observedGeneration", "2");
    rig_set(r, &kind_pdbs, "default", "b", NULL, "spec",
            "{\"minAvailable\":0,\"selector\":{\"matchLabels\":{\"app\":\"other\"}}}");
    rig_settle(r);
    rig_expect(r, &kind_pdbs, "default", "b", "status|expectedPods", "0");
}

/* ---- state that is kept ---- */

static void controllers_that_start_late_finish_what_they_find(void **state)
{
    (void)state;
    struct rig *r = rig_up(false);
    rig_make(r, &kind_namespaces, NULL,
             "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"default\"}}");
    rig_make(r, &kind_deployments, "default",
             "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"web\"},"
             "\"spec\":{\"replicas\":2,\"selector\":{\"matchLabels\":{\"app\":\"x\"}},"
             "\"template\":" TEMPLATE "}}");
    rig_settle(r);
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 0);
    for (int i = 0; i < 2; i++) { /* and started again they do nothing twice */
        struct error err = ERROR_INIT;
        rig_check(controllers_start(&r->controllers, r->loop, r->api, r->store, &err), &err,
                  "controllers");
        rig_settle(r);
        rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 2);
        controllers_stop(r->controllers);
        r->controllers = NULL;
    }
    rig_down(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(fn) cmocka_unit_test_setup_teardown(fn, up, down)
        T(in_the_background_all_go),
        T(in_the_foreground_the_owner_goes_last),
        T(orphans_stay),
        T(whoever_has_another_owner_stays),
        T(a_child_of_nobody_goes),
        T(the_pods_of_a_deleted_job_lose_their_finalizer),
        T(a_namespace_is_emptied_before_it_goes),
        T(pods_of_vanished_and_hollow_nodes_go),
        T(a_budget_knows_what_it_allows),
        cmocka_unit_test(controllers_that_start_late_finish_what_they_find),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

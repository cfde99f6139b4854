// SPDX-License-Identifier: Apache-2.0
#include "test/unit/local/controllers_rig.h"

#define POD_SPEC \
    "{\"containers\":[{\"name\":\"c\",\"image\":\"busybox\"}],\"restartPolicy\":\"Never\"}"
#define TEMPLATE "{\"metadata\":{\"labels\":{\"app\":\"x\"}},\"spec\":" POD_SPEC "}"
#define SERVICE_TEMPLATE                                                                    \
    "{\"metadata\":{\"labels\":{\"app\":\"x\"}},\"spec\":{\"containers\":[{\"name\":\"c\"," \
    "\"image\":\"IMAGE\"}]}}"

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

static void make_job(struct rig *r, const char *name, const char *spec)
{
    char text[2000];
    str_format(text, sizeof text,
               "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"%s\"},"
               "\"spec\":{%s,\"template\":" TEMPLATE "}}",
               name, spec);
    rig_make(r, &kind_jobs, "default", text);
    rig_settle(r);
}

static void make_deployment(struct rig *r, const char *spec)
{
    char text[2000];
    str_format(
        text, sizeof text,
        "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"web\"},"
        "\"spec\":{%s,\"selector\":{\"matchLabels\":{\"app\":\"x\"}},"
        "\"template\":" SERVICE_TEMPLATE "}}",
        spec);
    rig_make(r, &kind_deployments, "default", text);
    rig_settle(r);
}

/* Every pod that waits runs now; returns how many there were. */
static size_t run_all(struct rig *r)
{
    struct rig_list waiting = rig_list(r, &kind_pods, "default", "\"phase\":\"Pending\"");
    for (size_t i = 0; i < waiting.len; i++)
        rig_phase(r, "default", waiting.names[i], "Running");
    rig_settle(r);
    return waiting.len;
}

/* ---- what a cluster begins with ---- */

static void a_new_cluster_has_its_namespaces(void **state)
{
    struct rig *r = *state;
    rig_expect(r, &kind_namespaces, NULL, "default", "status|phase", "Active");
    rig_expect(r, &kind_namespaces, NULL, "kube-system", "metadata|name", "kube-system");
    rig_expect(r, &kind_priority_classes, NULL, "system-node-critical", "value", "2000001000");
    rig_expect(r, &kind_service_accounts, "default", "default", "metadata|name", "default");
}

/* ---- jobs ---- */

static void a_job_makes_its_pods_and_completes(void **state)
{
    struct rig *r = *state;
    make_job(r, "j", "\"parallelism\":2,\"completions\":3");
    struct rig_list pods = rig_list(r, &kind_pods, "default", NULL);
    rig_expect_count(pods, 2);
    const char *pod = pods.names[0];
    rig_expect(r, &kind_pods, "default", pod, "metadata|labels|batch.kubernetes.io/job-name", "j");
    rig_expect(r, &kind_pods, "default", pod, "metadata|labels|job-name", "j");
    rig_expect(r, &kind_pods, "default", pod, "metadata|generateName", "j-");
    rig_expect(r, &kind_pods, "default", pod, "metadata|ownerReferences|j|kind", "Job");
    rig_expect(r, &kind_pods, "default", pod, "metadata|finalizers",
               "[\"batch.kubernetes.io/job-tracking\"]");
    rig_expect(r, &kind_pods, "default", pod, "spec|priority", "0");
    rig_expect(r, &kind_jobs, "default", "j", "status|active", "2");
    rig_phase(r, "default", pods.names[0], "Succeeded");
    rig_settle(r);
    rig_expect(r, &kind_jobs, "default", "j", "status|succeeded", "1");
    rig_expect(r, &kind_pods, "default", pod, "metadata|finalizers", "");
    rig_phase(r, "default", pods.names[1], "Succeeded");
    rig_settle(r);
    rig_expect(r, &kind_jobs, "default", "j", "status|active", "1");
    struct rig_list last = rig_list(r, &kind_pods, "default", "\"phase\":\"Pending\"");
    rig_expect_count(last, 1);
    rig_phase(r, "default", last.names[0], "Succeeded");
    rig_settle(r);
    rig_expect(r, &kind_jobs, "default", "j", "status|succeeded", "3");
    rig_expect(r, &kind_jobs, "default", "j", "status|active", "");
    rig_expect(r, &kind_jobs, "default", "j", "status|conditions|SuccessCriteriaMet|status",
               "True");
    rig_expect(r, &kind_jobs, "default", "j", "status|conditions|Complete|status", "True");
    rig_expect(r, &kind_jobs, "default", "j", "status|conditions|Complete|reason",
               "CompletionsReached");
    rig_expect(r, &kind_jobs, "default", "j", "status|conditions|Complete|message",
               "Reached expected number of succeeded pods");
    rig_expect_count(rig_list(r, &kind_events, "default", "\"reason\":\"Completed\""), 1);
    rig_expect_count(rig_list(r, &kind_events, "default", "\"reason\":\"SuccessfulCreate\""), 3);
    assert_true(strlen(rig_read(r, &kind_jobs, "default", "j", "status|completionTime")) == 20);
}

static void a_finished_pod_that_is_deleted_still_counts(void **state)
{
    struct rig *r = *state;
    make_job(r, "j", "\"parallelism\":1,\"completions\":2");
    struct rig_list pods = rig_list(r, &kind_pods, "default", NULL);
    rig_phase(r, "default", pods.names[0], "Succeeded");
    rig_settle(r);
    struct error err = ERROR_INIT;
    rig_check(
        api_delete(r->api, &kind_pods, "default", pods.names[0], NULL, -1, API_BACKGROUND, &err),
        &err, "delete");
    rig_settle(r);
    rig_expect(r, &kind_jobs, "default", "j", "status|succeeded", "1");
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 1);
}

static void a_job_without_completions_ends_with_its_first_success(void **state)
{
    struct rig *r = *state;
    make_job(r, "j", "\"parallelism\":2");
    struct rig_list pods = rig_list(r, &kind_pods, "default", NULL);
    rig_phase(r, "default", pods.names[0], "Succeeded");
    rig_settle(r);
    rig_expect(r, &kind_jobs, "default", "j", "status|conditions|Complete|status", "");
    rig_phase(r, "default", pods.names[1], "Succeeded");
    rig_settle(r);
    rig_expect(r, &kind_jobs, "default", "j", "status|conditions|Complete|status", "True");
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 2);
}

static void a_job_fails_beyond_its_backoff_limit(void **state)
{
    struct rig *r = *state;
    make_job(r, "j", "\"parallelism\":2,\"completions\":3,\"backoffLimit\":0");
    struct rig_list pods = rig_list(r, &kind_pods, "default", NULL);
    rig_phase(r, "default", pods.names[0], "Failed");
    rig_settle(r);
    rig_expect(r, &kind_jobs, "default", "j", "status|failed", "2"); /* the other was taken away */
    rig_expect(r, &kind_jobs, "default", "j", "status|conditions|FailureTarget|reason",
               "BackoffLimitExceeded");
    rig_expect(r, &kind_jobs, "default", "j", "status|conditions|Failed|message",
               "Job has reached the specified backoff limit");
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 1);
    rig_expect_count(rig_list(r, &kind_events, "default", "\"reason\":\"SuccessfulDelete\""), 1);
    rig_expect_count(rig_list(r, &kind_events, "default", "\"reason\":\"BackoffLimitExceeded\""),
                     1);
}

static void a_job_below_its_backoff_limit_waits_before_it_tries_again(void **state)
{
    struct rig *r = *state;
    make_job(r, "j", "\"parallelism\":1,\"completions\":1,\"backoffLimit\":1");
    struct rig_list pods = rig_list(r, &kind_pods, "default", NULL);
    rig_phase(r, "default", pods.names[0], "Failed");
    rig_settle(r);
    rig_expect(r, &kind_jobs, "default", "j", "status|failed", "1");
    rig_expect(r, &kind_jobs, "default", "j", "status|conditions", "");
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 1); /* for ten seconds */
}

static void a_job_past_its_deadline_fails(void **state)
{
    struct rig *r = *state;
    make_job(r, "j", "\"activeDeadlineSeconds\":100");
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 1);
    rig_set(r, &kind_jobs, "default", "j", "status", "status|startTime",
            "\"2026-01-01T00:00:00Z\"");
    rig_settle(r);
    rig_expect(r, &kind_jobs, "default", "j", "status|conditions|Failed|reason",
               "DeadlineExceeded");
    rig_expect(r, &kind_jobs, "default", "j", "status|conditions|Failed|message",
               "Job was active longer than specified deadline");
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 0);
}

static void a_job_can_be_suspended_and_resumed(void **state)
{
    struct rig *r = *state;
    make_job(r, "j", "\"parallelism\":2,\"completions\":2,\"suspend\":true");
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 0);
    rig_expect(r, &kind_jobs, "default", "j", "status|conditions|Suspended|reason", "JobSuspended");
    rig_expect(r, &kind_jobs, "default", "j", "status|startTime", "");
    rig_set(r, &kind_jobs, "default", "j", NULL, "spec|suspend", "false");
    rig_settle(r);
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 2);
    rig_expect(r, &kind_jobs, "default", "j", "status|conditions|Suspended|status", "False");
    rig_set(r, &kind_jobs, "default", "j", NULL, "spec|suspend", "true");
    rig_settle(r);
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 0);
    rig_expect(r, &kind_jobs, "default", "j", "status|failed", ""); /* taken away, not failed */
}

static void a_job_can_be_indexed(void **state)
{
    struct rig *r = *state;
    make_job(r, "j", "\"parallelism\":2,\"completions\":4,\"completionMode\":\"Indexed\"");
    struct rig_list zero = rig_list(r, &kind_pods, "default", "job-completion-index\":\"0\"");
    struct rig_list one = rig_list(r, &kind_pods, "default", "job-completion-index\":\"1\"");
    rig_expect_count(zero, 1);
    rig_expect_count(one, 1);
    rig_expect(r, &kind_pods, "default", zero.names[0], "metadata|generateName", "j-0-");
    rig_expect(r, &kind_pods, "default", zero.names[0], "spec|hostname", "j-0");
    rig_expect(r, &kind_pods, "default", zero.names[0], "spec|containers|c|env|0|name",
               "JOB_COMPLETION_INDEX");
    rig_phase(r, "default", one.names[0], "Succeeded");
    rig_settle(r);
    rig_expect(r, &kind_jobs, "default", "j", "status|completedIndexes", "1");
    struct rig_list two = rig_list(r, &kind_pods, "default", "job-completion-index\":\"2\"");
    rig_expect_count(two, 1);
    rig_phase(r, "default", two.names[0], "Succeeded");
    rig_phase(r, "default", zero.names[0], "Succeeded");
    rig_settle(r);
    rig_expect(r, &kind_jobs, "default", "j", "status|completedIndexes", "0-2");
}

static void a_quota_holds_a_job_back_until_it_is_gone(void **state)
{
    struct rig *r = *state;
    rig_make(r, &kind_resource_quotas, "default",
             "{\"apiVersion\":\"v1\",\"kind\":\"ResourceQuota\",\"metadata\":{\"name\":"
             "\"object-counts\"},\"spec\":{\"hard\":{\"pods\":\"2\"}}}");
    make_job(r, "gang-job", "\"parallelism\":4");
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 2);
    rig_expect(r, &kind_jobs, "default", "gang-job", "status|active", "2");
    rig_expect(r, &kind_resource_quotas, "default", "object-counts", "status|used|pods", "2");
    struct rig_list events = rig_list(
        r, &kind_events, "default",
        "is forbidden: exceeded quota: object-counts, requested: pods=1, used: pods=2, limited: "
        "pods=2");
    assert_true(events.len > 0);
    rig_expect(r, &kind_events, "default", events.names[0], "reason", "FailedCreate");
    rig_expect(r, &kind_events, "default", events.names[0], "type", "Warning");
    struct error err = ERROR_INIT;
    rig_check(api_delete(r->api, &kind_resource_quotas, "default", "object-counts", NULL, -1,
                         API_BACKGROUND, &err),
              &err, "delete quota");
    rig_settle(r);
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 4);
    rig_expect(r, &kind_jobs, "default", "gang-job", "status|active", "4");
}

static void a_finished_job_goes_after_its_ttl(void **state)
{
    struct rig *r = *state;
    make_job(r, "j", "\"ttlSecondsAfterFinished\":0");
    struct rig_list pods = rig_list(r, &kind_pods, "default", NULL);
    rig_phase(r, "default", pods.names[0], "Succeeded");
    rig_settle(r);
    assert_null(store_get(r->store, &kind_jobs, "default", "j"));
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 0);
}

/* ---- replica sets and deployments ---- */

static void a_replica_set_gives_up_the_least_valuable_pods(void **state)
{
    struct rig *r = *state;
    rig_make(r, &kind_replicasets, "default",
             "{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"metadata\":{\"name\":\"rs\"},"
             "\"spec\":{\"replicas\":4,\"selector\":{\"matchLabels\":{\"app\":\"x\"}},"
             "\"template\":" SERVICE_TEMPLATE "}}");
    rig_settle(r);
    struct rig_list pods = rig_list(r, &kind_pods, "default", NULL);
    rig_expect_count(pods, 4);
    rig_expect(r, &kind_replicasets, "default", "rs", "status|replicas", "4");
    for (size_t i = 0; i < 3; i++) /* the fourth never gets a node */
        rig_phase(r, "default", pods.names[i], "Running");
    rig_set(r, &kind_pods, "default", pods.names[1], NULL,
            "metadata|annotations|controller.kubernetes.io/pod-deletion-cost", "\"-5\"");
    rig_settle(r);
    rig_expect(r, &kind_replicasets, "default", "rs", "status|readyReplicas", "3");
    rig_set(r, &kind_replicasets, "default", "rs", NULL, "spec|replicas", "3");
    rig_settle(r);
    assert_null(store_get(r->store, &kind_pods, "default", pods.names[3]));
    rig_set(r, &kind_replicasets, "default", "rs", NULL, "spec|replicas", "2");
    rig_settle(r);
    assert_null(store_get(r->store, &kind_pods, "default", pods.names[1]));
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 2);
    /* One that is deleted comes back. */
    struct error err = ERROR_INIT;
    rig_check(
        api_delete(r->api, &kind_pods, "default", pods.names[0], NULL, -1, API_BACKGROUND, &err),
        &err, "delete");
    rig_settle(r);
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 2);
}

static void a_deployment_becomes_available(void **state)
{
    struct rig *r = *state;
    make_deployment(r, "\"replicas\":3");
    struct rig_list sets = rig_list(r, &kind_replicasets, "default", NULL);
    rig_expect_count(sets, 1);
    rig_expect(r, &kind_replicasets, "default", sets.names[0],
               "metadata|annotations|deployment.kubernetes.io/max-replicas", "4");
    rig_expect(r, &kind_replicasets, "default", sets.names[0],
               "metadata|annotations|deployment.kubernetes.io/revision", "1");
    rig_expect(r, &kind_deployments, "default", "web",
               "metadata|annotations|deployment.kubernetes.io/revision", "1");
    rig_expect(r, &kind_deployments, "default", "web", "status|conditions|Available|message",
               "Deployment does not have minimum availability.");
    rig_expect(r, &kind_deployments, "default", "web", "status|unavailableReplicas", "3");
    assert_int_equal(run_all(r), 3);
    rig_expect(r, &kind_deployments, "default", "web", "status|availableReplicas", "3");
    rig_expect(r, &kind_deployments, "default", "web", "status|conditions|Available|status",
               "True");
    rig_expect(r, &kind_deployments, "default", "web", "status|conditions|Progressing|reason",
               "NewReplicaSetAvailable");
    char want[300];
    str_format(want, sizeof want, "Scaled up replica set %s from 0 to 3", sets.names[0]);
    rig_expect_count(rig_list(r, &kind_events, "default", want), 1);
    rig_set(r, &kind_deployments, "default", "web", NULL, "spec|replicas", "5");
    rig_settle(r);
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 5);
    rig_expect_count(rig_list(r, &kind_replicasets, "default", NULL), 1);
}

static void a_new_template_is_rolled_out_within_its_bounds(void **state)
{
    struct rig *r = *state;
    make_deployment(r, "\"replicas\":4,\"strategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":"
                       "{\"maxSurge\":1,\"maxUnavailable\":1}}");
    run_all(r);
    char old[128];
    str_format(old, sizeof old, "%s", rig_list(r, &kind_replicasets, "default", NULL).names[0]);
    rig_set(r, &kind_deployments, "default", "web", NULL, "spec|template|metadata|labels|v",
            "\"2\"");
    rig_settle(r);
    rig_expect_count(rig_list(r, &kind_replicasets, "default", NULL), 2);
    /* 4 + 1 at most in all, 4 - 1 at least available. */
    for (int i = 0; i < 10; i++) {
        size_t all = rig_list(r, &kind_pods, "default", NULL).len;
        size_t running = rig_list(r, &kind_pods, "default", "\"phase\":\"Running\"").len;
        if (all > 5 || running < 3)
            fail_msg("in step %d: %zu pods, %zu running", i, all, running);
        if (run_all(r) == 0)
            break;
    }
    rig_expect(r, &kind_replicasets, "default", old, "spec|replicas", "0");
    rig_expect(r, &kind_deployments, "default", "web", "status|updatedReplicas", "4");
    rig_expect(r, &kind_deployments, "default", "web", "status|availableReplicas", "4");
    rig_expect(r, &kind_deployments, "default", "web",
               "metadata|annotations|deployment.kubernetes.io/revision", "2");
    rig_expect_count(rig_list(r, &kind_pods, "default", "\"v\":\"2\""), 4);
    /* Back: the old set is used again, as revision 3. */
    rig_set(r, &kind_deployments, "default", "web", NULL, "spec|template|metadata|labels",
            "{\"app\":\"x\"}");
    for (int i = 0; i < 10 && (rig_settle(r), run_all(r)) > 0; i++)
        ;
    rig_expect_count(rig_list(r, &kind_replicasets, "default", NULL), 2);
    rig_expect(r, &kind_replicasets, "default", old, "spec|replicas", "4");
    rig_expect(r, &kind_replicasets, "default", old,
               "metadata|annotations|deployment.kubernetes.io/revision", "3");
}

static void recreate_empties_before_it_fills(void **state)
{
    struct rig *r = *state;
    make_deployment(r, "\"replicas\":2,\"strategy\":{\"type\":\"Recreate\"}");
    run_all(r);
    /* On a node pods take their time to end. */
    struct rig_list pods = rig_list(r, &kind_pods, "default", NULL);
    rig_make(r, &kind_nodes, NULL,
             "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}");
    for (size_t i = 0; i < pods.len; i++) {
        char text[400];
        str_format(text, sizeof text, "\"%s\"", "n");
        const struct object *o = store_get(r->store, &kind_pods, "default", pods.names[i]);
        AUTO_JSONTREE *t = NULL;
        struct error err = ERROR_INIT;
        rig_check(jsontree_parse(&t, o->text, o->text_len, &err), &err, "pod");
        jsonnode_set_str(t, jsonnode_get(jsontree_root(t), "spec"), "nodeName", "n");
        AUTO_STRBUF bound = {0};
        jsontree_print(t, &bound);
        rig_check(store_update(r->store, &kind_pods, strbuf_str(&bound), bound.len, 0, NULL, &err),
                  &err, "bind");
    }
    rig_set(r, &kind_deployments, "default", "web", NULL, "spec|template|metadata|labels|v",
            "\"2\"");
    rig_settle(r);
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 2); /* terminating */
    rig_expect_count(rig_list(r, &kind_pods, "default", "\"v\":\"2\""), 0);
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < pods.len; i++)
        rig_check(
            api_delete(r->api, &kind_pods, "default", pods.names[i], NULL, 0, API_BACKGROUND, &err),
            &err, "kubelet");
    rig_settle(r);
    rig_expect_count(rig_list(r, &kind_pods, "default", "\"v\":\"2\""), 2);
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 2);
}

/* ---- TFJob ---- */

static void a_tfjob_becomes_its_pods(void **state)
{
    struct rig *r = *state;
    rig_make(
        r, &kind_tfjobs, "default",
        "{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"TFJob\",\"metadata\":{\"name\":\"tf\"},"
        "\"spec\":{\"tfReplicaSpecs\":{\"PS\":{\"replicas\":1,\"template\":{\"spec\":{"
        "\"containers\":[{\"name\":\"tensorflow\",\"image\":\"i\"}],\"restartPolicy\":"
        "\"OnFailure\"}}},\"Worker\":{\"replicas\":2,\"template\":{\"spec\":{\"containers\":[{"
        "\"name\":\"tensorflow\",\"image\":\"i\"}]}}}}}}");
    rig_settle(r);
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 3);
    rig_expect(r, &kind_pods, "default", "tf-ps-0", "spec|restartPolicy", "OnFailure");
    rig_expect(r, &kind_pods, "default", "tf-worker-1", "spec|restartPolicy", "Never");
    rig_expect(r, &kind_pods, "default", "tf-worker-1",
               "metadata|labels|training.kubeflow.org/replica-type", "worker");
    rig_expect(r, &kind_pods, "default", "tf-worker-1",
               "metadata|labels|training.kubeflow.org/replica-index", "1");
    rig_expect(r, &kind_pods, "default", "tf-worker-0",
               "metadata|labels|training.kubeflow.org/job-role", "master");
    rig_expect(r, &kind_pods, "default", "tf-ps-0", "spec|containers|tensorflow|env|0|value",
               "{\"cluster\":{\"ps\":[\"tf-ps-0.default.svc:2222\"],\"worker\":[\"tf-worker-0."
               "default.svc:2222\",\"tf-worker-1.default.svc:2222\"]},\"task\":{\"type\":\"ps\","
               "\"index\":0},\"environment\":\"cloud\"}");
    rig_expect(r, &kind_tfjobs, "default", "tf", "status|conditions|Created|status", "True");
    run_all(r);
    rig_expect(r, &kind_tfjobs, "default", "tf", "status|conditions|Running|status", "True");
    rig_expect(r, &kind_tfjobs, "default", "tf", "status|replicaStatuses|Worker|active", "2");
    rig_phase(r, "default", "tf-worker-0", "Succeeded");
    rig_settle(r);
    rig_expect(r, &kind_tfjobs, "default", "tf", "status|conditions|Succeeded|status", "True");
    rig_expect(r, &kind_tfjobs, "default", "tf", "status|conditions|Running|status", "False");
    /* What still ran is taken away. */
    struct rig_list left = rig_list(r, &kind_pods, "default", NULL);
    rig_expect_count(left, 1);
    assert_string_equal(left.names[0], "tf-worker-0");
}

static void a_tfjob_fails_with_its_worker(void **state)
{
    struct rig *r = *state;
    rig_make(
        r, &kind_tfjobs, "default",
        "{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"TFJob\",\"metadata\":{\"name\":\"tf\"},"
        "\"spec\":{\"tfReplicaSpecs\":{\"Worker\":{\"replicas\":2,\"restartPolicy\":"
        "\"ExitCode\",\"template\":{\"spec\":{\"containers\":[{"
        "\"name\":\"tensorflow\",\"image\":\"i\"}]}}}}}}");
    rig_settle(r);
    char uid[64];
    str_format(uid, sizeof uid, "%s",
               rig_read(r, &kind_pods, "default", "tf-worker-1", "metadata|uid"));
    rig_set(r, &kind_pods, "default", "tf-worker-1", "status", "status",
            "{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"tensorflow\",\"image\":\"i\","
            "\"imageID\":\"\",\"ready\":false,\"restartCount\":0,\"state\":{\"terminated\":{"
            "\"exitCode\":137}}}]}");
    rig_settle(r);
    /* Killed by a signal: made anew. */
    assert_string_not_equal(rig_read(r, &kind_pods, "default", "tf-worker-1", "metadata|uid"), uid);
    rig_expect(r, &kind_tfjobs, "default", "tf", "status|conditions|Failed", "");
    rig_set(r, &kind_pods, "default", "tf-worker-1", "status", "status",
            "{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"tensorflow\",\"image\":\"i\","
            "\"imageID\":\"\",\"ready\":false,\"restartCount\":0,\"state\":{\"terminated\":{"
            "\"exitCode\":1}}}]}");
    rig_settle(r);
    rig_expect(r, &kind_tfjobs, "default", "tf", "status|conditions|Failed|status", "True");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(fn) cmocka_unit_test_setup_teardown(fn, up, down)
        T(a_new_cluster_has_its_namespaces),
        T(a_job_makes_its_pods_and_completes),
        T(a_finished_pod_that_is_deleted_still_counts),
        T(a_job_without_completions_ends_with_its_first_success),
        T(a_job_fails_beyond_its_backoff_limit),
        T(a_job_below_its_backoff_limit_waits_before_it_tries_again),
        T(a_job_past_its_deadline_fails),
        T(a_job_can_be_suspended_and_resumed),
        T(a_job_can_be_indexed),
        T(a_quota_holds_a_job_back_until_it_is_gone),
        T(a_finished_job_goes_after_its_ttl),
        T(a_replica_set_gives_up_the_least_valuable_pods),
        T(a_deployment_becomes_available),
        T(a_new_template_is_rolled_out_within_its_bounds),
        T(recreate_empties_before_it_fills),
        T(a_tfjob_becomes_its_pods),
        T(a_tfjob_fails_with_its_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

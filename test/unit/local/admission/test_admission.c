// SPDX-License-Identifier: Apache-2.0
/* Namespaces, service accounts, priority, quota: what is refused, and in which words. */
#include "test/unit/local/controllers_rig.h"

#define POD(meta, spec)                                                                         \
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{" meta "},\"spec\":{\"containers\":" \
    "[{\"name\":\"c\",\"image\":\"i\"}]" spec "}}"
#define CLASS(name, rest)                                                                                \
    "{\"apiVersion\":\"scheduling.k8s.io/v1\",\"kind\":\"PriorityClass\",\"metadata\":{\"name\":\"" name \
    "\"}," rest "}"

static int up(void **state)
{
    struct rig *r = rig_up(false);
    rig_make(r, &kind_namespaces, NULL,
             "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"default\"}}");
    *state = r;
    return 0;
}

static int down(void **state)
{
    rig_down(*state);
    return 0;
}

static void what_is_refused(void **state)
{
    struct rig *r = *state;
    static const struct {
        const char *why, *ns, *text;
        int status;
        const char *sentence;
    } rows[] = {
        {"the namespace does not exist", "nope", POD("\"name\":\"a\"", ""), 404,
         "namespaces \"nope\" not found"},
        {"the class does not exist", "default",
         POD("\"name\":\"a\"", ",\"priorityClassName\":\"nix\""), 403,
         "pods \"a\" is forbidden: no PriorityClass with name nix was found"},
        {"a number that is not the class's", "default",
         POD("\"name\":\"a\"", ",\"priorityClassName\":\"system-node-critical\",\"priority\":5"),
         403,
         "pods \"a\" is forbidden: the integer value of priority (5) must not be provided in pod "
         "spec; priority admission controller computed 2000001000 from the given PriorityClass "
         "name"},
        {"a number without a class", "default", POD("\"name\":\"a\"", ",\"priority\":1"), 403,
         "pods \"a\" is forbidden: the integer value of priority (1) must not be provided in pod "
         "spec; priority admission controller computed 0 from the given PriorityClass name"},
        {"a policy that is not the class's", "default",
         POD("\"name\":\"a\"", ",\"preemptionPolicy\":\"Never\""), 403,
         "pods \"a\" is forbidden: the string value of PreemptionPolicy (Never) must not be "
         "provided in pod spec; priority admission controller computed PreemptLowerPriority from "
         "the given PriorityClass name"},
        {"the service account does not exist", "default",
         POD("\"name\":\"a\"", ",\"serviceAccountName\":\"nosuch\""), 403,
         "pods \"a\" is forbidden: error looking up service account default/nosuch: "
         "serviceaccount \"nosuch\" not found"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = ERROR_INIT;
        if (rig_try(r, &kind_pods, rows[i].ns, rows[i].text, &err) == 0)
            fail_msg("%s: admitted", rows[i].why);
        if (!str_eq(err.text, rows[i].sentence) || err.http_status != rows[i].status)
            fail_msg("%s: expected %d '%s', got %d '%s'", rows[i].why, rows[i].status,
                     rows[i].sentence, err.http_status, err.text);
    }
}

static void a_pod_gets_what_it_did_not_say(void **state)
{
    struct rig *r = *state;
    rig_make(r, &kind_pods, "default", POD("\"name\":\"a\"", ""));
    rig_expect(r, &kind_pods, "default", "a", "spec|priority", "0");
    rig_expect(r, &kind_pods, "default", "a", "spec|preemptionPolicy", "PreemptLowerPriority");
    rig_expect(r, &kind_pods, "default", "a", "spec|serviceAccountName", "default");
    rig_expect(r, &kind_pods, "default", "a", "spec|serviceAccount", "default");
    rig_expect(r, &kind_pods, "default", "a", "spec|tolerations",
               "[{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":"
               "\"NoExecute\",\"tolerationSeconds\":300},{\"key\":\"node.kubernetes.io/"
               "unreachable\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
               "\"tolerationSeconds\":300}]");
    rig_make(r, &kind_pods, "default",
             POD("\"name\":\"b\"", ",\"tolerations\":[{\"operator\":\"Exists\"}]"));
    rig_expect(r, &kind_pods, "default", "b", "spec|tolerations", "[{\"operator\":\"Exists\"}]");
}

static void classes_come_and_go(void **state)
{
    struct rig *r = *state;
    struct error err = ERROR_INIT;
    rig_make(r, &kind_priority_classes, NULL,
             CLASS("high", "\"value\":1000,\"preemptionPolicy\":\"Never\""));
    rig_make(r, &kind_pods, "default", POD("\"name\":\"a\"", ",\"priorityClassName\":\"high\""));
    rig_expect(r, &kind_pods, "default", "a", "spec|priority", "1000");
    rig_expect(r, &kind_pods, "default", "a", "spec|preemptionPolicy", "Never");
    rig_make(r, &kind_priority_classes, NULL, CLASS("usual", "\"value\":7,\"globalDefault\":true"));
    rig_make(r, &kind_pods, "default", POD("\"name\":\"b\"", ""));
    rig_expect(r, &kind_pods, "default", "b", "spec|priority", "7");
    rig_expect(r, &kind_pods, "default", "b", "spec|priorityClassName", "usual");
    assert_int_equal(rig_try(r, &kind_priority_classes, NULL,
                             CLASS("another", "\"value\":8,\"globalDefault\":true"), &err),
                     -1);
    assert_string_equal(err.text,
                        "priorityclasses.scheduling.k8s.io \"another\" is forbidden: PriorityClass "
                        "usual is already marked as default. Only one default can exist");
    rig_check(store_delete(r->store, &kind_priority_classes, NULL, "usual", 0, &err), &err,
              "delete");
    rig_make(r, &kind_pods, "default", POD("\"name\":\"c\"", ""));
    rig_expect(r, &kind_pods, "default", "c", "spec|priority", "0");
}

static void make_quota(struct rig *r, const char *name, const char *spec)
{
    char text[400];
    str_format(text, sizeof text,
               "{\"apiVersion\":\"v1\",\"kind\":\"ResourceQuota\",\"metadata\":{\"name\":\"%s\"},"
               "\"spec\":{%s}}",
               name, spec);
    rig_make(r, &kind_resource_quotas, "default", text);
}

static void a_quota_counts(void **state)
{
    struct rig *r = *state;
    struct error err = ERROR_INIT;
    rig_make(r, &kind_pods, "default", POD("\"name\":\"before\"", ""));
    make_quota(r, "q", "\"hard\":{\"pods\":\"2\",\"count/pods\":\"3\",\"requests.cpu\":\"1\"}");
    rig_settle(r);
    rig_expect(r, &kind_resource_quotas, "default", "q", "status|used",
               "{\"pods\":\"1\",\"count/pods\":\"1\"}");
    rig_expect(r, &kind_resource_quotas, "default", "q", "status|hard|pods", "2");
    rig_make(r, &kind_pods, "default", POD("\"name\":\"a\"", ""));
    assert_int_equal(rig_try(r, &kind_pods, "default", POD("\"name\":\"b\"", ""), &err), -1);
    assert_string_equal(err.text, "pods \"b\" is forbidden: exceeded quota: q, requested: pods=1, "
                                  "used: pods=2, limited: pods=2");
    assert_int_equal(err.http_status, 403);
    /* A finished pod counts no longer as one of "pods", but still as an object. */
    rig_phase(r, "default", "before", "Succeeded");
    rig_make(r, &kind_pods, "default", POD("\"name\":\"b\"", ""));
    rig_settle(r);
    rig_expect(r, &kind_resource_quotas, "default", "q", "status|used",
               "{\"pods\":\"2\",\"count/pods\":\"3\"}");
    assert_int_equal(rig_try(r, &kind_pods, "default", POD("\"name\":\"c\"", ""), &err), -1);
    assert_string_equal(err.text, "pods \"c\" is forbidden: exceeded quota: q, requested: "
                                  "count/pods=1,pods=1, used: count/pods=3,pods=2, limited: "
                                  "count/pods=3,pods=2");
    rig_check(store_delete(r->store, &kind_pods, "default", "before", 0, &err), &err, "delete");
    rig_check(store_delete(r->store, &kind_pods, "default", "a", 0, &err), &err, "delete");
    rig_make(r, &kind_pods, "default", POD("\"name\":\"c\"", ""));
    rig_settle(r);
    rig_expect(r, &kind_resource_quotas, "default", "q", "status|used",
               "{\"pods\":\"2\",\"count/pods\":\"2\"}");
}

static void quotas_of_other_kinds(void **state)
{
    struct rig *r = *state;
    struct error err = ERROR_INIT;
    make_quota(r, "q", "\"hard\":{\"count/jobs.batch\":\"0\",\"configmaps\":\"1\"}");
    make_quota(r, "scoped", "\"hard\":{\"pods\":\"0\"},\"scopes\":[\"BestEffort\"]");
    rig_make(r, &kind_pods, "default", POD("\"name\":\"a\"", "")); /* scopes are not enforced */
    assert_int_equal(
        rig_try(r, &kind_jobs, "default",
                "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"j\"},"
                "\"spec\":{\"template\":{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{"
                "\"name\":\"c\",\"image\":\"i\"}]}}}}",
                &err),
        -1);
    assert_string_equal(err.text, "jobs.batch \"j\" is forbidden: exceeded quota: q, requested: "
                                  "count/jobs.batch=1, used: count/jobs.batch=0, limited: "
                                  "count/jobs.batch=0");
    const struct kind *maps = kinds_find("", "v1", "configmaps");
    rig_make(r, maps, "default",
             "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}");
    assert_int_equal(
        rig_try(r, maps, "default",
                "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"b\"}}",
                &err),
        -1);
    assert_string_equal(err.text, "configmaps \"b\" is forbidden: exceeded quota: q, requested: "
                                  "configmaps=1, used: configmaps=1, limited: configmaps=1");
}

static void some_namespaces_stay(void **state)
{
    struct rig *r = *state;
    struct error err = ERROR_INIT;
    struct admission_request q = {
        .kind = &kind_namespaces, .operation = "DELETE", .name = "default"};
    assert_int_equal(admission_check(r->admission, &q, NULL, &err), -1);
    assert_string_equal(err.text,
                        "namespaces \"default\" is forbidden: this namespace may not be deleted");
    q.name = "mine";
    assert_int_equal(admission_check(r->admission, &q, NULL, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(fn) cmocka_unit_test_setup_teardown(fn, up, down)
        T(what_is_refused), T(a_pod_gets_what_it_did_not_say), T(classes_come_and_go),
        T(a_quota_counts),  T(quotas_of_other_kinds),          T(some_namespaces_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

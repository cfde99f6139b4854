// SPDX-License-Identifier: Apache-2.0
#include "webhook/review.h"

#include "test/unit/lib/base/expect.h"

#include <fcntl.h>
#include <glob.h>

#include "lib/base/cleanup.h"
#include "lib/base/yaml.h"
#include "lib/model/names.h"
#include "test/unit/webhook/webhook_kit.h"

static const struct review_config config = {
    .rules = {.scheduler = NAME_SCHEDULER, .own_ns = "cosched-system"}};

#define HEAD "\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\""
#define REQUEST(more) "{" HEAD ",\"request\":{" more "}}"
#define POD_KIND "\"kind\":{\"group\":\"\",\"version\":\"v1\",\"kind\":\"Pod\"}"
#define GPU_POD                                                                                      \
    "{\"metadata\":{},\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":" \
    "\"3\"}}}]}}"

static void bad_requests_get_a_status_with_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *row, *body;
        const char *message; /* how it begins */
    } rows[] = {
        {"nothing", "", "body: not JSON: "},
        {"no JSON", "hello", "body: not JSON: "},
        {"cut off", "{" HEAD ",\"request\":{\"uid\":\"u", "body: not JSON: "},
        {"another kind", "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}",
         "kind: expected AdmissionReview, got 'Pod'"},
        {"a list", "[]", "kind: expected AdmissionReview, got ''"},
        {"the older version",
         "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1beta1\",\"request\":{\"uid\":"
         "\"u\"}}",
         "apiVersion: only admission.k8s.io/v1 is spoken here, got 'admission.k8s.io/v1beta1'"},
        {"no request", "{" HEAD "}", "request: must be an object, not nothing"},
        {"request is text", "{" HEAD ",\"request\":\"x\"}",
         "request: must be an object, not string"},
        {"no uid", REQUEST("\"operation\":\"CREATE\"," POD_KIND), "request.uid: is missing"},
        {"an empty uid", REQUEST("\"uid\":\"\""), "request.uid: is missing"},
        {"uid is a number", REQUEST("\"uid\":1"), "request.uid: must be a string, not number"},
        {"no operation", REQUEST("\"uid\":\"u\""), "request.operation: is missing"},
        {"no kind", REQUEST("\"uid\":\"u\",\"operation\":\"CREATE\""),
         "request.kind: request.version: is missing"},
        {"a new pod without a pod", REQUEST("\"uid\":\"u\",\"operation\":\"CREATE\"," POD_KIND),
         "request.object: spec: must be an object, not nothing"},
        {"a new pod that is a number",
         REQUEST("\"uid\":\"u\",\"operation\":\"CREATE\"," POD_KIND ",\"object\":7"),
         "request.object: spec: must be an object, not nothing"},
        {"labels that are a list",
         REQUEST("\"uid\":\"u\",\"operation\":\"CREATE\"," POD_KIND
                 ",\"object\":{\"metadata\":{\"labels\":[\"a\"]},\"spec\":{}}"),
         "request.object: metadata.labels: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arena arena;
        struct review_outcome o;
        struct error err = ERROR_INIT;
        AUTO_STRBUF reply;
        AUTO_JSON *doc = NULL;
        arena_init(&arena, 0);
        strbuf_init(&reply);
        webhook_kit_answer(&config, rows[i].body, &arena, &reply, &o);
        expect_int(rows[i].row, 400, o.status);
        expect_int(rows[i].row, REVIEW_MALFORMED, (int64_t)o.result);
        if (json_parse(&doc, reply.ptr, reply.len, &err) < 0)
            fail_msg("%s: %s", rows[i].row, err.text);
        const char *message = json_get_str(json_root(doc), "message");
        if (!str_starts(message, rows[i].message))
            expect_str(rows[i].row, rows[i].message, message);
        expect_str(rows[i].row, "Status", json_get_str(json_root(doc), "kind"));
        expect_str(rows[i].row, o.message, message);
        arena_deinit(&arena);
    }
    expect_done();
}

static void only_new_pods_are_touched(void **state)
{
    (void)state;
    static const struct {
        const char *row, *request;
        enum review_result result;
    } rows[] = {
        {"a new pod", "\"operation\":\"CREATE\"," POD_KIND ",\"object\":" GPU_POD, REVIEW_PATCHED},
        {"a changed pod", "\"operation\":\"UPDATE\"," POD_KIND ",\"object\":" GPU_POD,
         REVIEW_UNTOUCHED},
        {"a pod that goes", "\"operation\":\"DELETE\"," POD_KIND ",\"object\":null",
         REVIEW_UNTOUCHED},
        {"a pod's subresource",
         "\"operation\":\"CREATE\",\"subResource\":\"exec\"," POD_KIND ",\"object\":" GPU_POD,
         REVIEW_UNTOUCHED},
        {"another group's Pod",
         "\"operation\":\"CREATE\",\"kind\":{\"group\":\"metrics.k8s.io\",\"version\":\"v1\",\"kind\":"
         "\"Pod\"},\"object\":" GPU_POD,
         REVIEW_UNTOUCHED},
        {"a Job",
         "\"operation\":\"CREATE\",\"kind\":{\"group\":\"batch\",\"version\":\"v1\",\"kind\":\"Job\"},"
         "\"object\":{\"spec\":5}",
         REVIEW_UNTOUCHED},
        {"a dry run is answered like the real thing",
         "\"operation\":\"CREATE\",\"dryRun\":true," POD_KIND ",\"object\":" GPU_POD,
         REVIEW_PATCHED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arena arena;
        struct review_outcome o;
        AUTO_STRBUF body;
        AUTO_STRBUF reply;
        strbuf_init(&body);
        strbuf_init(&reply);
        arena_init(&arena, 0);
        strbuf_addf(&body, "{" HEAD ",\"request\":{\"uid\":\"u-1\",%s}}", rows[i].request);
        webhook_kit_answer(&config, body.ptr, &arena, &reply, &o);
        expect_int(rows[i].row, 200, o.status);
        expect_str(rows[i].row, review_result_name(rows[i].result), review_result_name(o.result));
        if (o.result == REVIEW_UNTOUCHED)
            expect_str(rows[i].row,
                       "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\","
                       "\"response\":{\"uid\":\"u-1\",\"allowed\":true}}",
                       strbuf_str(&reply));
        arena_deinit(&arena);
    }
    expect_done();
}

static void a_refusal_carries_its_sentence_and_no_patch(void **state)
{
    (void)state;
    struct arena arena;
    struct review_outcome o;
    AUTO_STRBUF body;
    AUTO_STRBUF reply;
    strbuf_init(&body);
    strbuf_init(&reply);
    arena_init(&arena, 0);
    webhook_kit_review(
        &body,
        "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"resources\":{"
        "\"limits\":{\"aliyun.com/gpu-mem\":1,\"aliyun.com/gpu-core.percentage\":\"33\"}}},{\"resources\":{"
        "\"limits\":{\"aliyun.com/gpu-mem\":1,\"aliyun.com/gpu-core.percentage\":\"34\"}}}]}}",
        "default", "CREATE");
    webhook_kit_answer(&config, body.ptr, &arena, &reply, &o);
    expect_str("result", "refused", review_result_name(o.result));
    expect_str("the whole reply",
               "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{"
               "\"uid\":\"705ab4f5-6393-11e8-b7cc-42010a800002\",\"allowed\":false,\"status\":{"
               "\"status\":\"Failure\",\"message\":\"spec.containers[0].resources.limits["
               "aliyun.com/gpu-core.percentage]: 33 is not a multiple of 5; write 30 or 35; "
               "spec.containers[1].resources.limits[aliyun.com/gpu-core.percentage]: 34 is not a "
               "multiple of 5; write 30 or 35\",\"reason\":\"Invalid\",\"code\":422}}}",
               strbuf_str(&reply));
    arena_deinit(&arena);
    expect_done();
}

/* Asks about a pod and applies the answer. The patch in *patch ("" for none), the new pod in
 * *after. */
static void round_trip(const char *row, const char *pod, struct strbuf *patch, struct strbuf *after)
{
    struct arena arena;
    struct review_outcome o;
    struct error err = ERROR_INIT;
    AUTO_STRBUF body;
    AUTO_STRBUF reply;
    strbuf_init(&body);
    strbuf_init(&reply);
    arena_init(&arena, 0);
    webhook_kit_review(&body, pod, "default", "CREATE");
    webhook_kit_answer(&config, body.ptr, &arena, &reply, &o);
    if (o.status != 200 || o.result == REVIEW_REFUSED)
        fail_msg("%s: %s", row, str_or_empty(o.message));
    if (webhook_kit_patch_of(reply.ptr, patch, &err) < 0 ||
        webhook_kit_apply(pod, strbuf_str(patch), after, &err) < 0)
        fail_msg("%s: %s", row, err.text);
    arena_deinit(&arena);
}

static void the_patch_applied_leaves_nothing_to_patch(void **state)
{
    (void)state;
    static const struct {
        const char *row, *pod, *after;
    } rows[] = {
        {"the scheduler is added", GPU_POD,
         "{\"metadata\":{},\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":"
         "\"3\"},\"requests\":{\"aliyun.com/gpu-mem\":\"3\"}}}],\"schedulerName\":\"ack-co-scheduler\"}}"},
        {"requests bring limits, into what is there",
         "{\"metadata\":{},\"spec\":{\"containers\":[{},{\"resources\":{\"requests\":{\"cpu\":1,"
         "\"aliyun.com/gpu-mem\":3},\"limits\":{\"cpu\":1}}}],\"schedulerName\":\"ack-co-scheduler\"}}",
         "{\"metadata\":{},\"spec\":{\"containers\":[{},{\"resources\":{\"requests\":{\"cpu\":1,"
         "\"aliyun.com/gpu-mem\":3},\"limits\":{\"cpu\":1,\"aliyun.com/gpu-mem\":3}}}],"
         "\"schedulerName\":\"ack-co-scheduler\"}}"},
        {"two resources make one new list",
         "{\"metadata\":{},\"spec\":{\"schedulerName\":\"ack-co-scheduler\",\"initContainers\":[{"
         "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":3,\"aliyun.com/gpu-core.percentage\":5}}}]}}",
         "{\"metadata\":{},\"spec\":{\"schedulerName\":\"ack-co-scheduler\",\"initContainers\":[{"
         "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":3,\"aliyun.com/gpu-core.percentage\":5},"
         "\"requests\":{\"aliyun.com/gpu-mem\":3,\"aliyun.com/gpu-core.percentage\":5}}}]}}"},
        {"the scheduler is replaced",
         "{\"metadata\":{\"annotations\":{\"cpuset-scheduler\":\"true\"}},\"spec\":{\"schedulerName\":"
         "\"default-scheduler\",\"a\":1}}",
         "{\"metadata\":{\"annotations\":{\"cpuset-scheduler\":\"true\"}},\"spec\":{\"schedulerName\":"
         "\"ack-co-scheduler\",\"a\":1}}"},
        {"result keys go, others stay, whatever is in them",
         "{\"metadata\":{\"annotations\":{\"cosched.io/a~b/c\":\"1\",\"keep/me~\":\"2\",\"cpuset\":\"3\","
         "\"cosched.io/\xc3\xa9\\\"\":\"4\"}},\"spec\":{}}",
         "{\"metadata\":{\"annotations\":{\"keep/me~\":\"2\"}},\"spec\":{}}"},
        {"a pod that is not ours comes back byte by byte",
         "{\"metadata\":{\"annotations\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}",
         "{\"metadata\":{\"annotations\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_STRBUF patch;
        AUTO_STRBUF after;
        AUTO_STRBUF again;
        AUTO_STRBUF same;
        strbuf_init(&patch);
        strbuf_init(&after);
        strbuf_init(&again);
        strbuf_init(&same);
        round_trip(rows[i].row, rows[i].pod, &patch, &after);
        expect_str(rows[i].row, rows[i].after, strbuf_str(&after));
        round_trip(rows[i].row, after.ptr, &again, &same);
        expect_str("the second patch is none", "", strbuf_str(&again));
    }
    expect_done();
}

static void enter(void *arg, const char *ns, struct rules_context *out)
{
    static struct label disabled[] = {{.key = NAME_INJECT, .value = "disabled"}};
    static const struct labels labels = {.items = disabled, .len = 1};
    (void)arg;
    *out = (struct rules_context){.ns = ns, .ns_labels = str_eq(ns, "quiet") ? &labels : NULL};
}

static void the_namespace_is_looked_up(void **state)
{
    (void)state;
    struct review_config with_labels = config;
    with_labels.enter = enter;
    static const char *const namespaces[] = {"quiet", "other"};
    for (size_t i = 0; i < 2; i++) {
        struct arena arena;
        struct review_outcome o;
        AUTO_STRBUF body;
        AUTO_STRBUF reply;
        strbuf_init(&body);
        strbuf_init(&reply);
        arena_init(&arena, 0);
        webhook_kit_review(&body, GPU_POD, namespaces[i], "CREATE");
        webhook_kit_answer(&with_labels, body.ptr, &arena, &reply, &o);
        expect_str(namespaces[i], i == 0 ? "untouched" : "patched", review_result_name(o.result));
        expect_str(namespaces[i], i == 0 ? NULL : "gpu-mem", o.trigger);
        arena_deinit(&arena);
    }
    expect_done();
}

/* ---- the documents' manifests ---------------------------------------------------------------- */

static int templates;

/* Every pod template below v, wherever it hides (Deployment, Job, TFJob's replica specs). */
static void each_template(const char *file, json *v, bool template)
{
    if (template && json_is_object(json_get(v, "spec"))) {
        AUTO_STRBUF pod;
        AUTO_STRBUF patch;
        AUTO_STRBUF after;
        AUTO_STRBUF again;
        AUTO_STRBUF same;
        AUTO_JSON *doc = NULL;
        struct json_writer w;
        struct error err = ERROR_INIT;
        strbuf_init(&pod);
        strbuf_init(&patch);
        strbuf_init(&after);
        strbuf_init(&again);
        strbuf_init(&same);
        json_writer_init(&w, &pod);
        json_put_value(&w, v);
        round_trip(file, pod.ptr, &patch, &after);
        assert_int_equal(0, json_parse(&doc, after.ptr, after.len, &err));
        expect_str(file, NAME_SCHEDULER,
                   json_get_str(json_get(json_root(doc), "spec"), "schedulerName"));
        bool named = json_get(json_get(v, "spec"), "schedulerName") != NULL;
        expect_true(file, named || patch.len > 0);
        round_trip(file, after.ptr, &again, &same);
        expect_str(file, "", strbuf_str(&again));
        templates++;
        return;
    }
    for (struct json_iter it = json_iter(v); json_next(&it);)
        each_template(file, it.value, str_eq(it.key, "template"));
}

static void the_documents_manifests_come_to_us_unchanged(void **state)
{
    (void)state;
    glob_t files;
    assert_int_equal(0, glob("deploy/examples/documents/*.yaml", 0, NULL, &files));
    for (size_t i = 0; i < files.gl_pathc; i++) {
        AUTO_CLOSE int fd = open(files.gl_pathv[i], O_RDONLY | O_CLOEXEC);
        char text[16 * 1024];
        ssize_t n = read(fd, text, sizeof text);
        assert_true(n > 0 && n < (ssize_t)sizeof text);
        AUTO_JSON *doc = NULL;
        struct error err = ERROR_INIT;
        if (yaml_parse(&doc, text, (size_t)n, 1 << 20, &err) < 0)
            fail_msg("%s: %s", files.gl_pathv[i], err.text);
        each_template(files.gl_pathv[i], json_root(doc), false);
    }
    globfree(&files);
    expect_int("pod templates in the documents", 9, templates);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_requests_get_a_status_with_a_sentence),
        cmocka_unit_test(only_new_pods_are_touched),
        cmocka_unit_test(a_refusal_carries_its_sentence_and_no_patch),
        cmocka_unit_test(the_patch_applied_leaves_nothing_to_patch),
        cmocka_unit_test(the_namespace_is_looked_up),
        cmocka_unit_test(the_documents_manifests_come_to_us_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Mutating webhooks, asked over TLS on loopback. */
#include "test/unit/local/controllers_rig.h"

#include <pthread.h>

#include "lib/base/base64.h"
#include "lib/base/httpd.h"
#include "test/local/server/pki.h"

static struct {
    struct httpd *httpd;
    struct pki pki;
    char ca[4096]; /* base64 */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool hold; /* /slow waits while it is set */
    char paths[1000];
    char last[8192]; /* the last review */
} hook = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

/* ---- the webhooks' server ---- */

static void reply(struct httpd_response *out, const char *uid, const char *rest)
{
    out->content_type = "application/json";
    strbuf_addf(&out->body,
                "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"response\":"
                "{\"uid\":\"%s\",%s}}",
                uid, rest);
}

static void reply_patch(struct httpd_response *out, const char *uid, const char *patch)
{
    struct strbuf rest = {0};
    strbuf_adds(&rest, "\"allowed\":true,\"patchType\":\"JSONPatch\",\"patch\":\"");
    base64_encode(patch, strlen(patch), &rest);
    strbuf_adds(&rest, "\"");
    reply(out, uid, strbuf_str(&rest));
    strbuf_deinit(&rest);
}

static void answer(void *arg, const struct httpd_request *in, struct httpd_response *out)
{
    (void)arg;
    AUTO_JSON *doc = NULL;
    pthread_mutex_lock(&hook.lock);
    size_t n = strlen(hook.paths);
    str_format(hook.paths + n, sizeof hook.paths - n, "%s?%s ", in->path, in->query);
    str_format(hook.last, sizeof hook.last, "%s", in->body);
    while (str_eq(in->path, "/slow") && hook.hold)
        pthread_cond_wait(&hook.wake, &hook.lock);
    pthread_mutex_unlock(&hook.lock);
    if (json_parse(&doc, in->body, in->body_len, NULL) < 0) {
        out->status = 400;
        return;
    }
    json *request = json_get(json_root(doc), "request");
    json *labels = json_get(json_get(json_get(request, "object"), "metadata"), "labels");
    const char *uid = json_get_str(request, "uid");
    if (str_eq(in->path, "/a") || str_eq(in->path, "/b")) {
        char patch[300];
        const char *trail = str_or_empty(json_get_str(labels, "trail"));
        str_format(patch, sizeof patch,
                   "[{\"op\":\"add\",\"path\":\"/metadata/labels/trail\",\"value\":\"%s%c\"}]",
                   trail, in->path[1]);
        reply_patch(out, uid, patch);
    } else if (str_eq(in->path, "/deny"))
        reply(out, uid,
              "\"allowed\":false,\"status\":{\"code\":403,\"message\":\"not on a Monday\"}");
    else if (str_eq(in->path, "/deny-mute"))
        reply(out, uid, "\"allowed\":false");
    else if (str_eq(in->path, "/warn"))
        reply(out, uid, "\"allowed\":true,\"warnings\":[\"mind the gap\",\"and the step\"]");
    else if (str_eq(in->path, "/uid"))
        reply(out, "another", "\"allowed\":true");
    else if (str_eq(in->path, "/text"))
        strbuf_adds(&out->body, "hello");
    else if (str_eq(in->path, "/500"))
        out->status = 500;
    else if (str_eq(in->path, "/untyped"))
        reply(out, uid, "\"allowed\":true,\"patch\":\"W10=\"");
    else if (str_eq(in->path, "/broken"))
        reply_patch(out, uid, "[{\"op\":\"remove\",\"path\":\"/metadata/nothing/there\"}]");
    else
        reply(out, uid, "\"allowed\":true");
}

static int server_up(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    static const char *const names[] = {"127.0.0.1", "hook.system.svc", NULL};
    rig_check(pki_make(&hook.pki, names, &err), &err, "pki");
    struct strbuf b = {0};
    base64_encode(hook.pki.ca_pem, strlen(hook.pki.ca_pem), &b);
    str_format(hook.ca, sizeof hook.ca, "%s", strbuf_str(&b));
    strbuf_deinit(&b);
    const struct httpd_config c = {.address = "127.0.0.1",
                                   .threads = 2,
                                   .max_body_bytes = 1 << 20,
                                   .tls = true,
                                   .handler = answer};
    rig_check(httpd_start(&hook.httpd, &c, &err), &err, "httpd");
    rig_check(httpd_set_certificate(hook.httpd, hook.pki.cert_pem, hook.pki.key_pem, &err), &err,
              "certificate");
    return 0;
}

static int server_down(void **state)
{
    (void)state;
    httpd_stop(hook.httpd);
    pki_deinit(&hook.pki);
    return 0;
}

/* ---- the rig ---- */

static int up(void **state)
{
    struct rig *r = rig_up(false);
    rig_make(r, &kind_namespaces, NULL,
             "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"default\","
             "\"labels\":{\"team\":\"red\"}}}");
    hook.paths[0] = hook.last[0] = '\0';
    *state = r;
    return 0;
}

static int down(void **state)
{
    rig_down(*state);
    return 0;
}

/* One configuration with one webhook that asks at `path`; more: members in front of the rest. */
static void configure_as(struct rig *r, const struct kind *kind, const char *name,
                         const char *client, const char *more)
{
    struct strbuf b = {0};
    strbuf_addf(&b,
                "{\"apiVersion\":\"admissionregistration.k8s.io/v1\",\"kind\":"
                "\"%s\",\"metadata\":{\"name\":\"%s\"},\"webhooks\":[{"
                "\"name\":\"%s.example.com\",\"admissionReviewVersions\":[\"v1\"],\"sideEffects\":"
                "\"None\",\"clientConfig\":{%s,\"caBundle\":\"%s\"},%s}]}",
                kind->kind, name, name, client, hook.ca, more);
    struct error err = ERROR_INIT;
    struct object *o = NULL;
    (void)store_delete(r->store, kind, NULL, name, 0, &err);
    error_clear(&err);
    AUTO_JSONTREE *t = NULL;
    rig_check(jsontree_parse(&t, strbuf_str(&b), b.len, &err), &err, "configuration");
    rig_check(api_create(r->api, kind, NULL, t, &o, &err), &err, name);
    strbuf_deinit(&b);
}

static void configure(struct rig *r, const char *name, const char *client, const char *more)
{
    configure_as(r, &kind_mutating_webhooks, name, client, more);
}

#define PODS                                                                                 \
    "\"rules\":[{\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],\"operations\":[\"CREATE\"]," \
    "\"resources\":[\"pods\"]}]"

static const char *url(const char *path)
{
    static char text[200];
    str_format(text, sizeof text, "\"url\":\"https://127.0.0.1:%u%s\"", httpd_port(hook.httpd),
               path);
    return text;
}

struct outcome {
    bool done;
    struct error err;
    char warnings[400];
};

static void finished(void *arg, const struct error *err, const char *const *warnings)
{
    struct outcome *o = arg;
    assert_false(o->done);
    o->done = true;
    o->err = err ? *err : (struct error)ERROR_INIT;
    o->warnings[0] = '\0';
    for (size_t i = 0; warnings && warnings[i]; i++) {
        size_t n = strlen(o->warnings);
        str_format(o->warnings + n, sizeof o->warnings - n, "%s|", warnings[i]);
    }
}

static struct jsontree *pod(void)
{
    static const char text[] = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":"
                               "\"a\",\"labels\":{\"app\":\"x\"}},\"spec\":{\"containers\":[{"
                               "\"name\":\"c\",\"image\":\"i\"}]}}";
    struct jsontree *t = NULL;
    struct error err = ERROR_INIT;
    rig_check(jsontree_parse(&t, text, strlen(text), &err), &err, "pod");
    return t;
}

static struct outcome run(struct rig *r, const struct admission_request *q, struct jsontree *t)
{
    struct outcome o = {0};
    int64_t end = clock_mono_ms() + 30000;
    admission_run(r->admission, q, t, finished, &o);
    while (!o.done) {
        if (clock_mono_ms() > end)
            fail_msg("no answer in time; asked: %s", hook.paths);
        loop_once(r->loop, 100);
    }
    return o;
}

static const struct admission_request create = {
    .kind = &kind_pods, .operation = "CREATE", .ns = "default", .name = "a"};

#define expect_text(got, want)                                  \
    do {                                                        \
        if (!str_eq((got), (want)))                             \
            fail_msg("expected '%s', got '%s'", (want), (got)); \
    } while (0)

/* ---- tests ---- */

static void webhooks_change_the_object_in_order_of_their_names(void **state)
{
    struct rig *r = *state;
    configure(r, "second", url("/b"), PODS);
    configure(r, "first", url("/a"), PODS);
    AUTO_JSONTREE *t = pod();
    struct outcome o = run(r, &create, t);
    expect_text(o.err.text, "");
    expect_text(jsonnode_str(jsonnode_path(jsontree_root(t), "metadata", "labels", "trail", NULL)),
                "ab");
    expect_text(hook.paths, "/a?timeout=10s /b?timeout=10s ");
}

static void who_wishes_is_asked_again_after_a_change(void **state)
{
    struct rig *r = *state;
    configure(r, "first", url("/a"), "\"reinvocationPolicy\":\"IfNeeded\"," PODS);
    configure(r, "second", url("/b"), "\"reinvocationPolicy\":\"IfNeeded\"," PODS);
    AUTO_JSONTREE *t = pod();
    struct outcome o = run(r, &create, t);
    expect_text(o.err.text, "");
    /* The second changed what the first had seen, then the first what the second had: each is
     * asked once more, and that is all. */
    expect_text(hook.paths, "/a?timeout=10s /b?timeout=10s /a?timeout=10s /b?timeout=10s ");
    expect_text(jsonnode_str(jsonnode_path(jsontree_root(t), "metadata", "labels", "trail", NULL)),
                "abab");
}

static void validating_ones_come_last_and_change_nothing(void **state)
{
    struct rig *r = *state;
    configure_as(r, &kind_validating_webhooks, "a", url("/warn"), PODS);
    configure(r, "b", url("/a"), "\"reinvocationPolicy\":\"IfNeeded\"," PODS);
    configure(r, "c", url("/b"), PODS);
    AUTO_JSONTREE *t = pod();
    struct outcome o = run(r, &create, t);
    expect_text(o.err.text, "");
    expect_text(o.warnings, "mind the gap|and the step|");
    expect_text(hook.paths, "/a?timeout=10s /b?timeout=10s /a?timeout=10s /warn?timeout=10s ");
    configure_as(r, &kind_validating_webhooks, "a", url("/b"), PODS);
    o = run(r, &create, t);
    expect_text(o.err.text, "Internal error occurred: failed calling webhook \"a.example.com\": "
                            "received invalid webhook response: a validating webhook may not "
                            "return a patch");
    configure_as(r, &kind_validating_webhooks, "a", url("/deny"), PODS);
    o = run(r, &create, t);
    expect_text(o.err.text,
                "admission webhook \"a.example.com\" denied the request: not on a Monday");
}

static void the_review_says_what_a_real_server_says(void **state)
{
    struct rig *r = *state;
    configure(r, "w", url("/ok"), PODS);
    AUTO_JSONTREE *t = pod();
    struct outcome o = run(r, &create, t);
    expect_text(o.err.text, "");
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    rig_check(json_parse(&doc, hook.last, strlen(hook.last), &err), &err, "review");
    json *q = json_get(json_root(doc), "request");
    expect_text(json_get_str(json_root(doc), "apiVersion"), "admission.k8s.io/v1");
    expect_text(json_get_str(json_get(q, "kind"), "kind"), "Pod");
    expect_text(json_get_str(json_get(q, "requestKind"), "version"), "v1");
    expect_text(json_get_str(json_get(q, "resource"), "resource"), "pods");
    expect_text(json_get_str(q, "name"), "a");
    expect_text(json_get_str(q, "namespace"), "default");
    expect_text(json_get_str(q, "operation"), "CREATE");
    expect_text(json_get_str(json_get(q, "userInfo"), "username"), "kubernetes-admin");
    expect_text(json_get_str(json_get(q, "options"), "kind"), "CreateOptions");
    assert_true(json_is_null(json_get(q, "oldObject")));
    assert_false(json_get_bool(q, "dryRun", true));
    /* What the server itself fills in is there already. */
    int64_t priority = -1;
    assert_true(json_get_int(json_get(json_get(q, "object"), "spec"), "priority", &priority));
    assert_int_equal(priority, 0);
}

static void what_becomes_of_answers(void **state)
{
    struct rig *r = *state;
    static const struct {
        const char *why, *path, *more;
        int status;
        const char *sentence; /* "" admitted; otherwise how it begins */
        const char *warnings;
    } rows[] = {
        {"it is allowed", "/ok", PODS, 0, "", ""},
        {"it warns", "/warn", PODS, 0, "", "mind the gap|and the step|"},
        {"it is denied", "/deny", PODS, 403,
         "admission webhook \"w.example.com\" denied the request: not on a Monday", ""},
        {"it is denied without a word", "/deny-mute", PODS, 400,
         "admission webhook \"w.example.com\" denied the request without explanation", ""},
        {"another review's answer", "/uid", PODS, 500,
         "Internal error occurred: failed calling webhook \"w.example.com\": received "
         "invalid webhook response: expected response.uid=",
         ""},
        {"no answer at all", "/text", PODS, 500,
         "Internal error occurred: failed calling webhook \"w.example.com\": failed to call "
         "webhook: couldn't get version/kind; json parse error: ",
         ""},
        {"an HTTP error", "/500", PODS, 500,
         "Internal error occurred: failed calling webhook \"w.example.com\": failed to call "
         "webhook: an error on the server (\"unknown\") has prevented the request from succeeding",
         ""},
        {"a patch without a type", "/untyped", PODS, 500,
         "Internal error occurred: failed calling webhook \"w.example.com\": received "
         "invalid webhook response: webhook returned response.patch but not response.patchType",
         ""},
        {"a patch that does not apply", "/broken", PODS, 500, "Internal error occurred: ", ""},
        {"an HTTP error that is ignored", "/500", "\"failurePolicy\":\"Ignore\"," PODS, 0, "", ""},
        {"a refusal is not a failure", "/deny", "\"failurePolicy\":\"Ignore\"," PODS, 403,
         "admission webhook \"w.example.com\" denied the request: not on a Monday", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        configure(r, "w", url(rows[i].path), rows[i].more);
        AUTO_JSONTREE *t = pod();
        struct outcome o = run(r, &create, t);
        bool fits = *rows[i].sentence ? str_starts(o.err.text, rows[i].sentence) : !*o.err.text;
        if (!fits || o.err.http_status != rows[i].status || !str_eq(o.warnings, rows[i].warnings))
            fail_msg("%s: expected %d '%s', got %d '%s' (warnings '%s')", rows[i].why,
                     rows[i].status, rows[i].sentence, o.err.http_status, o.err.text, o.warnings);
    }
}

static void a_slow_webhook_is_not_waited_for(void **state)
{
    struct rig *r = *state;
    hook.hold = true;
    configure(r, "w", url("/slow"), "\"timeoutSeconds\":1," PODS);
    AUTO_JSONTREE *t = pod();
    struct outcome o = run(r, &create, t);
    pthread_mutex_lock(&hook.lock);
    hook.hold = false;
    pthread_cond_broadcast(&hook.wake);
    pthread_mutex_unlock(&hook.lock);
    assert_int_equal(o.err.http_status, 500);
    char want[300];
    str_format(want, sizeof want,
               "Internal error occurred: failed calling webhook \"w.example.com\": failed to call "
               "webhook: Post \"https://127.0.0.1:%u/slow?timeout=1s\": ",
               httpd_port(hook.httpd));
    if (!str_starts(o.err.text, want))
        fail_msg("expected '%s...', got '%s'", want, o.err.text);
    expect_text(hook.paths, "/slow?timeout=1s ");
}

static void who_is_asked(void **state)
{
    struct rig *r = *state;
    static const struct {
        const char *why, *more;
        bool asked;
    } rows[] = {
        {"the rule fits", PODS, true},
        {"stars everywhere",
         "\"rules\":[{\"apiGroups\":[\"*\"],\"apiVersions\":[\"*\"],\"operations\":[\"*\"],"
         "\"resources\":[\"*/*\"],\"scope\":\"*\"}]",
         true},
        {"pods and all below them",
         "\"rules\":[{\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],\"operations\":[\"CREATE\"],"
         "\"resources\":[\"pods/*\"]}]",
         true},
        {"only what is below pods",
         "\"rules\":[{\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],\"operations\":[\"CREATE\"],"
         "\"resources\":[\"pods/status\"]}]",
         false},
        {"another group",
         "\"rules\":[{\"apiGroups\":[\"apps\"],\"apiVersions\":[\"v1\"],\"operations\":[\"CREATE\"],"
         "\"resources\":[\"pods\"]}]",
         false},
        {"another operation",
         "\"rules\":[{\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],\"operations\":[\"UPDATE\"],"
         "\"resources\":[\"pods\"]}]",
         false},
        {"cluster objects only",
         "\"rules\":[{\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],\"operations\":[\"CREATE\"],"
         "\"resources\":[\"*\"],\"scope\":\"Cluster\"}]",
         false},
        {"the namespace's labels fit",
         "\"namespaceSelector\":{\"matchLabels\":{\"team\":\"red\"}}," PODS, true},
        {"the namespace's labels do not fit",
         "\"namespaceSelector\":{\"matchLabels\":{\"team\":\"blue\"}}," PODS, false},
        {"the object's labels fit", "\"objectSelector\":{\"matchLabels\":{\"app\":\"x\"}}," PODS,
         true},
        {"the object's labels do not fit",
         "\"objectSelector\":{\"matchLabels\":{\"app\":\"y\"}}," PODS, false},
        {"conditions count as true",
         "\"matchConditions\":[{\"name\":\"c\",\"expression\":\"false\"}]," PODS, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hook.paths[0] = '\0';
        configure(r, "w", url("/ok"), rows[i].more);
        AUTO_JSONTREE *t = pod();
        struct outcome o = run(r, &create, t);
        expect_text(o.err.text, "");
        if ((*hook.paths != '\0') != rows[i].asked)
            fail_msg("%s: %s", rows[i].why, rows[i].asked ? "not asked" : "asked");
    }
}

static void a_service_is_found_by_the_table(void **state)
{
    struct rig *r = *state;
    static const char client[] =
        "\"service\":{\"namespace\":\"system\",\"name\":\"hook\",\"path\":\"/warn\"}";
    configure(r, "w", client, PODS);
    AUTO_JSONTREE *t = pod();
    struct outcome o = run(r, &create, t);
    assert_int_equal(o.err.http_status, 500);
    expect_text(
        o.err.text,
        "Internal error occurred: failed calling webhook \"w.example.com\": failed to call "
        "webhook: Post \"https://hook.system.svc:443/warn?timeout=10s\": service \"hook\" "
        "not found: there is no service network here, see --webhook-services (system/hook)");
    char table[100];
    struct error err = ERROR_INIT;
    str_format(table, sizeof table, "other/one=127.0.0.1:1,system/hook=127.0.0.1:%u",
               httpd_port(hook.httpd));
    rig_check(admission_add_services(r->admission, table, &err), &err, "table");
    o = run(r, &create, t);
    expect_text(o.err.text, "");
    expect_text(o.warnings, "mind the gap|and the step|"); /* as hook.system.svc, by its name */
    static const char *const bad[] = {"system/hook", "hook=127.0.0.1:1", "a/b=127.0.0.1",
                                      "a/b=:5",      "a/b=127.0.0.1:0",  "/b=h:1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (admission_add_services(r->admission, bad[i], &err) == 0)
            fail_msg("'%s' was accepted", bad[i]);
}

static void a_certificate_of_someone_else_is_refused(void **state)
{
    struct rig *r = *state;
    struct pki other = {0};
    struct error err = ERROR_INIT;
    static const char *const names[] = {"127.0.0.1", NULL};
    rig_check(pki_make(&other, names, &err), &err, "pki");
    char mine[sizeof hook.ca];
    str_format(mine, sizeof mine, "%s", hook.ca);
    struct strbuf b = {0};
    base64_encode(other.ca_pem, strlen(other.ca_pem), &b);
    str_format(hook.ca, sizeof hook.ca, "%s", strbuf_str(&b));
    configure(r, "w", url("/ok"), PODS);
    str_format(hook.ca, sizeof hook.ca, "%s", mine);
    strbuf_deinit(&b);
    pki_deinit(&other);
    AUTO_JSONTREE *t = pod();
    struct outcome o = run(r, &create, t);
    assert_int_equal(o.err.http_status, 500);
    expect_text(hook.paths, "");
}

static void a_dry_run_spares_those_with_side_effects(void **state)
{
    struct rig *r = *state;
    struct admission_request q = create;
    q.dry_run = true;
    configure(r, "w", url("/ok"), PODS);
    AUTO_JSONTREE *t = pod();
    struct outcome o = run(r, &q, t);
    expect_text(o.err.text, "");
    assert_non_null(strstr(hook.last, "\"dryRun\":true"));
    struct strbuf b = {0};
    const struct object *old = store_get(r->store, &kind_mutating_webhooks, NULL, "w");
    strbuf_add(&b, old->text, old->text_len);
    memcpy(strstr(b.ptr, "\"None\""), "\"Some\"", 6);
    struct error err = ERROR_INIT;
    rig_check(store_update(r->store, &kind_mutating_webhooks, b.ptr, b.len, 0, NULL, &err), &err,
              "update");
    strbuf_deinit(&b);
    o = run(r, &q, t);
    assert_int_equal(o.err.http_status, 400);
    expect_text(o.err.text, "admission webhook \"w.example.com\" does not support dry run");
}

static void what_is_under_way_is_answered_at_the_end(void **state)
{
    (void)state;
    struct rig *r = rig_up(false);
    rig_make(r, &kind_namespaces, NULL,
             "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"default\"}}");
    hook.hold = true;
    configure(r, "w", url("/slow"), PODS);
    AUTO_JSONTREE *t = pod();
    struct outcome o = {0};
    admission_run(r->admission, &create, t, finished, &o);
    loop_once(r->loop, 0);
    assert_false(o.done);
    rig_down(r);
    assert_true(o.done);
    assert_int_equal(o.err.code, ERROR_CANCELLED);
    pthread_mutex_lock(&hook.lock);
    hook.hold = false;
    pthread_cond_broadcast(&hook.wake);
    pthread_mutex_unlock(&hook.lock);
}

static void a_controllers_pods_pass_the_webhooks_too(void **state)
{
    struct rig *r = *state;
    struct error err = ERROR_INIT;
    configure(r, "w", url("/a"), PODS);
    rig_check(controllers_start(&r->controllers, r->loop, r->api, r->store, &err), &err,
              "controllers");
    controllers_use_admission(r->controllers, r->admission);
    rig_make(
        r, &kind_jobs, "default",
        "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"j\"},\"spec\":{"
        "\"parallelism\":3,\"template\":{\"metadata\":{\"labels\":{\"app\":\"x\"}},\"spec\":{"
        "\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}");
    int64_t end = clock_mono_ms() + 30000;
    while (rig_list(r, &kind_pods, "default", "\"trail\":\"a\"").len < 3) {
        if (clock_mono_ms() > end)
            fail_msg("no pods; asked: %s", hook.paths);
        loop_once(r->loop, 100);
    }
    rig_settle(r);
    rig_expect_count(rig_list(r, &kind_pods, "default", NULL), 3);
    rig_expect(r, &kind_jobs, "default", "j", "status|active", "3");
    assert_non_null(strstr(hook.last, "system:serviceaccount:kube-system:job-controller"));
    assert_null(strstr(hook.last, "\"uid\":\"\""));
    /* Refused: an event, and tried again. */
    configure(r, "w", url("/deny"), PODS);
    rig_make(
        r, &kind_jobs, "default",
        "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"k\"},\"spec\":{"
        "\"template\":{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"c\","
        "\"image\":\"i\"}]}}}}");
    end = clock_mono_ms() + 30000;
    while (rig_list(r, &kind_events, "default",
                    "Error creating: admission webhook \\\"w.example.com\\\" denied the request: "
                    "not on a Monday")
               .len == 0) {
        if (clock_mono_ms() > end)
            fail_msg("no event; asked: %s", hook.paths);
        loop_once(r->loop, 100);
    }
    configure(r, "w", url("/ok"), PODS);
    end = clock_mono_ms() + 30000;
    while (rig_list(r, &kind_pods, "default", NULL).len < 4) {
        if (clock_mono_ms() > end)
            fail_msg("not tried again; asked: %s", hook.paths);
        loop_once(r->loop, 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(fn) cmocka_unit_test_setup_teardown(fn, up, down)
        T(webhooks_change_the_object_in_order_of_their_names),
        T(who_wishes_is_asked_again_after_a_change),
        T(validating_ones_come_last_and_change_nothing),
        T(the_review_says_what_a_real_server_says),
        T(what_becomes_of_answers),
        T(a_slow_webhook_is_not_waited_for),
        T(who_is_asked),
        T(a_service_is_found_by_the_table),
        T(a_certificate_of_someone_else_is_refused),
        T(a_dry_run_spares_those_with_side_effects),
        cmocka_unit_test(what_is_under_way_is_answered_at_the_end),
        T(a_controllers_pods_pass_the_webhooks_too),
    };
    return cmocka_run_group_tests(tests, server_up, server_down);
}

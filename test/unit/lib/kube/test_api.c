// SPDX-License-Identifier: Apache-2.0
#include "test/unit/lib/base/expect.h"

#include <pthread.h>

#include "lib/base/clock.h"
#include "lib/kube/api.h"
#include "test/fake/api/twin.h"

struct bench {
    struct twin *twin;
    struct kube_config *config;
    struct kube_options options;
    struct kube_client *client;
    struct error err;
};

static void bench_init(struct bench *b, int64_t qps, int64_t burst)
{
    *b = (struct bench){.twin = twin_start(NULL, false), .options = twin_options()};
    b->options.qps = qps;
    b->options.burst = burst;
    b->config = twin_config(b->twin);
    if (kube_client_new(&b->client, b->config, &b->options, "test", &b->err) < 0)
        fail_msg("%s", b->err.text);
}

static void bench_deinit(struct bench *b)
{
    kube_client_free(b->client);
    kube_config_free(b->config);
    twin_stop(b->twin);
}

/* The last request: its first line, and its body. */
static void last_request(struct bench *b, struct strbuf *line, struct strbuf *body)
{
    AUTO_STRBUF seen = {0};
    assert_true(twin_request(b->twin, 0, &seen));
    const char *s = strbuf_str(&seen), *end = strstr(s, "\r\n\r\n");
    strbuf_add(line, s, strcspn(s, "\r"));
    strbuf_adds(body, end + 4);
}

static void test_paths(void **state)
{
    (void)state;
    static const struct {
        const struct kube_kind *kind;
        const char *ns, *name, *sub, *expected;
    } rows[] = {
        {&kube_pods, "ns", "a", "binding", "/api/v1/namespaces/ns/pods/a/binding"},
        {&kube_pods, NULL, NULL, NULL, "/api/v1/pods"},
        {&kube_pods, "n/s", "a b", NULL, "/api/v1/namespaces/n%2Fs/pods/a%20b"},
        {&kube_nodes, "ignored", "n1", "status", "/api/v1/nodes/n1/status"},
        {&kube_leases, "ns", "l", NULL, "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l"},
        {&kube_pod_groups_x, "ns", NULL, NULL,
         "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/ns/podgroups"},
        {&kube_mutating_webhooks, NULL, "w", NULL,
         "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/w"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF out = {0};
        kube_api_path(&out, rows[i].kind, rows[i].ns, rows[i].name, rows[i].sub);
        expect_str(rows[i].expected, rows[i].expected, strbuf_str(&out));
    }
    expect_done();
}

static void expect_request(const char *row, struct bench *b, const char *line, const char *body)
{
    AUTO_STRBUF got = {0}, got_body = {0};
    last_request(b, &got, &got_body);
    if (!str_starts(strbuf_str(&got), line))
        expect_str(row, line, strbuf_str(&got));
    expect_str(row, body, strbuf_str(&got_body));
}

static void test_verbs(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 0, 1);
    struct kube_client *c = b.client;
    struct json_doc *doc = NULL;
    twin_script(b.twin, 200, "", "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}}");
    assert_int_equal(0, kube_get(c, &kube_nodes, NULL, "n1", &doc, &b.err));
    assert_string_equal("Node", json_get_str(json_root(doc), "kind"));
    json_free(doc);
    expect_request("get has no timeout parameter", &b, "GET /api/v1/nodes/n1 HTTP", "");
    twin_script(b.twin, 201, "", "{}");
    assert_int_equal(0, kube_create(c, &kube_configmaps, "ns", "{\"a\":1}", 7, NULL, &b.err));
    expect_request("create", &b, "POST /api/v1/namespaces/ns/configmaps?timeout=", "{\"a\":1}");
    assert_int_equal(0, kube_update(c, &kube_pods, "ns", "a", "status", "{}", 2, NULL, &b.err));
    expect_request("update", &b, "PUT /api/v1/namespaces/ns/pods/a/status?timeout=", "{}");
    static const char *const types[] = {"application/merge-patch+json",
                                        "application/strategic-merge-patch+json",
                                        "application/json-patch+json"};
    for (int how = KUBE_PATCH_MERGE; how <= KUBE_PATCH_JSON; how++) {
        AUTO_STRBUF seen = {0};
        assert_int_equal(0, kube_patch(c, &kube_nodes, NULL, "n1", NULL, (enum kube_patch)how, "[]",
                                       2, NULL, &b.err));
        expect_request("patch", &b, "PATCH /api/v1/nodes/n1?timeout=", "[]");
        twin_request(b.twin, 0, &seen);
        expect_true(types[how], strstr(strbuf_str(&seen), types[how]) != NULL);
    }
    assert_int_equal(0, kube_delete(c, &kube_pods, "ns", "a", "u-1", 0, &b.err));
    expect_request(
        "delete", &b, "DELETE /api/v1/namespaces/ns/pods/a?timeout=",
        "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"gracePeriodSeconds\":0,\"preconditions\":{\"uid\":\"u-1\"}}");
    assert_int_equal(0, kube_delete(c, &kube_pods, "ns", "a", NULL, -1, &b.err));
    expect_request("delete at the object's own pace", &b, "DELETE /api",
                   "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\"}");
    assert_int_equal(0, kube_evict(c, "ns", "a", "u-1", &b.err));
    expect_request(
        "evict", &b, "POST /api/v1/namespaces/ns/pods/a/eviction?timeout=",
        "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"},\"deleteOptions\":"
        "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u-1\"}}}");
    bench_deinit(&b);
    expect_done();
}

/* A URL reads "pods/.." as the namespace, and "pods/" as all of them. */
static void test_names_that_no_object_has(void **state)
{
    (void)state;
    static const char *const names[] = {"", ".", ".."};
    struct bench b;
    bench_init(&b, 0, 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *n = names[i];
        bool never_sent = false;
        struct kube_binding bind = {.ns = "ns", .pod = n, .node = "n1", .timeout_ms = 1000};
        expect_int(n, -1, kube_delete(b.client, &kube_pods, "ns", n, NULL, -1, &b.err));
        expect_int(n, ERROR_INVALID, b.err.code);
        expect_int(n, -1, kube_delete(b.client, &kube_pods, n, "a", NULL, -1, &b.err));
        expect_int(n, -1, kube_get(b.client, &kube_nodes, NULL, n, NULL, &b.err));
        expect_int(n, -1, kube_bind(b.client, &bind, &never_sent, &b.err));
        expect_true(n, never_sent);
    }
    expect_str("the error says which", "POST pods: no object can be called '..' in namespace 'ns'",
               b.err.text);
    expect_int("nothing was sent", 0, (int64_t)twin_requests(b.twin, TWIN_ANY));
    expect_int("dots inside are fine", 0,
               kube_get(b.client, &kube_nodes, "", "a..b", NULL, &b.err));
    bench_deinit(&b);
    expect_done();
}

static void test_bind(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 0, 1);
    struct label labels[] = {{"cpuset", ""}, {"x/y", "{\"0\":{\"1\":3}}"}};
    struct kube_binding bind = {.ns = "ns",
                                .pod = "a",
                                .uid = "u-1",
                                .node = "n1",
                                .annotations = {labels, 2},
                                .timeout_ms = 4000};
    bool never_sent = true;
    twin_script(b.twin, 201, "", "{}");
    assert_int_equal(0, kube_bind(b.client, &bind, &never_sent, &b.err));
    assert_false(never_sent);
    AUTO_STRBUF line = {0}, body = {0};
    last_request(&b, &line, &body);
    /* The time goes with it, in what was left of it. */
    const char *timeout = strstr(strbuf_str(&line), "?timeout=");
    assert_non_null(timeout);
    int64_t ms = 0;
    timeout += strlen("?timeout=");
    for (; *timeout >= '0' && *timeout <= '9'; timeout++)
        ms = ms * 10 + *timeout - '0';
    assert_true(ms > 0 && ms <= 4000);
    assert_true(str_starts(timeout, "ms "));
    assert_string_equal(
        "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u-1\",\"annotations\":"
        "{\"cpuset\":\"\",\"x/y\":\"{\\\"0\\\":{\\\"1\\\":3}}\"}},\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n1\"}}",
        strbuf_str(&body));
    struct arena a;
    arena_init(&a, 0);
    struct kube_binding labelled = bind;
    labelled.annotations.len = 1;
    labelled.labels = (struct labels){&labels[1], 1};
    labelled = kube_binding_copy(&labelled, &a);
    AUTO_STRBUF composed_path = {0}, composed = {0};
    assert_int_equal(0, kube_bind_compose(&labelled, &composed_path, &composed, &b.err));
    assert_non_null(strstr(strbuf_str(&composed), "\"annotations\":{\"cpuset\":\"\"},\"labels\":"
                                                  "{\"x/y\":\"{\\\"0\\\":{\\\"1\\\":3}}\"}}"));
    arena_deinit(&a);
    bind.dry_run = true;
    twin_script(b.twin, 201, "", "{}");
    assert_int_equal(0, kube_bind(b.client, &bind, &never_sent, &b.err));
    AUTO_STRBUF dry_line = {0}, dry_body = {0};
    last_request(&b, &dry_line, &dry_body);
    assert_non_null(strstr(strbuf_str(&dry_line), "/pods/a/binding?dryRun=All&timeout="));
    assert_string_equal(strbuf_str(&body), strbuf_str(&dry_body));
    bind.dry_run = false;
    twin_script(
        b.twin, 409, "",
        "{\"reason\":\"Conflict\",\"message\":\"pod a is already assigned to node \\\"n2\\\"\"}");
    assert_int_equal(-1, kube_bind(b.client, &bind, &never_sent, &b.err));
    assert_int_equal(ERROR_CONFLICT, b.err.code);
    twin_fault(b.twin, TWIN_ANY, TWIN_HANG); /* no answer: may have been done */
    bind.timeout_ms = 1000;
    assert_int_equal(-1, kube_bind(b.client, &bind, &never_sent, &b.err));
    assert_int_equal(ERROR_TIMEOUT, b.err.code);
    assert_false(never_sent);
    while (twin_requests(b.twin, TWIN_ANY) < 4) /* a busy twin may read it after we gave up */
        clock_sleep_ms(1);
    assert_int_equal(4, twin_requests(b.twin, TWIN_ANY));
    bench_deinit(&b);
}

/* A leader that was stopped between its fence and the send: what comes out of it afterwards must
 * not be a Binding. */
static void test_a_binding_whose_time_is_over_is_not_sent(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        int64_t qps, ago_ms;
        bool sent;
    } rows[] = {
        {"begun long ago", 0, 60000, false},
        {"its time ends just now", 0, 4000, false},
        {"also when requests are counted", 1000, 4000, false},
        {"begun a moment ago", 0, 1000, true},
        {"begun now", 1000, 0, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench b;
        bench_init(&b, rows[i].qps, 10);
        struct kube_binding bind = {.ns = "ns",
                                    .pod = "a",
                                    .node = "n",
                                    .timeout_ms = 4000,
                                    .began_ms = clock_mono_ms() - rows[i].ago_ms};
        bool never_sent = rows[i].sent; /* the wrong answer */
        twin_script(b.twin, 201, "", "{}");
        int rc = kube_bind(b.client, &bind, &never_sent, &b.err);
        expect_int(rows[i].row, rows[i].sent ? 0 : -1, rc);
        expect_int(rows[i].row, rows[i].sent ? ERROR_NONE : ERROR_TIMEOUT, b.err.code);
        expect_true(rows[i].row, never_sent != rows[i].sent);
        expect_int(rows[i].row, rows[i].sent, (int64_t)twin_requests(b.twin, TWIN_ANY));
        bench_deinit(&b);
    }
    expect_done();
}

static void test_retries(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        enum twin_fault fault;
        bool write;
        int rc;
        enum error_code code;
        size_t requests;
    } rows[] = {
        {"a read after a reset", TWIN_RESET, false, 0, 0, 2},
        {"a write after a reset is not repeated", TWIN_RESET, true, -1, ERROR_UNAVAILABLE, 1},
        {"a read after 429", TWIN_THROTTLE, false, 0, 0, 2},
        {"a write after 429", TWIN_THROTTLE, true, 0, 0, 2},
        {"a read after 500 is the caller's business", TWIN_500, false, -1, ERROR_UNAVAILABLE, 1},
        {"a write after 500", TWIN_500, true, -1, ERROR_UNAVAILABLE, 1},
        {"a redirect", TWIN_REDIRECT, false, -1, ERROR_UNSUPPORTED, 1},
        {"a page that is not JSON", TWIN_HTML, false, -1, ERROR_INVALID, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench b;
        struct json_doc *doc = NULL;
        bench_init(&b, 0, 1);
        twin_fault(b.twin, TWIN_ANY, rows[i].fault);
        int rc = rows[i].write ? kube_create(b.client, &kube_pods, "ns", "{}", 2, &doc, &b.err)
                               : kube_get(b.client, &kube_nodes, NULL, "n", &doc, &b.err);
        json_free(doc);
        expect_int(rows[i].row, rows[i].rc, rc);
        if (rc < 0)
            expect_int(rows[i].row, rows[i].code, b.err.code);
        expect_int(rows[i].row, (int64_t)rows[i].requests,
                   (int64_t)twin_requests(b.twin, TWIN_ANY));
        bench_deinit(&b);
    }
    expect_done();
}

static void test_throttled_longer_than_we_wait(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 0, 1);
    twin_script(b.twin, 429, "Retry-After: 60\r\n", "{}");
    assert_int_equal(-1, kube_get(b.client, &kube_nodes, NULL, "n", NULL, &b.err));
    assert_int_equal(ERROR_THROTTLED, b.err.code);
    assert_int_equal(60000, b.err.retry_after_ms);
    assert_int_equal(1, twin_requests(b.twin, TWIN_ANY));
    bench_deinit(&b);
}

static void test_an_eviction_refused_by_a_budget(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 0, 1);
    twin_script(
        b.twin, 429, "",
        "{\"reason\":\"TooManyRequests\",\"message\":\"Cannot evict pod as it would violate the pod's disruption budget.\"}");
    assert_int_equal(-1, kube_evict(b.client, "ns", "a", NULL, &b.err));
    assert_int_equal(ERROR_THROTTLED, b.err.code);
    assert_int_equal(1, twin_requests(b.twin, TWIN_ANY));
    bench_deinit(&b);
}

static void test_server_away(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 0, 1);
    twin_stop(b.twin);
    b.twin = twin_start(NULL, false); /* on another port */
    bool never_sent = false;
    struct kube_binding bind = {.ns = "ns", .pod = "a", .node = "n", .timeout_ms = 300};
    assert_int_equal(-1, kube_bind(b.client, &bind, &never_sent, &b.err));
    assert_int_equal(ERROR_UNAVAILABLE, b.err.code);
    assert_true(never_sent);
    bench_deinit(&b);
}

/* ---- rate ----------------------------------------------------------------------------------- */

static void test_rate(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 50, 2);
    int64_t began = clock_mono_ms();
    for (int i = 0; i < 7; i++)
        assert_int_equal(0, kube_get(b.client, &kube_nodes, NULL, "n", NULL, &b.err));
    /* Two at once, then one every 20 ms: five of them take 100 ms at least. */
    assert_true(clock_mono_ms() - began >= 99);
    kube_client_set_timeout(b.client, 5);
    int refused = 0;
    for (int i = 0; i < 20; i++)
        if (kube_get(b.client, &kube_nodes, NULL, "n", NULL, &b.err) < 0) {
            assert_true(b.err.code == ERROR_THROTTLED || b.err.code == ERROR_UNAVAILABLE ||
                        b.err.code == ERROR_TIMEOUT);
            refused += b.err.code == ERROR_THROTTLED && b.err.http_status == 0;
        }
    assert_true(refused > 0);
    bench_deinit(&b);
}

static void *cancel_soon(void *arg)
{
    struct bench *b = arg;
    while (twin_requests(b->twin, TWIN_ANY) == 0)
        clock_sleep_ms(1);
    kube_client_cancel(b->client);
    return NULL;
}

static void test_cancel_while_waiting(void **state)
{
    (void)state;
    struct bench b;
    pthread_t thread;
    bench_init(&b, 0, 1);
    b.options.request_timeout_ms = 60000;
    kube_client_set_timeout(b.client, 60000);
    twin_script(b.twin, 429, "Retry-After: 50\r\n", "{}");
    assert_int_equal(0, pthread_create(&thread, NULL, cancel_soon, &b));
    int64_t began = clock_mono_ms();
    assert_int_equal(-1, kube_get(b.client, &kube_nodes, NULL, "n", NULL, &b.err));
    assert_true(clock_mono_ms() - began < 40000); /* not the 50 s that the server wished */
    assert_int_equal(ERROR_CANCELLED, b.err.code);
    assert_string_equal("GET /api/v1/nodes/n: cancelled", b.err.text);
    pthread_join(thread, NULL);
    assert_int_equal(-1, kube_get(b.client, &kube_nodes, NULL, "n", NULL, &b.err));
    assert_int_equal(ERROR_CANCELLED, b.err.code);
    bench_deinit(&b);
}

/* ---- errors --------------------------------------------------------------------------------- */

static void test_status_objects(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        int status;
        const char *body;
        int64_t header_s;
        enum error_code code;
        int64_t retry_ms;
        const char *text;
    } rows[] = {
        {"reason and message", 409, "{\"reason\":\"AlreadyExists\",\"message\":\"pods a exists\"}",
         0, ERROR_CONFLICT, 0, "409 AlreadyExists: pods a exists"},
        {"no body", 404, "", 0, ERROR_NOT_FOUND, 0, "HTTP status 404"},
        {"a body that is not JSON", 502, "<html>", 0, ERROR_UNAVAILABLE, 0, "HTTP status 502"},
        {"a body of the wrong kind", 403, "[1]", 0, ERROR_DENIED, 0, "HTTP status 403"},
        {"seconds in the details", 429, "{\"message\":\"m\",\"details\":{\"retryAfterSeconds\":3}}",
         0, ERROR_THROTTLED, 3000, "429 : m"},
        {"the header wins", 429, "{\"message\":\"m\",\"details\":{\"retryAfterSeconds\":3}}", 1,
         ERROR_THROTTLED, 1000, "429 : m"},
        {"an absurd wish is cut", 429,
         "{\"message\":\"m\",\"details\":{\"retryAfterSeconds\":999999999999}}", 0, ERROR_THROTTLED,
         3600000, "429 : m"},
        {"a negative wish is none", 429,
         "{\"message\":\"m\",\"details\":{\"retryAfterSeconds\":-3}}", 0, ERROR_THROTTLED, 0,
         "429 : m"},
        {"expired under another status", 500, "{\"reason\":\"Expired\",\"message\":\"m\"}", 0,
         ERROR_GONE, 0, "500 Expired: m"},
        {"server timeout", 500, "{\"reason\":\"ServerTimeout\",\"message\":\"m\"}", 0,
         ERROR_TIMEOUT, 0, "500 ServerTimeout: m"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = ERROR_INIT;
        expect_int(rows[i].row, -1,
                   kube_http_status_error(&err, rows[i].status, rows[i].body, strlen(rows[i].body),
                                          rows[i].header_s));
        expect_int(rows[i].row, rows[i].code, err.code);
        expect_int(rows[i].row, rows[i].status, err.http_status);
        expect_int(rows[i].row, rows[i].retry_ms, err.retry_after_ms);
        expect_str(rows[i].row, rows[i].text, err.text);
    }
    assert_int_equal(-1, kube_http_status_error(NULL, 500, "", 0, 0));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_verbs),
        cmocka_unit_test(test_names_that_no_object_has),
        cmocka_unit_test(test_bind),
        cmocka_unit_test(test_a_binding_whose_time_is_over_is_not_sent),
        cmocka_unit_test(test_retries),
        cmocka_unit_test(test_throttled_longer_than_we_wait),
        cmocka_unit_test(test_an_eviction_refused_by_a_budget),
        cmocka_unit_test(test_server_away),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_cancel_while_waiting),
        cmocka_unit_test(test_status_objects),
    };
    kube_http_global_init();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return failed;
}

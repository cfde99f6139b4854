// SPDX-License-Identifier: Apache-2.0
#include "test/unit/lib/base/expect.h"

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/num.h"
#include "lib/kube/events.h"
#include "lib/kube/http.h"
#include "test/fake/api/twin.h"

enum { WAIT_MS = 30000 };

struct bench {
    struct twin *twin;
    struct kube_config *config;
    struct kube_options kube;
    struct events *events;
};

static const struct events_object pod = {
    .api_version = "v1", .kind = "Pod", .ns = "ns", .name = "a", .uid = "u-1"};
static const struct events_object node = {
    .api_version = "v1", .kind = "Node", .ns = "", .name = "n1", .uid = NULL};

static void bench_init_aged(struct bench *b, int64_t queue, int64_t qps, int64_t max_age_ms)
{
    struct error err = ERROR_INIT;
    *b = (struct bench){.twin = twin_start(NULL, false), .kube = twin_options()};
    b->config = twin_config(b->twin);
    struct events_options o = {
        .queue = queue, .qps = qps, .max_age_ms = max_age_ms, .host = "node-1"};
    if (events_start(&b->events, b->config, &b->kube, &o, "cosched-test", &err) < 0)
        fail_msg("%s", err.text);
}

static void bench_init(struct bench *b, int64_t queue, int64_t qps)
{
    bench_init_aged(b, queue, qps, 0);
}

static void bench_deinit(struct bench *b, int64_t drain_ms)
{
    events_stop(b->events, drain_ms);
    kube_config_free(b->config);
    twin_stop(b->twin);
}

static void await_requests(struct bench *b, size_t n)
{
    for (int64_t end = clock_mono_ms() + WAIT_MS; twin_requests(b->twin, TWIN_ANY) < n;
         clock_sleep_ms(1))
        if (clock_mono_ms() >= end)
            fail_msg("expected %zu requests, got %zu after %d ms", n,
                     twin_requests(b->twin, TWIN_ANY), WAIT_MS);
}

/* The n-th last request: its first line in line, its body parsed. */
static struct json_doc *sent(struct bench *b, size_t n, struct strbuf *line)
{
    AUTO_STRBUF seen = {0};
    struct json_doc *doc = NULL;
    assert_true(twin_request(b->twin, n, &seen));
    strbuf_reset(line);
    strbuf_add(line, seen.ptr, strcspn(seen.ptr, "\r"));
    const char *body = strstr(strbuf_str(&seen), "\r\n\r\n") + 4;
    assert_int_equal(0, json_parse(&doc, body, strlen(body), NULL));
    return doc;
}

static void test_a_new_event(void **state)
{
    (void)state;
    struct bench b;
    AUTO_STRBUF line = {0};
    bench_init(&b, 10, 100);
    events_emit(b.events, &pod, true, "FailedScheduling", "0/4 nodes fit");
    await_requests(&b, 1);
    struct json_doc *doc = sent(&b, 0, &line);
    json *e = json_root(doc), *o = json_get(e, "involvedObject");
    expect_true(strbuf_str(&line),
                str_starts(strbuf_str(&line), "POST /api/v1/namespaces/ns/events?timeout="));
    expect_str("kind", "Event", json_get_str(e, "kind"));
    expect_true("name", str_starts(json_get_str(json_get(e, "metadata"), "name"), "a."));
    expect_str("namespace", "ns", json_get_str(json_get(e, "metadata"), "namespace"));
    expect_str("object", "Pod", json_get_str(o, "kind"));
    expect_str("object", "ns", json_get_str(o, "namespace"));
    expect_str("object", "a", json_get_str(o, "name"));
    expect_str("object", "u-1", json_get_str(o, "uid"));
    expect_str("type", "Warning", json_get_str(e, "type"));
    expect_str("reason", "FailedScheduling", json_get_str(e, "reason"));
    expect_str("message", "0/4 nodes fit", json_get_str(e, "message"));
    expect_str("component", "cosched-test", json_get_str(json_get(e, "source"), "component"));
    expect_str("component", "cosched-test", json_get_str(e, "reportingComponent"));
    expect_str("host", "node-1", json_get_str(json_get(e, "source"), "host"));
    expect_str("host", "node-1", json_get_str(e, "reportingInstance"));
    int64_t count = 0;
    expect_true("count", json_get_int(e, "count", &count) && count == 1);
    expect_true("time", clock_parse_rfc3339(str_or_empty(json_get_str(e, "lastTimestamp"))) > 0);
    json_free(doc);
    events_emit(b.events, &node, false, "GpuModeSwitched", "cgpu");
    await_requests(&b, 2);
    doc = sent(&b, 0, &line);
    expect_true("cluster objects' Events live in default",
                str_starts(strbuf_str(&line), "POST /api/v1/namespaces/default/events?"));
    expect_str("and name no namespace", NULL,
               json_get_str(json_get(json_root(doc), "involvedObject"), "namespace"));
    expect_str("type", "Normal", json_get_str(json_root(doc), "type"));
    json_free(doc);
    bench_deinit(&b, 1000);
    expect_done();
}

/* An Event is called "<object>.<number>", and a name part before a dot ends in a letter or
 * digit. */
static void test_names_of_events(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        size_t len; /* of the object's name, all 'x' */
        size_t dash_from, dash_to;
        size_t kept;
    } rows[] = {
        {"a short name", 3, 0, 0, 3},
        {"the longest that is kept whole", 230, 0, 0, 230},
        {"a longer one is cut", 253, 0, 0, 230},
        {"not behind a dash", 253, 229, 230, 229},
        {"nor behind several", 253, 200, 240, 200},
    };
    struct bench b;
    bench_init(&b, 10, 100);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[254] = "";
        AUTO_STRBUF line = {0};
        memset(name, 'x', rows[i].len);
        memset(name + rows[i].dash_from, '-', rows[i].dash_to - rows[i].dash_from);
        struct events_object o = pod;
        o.name = name;
        events_emit(b.events, &o, true, "R", "m");
        await_requests(&b, i + 1);
        struct json_doc *doc = sent(&b, 0, &line);
        const char *got = json_get_str(json_get(json_root(doc), "metadata"), "name");
        expect_int(rows[i].row, (int64_t)rows[i].kept, (int64_t)strcspn(str_or_empty(got), "."));
        expect_int(rows[i].row, (int64_t)rows[i].kept + 17, (int64_t)strlen(str_or_empty(got)));
        json_free(doc);
    }
    bench_deinit(&b, 1000);
    expect_done();
}

static void test_the_same_again_raises_the_count(void **state)
{
    (void)state;
    struct bench b;
    AUTO_STRBUF line = {0};
    bench_init(&b, 10, 100);
    events_emit(b.events, &pod, true, "R", "m");
    await_requests(&b, 1);
    events_emit(b.events, &pod, true, "R", "m");
    await_requests(&b, 2);
    struct json_doc *doc = sent(&b, 0, &line);
    int64_t count = 0;
    expect_true(strbuf_str(&line),
                str_starts(strbuf_str(&line), "PATCH /api/v1/namespaces/ns/events/a."));
    expect_true("count", json_get_int(json_root(doc), "count", &count) && count == 2);
    json_free(doc);
    static const struct {
        const char *row;
        bool warning;
        const char *reason, *message;
    } others[] = {{"another type", false, "R", "m"},
                  {"another reason", true, "S", "m"},
                  {"another message", true, "R", "n"}};
    for (size_t i = 0; i < 3; i++) {
        events_emit(b.events, &pod, others[i].warning, others[i].reason, others[i].message);
        await_requests(&b, 3 + i);
        json_free(sent(&b, 0, &line));
        expect_true(others[i].row, str_starts(strbuf_str(&line), "POST "));
    }
    struct events_object other = pod;
    other.uid = "u-2"; /* the next pod of that name */
    events_emit(b.events, &other, true, "R", "m");
    await_requests(&b, 6);
    json_free(sent(&b, 0, &line));
    expect_true("another uid", str_starts(strbuf_str(&line), "POST "));
    other.api_version = "x/v1"; /* two groups may have a kind of the same name */
    events_emit(b.events, &other, true, "R", "m");
    await_requests(&b, 7);
    json_free(sent(&b, 0, &line));
    expect_true("another group", str_starts(strbuf_str(&line), "POST "));
    bench_deinit(&b, 1000);
    expect_done();
}

static void test_an_event_that_expired(void **state)
{
    (void)state;
    struct bench b;
    AUTO_STRBUF line = {0};
    bench_init(&b, 10, 100);
    twin_script(b.twin, 201, "", "{}");
    twin_script(b.twin, 404, "", "{}"); /* to the patch */
    events_emit(b.events, &pod, true, "R", "m");
    await_requests(&b, 1);
    events_emit(b.events, &pod, true, "R", "m");
    await_requests(&b, 3); /* the patch, then a new one */
    json_free(sent(&b, 0, &line));
    assert_true(str_starts(strbuf_str(&line), "POST "));
    bench_deinit(&b, 1000);
}

/* While the worker hangs in its first request everything waits. */
static void test_queue(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 3, 100);
    twin_fault(b.twin, TWIN_ANY, TWIN_HANG);
    events_emit(b.events, &pod, true, "First", "m");
    await_requests(&b, 1);
    static const char *const reasons[] = {"A", "B", "C", "D", "E"};
    for (size_t i = 0; i < 5; i++)
        events_emit(b.events, &pod, true, reasons[i], "m");
    assert_int_equal(2, events_dropped(b.events)); /* D and E: the newest */
    for (int i = 0; i < 6; i++)
        events_emit(b.events, &pod, true, "B", "m"); /* counted where it waits */
    assert_int_equal(2, events_dropped(b.events));
    await_requests(&b, 4); /* the first timed out, the three that waited follow */
    AUTO_STRBUF line = {0};
    struct json_doc *doc = sent(&b, 1, &line);
    int64_t count = 0;
    assert_string_equal("B", json_get_str(json_root(doc), "reason"));
    assert_true(json_get_int(json_root(doc), "count", &count));
    assert_int_equal(7, count);
    json_free(doc);
    assert_int_equal(3, events_dropped(b.events)); /* the one that got no answer */
    bench_deinit(&b, 1000);
}

static int64_t counted(const char *result)
{
    AUTO_STRBUF all = {0};
    AUTO_STRBUF name = {0};
    int64_t n = 0;
    metrics_render(&all);
    strbuf_addf(&name, "cosched_events_total{result=\"%s\"} ", result);
    const char *at = strstr(strbuf_str(&all), strbuf_str(&name));
    if (at == NULL)
        return 0;
    at = strchr(at, '}') + 2;
    assert_int_equal(0, num_parse(at, strcspn(at, "\n"), &n, NULL));
    return n;
}

/* The worker hangs in its first request until that times out; what was said meanwhile is too old
 * then. */
static void test_old_news(void **state)
{
    (void)state;
    struct bench b;
    bench_init_aged(&b, 10, 100, 1);
    twin_fault(b.twin, TWIN_ANY, TWIN_HANG);
    int64_t end = clock_mono_ms() + WAIT_MS, before = counted("too old");
    for (; twin_requests(b.twin, TWIN_ANY) == 0 && clock_mono_ms() < end; clock_sleep_ms(1))
        events_emit(b.events, &pod, true, "First", "m"); /* that may be too old already */
    events_emit(b.events, &pod, true, "A", "m");
    events_emit(b.events, &pod, true, "B", "m");
    while (counted("too old") - before < 2 && clock_mono_ms() < end)
        clock_sleep_ms(1);
    expect_true("those that waited were dropped", counted("too old") - before >= 2);
    expect_int("they were not sent", 1, (int64_t)twin_requests(b.twin, TWIN_ANY));
    expect_true("all that was dropped is counted", events_dropped(b.events) >= 2);
    bench_deinit(&b, 1000);
    expect_done();
}

static void test_message_is_cut_between_characters(void **state)
{
    (void)state;
    struct bench b;
    AUTO_STRBUF line = {0};
    char message[1100];
    memset(message, 'x', sizeof message);
    memcpy(message + 1023, "\xe2\x82\xac", 3); /* across the bound */
    message[1099] = 0;
    bench_init(&b, 10, 100);
    events_emit(b.events, &pod, false, "R", message);
    await_requests(&b, 1);
    struct json_doc *doc = sent(&b, 0, &line);
    const char *got = json_get_str(json_root(doc), "message");
    assert_int_equal(1023, strlen(got));
    json_free(doc);
    bench_deinit(&b, 1000);
}

static void test_drain(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 100, 1000);
    for (int i = 0; i < 20; i++) {
        char reason[16];
        str_format(reason, sizeof reason, "R%d", i);
        events_emit(b.events, &pod, false, reason, "m");
    }
    events_stop(b.events, 30000);
    assert_int_equal(20, twin_requests(b.twin, TWIN_ANY));
    kube_config_free(b.config);
    twin_stop(b.twin);
}

static void test_stop_does_not_wait_for_ever(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 100, 1);
    b.kube.request_timeout_ms = 60000;
    twin_fault(b.twin, TWIN_ANY, TWIN_HANG);
    events_emit(b.events, &pod, false, "R", "m");
    await_requests(&b, 1);
    events_emit(b.events, &pod, false, "S", "m");
    bench_deinit(&b, 20);
    bench_init(&b, 100, 1); /* one in a second: the second one does not go out in time */
    events_emit(b.events, &pod, false, "R", "m");
    events_emit(b.events, &pod, false, "S", "m");
    await_requests(&b, 1);
    events_stop(b.events, 20);
    assert_int_equal(1, twin_requests(b.twin, TWIN_ANY));
    events_stop(NULL, 0);
    kube_config_free(b.config);
    twin_stop(b.twin);
}

/* More than the memory of what was sent: the oldest is forgotten and becomes a new Event. */
static void test_memory_is_bounded(void **state)
{
    (void)state;
    struct bench b;
    AUTO_STRBUF line = {0};
    enum { MORE_THAN_KEPT = 4096 + 4 };
    bench_init(&b, 5000, 100000);
    char reason[16];
    for (int i = 0; i < MORE_THAN_KEPT; i++) {
        str_format(reason, sizeof reason, "R%d", i);
        events_emit(b.events, &pod, false, reason, "m");
    }
    await_requests(&b, MORE_THAN_KEPT);
    events_emit(b.events, &pod, false, "R0", "m");
    await_requests(&b, MORE_THAN_KEPT + 1);
    json_free(sent(&b, 0, &line));
    expect_true("the oldest was forgotten", str_starts(strbuf_str(&line), "POST "));
    events_emit(b.events, &pod, false, reason, "m");
    await_requests(&b, MORE_THAN_KEPT + 2);
    json_free(sent(&b, 0, &line));
    expect_true("the youngest was not", str_starts(strbuf_str(&line), "PATCH "));
    bench_deinit(&b, 1000);
    expect_done();
}

static void test_rows(void **state)
{
    (void)state;
    struct events_options o = {0};
    const struct option_table tables[] = {{.rows = events_option_rows, .target = &o}, {0}};
    static const struct option_program program = {
        .name = "p", .summary = "s", .synopsis = "", .description = ""};
    char name[] = "p";
    char *argv[] = {name, NULL};
    struct options_operands operands;
    assert_int_equal(OPTIONS_RUN, options_parse(&program, tables, 1, argv, &operands, NULL));
    assert_int_equal(10000, o.queue);
    assert_int_equal(50, o.qps);
    assert_int_equal(60000, o.max_age_ms);
}

static void drop_line(void *arg, const char *line, size_t n)
{
    (void)arg, (void)line, (void)n;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_event),
        cmocka_unit_test(test_old_news),
        cmocka_unit_test(test_names_of_events),
        cmocka_unit_test(test_the_same_again_raises_the_count),
        cmocka_unit_test(test_an_event_that_expired),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_message_is_cut_between_characters),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_stop_does_not_wait_for_ever),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_rows),
    };
    log_set_sink(drop_line, NULL);
    kube_http_global_init();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return failed;
}

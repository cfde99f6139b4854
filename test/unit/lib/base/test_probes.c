// SPDX-License-Identifier: Apache-2.0
#include "lib/base/probes.h"

#include <pthread.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/options.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/base/wire.h"

static struct loop *loop;
static struct probes probes;
static const struct probes_options options = {.address = "127.0.0.1", .port = 0};

static int begin(void **state)
{
    (void)state;
    if (loop_new(&loop, NULL) < 0)
        return -1;
    probes_init(&probes, loop);
    return 0;
}

static int end(void **state)
{
    (void)state;
    probes_stop(&probes);
    loop_free(loop);
    metrics_reset();
    return 0;
}

static struct strbuf lines;

static void keep_line(void *arg, const char *line, size_t n)
{
    (void)arg;
    strbuf_add(&lines, line, n);
}

static void start(httpd_handler other, void *arg)
{
    struct error err = ERROR_INIT;
    strbuf_init(&lines);
    log_set_sink(keep_line, NULL);
    if (probes_start(&probes, &options, other, arg, &err) < 0)
        fail_msg("probes_start: %s", err.text);
    log_set_sink(NULL, NULL);
    char expected[100];
    str_format(expected, sizeof expected, " msg=\"probes listening\" address=127.0.0.1 port=%u\n",
               (unsigned)httpd_port(probes.httpd));
    expect_true("the port that was taken is logged", str_ends(strbuf_str(&lines), expected));
    strbuf_deinit(&lines);
}

static void expect_reply(const char *row, const char *line, int status, const char *body)
{
    AUTO_STRBUF request = {0}, reply = {0};
    strbuf_addf(&request, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", line);
    expect_true(row, wire_ask(httpd_port(probes.httpd), strbuf_str(&request), &reply));
    expect_int(row, status, wire_status(&reply));
    if (body != NULL)
        expect_str(row, body, wire_body(&reply));
}

static void healthz_follows_the_beat(void **state)
{
    (void)state;
    start(NULL, NULL);
    expect_reply("the loop has not run yet", "GET /healthz", 200, "ok\n");
    expect_reply("HEAD", "HEAD /healthz", 200, "");
    /* As if the loop had stood still for longer than it may. */
    atomic_store(&probes.beat_ms, clock_mono_ms() - PROBES_STALL_MS - 5000);
    AUTO_STRBUF reply = {0};
    expect_true("stalled",
                wire_ask(httpd_port(probes.httpd),
                         "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", &reply));
    expect_int("stalled", 503, wire_status(&reply));
    expect_true("says for how long",
                str_starts(wire_body(&reply), "the main loop has not answered for 20"));
    int64_t stalled = atomic_load(&probes.beat_ms);
    while (atomic_load(&probes.beat_ms) == stalled)
        loop_once(loop, PROBES_BEAT_MS);
    expect_reply("the loop beats again", "GET /healthz", 200, "ok\n");
    expect_done();
}

static void readyz_lists_what_is_missing(void **state)
{
    (void)state;
    unsigned pods = probes_need(&probes, "pods listed"),
             nodes = probes_need(&probes, "nodes listed");
    expect_int("not ready", false, probes_ready(&probes));
    start(NULL, NULL);
    expect_reply("both are missing", "GET /readyz", 503,
                 "waiting for: pods listed, nodes listed\n");
    probes_met(&probes, pods, true);
    expect_reply("one is missing", "GET /readyz", 503, "waiting for: nodes listed\n");
    probes_met(&probes, nodes, true);
    expect_int("ready", true, probes_ready(&probes));
    expect_reply("none is missing", "GET /readyz", 200, "ok\n");
    probes_met(&probes, pods, false);
    expect_int("no longer ready", false, probes_ready(&probes));
    expect_reply("one is missing again", "GET /readyz", 503, "waiting for: pods listed\n");
    expect_done();
}

static void without_needs_it_is_ready(void **state)
{
    (void)state;
    start(NULL, NULL);
    expect_int("ready", true, probes_ready(&probes));
    expect_reply("readyz", "GET /readyz?verbose", 200, "ok\n");
    expect_done();
}

static void metrics_are_served(void **state)
{
    (void)state;
    static struct metric m = {.kind = METRIC_COUNTER, .name = "probes_test_total", .help = "T."};
    metrics_register(&m);
    metrics_add(&m, NULL, 42);
    start(NULL, NULL);
    AUTO_STRBUF reply = {0};
    expect_true("asked",
                wire_ask(httpd_port(probes.httpd),
                         "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", &reply));
    expect_int("status", 200, wire_status(&reply));
    expect_true(
        "its own type",
        strstr(strbuf_str(&reply), "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    expect_true("our metric", strstr(strbuf_str(&reply), "\nprobes_test_total 42\n"));
    expect_true("the process", strstr(strbuf_str(&reply), "\nprocess_resident_memory_bytes "));
    expect_done();
}

static void only_reading_is_allowed(void **state)
{
    (void)state;
    start(NULL, NULL);
    expect_reply("DELETE", "DELETE /metrics", 405, "only GET and HEAD are allowed here\n");
    expect_reply("POST", "POST /healthz", 405, "only GET and HEAD are allowed here\n");
    expect_done();
}

static void answer_other(void *arg, const struct httpd_request *request,
                         struct httpd_response *response)
{
    strbuf_addf(&response->body, "%s %s", (const char *)arg, request->path);
}

static void other_paths_go_to_other(void **state)
{
    (void)state;
    start(answer_other, (char[]){"other"});
    expect_reply("another path", "GET /debug/cluster", 200, "other /debug/cluster");
    expect_reply("what only begins like one of ours", "GET /healthz/x", 200, "other /healthz/x");
    expect_reply("ours stay ours", "GET /healthz", 200, "ok\n");
    expect_done();
}

static void without_other_they_are_not_found(void **state)
{
    (void)state;
    start(NULL, NULL);
    expect_reply("another path", "GET /", 404,
                 "not found; there are /healthz, /readyz and /metrics\n");
    expect_done();
}

static void a_port_that_is_taken_is_an_error(void **state)
{
    (void)state;
    start(NULL, NULL);
    struct probes second;
    probes_init(&second, loop);
    struct probes_options same = {.address = "127.0.0.1", .port = httpd_port(probes.httpd)};
    struct error err = ERROR_INIT;
    expect_int("taken", -1, probes_start(&second, &same, NULL, NULL, &err));
    expect_true("says who", str_starts(err.text, "probes: listen on 127.0.0.1 port "));
    expect_true("leaves no timer behind", !heap_has(&second.beat.node));
    probes_stop(&second); /* after a failure, too */
    expect_done();
}

static void the_rows_fill_the_options(void **state)
{
    (void)state;
    struct probes_options o = {0};
    const struct option_table tables[] = {{probes_option_rows, &o}, {0}};
    const struct option_program program = {.name = "x", .summary = "y"};
    static char self[] = "x", flag[] = "--http-port=0";
    char *argv[] = {self, flag, NULL};
    unsetenv("COSCHED_HTTP_ADDRESS");
    expect_int("parsed", OPTIONS_RUN, options_parse(&program, tables, 2, argv, NULL, NULL));
    expect_int("port", 0, o.port);
    expect_str("address", "0.0.0.0", o.address);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(healthz_follows_the_beat, begin, end),
        cmocka_unit_test_setup_teardown(readyz_lists_what_is_missing, begin, end),
        cmocka_unit_test_setup_teardown(without_needs_it_is_ready, begin, end),
        cmocka_unit_test_setup_teardown(metrics_are_served, begin, end),
        cmocka_unit_test_setup_teardown(only_reading_is_allowed, begin, end),
        cmocka_unit_test_setup_teardown(other_paths_go_to_other, begin, end),
        cmocka_unit_test_setup_teardown(without_other_they_are_not_found, begin, end),
        cmocka_unit_test_setup_teardown(a_port_that_is_taken_is_an_error, begin, end),
        cmocka_unit_test_setup_teardown(the_rows_fill_the_options, begin, end),
    };
    return cmocka_run_group_tests_name("probes", tests, NULL, NULL);
}

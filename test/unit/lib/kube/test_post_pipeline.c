// SPDX-License-Identifier: Apache-2.0
/*
 * What the pipeline writes, and how it handles every answer. Each time a write is reported once and
 * correctly, it was sent at most once, and the next write succeeds. Connections that fail or end,
 * and writes that are cancelled, are in test_post_pipeline_connections.
 */
#include "test/unit/lib/kube/post_pipeline_kit.h"

#include <netinet/tcp.h>

/* ---- the request ---- */

static void the_request_is_complete(void **state)
{
    (void)state;
    AUTO_STRBUF seen = {0}, host = {0};
    start(1, 7000);
    expect_int("written", ERROR_NONE, write_one(0)->error.code);
    assert_true(twin_request(b.twin, 0, &seen));
    const char *s = strbuf_str(&seen);
    strbuf_addf(&host, "\r\nHost: 127.0.0.1:%u\r\n", twin_port(b.twin));
    const char *parts[] = {strbuf_str(&host),
                           "\r\nUser-Agent: test/1\r\n",
                           "\r\nAuthorization: Bearer s3cr3t-t0ken\r\n",
                           "\r\nContent-Type: application/json\r\n",
                           "\r\nAccept: application/json\r\n",
                           "\r\nContent-Length: 2\r\n"};
    expect_true(s, str_starts(s, "POST /x/0?timeout=") && str_ends(s, "\r\n\r\n{}"));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(s, parts[i]) == NULL)
            expect_str("is in the request", parts[i], s);
    int ms = 0;
    for (const char *p = s + strlen("POST /x/0?timeout="); *p >= '0' && *p <= '9'; p++)
        ms = ms * 10 + (*p - '0');
    expect_true("the server is told how long it has", ms > 0 && ms <= 7000);
    unsigned limit = 0;
    socklen_t len = sizeof limit;
    int fd = find_socket(twin_port(b.twin));
    expect_int("asked", 0, getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, &len));
    expect_true("and so is the kernel", limit > 0 && limit <= 7000);
    expect_done();
}

static void many_writes_share_few_connections(void **state)
{
    (void)state;
    start(8, WAIT_MS);
    for (int i = 0; i < JOBS; i++)
        submit(i);
    await_done(JOBS);
    for (int i = 0; i < JOBS; i++)
        expect_str("all are written", "", b.jobs[i].answer.error.text);
    expect_int("each once", JOBS, (int64_t)twin_requests(b.twin, TWIN_ANY));
    expect_true("at most eight connections", twin_connections(b.twin) <= 8);
    expect_done();
}

static void a_write_larger_than_the_socket_takes(void **state)
{
    (void)state;
    AUTO_STRBUF big = {0}, seen = {0};
    for (int i = 0; i < 4 * 1024 * 1024; i++)
        strbuf_addc(&big, 'x');
    b.body = strbuf_str(&big);
    start(1, WAIT_MS);
    expect_str("written", "", write_one(0)->error.text);
    assert_true(twin_request(b.twin, 0, &seen));
    expect_true("whole", str_ends(strbuf_str(&seen), b.body));
    expect_done();
}

/* ---- the answer ---- */

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"

static const struct row {
    const char *sentence;
    const char *raw; /* what the server says; NULL: */
    enum twin_fault fault;
    bool close;
    enum error_code code;
    int status;
    int64_t retry_after_ms;
    const char *text;
    bool kept; /* the next write goes over the same connection */
} rows[] = {
    {"201", .raw = CREATED, .kept = true},
    {"200 in chunks", .raw = CHUNKED, .kept = true},
    {"100 before 201", .raw = "HTTP/1.1 100 Continue\r\n\r\n" CREATED, .kept = true},
    {"201, and the server says that it closes",
     .raw = "HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
     .close = true},
    {"201, and it says so but leaves it to us",
     .raw = "HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"},
    {"an answer that ends with the connection", .raw = "HTTP/1.1 201 Created\r\n\r\n{}",
     .close = true},
    {"bytes after the answer: not a connection to go on with", .raw = CREATED "HTTP/1.1 2"},
    {"404", .raw = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}", .code = ERROR_NOT_FOUND,
     .status = 404, .text = "POST /x/0: HTTP status 404", .kept = true},
    {"409 with its reason",
     .raw = "HTTP/1.1 409 Conflict\r\nContent-Length: 37\r\n\r\n"
            "{\"reason\":\"Conflict\",\"message\":\"Why\"}",
     .code = ERROR_CONFLICT, .status = 409, .text = "POST /x/0: 409 Conflict: Why", .kept = true},
    {"429", .fault = TWIN_THROTTLE, .code = ERROR_THROTTLED, .status = 429, .retry_after_ms = 1000,
     .text = "POST /x/0: 429 TooManyRequests: slow down", .kept = true},
    {"500", .fault = TWIN_500, .code = ERROR_UNAVAILABLE, .status = 500,
     .text = "POST /x/0: 500 InternalError: etcd said no", .kept = true},
    {"a redirect is not followed", .fault = TWIN_REDIRECT, .code = ERROR_UNSUPPORTED,
     .text = "POST /x/0: the server answered 302, a redirect: not followed", .kept = true},
    {"closed without an answer", .fault = TWIN_CLOSE, .code = ERROR_UNAVAILABLE,
     .text = "POST /x/0: the connection was closed before an answer"},
    {"a reset", .fault = TWIN_RESET, .code = ERROR_UNAVAILABLE},
    {"half an answer", .fault = TWIN_CUT_CHUNK, .code = ERROR_UNAVAILABLE,
     .text = "POST /x/0: the connection was closed in the middle of the answer"},
    {"no HTTP", .raw = "220 smtp.example.org ESMTP\r\n", .code = ERROR_UNAVAILABLE,
     .text = "POST /x/0: the answer is not HTTP: malformed status line"},
    {"larger than may be", .fault = TWIN_OVERSIZE, .code = ERROR_TOO_LARGE,
     .text = "POST /x/0: reply is larger than 1048576 bytes"},
    {"no answer in time", .fault = TWIN_HANG, .code = ERROR_TIMEOUT,
     .text = "POST /x/0: no answer within 500 ms"},
    {"half an answer in time", .fault = TWIN_HANG_MIDWAY, .code = ERROR_TIMEOUT,
     .text = "POST /x/0: no answer within 500 ms"},
    {"a few bytes at a time", .fault = TWIN_TRICKLE, .kept = true},
};

static void play(const struct row *row)
{
    bool timed = row->fault == TWIN_HANG || row->fault == TWIN_HANG_MIDWAY;
    start(1, timed ? SHORT_MS : WAIT_MS);
    twin_fault(b.twin, TWIN_ANY, row->fault);
    if (row->raw != NULL)
        twin_script_raw(b.twin, row->raw, SIZE_MAX, row->close);
    int64_t began_ms = clock_mono_ms();
    const struct post_pipeline_answer *a = write_one(0);
    expect_int(row->sentence, row->code, a->error.code);
    expect_int(row->sentence, row->status, a->error.http_status);
    expect_int(row->sentence, row->retry_after_ms, a->error.retry_after_ms);
    if (row->text != NULL)
        expect_str(row->sentence, row->text, a->error.text);
    expect_true("no secrets", strstr(a->error.text, "s3cr3t") == NULL);
    expect_int("it was sent", false, a->never_sent);
    expect_true("its end is known", a->until_ms > began_ms && a->began_us / 1000 >= began_ms);
    await_requests(1); /* a busy twin may read it after we gave up */
    expect_int("once", 1, (int64_t)twin_requests(b.twin, TWIN_ANY));
    if (timed) { /* so that the next has time */
        post_pipeline_stop(b.pipeline);
        start(1, WAIT_MS);
    }
    expect_str("it goes on", "", write_one(1)->error.text);
    expect_int(row->sentence, row->kept ? 1 : 2, (int64_t)twin_connections(b.twin));
}

static void whatever_the_answer_the_report_is_true(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)setup(state);
        play(&rows[i]);
        (void)teardown(state);
    }
    expect_done();
}

static void an_answer_may_be_cut_anywhere(void **state)
{
    (void)state;
    static const char *const answers[] = {CREATED, CHUNKED};
    int n = 0;
    start(1, WAIT_MS);
    for (size_t i = 0; i < 2; i++)
        for (size_t cut = 1; cut < strlen(answers[i]); cut++) {
            twin_script_raw(b.twin, answers[i], cut, false);
            expect_str("in two pieces", "", write_one(n++)->error.text);
        }
    expect_int("over one connection", 1, (int64_t)twin_connections(b.twin));
    expect_done();
}

static void an_answer_may_end_anywhere(void **state)
{
    (void)state;
    char part[sizeof CREATED];
    int n = 0;
    start(1, WAIT_MS);
    for (size_t end = 0; end < strlen(CREATED); end++) {
        memcpy(part, CREATED, end);
        part[end] = '\0';
        twin_script_raw(b.twin, part, SIZE_MAX, true);
        const struct post_pipeline_answer *a = write_one(n++);
        expect_int("cut off: nobody knows", ERROR_UNAVAILABLE, a->error.code);
        expect_int("but it was sent", false, a->never_sent);
    }
    expect_int("each once", n, (int64_t)twin_requests(b.twin, TWIN_ANY));
    expect_done();
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_request_is_complete),
        TEST(many_writes_share_few_connections),
        TEST(a_write_larger_than_the_socket_takes),
        cmocka_unit_test(whatever_the_answer_the_report_is_true),
        TEST(an_answer_may_be_cut_anywhere),
        TEST(an_answer_may_end_anywhere),
    };
    kube_http_global_init();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return failed;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The poster against the API server's twin, which answers with any bytes, late, in part or not at all. What must hold each time: a write is reported once and
 * truly, it was sent at most once, and the next write goes well.
 */
#include "lib/kube/poster.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/listener.h"
#include "lib/kube/http.h"
#include "test/fake/api/twin.h"
#include "test/unit/lib/base/expect.h"

enum { WAIT_MS = 60000, SHORT_MS = 500, JOBS = 2000, BIG = 300 * 1024 };

/* A write: its number is in its path. */
struct job {
    int number;
    bool done, disposed;
    struct poster_answer answer;
};

static struct bench {
    struct twin *twin;
    struct kube_config *config;
    struct kube_options options;
    struct poster *poster;
    struct job jobs[JOBS];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int done, disposed;
    const char *body;
    _Atomic bool fence_closed;
    _Atomic int64_t stall_ms; /* in compose, as if the process had been stopped there */
} b;

static int compose(void *arg, void *p, struct strbuf *path, struct strbuf *body, struct error *err)
{
    const struct job *job = p;
    (void)arg;
    if (atomic_load(&b.fence_closed))
        return error_set(err, ERROR_CANCELLED, "the fence is closed");
    clock_sleep_ms(atomic_exchange(&b.stall_ms, 0));
    strbuf_addf(path, "/x/%d", job->number);
    strbuf_adds(body, b.body);
    return 0;
}

static void done(void *arg, void *p, const struct poster_answer *a)
{
    struct job *job = p;
    (void)arg;
    pthread_mutex_lock(&b.lock);
    if (job->done)
        abort();
    job->done = true;
    job->answer = *a;
    b.done++;
    pthread_cond_signal(&b.changed);
    pthread_mutex_unlock(&b.lock);
}

static void dispose(void *p)
{
    struct job *job = p;
    if (job->done || job->disposed)
        abort();
    job->disposed = true;
    b.disposed++;
}

static void start(unsigned connections, int64_t timeout_ms)
{
    struct error err = ERROR_INIT;
    struct poster_config c = {.connections = connections,
                              .timeout_ms = timeout_ms,
                              .user_agent = "test/1",
                              .compose = compose,
                              .done = done,
                              .dispose = dispose};
    if (poster_start(&b.poster, b.config, &b.options, &c, &err) < 0)
        fail_msg("%s", err.text);
}

static int setup(void **state)
{
    (void)state;
    memset(&b, 0, sizeof b);
    pthread_mutex_init(&b.lock, NULL);
    pthread_cond_init(&b.changed, NULL);
    b.twin = twin_start(NULL, false);
    b.config = twin_config(b.twin);
    b.options = twin_options();
    b.body = "{}";
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    poster_stop(b.poster);
    kube_config_free(b.config);
    twin_stop(b.twin);
    pthread_cond_destroy(&b.changed);
    pthread_mutex_destroy(&b.lock);
    return 0;
}

static void submit(int number)
{
    b.jobs[number].number = number;
    poster_submit(b.poster, &b.jobs[number]);
}

static void await_done(int n)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += WAIT_MS / 1000;
    pthread_mutex_lock(&b.lock);
    while (b.done < n)
        if (pthread_cond_timedwait(&b.changed, &b.lock, &end) != 0)
            fail_msg("%d of %d writes are reported after %d ms", b.done, n, WAIT_MS);
    pthread_mutex_unlock(&b.lock);
}

static void await_requests(size_t n)
{
    for (int64_t end = clock_mono_ms() + WAIT_MS; twin_requests(b.twin, TWIN_ANY) < n;
         clock_sleep_ms(1))
        if (clock_mono_ms() >= end)
            fail_msg("expected %zu requests, got %zu", n, twin_requests(b.twin, TWIN_ANY));
}

/* One write at a time, and what came of it. */
static const struct poster_answer *write_one(int number)
{
    submit(number);
    await_done(number + 1);
    return &b.jobs[number].answer;
}

/* Our end of a connection to the port, -1: there is none. */
static int find_socket(uint16_t port)
{
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_in peer = {0};
        socklen_t len = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && peer.sin_family == AF_INET &&
            ntohs(peer.sin_port) == port)
            return fd;
    }
    return -1;
}

static void await_no_socket(uint16_t port)
{
    for (int64_t end = clock_mono_ms() + WAIT_MS; find_socket(port) >= 0; clock_sleep_ms(1))
        if (clock_mono_ms() >= end)
            fail_msg("a connection stays open");
}

/* ---- the request ------------------------------------------------------------------------------ */

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

/* ---- the answer ------------------------------------------------------------------------------- */

#define CREATED "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"
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
     .text = "POST /x/0: the answer is not HTTP: its status line"},
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
    const struct poster_answer *a = write_one(0);
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
        poster_stop(b.poster);
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
        const struct poster_answer *a = write_one(n++);
        expect_int("cut off: nobody knows", ERROR_UNAVAILABLE, a->error.code);
        expect_int("but it was sent", false, a->never_sent);
    }
    expect_int("each once", n, (int64_t)twin_requests(b.twin, TWIN_ANY));
    expect_done();
}

/* ---- connections ------------------------------------------------------------------------------ */

static void a_connection_closed_while_idle_is_not_used(void **state)
{
    (void)state;
    start(1, WAIT_MS);
    for (int i = 0; i < 5; i++) {
        twin_script_raw(b.twin, CREATED, SIZE_MAX, true);
        expect_str("written", "", write_one(i)->error.text);
        await_no_socket(twin_port(b.twin));
    }
    expect_int("a new one each time", 5, (int64_t)twin_connections(b.twin));
    expect_done();
}

static void nobody_listens(void **state)
{
    (void)state;
    uint16_t port = 0;
    struct error err = ERROR_INIT;
    int fd = listener_open("127.0.0.1", 0, &port, &err);
    AUTO_STRBUF text = {0};
    strbuf_addf(&text,
                "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
                "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:%u'}}]\n",
                port);
    close(fd);
    struct kube_config *away = NULL, *there = b.config;
    assert_int_equal(0, kube_config_parse(&away, text.ptr, text.len, NULL, "", false, &err));
    b.config = away;
    start(4, WAIT_MS);
    for (int i = 0; i < 20; i++)
        submit(i);
    await_done(20);
    for (int i = 0; i < 20; i++) {
        expect_int("not to be reached", ERROR_UNAVAILABLE, b.jobs[i].answer.error.code);
        expect_int("so it was not sent", true, b.jobs[i].answer.never_sent);
    }
    poster_stop(b.poster);
    b.poster = NULL;
    kube_config_free(away);
    b.config = there;
    expect_done();
}

/* A server that accepts and says nothing: a handshake that takes for ever. */
struct mute {
    int fd;
    uint16_t port;
};

static struct kube_config *mute_config(struct mute *m)
{
    struct error err = ERROR_INIT;
    struct kube_config *c = NULL;
    AUTO_STRBUF text = {0};
    m->fd = listener_open("127.0.0.1", 0, &m->port, &err);
    strbuf_addf(&text,
                "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
                "clusters: [{name: k, cluster: {server: 'https://127.0.0.1:%u'}}]\n",
                m->port);
    assert_int_equal(0, kube_config_parse(&c, text.ptr, text.len, NULL, "", false, &err));
    return c;
}

static void a_handshake_without_end(void **state)
{
    (void)state;
    struct mute m;
    kube_config_free(b.config);
    b.config = mute_config(&m);
    start(2, SHORT_MS);
    for (int i = 0; i < 5; i++)
        submit(i);
    await_done(5);
    for (int i = 0; i < 5; i++) {
        expect_int("given up in time", ERROR_UNAVAILABLE, b.jobs[i].answer.error.code);
        expect_int("and not sent", true, b.jobs[i].answer.never_sent);
    }
    poster_stop(b.poster);
    start(2, 10 * WAIT_MS);
    int64_t began_ms = clock_mono_ms();
    submit(5);
    for (int64_t end = began_ms + WAIT_MS; find_socket(m.port) < 0; clock_sleep_ms(1))
        if (clock_mono_ms() >= end)
            fail_msg("nothing is connected");
    poster_stop(b.poster);
    b.poster = NULL;
    expect_true("stopping does not wait for it", clock_mono_ms() - began_ms < WAIT_MS);
    expect_int("the job is given back", 1, b.disposed);
    close(m.fd);
    expect_done();
}

static void stopping_gives_up_what_hangs(void **state)
{
    (void)state;
    start(2, 10 * WAIT_MS);
    int64_t began_ms = clock_mono_ms();
    for (int i = 0; i < 5; i++) {
        twin_fault(b.twin, TWIN_ANY, TWIN_HANG);
        submit(i);
    }
    await_requests(2);
    poster_stop(b.poster);
    b.poster = NULL;
    expect_true("long before its time", clock_mono_ms() - began_ms < WAIT_MS);
    expect_int("all are given back", 5, b.disposed);
    poster_stop(NULL);
    expect_done();
}

static void tls(void **state)
{
    (void)state;
    static const struct {
        const char *sentence, *name;
        bool trusted, good;
    } table[] = {{"our CA, and the name in the certificate", "twin.test", true, true},
                 {"another CA is not trusted", "twin.test", false, false},
                 {"another name", "other.test", true, false}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct twin_tls *pem = twin_tls_new(false);
        struct error err = ERROR_INIT;
        AUTO_STRBUF y = {0}, seen = {0}, host = {0};
        (void)teardown(state);
        (void)setup(state);
        twin_stop(b.twin);
        kube_config_free(b.config);
        b.twin = twin_start(pem, false);
        strbuf_adds(&y, "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
                        "clusters: [{name: k, cluster: {");
        twin_tls_add_data(&y, "certificate-authority-data",
                          table[i].trusted ? pem->ca : pem->other_ca);
        strbuf_addf(&y, "tls-server-name: %s, server: 'https://127.0.0.1:%u/under'}}]\n",
                    table[i].name, twin_port(b.twin));
        assert_int_equal(0, kube_config_parse(&b.config, y.ptr, y.len, NULL, "", false, &err));
        start(2, WAIT_MS);
        for (int n = 0; n < 50; n++)
            submit(n);
        await_done(50);
        for (int n = 0; n < 50; n++) {
            expect_int(table[i].sentence, table[i].good ? ERROR_NONE : ERROR_UNAVAILABLE,
                       b.jobs[n].answer.error.code);
            expect_int(table[i].sentence, !table[i].good, b.jobs[n].answer.never_sent);
        }
        expect_int(table[i].sentence, table[i].good ? 50 : 0,
                   (int64_t)twin_requests(b.twin, TWIN_ANY));
        if (table[i].good) {
            assert_true(twin_request(b.twin, 0, &seen));
            strbuf_addf(&host, "\r\nHost: 127.0.0.1:%u\r\n", twin_port(b.twin));
            expect_true("the server's own path comes first",
                        str_starts(strbuf_str(&seen), "POST /under/x/"));
            expect_true("and its host", strstr(seen.ptr, host.ptr) != NULL);
        }
        twin_tls_free(pem);
    }
    expect_done();
}

/* ---- fences ----------------------------------------------------------------------------------- */

static void a_fence_that_closes_before_the_send(void **state)
{
    (void)state;
    start(1, SHORT_MS);
    twin_fault(b.twin, TWIN_ANY, TWIN_HANG);
    submit(0);
    await_requests(1);
    submit(1); /* waits for the only connection */
    atomic_store(&b.fence_closed, true);
    await_done(2);
    expect_int("the first hung", ERROR_TIMEOUT, b.jobs[0].answer.error.code);
    expect_int("the second was refused by ourselves", ERROR_CANCELLED, b.jobs[1].answer.error.code);
    expect_int("and never sent", true, b.jobs[1].answer.never_sent);
    expect_int("so there was one", 1, (int64_t)twin_requests(b.twin, TWIN_ANY));
    atomic_store(&b.fence_closed, false);
    expect_done();
}

/* Stopped after the fence was asked and before the bytes went out, for longer than the write's time. */
static void what_is_late_is_not_sent(void **state)
{
    (void)state;
    start(1, SHORT_MS);
    atomic_store(&b.stall_ms, SHORT_MS + 1);
    const struct poster_answer *a = write_one(0);
    expect_int("late", ERROR_TIMEOUT, a->error.code);
    expect_str("says so", "POST /x/0: its time was over before it was sent", a->error.text);
    expect_int("never sent", true, a->never_sent);
    expect_int("nothing came", 0, (int64_t)twin_requests(b.twin, TWIN_ANY));
    expect_done();
}

static void *accept_one(void *arg)
{
    int *fd = arg;
    int listener = *fd;
    *fd = accept(listener, NULL, NULL);
    close(listener);
    return NULL;
}

/* The server's end is full, so the write waits in our kernel; emptied after we gave up, it must not get the rest. */
static void what_was_given_up_does_not_arrive(void **state)
{
    (void)state;
    AUTO_STRBUF big = {0}, text = {0};
    struct error err = ERROR_INIT;
    uint16_t port = 0;
    int small = 4096, fd = listener_open("127.0.0.1", 0, &port, &err);
    pthread_t thread;
    assert_true(fd >= 0 && fcntl(fd, F_SETFL, 0) == 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    assert_int_equal(0, pthread_create(&thread, NULL, accept_one, &fd));
    for (int i = 0; i < BIG; i++)
        strbuf_addc(&big, 'x');
    b.body = strbuf_str(&big);
    strbuf_addf(&text,
                "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
                "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:%u'}}]\n",
                port);
    kube_config_free(b.config);
    assert_int_equal(0, kube_config_parse(&b.config, text.ptr, text.len, NULL, "", false, &err));
    start(1, SHORT_MS);
    const struct poster_answer *a = write_one(0);
    expect_int("no answer", ERROR_TIMEOUT, a->error.code);
    expect_int("a part of it went", false, a->never_sent);
    pthread_join(thread, NULL);
    struct timeval patience = {.tv_sec = 20};
    static char buf[8192];
    size_t all = 0;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    for (ssize_t n; (n = read(fd, buf, sizeof buf)) > 0;)
        all += (size_t)n;
    expect_true("not all of it arrived", all < BIG);
    close(fd);
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
        TEST(a_connection_closed_while_idle_is_not_used),
        TEST(nobody_listens),
        TEST(a_handshake_without_end),
        TEST(stopping_gives_up_what_hangs),
        TEST(tls),
        TEST(a_fence_that_closes_before_the_send),
        TEST(what_is_late_is_not_sent),
        TEST(what_was_given_up_does_not_arrive),
    };
    kube_http_global_init();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return failed;
}

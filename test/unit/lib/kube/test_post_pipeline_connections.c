// SPDX-License-Identifier: Apache-2.0
/*
 * The pipeline and its connections: closed while idle, refused, never finished, not trusted; and
 * fences, which a write must not pass once they are closed: what was given up, or is late, does not
 * arrive.
 */
#include "test/unit/lib/kube/post_pipeline_kit.h"

#include <fcntl.h>
#include <unistd.h>

#include "lib/base/listener.h"

enum { BIG = 300 * 1024 };

/* ---- connections ---- */

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

static void connections_are_made_ahead(void **state)
{
    (void)state;
    b.ahead = true;
    start(3, WAIT_MS);
    await_connections(3);
    expect_int("without a write", 0, (int64_t)twin_requests(b.twin, TWIN_ANY));
    for (int i = 0; i < 9; i++) {
        twin_script_raw(b.twin, CREATED, SIZE_MAX, false);
        expect_str("written", "", write_one(i)->error.text);
    }
    expect_int("over these", 3, (int64_t)twin_connections(b.twin));
    twin_script_raw(b.twin, CREATED, SIZE_MAX, true);
    expect_str("written", "", write_one(9)->error.text);
    await_connections(4);
    expect_int("one that was closed has a successor, with no write for it", 10,
               (int64_t)twin_requests(b.twin, TWIN_ANY));
    expect_done();
}

static void go_where_nobody_listens(void)
{
    uint16_t port = 0;
    struct error err = ERROR_INIT;
    int fd = listener_open("127.0.0.1", 0, &port, &err);
    assert_true(fd >= 0);
    close(fd);
    go_to_port("http", port);
}

/* Connections made ahead are not retried in a loop while the server is down; a write fails at
 * once. */
static void nobody_listens_ahead(void **state)
{
    (void)state;
    go_where_nobody_listens();
    b.ahead = true;
    start(4, WAIT_MS);
    for (int i = 0; i < 3; i++) {
        const struct post_pipeline_answer *a = write_one(i);
        expect_int("not to be reached", ERROR_UNAVAILABLE, a->error.code);
        expect_int("so it was not sent", true, a->never_sent);
    }
    expect_done();
}

static void nobody_listens(void **state)
{
    (void)state;
    go_where_nobody_listens();
    start(4, WAIT_MS);
    for (int i = 0; i < 20; i++)
        submit(i);
    await_done(20);
    for (int i = 0; i < 20; i++) {
        expect_int("not to be reached", ERROR_UNAVAILABLE, b.jobs[i].answer.error.code);
        expect_int("so it was not sent", true, b.jobs[i].answer.never_sent);
    }
    expect_done();
}

/* A server that accepts and says nothing. */
static void a_handshake_without_end(void **state)
{
    (void)state;
    uint16_t port = 0;
    struct error err = ERROR_INIT;
    int fd = listener_open("127.0.0.1", 0, &port, &err);
    assert_true(fd >= 0);
    go_to_port("https", port);
    start(2, SHORT_MS);
    for (int i = 0; i < 5; i++)
        submit(i);
    await_done(5);
    for (int i = 0; i < 5; i++) {
        expect_int("given up in time", ERROR_UNAVAILABLE, b.jobs[i].answer.error.code);
        expect_int("and not sent", true, b.jobs[i].answer.never_sent);
    }
    post_pipeline_stop(b.pipeline);
    start(2, 10 * WAIT_MS);
    int64_t began_ms = clock_mono_ms();
    submit(5);
    for (int64_t end = began_ms + WAIT_MS; find_socket(port) < 0; clock_sleep_ms(1))
        if (clock_mono_ms() >= end)
            fail_msg("nothing is connected");
    post_pipeline_stop(b.pipeline);
    b.pipeline = NULL;
    expect_true("stopping does not wait for it", clock_mono_ms() - began_ms < WAIT_MS);
    expect_int("the job is given back", 1, b.disposed);
    close(fd);
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
    post_pipeline_stop(b.pipeline);
    b.pipeline = NULL;
    expect_true("long before its time", clock_mono_ms() - began_ms < WAIT_MS);
    expect_int("all are given back", 5, b.disposed);
    post_pipeline_stop(NULL);
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
        AUTO_STRBUF cluster = {0}, seen = {0}, host = {0};
        (void)teardown(state);
        (void)setup(state);
        twin_stop(b.twin);
        b.twin = twin_start(pem, false);
        twin_tls_add_data(&cluster, "certificate-authority-data",
                          table[i].trusted ? pem->ca : pem->other_ca);
        strbuf_addf(&cluster, "tls-server-name: %s, server: 'https://127.0.0.1:%u/under'",
                    table[i].name, twin_port(b.twin));
        go_to(strbuf_str(&cluster));
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

/* ---- fences ---- */

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

/* Stopped after the fence was asked and before the bytes went out, for longer than the write's
 * time. */
static void what_is_late_is_not_sent(void **state)
{
    (void)state;
    start(1, SHORT_MS);
    atomic_store(&b.stall_ms, SHORT_MS + 1);
    const struct post_pipeline_answer *a = write_one(0);
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

/* The server's end is full, so the write waits in our kernel; emptied after we gave up, it must not
 * get the rest. */
static void what_was_given_up_does_not_arrive(void **state)
{
    (void)state;
    AUTO_STRBUF big = {0};
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
    go_to_port("http", port);
    start(1, SHORT_MS);
    const struct post_pipeline_answer *a = write_one(0);
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
        TEST(a_connection_closed_while_idle_is_not_used),
        TEST(connections_are_made_ahead),
        TEST(nobody_listens_ahead),
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

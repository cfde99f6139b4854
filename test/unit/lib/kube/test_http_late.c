// SPDX-License-Identifier: Apache-2.0
/*
 * A write that timed out must not arrive later: its sender relies on that. The danger is what the
 * kernel has still to send, since it retries for a minute after the connection was closed. Here the
 * server's receive buffer is full, so the request waits in our kernel, and is drained after the
 * timeout.
 */
#include "test/unit/lib/base/expect.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/listener.h"
#include "lib/kube/http.h"
#include "test/fake/api/twin.h"

enum { BODY = 300 * 1024, SMALL = 4096 };

/* ---- a server that does not read ------------------------------------------------------------- */

struct sleeper {
    int listener;
    int fd;
    uint16_t port;
};

static void *take_one(void *arg)
{
    struct sleeper *s = arg;
    s->fd = accept(s->listener, NULL, NULL);
    return NULL;
}

static void sleeper_init(struct sleeper *s)
{
    struct error err = ERROR_INIT;
    int small = SMALL;
    *s = (struct sleeper){.fd = -1};
    s->listener = listener_open("127.0.0.1", 0, &s->port, &err);
    assert_true(s->listener >= 0 && fcntl(s->listener, F_SETFL, 0) == 0);
    assert_int_equal(0, setsockopt(s->listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small));
}

static void sleeper_deinit(struct sleeper *s)
{
    close(s->fd);
    close(s->listener);
}

/* Everything that is there and still comes. */
static size_t read_all(int fd)
{
    struct timeval patience = {.tv_sec = 20};
    char buf[8192];
    size_t all = 0;
    ssize_t n;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    while ((n = read(fd, buf, sizeof buf)) > 0)
        all += (size_t)n;
    return all;
}

/* ---- a client ---- */

struct client {
    struct kube_config *config;
    struct kube_http *http;
    struct strbuf reply;
    bool never_sent;
    struct error err;
};

static void client_init(struct client *c, uint16_t port)
{
    AUTO_STRBUF text = {0};
    struct kube_options o = twin_options();
    *c = (struct client){.err = ERROR_INIT};
    strbuf_addf(&text,
                "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
                "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:%u'}}]\n",
                port);
    assert_int_equal(
        0, kube_config_parse(&c->config, strbuf_str(&text), text.len, NULL, "", false, &c->err));
    assert_int_equal(0, kube_http_new(&c->http, c->config, &o, "test", &c->err));
}

static void client_deinit(struct client *c)
{
    kube_http_free(c->http);
    kube_config_free(c->config);
    strbuf_deinit(&c->reply);
}

static int ask(struct client *c, const char *method, const char *body, size_t n, int64_t timeout_ms)
{
    struct kube_request r = {
        .method = method, .path = "/x", .body = body, .body_len = n, .timeout_ms = timeout_ms};
    return kube_http_do(c->http, &r, &c->reply, NULL, &c->never_sent, &c->err);
}

static void *cancel(void *arg)
{
    struct client *c = arg;
    clock_sleep_ms(
        300); /* long enough for the request to be in the kernel; if not, the test is only weaker */
    kube_http_cancel(c->http);
    return NULL;
}

static void expect_not_late(bool cancelled)
{
    struct sleeper s;
    struct client c;
    pthread_t server, canceller;
    static char body[BODY];
    memset(body, 'x', sizeof body);
    sleeper_init(&s);
    client_init(&c, s.port);
    assert_int_equal(0, pthread_create(&server, NULL, take_one, &s));
    if (cancelled)
        assert_int_equal(0, pthread_create(&canceller, NULL, cancel, &c));
    assert_int_equal(-1, ask(&c, "POST", body, sizeof body, cancelled ? 60000 : 500));
    assert_int_equal(cancelled ? ERROR_CANCELLED : ERROR_TIMEOUT, c.err.code);
    assert_false(c.never_sent); /* it may have been done until now, but not from now on */
    if (cancelled)
        pthread_join(canceller, NULL);
    pthread_join(server, NULL);
    size_t got = read_all(s.fd);
    if (got >= sizeof body)
        fail_msg("all %zu bytes of a request that was given up arrived afterwards", got);
    client_deinit(&c);
    sleeper_deinit(&s);
}

static void test_timed_out(void **state)
{
    (void)state;
    expect_not_late(false);
}

static void test_cancelled(void **state)
{
    (void)state;
    expect_not_late(true);
}

/* TCP_USER_TIMEOUT of our end of the only connection to the port; -1: there is none. */
static int64_t delivery_limit(uint16_t port)
{
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_in peer = {0};
        socklen_t len = sizeof peer;
        unsigned limit = 0;
        socklen_t limit_len = sizeof limit;
        if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && peer.sin_family == AF_INET &&
            ntohs(peer.sin_port) == port &&
            getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, &limit_len) == 0)
            return limit;
    }
    return -1;
}

/* A process that is stopped gives up nothing: then the kernel does, after the time that the request
 * had. */
static void test_the_kernel_knows_the_time(void **state)
{
    (void)state;
    struct twin *twin = twin_start(NULL, false);
    struct client c;
    client_init(&c, twin_port(twin));
    assert_int_equal(0, ask(&c, "POST", "{}", 2, 7000));
    expect_int("as long as the write may take", 7000, delivery_limit(twin_port(twin)));
    assert_int_equal(0, ask(&c, "GET", NULL, 0, 7000));
    expect_int("a read may arrive when it likes", 0, delivery_limit(twin_port(twin)));
    struct kube_request r = {.method = "POST",
                             .path = "/x",
                             .body = "{}",
                             .body_len = 2,
                             .timeout_ms = 60000,
                             .not_after_ms = clock_mono_ms() + 30000};
    assert_int_equal(0, kube_http_do(c.http, &r, &c.reply, NULL, NULL, &c.err));
    int64_t limit = delivery_limit(twin_port(twin));
    expect_true("and one that has an end, until then", limit > 0 && limit <= 30000);
    expect_int("all over one connection", 1, (int64_t)twin_connections(twin));
    client_deinit(&c);
    expect_int("which is closed in the end", -1, delivery_limit(twin_port(twin)));
    twin_stop(twin);
    expect_done();
}

/* Every socket that is opened is also forgotten: more attempts than could be remembered. */
static void test_many_connections(void **state)
{
    (void)state;
    struct sleeper s;
    struct client c;
    sleeper_init(&s);
    client_init(&c, s.port);
    close(s.listener);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(-1, ask(&c, "POST", "{}", 2, 1000));
        assert_true(c.never_sent);
    }
    client_deinit(&c);
    struct twin *twin = twin_start(NULL, false);
    client_init(&c, twin_port(twin));
    for (int i = 0; i < 40; i++) {
        twin_fault(twin, TWIN_ANY, i % 2 ? TWIN_CLOSE : TWIN_RESET);
        assert_int_equal(-1, ask(&c, "POST", "{}", 2, 10000));
        assert_int_equal(0, ask(&c, "POST", "{}", 2, 10000));
    }
    assert_true(twin_connections(twin) >= 40);
    client_deinit(&c);
    twin_stop(twin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timed_out),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_the_kernel_knows_the_time),
        cmocka_unit_test(test_many_connections),
    };
    kube_http_global_init();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return failed;
}

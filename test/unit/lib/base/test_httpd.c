// SPDX-License-Identifier: Apache-2.0
#include "lib/base/httpd.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/base/wire.h"

enum { BODY_MAX = 1000, SLOW_BYTES = 16 * 1024 * 1024 };

/* /slow answers when the gate opens. */
static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static bool gate_open;
static int at_gate;

static void wait_at_gate(void)
{
    pthread_mutex_lock(&gate_lock);
    at_gate++;
    pthread_cond_broadcast(&gate_changed);
    while (!gate_open)
        pthread_cond_wait(&gate_changed, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
}

static void set_gate(bool open)
{
    pthread_mutex_lock(&gate_lock);
    gate_open = open;
    if (!open)
        at_gate = 0;
    pthread_cond_broadcast(&gate_changed);
    pthread_mutex_unlock(&gate_lock);
}

static void await_at_gate(int n)
{
    pthread_mutex_lock(&gate_lock);
    while (at_gate < n)
        pthread_cond_wait(&gate_changed, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
}

static void handle(void *arg, const struct httpd_request *r, struct httpd_response *response)
{
    (void)arg;
    if (str_eq(r->path,
               "/slow")) { /* more than the sockets hold: it cannot be gone before it is read */
        static const char block[65536];
        while (response->body.len < SLOW_BYTES)
            strbuf_add(&response->body, block, sizeof block);
        memset(response->body.ptr, 'x', response->body.len);
        wait_at_gate();
        return;
    }
    if (str_eq(r->path, "/json")) {
        AUTO_JSON *doc = NULL;
        struct error err = ERROR_INIT;
        if (json_parse_insitu(&doc, r->body_insitu, r->body_len, &err) < 0) {
            response->status = 400;
            strbuf_addf(&response->body, "%s\n", err.text);
            return;
        }
        response->content_type = "application/json";
        strbuf_addf(&response->body, "[\"%s\"]", json_get_str(json_root(doc), "a"));
        return;
    }
    if (str_starts(r->path, "/status/")) {
        response->status = str_eq(r->path, "/status/404")   ? 404
                           : str_eq(r->path, "/status/503") ? 503
                           : str_eq(r->path, "/status/204") ? 204
                                                            : 7;
        return;
    }
    if (str_eq(r->path, "/large")) {
        for (int i = 0; i < 100000; i++)
            strbuf_addf(&response->body, "line %d\n", i);
        return;
    }
    const char *timeout = httpd_query(r, "timeout"), *x = httpd_query(r, "x");
    strbuf_addf(&response->body, "%s %s query=%s timeout=%s x=%s type=%s body=%zu:%s", r->method,
                r->path, r->query, timeout != NULL ? timeout : "(none)", x != NULL ? x : "(none)",
                r->content_type, r->body_len, r->body);
}

static struct httpd *server;

static struct httpd_config config_of(unsigned threads)
{
    return (struct httpd_config){.address = "127.0.0.1",
                                 .threads = threads,
                                 .max_body_bytes = BODY_MAX,
                                 .max_connections = 64,
                                 .timeout_s = 20,
                                 .handler = handle};
}

static void start(struct httpd_config config)
{
    struct error err = ERROR_INIT;
    if (httpd_start(&server, &config, &err) < 0)
        fail_msg("httpd_start: %s", err.text);
}

static int begin(void **state)
{
    (void)state;
    set_gate(false);
    start(config_of(2));
    return 0;
}

static int end(void **state)
{
    (void)state;
    set_gate(true);
    httpd_stop(server);
    server = NULL;
    return 0;
}

#define CLOSE "Host: x\r\nConnection: close\r\n"

static void requests_reach_the_handler_as_they_were_sent(void **state)
{
    (void)state;
    static const struct {
        const char *row, *request, *body;
        int status;
    } rows[] = {
        {"GET", "GET /a HTTP/1.1\r\n" CLOSE "\r\n",
         "GET /a query= timeout=(none) x=(none) type= body=0:", 200},
        {"POST as the API server sends it",
         "POST /mutate?timeout=5s HTTP/1.1\r\n" CLOSE
         "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
         "POST /mutate query=timeout=5s timeout=5s x=(none) type=application/json body=2:{}", 200},
        {"query arguments are decoded, the query is as sent",
         "GET /a?x=%20b%2f&timeout HTTP/1.1\r\n" CLOSE "\r\n",
         "GET /a query=x=%20b%2f&timeout timeout= x= b/ type= body=0:", 200},
        {"the path is decoded", "GET /a%2Db HTTP/1.1\r\n" CLOSE "\r\n",
         "GET /a-b query= timeout=(none) x=(none) type= body=0:", 200},
        {"a body in chunks",
         "POST /a HTTP/1.1\r\n" CLOSE
         "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
         "POST /a query= timeout=(none) x=(none) type= body=5:abcde", 200},
        {"HEAD has no body", "HEAD /a HTTP/1.1\r\n" CLOSE "\r\n", "", 200},
        {"a status with its own name", "GET /status/404 HTTP/1.1\r\n" CLOSE "\r\n", "Not Found\n",
         404},
        {"another", "GET /status/503 HTTP/1.1\r\n" CLOSE "\r\n", "Service Unavailable\n", 503},
        {"no content", "GET /status/204 HTTP/1.1\r\n" CLOSE "\r\n", "", 204},
        {"a status that is none is our mistake", "GET /status/7 HTTP/1.1\r\n" CLOSE "\r\n",
         "Internal Server Error\n", 500},
        {"JSON is parsed in place",
         "POST /json HTTP/1.1\r\n" CLOSE "Content-Length: 9\r\n\r\n{\"a\":\"b\"}", "[\"b\"]", 200},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF reply = {0};
        expect_true(rows[i].row, wire_ask(httpd_port(server), rows[i].request, &reply));
        expect_int(rows[i].row, rows[i].status, wire_status(&reply));
        expect_str(rows[i].row, rows[i].body, wire_body(&reply));
    }
    expect_done();
}

static void what_is_no_http_gets_a_400(void **state)
{
    (void)state;
    static const char *const rows[] = {"GET\r\n\r\n", "GET /a HTTP/1.1\r\n\r\n", /* no Host */
                                       "GET /a HTTP/1.1\r\n" CLOSE "Content-Length: x\r\n\r\n",
                                       "GET /a HTTP/1.1\r\n" CLOSE "no colon\r\n\r\n"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF reply = {0};
        int fd = wire_connect("127.0.0.1", httpd_port(server));
        wire_send(fd, rows[i], strlen(rows[i]));
        shutdown(fd, SHUT_WR);
        wire_read(fd, NULL, &reply);
        close(fd);
        int status = wire_status(&reply);
        if (status != 400 && status != 0) /* refused, or cut */
            expect_int(rows[i], 400, status);
    }
    AUTO_STRBUF reply = {0};
    expect_true("and the server lives",
                wire_ask(httpd_port(server), "GET /a HTTP/1.1\r\n" CLOSE "\r\n", &reply));
    expect_int("and the server lives", 200, wire_status(&reply));
    expect_done();
}

/* A body of n bytes; chunked or with its length. */
static void ask_with_body(size_t n, bool chunked, const char *more, struct strbuf *reply)
{
    AUTO_STRBUF request = {0};
    strbuf_addf(&request, "POST /a HTTP/1.1\r\n" CLOSE "%s", more);
    if (chunked)
        strbuf_addf(&request, "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", n);
    else
        strbuf_addf(&request, "Content-Length: %zu\r\n\r\n", n);
    strbuf_reserve(&request, n + 16);
    memset(request.ptr + request.len, 'x', n);
    request.len += n;
    request.ptr[request.len] = '\0';
    if (chunked)
        strbuf_adds(&request, "\r\n0\r\n\r\n");
    int fd = wire_connect("127.0.0.1", httpd_port(server));
    if (fd < 0)
        return;
    (void)wire_send(fd, request.ptr, request.len);
    (void)wire_read(fd, NULL, reply);
    close(fd);
}

static void bodies_have_a_bound(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        size_t n;
        bool chunked;
        int status;
    } rows[] = {
        {"empty", 0, false, 200},
        {"at the bound", BODY_MAX, false, 200},
        {"one more", BODY_MAX + 1, false, 413},
        {"much more, which is read to its end", 3000000, false, 413},
        {"at the bound, chunked", BODY_MAX, true, 200},
        {"one more, chunked", BODY_MAX + 1, true, 413},
        {"much more, chunked", 3000000, true, 413},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].n == 0 && rows[i].chunked)
            continue;
        AUTO_STRBUF reply = {0};
        ask_with_body(rows[i].n, rows[i].chunked, "", &reply);
        expect_int(rows[i].row, rows[i].status, wire_status(&reply));
        if (rows[i].status == 413)
            expect_str(rows[i].row, "the body is larger than 1000 bytes\n", wire_body(&reply));
    }
    AUTO_STRBUF asked = {0};
    int fd = wire_connect("127.0.0.1", httpd_port(server));
    static const char first[] =
        "POST /a HTTP/1.1\r\n" CLOSE "Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n";
    expect_true("asks first",
                wire_send(fd, first, sizeof first - 1) && wire_read(fd, NULL, &asked));
    close(fd);
    expect_int("is told before it sends", 413, wire_status(&asked));
    AUTO_STRBUF far = {0};
    ask_with_body(20000000, true, "", &far);
    expect_true("far over the bound it is cut", wire_status(&far) == 413 || wire_status(&far) == 0);
    AUTO_STRBUF announced = {0};
    fd = wire_connect("127.0.0.1", httpd_port(server));
    static const char huge[] =
        "POST /a HTTP/1.1\r\n" CLOSE "Content-Length: 9223372036854775807\r\n\r\n";
    expect_true("announces too much",
                wire_send(fd, huge, sizeof huge - 1) && wire_read(fd, NULL, &announced));
    close(fd);
    expect_int("is answered at once", 413, wire_status(&announced));
    expect_done();
}

/* A peer that sends nearly all of a body and then waits. */
static int send_most(size_t n, size_t sent)
{
    AUTO_STRBUF request = {0};
    strbuf_addf(&request, "POST /a HTTP/1.1\r\n" CLOSE "Content-Length: %zu\r\n\r\n", n);
    strbuf_reserve(&request, sent + 16);
    memset(request.ptr + request.len, 'x', sent);
    int fd = wire_connect("127.0.0.1", httpd_port(server));
    expect_true("sent", fd >= 0 && wire_send(fd, request.ptr, request.len + sent));
    return fd;
}

static int status_of_body(size_t n)
{
    AUTO_STRBUF reply = {0};
    ask_with_body(n, false, "", &reply);
    return wire_status(&reply);
}

static void large_bodies_share_a_bound(void **state)
{
    (void)state;
    /* one address has three quarters */
    enum { MOST = 100 * 1000, ALL = 200 * 1000, SHARE = 150 * 1000 };
    struct httpd_config config = config_of(2);
    config.max_body_bytes = MOST;
    config.max_large_bytes = ALL;
    config.large_ms = 3600 * 1000;
    httpd_stop(server);
    start(config);
    expect_int("one alone", 200, status_of_body(MOST));
    int fd = send_most(MOST, MOST - 1);
    int second = 200;
    /* until the server has read it */
    for (int i = 0; i < 1000 && second == 200; i++) {
        clock_sleep_ms(5);
        second = status_of_body(MOST);
    }
    expect_int("beside one that waits", 503, second);
    expect_int("what fits beside it", 200, status_of_body(SHARE - MOST));
    expect_int("a small one always", 200, status_of_body(HTTPD_SMALL_BODY));
    AUTO_STRBUF reply = {0};
    expect_true("its last byte", wire_send(fd, "x", 1) && wire_read(fd, NULL, &reply));
    expect_int("the one that waited is answered", 200, wire_status(&reply));
    close(fd);
    expect_int("then there is room again", 200, status_of_body(MOST));
    /* The library may see the end of a stream as late as its timeout. */
    config.timeout_s = 1;
    httpd_stop(server);
    start(config);
    fd = send_most(MOST, MOST - 1);
    close(fd);
    for (int64_t end_ms = clock_mono_ms() + 30000; clock_mono_ms() < end_ms;) {
        second = status_of_body(MOST);
        if (second == 200)
            break;
        clock_sleep_ms(20);
    }
    expect_int("and when the peer has gone", 200, second);
    expect_done();
}

/* Peers that have withheld the last byte for a while lose their room, and no client his answer. */
static void withheld_bodies_give_way(void **state)
{
    (void)state;
    enum { MOST = 100 * 1000, HOLDERS = 6 };
    struct httpd_config config = config_of(2);
    config.max_body_bytes = MOST;
    config.max_large_bytes = 4 * MOST;
    config.large_ms = 1;
    httpd_stop(server);
    start(config);
    int fds[HOLDERS];
    for (int i = 0; i < HOLDERS; i++) {
        fds[i] = send_most(MOST, MOST - 1);
        clock_sleep_ms(5); /* older than large_ms */
    }
    for (int i = 0; i < HOLDERS; i++) {
        AUTO_STRBUF reply = {0};
        if (i == 0)
            expect_true("the oldest are ended", wire_read(fds[i], NULL, &reply));
        expect_int("a large body", 200, status_of_body(MOST));
    }
    for (int i = 0; i < HOLDERS; i++)
        close(fds[i]);
    expect_done();
}

static void connections_are_kept_for_the_next_request(void **state)
{
    (void)state;
    int fd = wire_connect("127.0.0.1", httpd_port(server));
    for (int i = 0; i < 10; i++) {
        AUTO_STRBUF reply = {0};
        static const char request[] = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nend";
        expect_true("again", wire_send(fd, request, sizeof request - 1) &&
                                 wire_read(fd, "body=3:end", &reply));
    }
    close(fd);
    expect_done();
}

static void a_large_reply_comes_whole(void **state)
{
    (void)state;
    AUTO_STRBUF reply = {0};
    expect_true("asked",
                wire_ask(httpd_port(server), "GET /large HTTP/1.1\r\n" CLOSE "\r\n", &reply));
    expect_true("to the last line", str_ends(strbuf_str(&reply), "line 99999\n"));
    expect_done();
}

/* Containers often have no IPv6, and some kernels do not know it. */
static bool has_ipv6(void)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    if (fd >= 0)
        close(fd);
    return bound;
}

static void addresses_of_both_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *row, *address, *client;
    } rows[] = {
        {"IPv4", "127.0.0.1", "127.0.0.1"},
        {"every IPv4 address", "0.0.0.0", "127.0.0.1"},
        {"IPv6", "::1", "::1"},
        {"every address, by IPv6", "::", "::1"},
        {"every address, by IPv4", "::", "127.0.0.1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strchr(rows[i].address, ':') != NULL && !has_ipv6())
            continue;
        struct httpd_config config = config_of(0);
        config.address = rows[i].address;
        config.max_connections = 0;
        config.timeout_s = 0;
        struct httpd *h = NULL;
        struct error err = ERROR_INIT;
        expect_int(rows[i].row, 0, httpd_start(&h, &config, &err));
        expect_str(rows[i].row, "", err.text);
        if (h == NULL)
            continue;
        expect_true("a port was taken", httpd_port(h) != 0);
        int fd = wire_connect(rows[i].client, httpd_port(h));
        AUTO_STRBUF reply = {0};
        static const char request[] = "GET /a HTTP/1.1\r\n" CLOSE "\r\n";
        expect_true(rows[i].row,
                    wire_send(fd, request, sizeof request - 1) && wire_read(fd, NULL, &reply));
        expect_int(rows[i].row, 200, wire_status(&reply));
        close(fd);
        httpd_stop(h);
    }
    expect_done();
}

static void a_server_that_cannot_start_says_why(void **state)
{
    (void)state;
    struct httpd *h = NULL;
    struct error err = ERROR_INIT;
    struct httpd_config config = config_of(1);
    config.port = httpd_port(server);
    char expected[100];
    str_format(expected, sizeof expected, "listen on 127.0.0.1 port %u: Address already in use",
               (unsigned)config.port);
    expect_int("the port is taken", -1, httpd_start(&h, &config, &err));
    expect_str("says so", expected, err.text);
    static const char *const wrong[] = {"", "localhost", "256.0.0.1", ":::", NULL};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        config.address = wrong[i];
        expect_int("no address", -1, httpd_start(&h, &config, &err));
        str_format(expected, sizeof expected, "listen on '%s': not an IPv4 or IPv6 address",
                   str_or_empty(wrong[i]));
        expect_str("says so", expected, err.text);
    }
    httpd_stop(NULL);
    expect_done();
}

static void *stop_server(void *arg)
{
    httpd_stop(arg);
    return NULL;
}

static void a_running_request_is_finished_by_stop(void **state)
{
    (void)state;
    static const char request[] = "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n";
    uint16_t port = httpd_port(server);
    int fd = wire_connect("127.0.0.1", port);
    expect_true("asked", wire_send(fd, request, sizeof request - 1));
    await_at_gate(1);
    pthread_t stopper;
    assert_int_equal(0, pthread_create(&stopper, NULL, stop_server, server));
    server = NULL;
    set_gate(true);
    AUTO_STRBUF reply = {0};
    expect_true("answered, then closed", wire_read(fd, NULL, &reply));
    expect_int("whole", 200, wire_status(&reply));
    expect_int("whole", SLOW_BYTES, (int64_t)strlen(wire_body(&reply)));
    close(fd);
    pthread_join(stopper, NULL);
    fd = wire_connect("127.0.0.1", port);
    expect_int("nobody listens any more", -1, fd);
    if (fd >= 0)
        close(fd);
    expect_done();
}

static void a_peer_that_sends_half_a_request_does_not_hold_the_stop(void **state)
{
    (void)state;
    int fd = wire_connect("127.0.0.1", httpd_port(server));
    static const char half[] = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf";
    expect_true("half", wire_send(fd, half, sizeof half - 1));
    int idle = wire_connect("127.0.0.1", httpd_port(server));
    httpd_stop(server); /* returns: the test would hang here otherwise */
    server = NULL;
    AUTO_STRBUF reply = {0};
    (void)wire_read(fd, NULL, &reply);
    expect_int("no reply", 0, (int64_t)reply.len);
    close(fd);
    close(idle);
    expect_done();
}

/* Each peer is fast enough for a timeout that begins anew with every byte, and too slow for
 * ours. */
static void a_peer_that_drips_is_dropped(void **state)
{
    (void)state;
    httpd_stop(server);
    struct httpd_config config = config_of(2);
    config.timeout_s = 1;
    start(config);
    static const char *const starts[] = {
        "G", "GET /a HTTP/1.1\r\nHost: x\r\nX: ",
        "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"};
    int fds[3];
    bool dropped[3] = {false};
    for (int i = 0; i < 3; i++) {
        fds[i] = wire_connect("127.0.0.1", httpd_port(server));
        expect_true("begins", wire_send(fds[i], starts[i], strlen(starts[i])));
    }
    /* 300 drips of 100 ms at most: bounded, and ends as soon as all three were dropped. */
    int left = 3;
    for (int drip = 0; drip < 300 && left > 0; drip++) {
        clock_sleep_ms(100);
        for (int i = 0; i < 3; i++) {
            if (dropped[i])
                continue;
            char byte;
            ssize_t n = recv(fds[i], &byte, 1, MSG_DONTWAIT);
            bool gone = n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
            if (gone || send(fds[i], "x", 1, MSG_NOSIGNAL) < 0) {
                dropped[i] = true;
                left--;
            }
        }
    }
    for (int i = 0; i < 3; i++) {
        expect_true(starts[i], dropped[i]);
        close(fds[i]);
    }
    expect_done();
}

static void for_a_connection_over_the_bound_a_silent_one_goes(void **state)
{
    (void)state;
    httpd_stop(server);
    struct httpd_config config = config_of(1);
    config.max_connections = 4; /* 3 of them from one address */
    start(config);
    static const char request[] = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nend";
    int client = wire_connect("127.0.0.1", httpd_port(server));
    AUTO_STRBUF first = {0}, second = {0}, other = {0};
    expect_true("a client", wire_send(client, request, sizeof request - 1) &&
                                wire_read(client, "body=3:end", &first));
    enum { FLOOD = 20 };
    int flood[FLOOD];
    for (int i = 0; i < FLOOD; i++) {
        flood[i] = wire_connect("127.0.0.1", httpd_port(server));
        if (i % 2 == 1) /* slow, not silent */
            expect_true("half a request", wire_send(flood[i], request, sizeof request - 2));
    }
    expect_true("the client is served", wire_send(client, request, sizeof request - 1) &&
                                            wire_read(client, "body=3:end", &second));
    expect_true("another one, too",
                wire_ask(httpd_port(server), "GET /a HTTP/1.1\r\n" CLOSE "\r\n", &other));
    expect_int("another one, too", 200, wire_status(&other));
    for (int i = 0; i < FLOOD; i++)
        close(flood[i]);
    close(client);
    expect_done();
}

static void *ask_often(void *arg)
{
    _Atomic int *good = arg;
    for (int i = 0; i < 100; i++) {
        AUTO_STRBUF reply = {0};
        if (wire_ask(httpd_port(server), "POST /a HTTP/1.1\r\n" CLOSE "Content-Length: 2\r\n\r\nab",
                     &reply) &&
            wire_status(&reply) == 200 && str_ends(reply.ptr, "body=2:ab"))
            atomic_fetch_add(good, 1);
    }
    return NULL;
}

static void many_clients_at_once(void **state)
{
    (void)state;
    _Atomic int good = 0;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, ask_often, &good));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    expect_int("all answered", 400, good);
    expect_done();
}

static void a_request_made_by_hand_has_no_arguments(void **state)
{
    (void)state;
    struct httpd_request r = {.method = "GET", .path = "/"};
    expect_str("query", NULL, httpd_query(&r, "x"));
    struct error err = ERROR_INIT;
    expect_int("a plain server has no certificate", -1,
               httpd_set_certificate(server, "", "", &err));
    expect_str("says so", "certificate: the server speaks no TLS", err.text);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(requests_reach_the_handler_as_they_were_sent, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_http_gets_a_400, begin, end),
        cmocka_unit_test_setup_teardown(bodies_have_a_bound, begin, end),
        cmocka_unit_test_setup_teardown(large_bodies_share_a_bound, begin, end),
        cmocka_unit_test_setup_teardown(withheld_bodies_give_way, begin, end),
        cmocka_unit_test_setup_teardown(connections_are_kept_for_the_next_request, begin, end),
        cmocka_unit_test_setup_teardown(a_large_reply_comes_whole, begin, end),
        cmocka_unit_test_setup_teardown(addresses_of_both_kinds, begin, end),
        cmocka_unit_test_setup_teardown(a_server_that_cannot_start_says_why, begin, end),
        cmocka_unit_test_setup_teardown(a_running_request_is_finished_by_stop, begin, end),
        cmocka_unit_test_setup_teardown(a_peer_that_sends_half_a_request_does_not_hold_the_stop,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_peer_that_drips_is_dropped, begin, end),
        cmocka_unit_test_setup_teardown(for_a_connection_over_the_bound_a_silent_one_goes, begin,
                                        end),
        cmocka_unit_test_setup_teardown(many_clients_at_once, begin, end),
        cmocka_unit_test_setup_teardown(a_request_made_by_hand_has_no_arguments, begin, end),
    };
    return cmocka_run_group_tests_name("httpd", tests, NULL, NULL);
}

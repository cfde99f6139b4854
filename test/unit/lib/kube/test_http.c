// SPDX-License-Identifier: Apache-2.0
#include "test/unit/lib/base/expect.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/listener.h"
#include "lib/kube/http.h"
#include "test/fake/api/twin.h"

struct bench {
    struct twin *twin;
    struct kube_config *config;
    struct kube_options options;
    struct kube_http *http;
    struct strbuf body;
    int status;
    bool never_sent;
    struct error err;
};

static void open_http(struct bench *b)
{
    b->err = (struct error)ERROR_INIT;
    if (kube_http_new(&b->http, b->config, &b->options, "test/1", &b->err) < 0)
        fail_msg("%s", b->err.text);
}

static void bench_init(struct bench *b)
{
    *b = (struct bench){.twin = twin_start(NULL, false), .options = twin_options()};
    b->config = twin_config(b->twin);
    open_http(b);
}

static void bench_deinit(struct bench *b)
{
    kube_http_free(b->http);
    kube_config_free(b->config);
    twin_stop(b->twin);
    strbuf_deinit(&b->body);
}

static int ask(struct bench *b, const struct kube_request *r)
{
    strbuf_reset(&b->body);
    return kube_http_do(b->http, r, &b->body, &b->status, &b->never_sent, &b->err);
}

static int get(struct bench *b, const char *path)
{
    return ask(b, &(struct kube_request){.method = "GET", .path = path});
}

static int post(struct bench *b)
{
    return ask(b, &(struct kube_request){.method = "POST",
                                         .path = "/x?y=z",
                                         .content_type = "application/json",
                                         .body = "{}",
                                         .body_len = 2});
}

static void await_requests(struct bench *b, size_t n)
{
    for (int64_t end = clock_mono_ms() + 30000; twin_requests(b->twin, TWIN_ANY) < n;)
        if (clock_mono_ms() >= end)
            fail_msg("expected %zu requests, got %zu after 30 s", n,
                     twin_requests(b->twin, TWIN_ANY));
        else
            clock_sleep_ms(1);
}

static void test_request_and_reply(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    AUTO_STRBUF seen = {0};
    twin_script(b.twin, 201, "", "{\"a\":1}");
    assert_int_equal(0, post(&b));
    assert_int_equal(201, b.status);
    assert_false(b.never_sent);
    assert_string_equal("{\"a\":1}", strbuf_str(&b.body));
    assert_true(twin_request(b.twin, 0, &seen));
    const char *s = strbuf_str(&seen);
    assert_true(str_starts(s, "POST /x?y=z HTTP/1.1\r\n"));
    assert_non_null(strstr(s, "\r\nUser-Agent: test/1\r\n"));
    assert_non_null(strstr(s, "\r\nAuthorization: Bearer s3cr3t-t0ken\r\n"));
    assert_non_null(strstr(s, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(s, "\r\nAccept: application/json\r\n"));
    assert_null(strstr(s, "Expect:"));
    assert_true(str_ends(s, "\r\n\r\n{}"));
    assert_int_equal(0, get(&b, "/y")); /* no body left over, and the same connection */
    strbuf_reset(&seen);
    assert_true(twin_request(b.twin, 0, &seen));
    assert_true(str_starts(strbuf_str(&seen), "GET /y HTTP/1.1\r\n"));
    assert_null(strstr(strbuf_str(&seen), "Content-"));
    assert_int_equal(0, ask(&b, &(struct kube_request){.method = "DELETE", .path = "/z"}));
    assert_int_equal(1, twin_connections(b.twin));
    bench_deinit(&b);
}

static void test_statuses(void **state)
{
    (void)state;
    static const struct {
        int status;
        enum error_code code;
    } rows[] = {{400, ERROR_INVALID},     {401, ERROR_DENIED},    {403, ERROR_DENIED},
                {404, ERROR_NOT_FOUND},   {405, ERROR_INVALID},   {408, ERROR_TIMEOUT},
                {409, ERROR_CONFLICT},    {410, ERROR_GONE},      {413, ERROR_TOO_LARGE},
                {422, ERROR_INVALID},     {429, ERROR_THROTTLED}, {500, ERROR_UNAVAILABLE},
                {503, ERROR_UNAVAILABLE}, {504, ERROR_TIMEOUT},   {302, ERROR_UNSUPPORTED}};
    struct bench b;
    bench_init(&b);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char row[16];
        str_format(row, sizeof row, "%d", rows[i].status);
        twin_script(b.twin, rows[i].status, rows[i].status == 503 ? "Retry-After: 7\r\n" : "",
                    "{\"reason\":\"R\",\"message\":\"M\"}");
        expect_int(row, -1, get(&b, "/x?token=1"));
        expect_int(row, rows[i].status, b.status);
        expect_int(row, rows[i].code, b.err.code);
        expect_int(row, rows[i].status == 302 ? 0 : rows[i].status, b.err.http_status);
        expect_int(row, rows[i].status == 503 ? 7000 : 0, b.err.retry_after_ms);
        expect_int(row, false, b.never_sent);
        expect_str(row, "{\"reason\":\"R\",\"message\":\"M\"}", strbuf_str(&b.body));
        expect_true(row, str_starts(b.err.text, "GET /x: ")); /* without the query */
    }
    bench_deinit(&b);
    expect_done();
}

static void test_faults(void **state)
{
    (void)state;
    static const struct {
        enum twin_fault fault;
        enum error_code code;
    } rows[] = {{TWIN_RESET, ERROR_UNAVAILABLE},     {TWIN_CLOSE, ERROR_UNAVAILABLE},
                {TWIN_CUT_CHUNK, ERROR_UNAVAILABLE}, {TWIN_HANG, ERROR_TIMEOUT},
                {TWIN_HANG_MIDWAY, ERROR_TIMEOUT},   {TWIN_REDIRECT, ERROR_UNSUPPORTED},
                {TWIN_OVERSIZE, ERROR_TOO_LARGE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench b;
        bench_init(&b);
        b.options.request_timeout_ms = 1000;
        kube_http_free(b.http);
        open_http(&b);
        twin_fault(b.twin, TWIN_ANY, rows[i].fault);
        twin_fault(b.twin, TWIN_ANY, rows[i].fault);
        twin_fault(b.twin, TWIN_ANY, rows[i].fault);
        expect_int(twin_fault_name(rows[i].fault), -1, post(&b));
        expect_int(twin_fault_name(rows[i].fault), rows[i].code, b.err.code);
        expect_int(twin_fault_name(rows[i].fault), false, b.never_sent);
        await_requests(&b, 1); /* a busy twin may read it after we gave up */
        expect_int(twin_fault_name(rows[i].fault), 1, (int64_t)twin_requests(b.twin, TWIN_ANY));
        expect_true(twin_fault_name(rows[i].fault), !strstr(b.err.text, "s3cr3t"));
        bench_deinit(&b);
    }
    expect_done();
}

/* A kept connection that dies under a write: curl would send it again by itself. */
static void test_a_write_is_not_repeated(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    assert_int_equal(0, get(&b, "/warm"));
    twin_fault(b.twin, TWIN_ANY, TWIN_CLOSE);
    assert_int_equal(-1, post(&b));
    assert_int_equal(ERROR_UNAVAILABLE, b.err.code);
    assert_false(b.never_sent);
    assert_int_equal(2, twin_requests(b.twin, TWIN_ANY));
    assert_int_equal(0, get(&b, "/warm"));
    twin_fault(b.twin, TWIN_ANY, TWIN_CLOSE);
    assert_int_equal(0, get(&b, "/read")); /* a read may be */
    assert_int_equal(5, twin_requests(b.twin, TWIN_ANY));
    bench_deinit(&b);
}

/* Leaves the twin for another server. */
/* Also in its head: what was not read to its end says nothing about what was done. */
static void test_an_answer_may_end_anywhere(void **state)
{
    static const char whole[] = "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}";
    (void)state;
    struct bench b;
    bench_init(&b);
    for (size_t end = 0; end < sizeof whole; end++) {
        char part[sizeof whole] = "";
        memcpy(part, whole, end);
        twin_script_raw(b.twin, part, SIZE_MAX, true);
        bool all = end + 1 == sizeof whole;
        expect_int(part, all ? 0 : -1, post(&b));
        expect_int(part, all ? ERROR_NONE : ERROR_UNAVAILABLE, b.err.code);
        expect_int("it was sent", false, b.never_sent);
    }
    expect_int("each once", sizeof whole, (int64_t)twin_requests(b.twin, TWIN_ANY));
    bench_deinit(&b);
    expect_done();
}

static void connect_to(struct bench *b, uint16_t port)
{
    AUTO_STRBUF text = {0};
    strbuf_addf(&text,
                "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
                "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:%u'}}]\n",
                port);
    kube_http_free(b->http);
    kube_config_free(b->config);
    assert_int_equal(
        0, kube_config_parse(&b->config, strbuf_str(&text), text.len, NULL, "", false, &b->err));
    open_http(b);
}

static void test_never_sent(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    /* A port without a listener, bound by us so that no other process takes it. */
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    assert_true(bind(fd, (struct sockaddr *)&a, sizeof a) == 0 &&
                getsockname(fd, (struct sockaddr *)&a, &len) == 0);
    connect_to(&b, ntohs(a.sin_port));
    assert_int_equal(-1, post(&b));
    assert_int_equal(ERROR_UNAVAILABLE, b.err.code);
    assert_true(b.never_sent);
    assert_int_equal(0, b.status);
    close(fd);
    bench_deinit(&b);
}

static void test_not_after(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    struct kube_request late = {.method = "POST",
                                .path = "/x?y=z",
                                .content_type = "application/json",
                                .body = "{}",
                                .body_len = 2};
    twin_script(b.twin, 201, "", "{}");
    assert_int_equal(0, post(&b));
    late.not_after_ms = clock_mono_ms(); /* over a connection that stands */
    assert_int_equal(-1, ask(&b, &late));
    assert_int_equal(ERROR_TIMEOUT, b.err.code);
    assert_string_equal("POST /x: its time was over before it was sent", b.err.text);
    assert_true(b.never_sent);
    kube_http_free(b.http);
    open_http(&b); /* over one that is made for it */
    assert_int_equal(-1, ask(&b, &late));
    assert_int_equal(ERROR_TIMEOUT, b.err.code);
    assert_true(b.never_sent);
    assert_int_equal(1, twin_requests(b.twin, TWIN_ANY));
    late.not_after_ms = clock_mono_ms() + 60000;
    assert_int_equal(0, ask(&b, &late));
    assert_int_equal(2, twin_requests(b.twin, TWIN_ANY));
    bench_deinit(&b);
}

static void test_bounds(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    struct kube_request r = {.method = "GET", .path = "/x", .max_bytes = 10};
    twin_script(b.twin, 200, "", "0123456789");
    assert_int_equal(0, ask(&b, &r));
    twin_script(b.twin, 200, "", "01234567890");
    assert_int_equal(-1, ask(&b, &r));
    assert_int_equal(ERROR_TOO_LARGE, b.err.code);
    assert_string_equal("GET /x: reply is larger than 10 bytes", b.err.text);
    twin_script(b.twin, 200, "", "0123456789"); /* and it goes on */
    assert_int_equal(0, ask(&b, &r));
    bench_deinit(&b);
}

/* libcurl refuses texts over 8 MB, and some builds refuse whole options (the CA from memory): what
 * lacks something that it was told is not used. */
static void test_what_libcurl_refuses(void **state)
{
    (void)state;
    struct bench b;
    struct kube_http *none = NULL;
    AUTO_STRBUF text = {0};
    bench_init(&b);
    strbuf_adds(&text, "/long?x=");
    for (int i = 0; i < 8000000; i++)
        strbuf_addc(&text, 'x');
    assert_int_equal(0, get(&b, "/short"));
    assert_int_equal(-1, get(&b, strbuf_str(&text)));
    assert_int_equal(ERROR_INVALID, b.err.code);
    assert_true(str_starts(b.err.text, "GET /long: "));
    assert_true(b.never_sent);
    assert_int_equal(1, twin_requests(b.twin, TWIN_ANY));
    assert_int_equal(0, get(&b, "/short")); /* and it goes on */
    assert_int_equal(-1, kube_http_new(&none, b.config, &b.options, strbuf_str(&text), &b.err));
    assert_int_equal(ERROR_INTERNAL, b.err.code);
    bench_deinit(&b);
}

/* ---- cancel --------------------------------------------------------------------------------- */

static void *cancel_soon(void *arg)
{
    struct bench *b = arg;
    while (twin_requests(b->twin, TWIN_ANY) == 0)
        clock_sleep_ms(1);
    kube_http_cancel(b->http);
    return NULL;
}

static void test_cancel(void **state)
{
    (void)state;
    struct bench b;
    pthread_t thread;
    bench_init(&b);
    twin_fault(b.twin, TWIN_ANY, TWIN_HANG);
    assert_int_equal(0, pthread_create(&thread, NULL, cancel_soon, &b));
    int64_t began = clock_mono_ms();
    struct kube_request r = {.method = "GET", .path = "/x", .timeout_ms = -1};
    assert_int_equal(-1, ask(&b, &r));
    assert_int_equal(ERROR_CANCELLED, b.err.code);
    assert_true(clock_mono_ms() - began < 30000); /* the twin would have hung for a minute */
    pthread_join(thread, NULL);
    assert_true(kube_http_is_cancelled(b.http));
    assert_int_equal(-1, get(&b, "/later"));
    assert_int_equal(ERROR_CANCELLED, b.err.code);
    assert_true(b.never_sent);
    assert_int_equal(1, twin_requests(b.twin, TWIN_ANY));
    assert_false(kube_http_sleep(b.http, 60000));
    bench_deinit(&b);
}

static void test_sleep(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    int64_t began = clock_mono_ms();
    assert_true(kube_http_sleep(b.http, 20));
    assert_true(clock_mono_ms() - began >= 20);
    assert_true(kube_http_sleep(b.http, 0));
    bench_deinit(&b);
}

/* ---- streams -------------------------------------------------------------------------------- */

struct gathered {
    struct strbuf text;
    size_t stop_at; /* 0: never */
};

static bool gather(void *arg, const char *bytes, size_t n, struct error *err)
{
    struct gathered *g = arg;
    strbuf_add(&g->text, bytes, n);
    if (g->stop_at && g->text.len >= g->stop_at) {
        error_set(err, ERROR_RANGE, "enough");
        return false;
    }
    return true;
}

static int stream(struct bench *b, struct gathered *g, int64_t idle_ms)
{
    struct kube_request r = {
        .method = "GET", .path = "/api/v1/pods?watch=1", .timeout_ms = -1, .idle_ms = idle_ms};
    strbuf_reset(&g->text);
    return kube_http_stream(b->http, &r, gather, g, &b->status, &b->err);
}

static void test_stream(void **state)
{
    (void)state;
    struct bench b;
    struct gathered g = {0};
    bench_init(&b);
    twin_fault(b.twin, TWIN_WATCH, TWIN_GONE_EVENT); /* one event, then the end */
    assert_int_equal(0, stream(&b, &g, 0));
    assert_int_equal(200, b.status);
    assert_non_null(strstr(strbuf_str(&g.text), "\"type\":\"ERROR\""));
    twin_fault(b.twin, TWIN_WATCH, TWIN_GONE_STATUS); /* an error goes into err, not to the sink */
    assert_int_equal(-1, stream(&b, &g, 0));
    assert_int_equal(ERROR_GONE, b.err.code);
    assert_int_equal(0, g.text.len);
    twin_fault(b.twin, TWIN_WATCH, TWIN_CUT_CHUNK);
    assert_int_equal(-1, stream(&b, &g, 0));
    assert_int_equal(ERROR_UNAVAILABLE, b.err.code);
    assert_string_equal("{\"type\":\"ADD", strbuf_str(&g.text));
    twin_fault(b.twin, TWIN_WATCH, TWIN_HANG);
    assert_int_equal(-1, stream(&b, &g, 100));
    assert_int_equal(ERROR_TIMEOUT, b.err.code);
    assert_string_equal("GET /api/v1/pods: no byte for 100 ms", b.err.text);
    twin_fault(b.twin, TWIN_WATCH, TWIN_HANG_MIDWAY);
    assert_int_equal(-1, stream(&b, &g, 100));
    assert_int_equal(ERROR_TIMEOUT, b.err.code);
    g.stop_at = 1000;
    twin_fault(b.twin, TWIN_WATCH, TWIN_OVERSIZE);
    assert_int_equal(-1, stream(&b, &g, 0));
    assert_int_equal(ERROR_RANGE, b.err.code);
    assert_string_equal("GET /api/v1/pods: enough", b.err.text);
    strbuf_deinit(&g.text);
    bench_deinit(&b);
}

/* An error page longer than we care for. */
static void test_long_error_page(void **state)
{
    (void)state;
    struct bench b;
    struct gathered g = {0};
    bench_init(&b);
    AUTO_STRBUF page = {0};
    for (int i = 0; i < 200 * 1024; i++)
        strbuf_addc(&page, 'x');
    twin_script(b.twin, 503, "", strbuf_str(&page));
    struct kube_request r = {.method = "GET", .path = "/elsewhere", .timeout_ms = -1};
    assert_int_equal(-1, kube_http_stream(b.http, &r, gather, &g, NULL, &b.err));
    assert_int_equal(ERROR_UNAVAILABLE, b.err.code);
    assert_string_equal("GET /elsewhere: HTTP status 503", b.err.text);
    assert_int_equal(0, g.text.len);
    assert_int_equal(
        -1,
        kube_http_do(b.http, &(struct kube_request){.method = "GET", .path = "/x", .max_bytes = 1},
                     &b.body, NULL, NULL, NULL));
    bench_deinit(&b);
}

struct flood {
    int fd;
    size_t sent;
};

/* One request, answered by an error page that goes on until the peer has enough, or for 64 MiB. */
static void *flood(void *arg)
{
    static const char head[] = "HTTP/1.1 503 X\r\n\r\n";
    static char piece[64 * 1024];
    struct flood *f = arg;
    char request[4096];
    memset(piece, 'x', sizeof piece);
    int fd = accept(f->fd, NULL, NULL);
    if (recv(fd, request, sizeof request, 0) > 0 &&
        send(fd, head, sizeof head - 1, MSG_NOSIGNAL) > 0)
        while (f->sent < 64 * 1024 * 1024 && send(fd, piece, sizeof piece, MSG_NOSIGNAL) > 0)
            f->sent += sizeof piece;
    close(fd);
    return NULL;
}

/* A stream has no time limit, so an error page that does not end must not be read to its end. */
static void test_endless_error_page(void **state)
{
    (void)state;
    struct bench b;
    struct gathered g = {0};
    uint16_t port = 0;
    struct flood f = {.fd = -1};
    pthread_t thread;
    bench_init(&b);
    assert_true((f.fd = listener_open("127.0.0.1", 0, &port, &b.err)) >= 0);
    assert_int_equal(0, fcntl(f.fd, F_SETFL, 0)); /* accept waits */
    connect_to(&b, port);
    assert_int_equal(0, pthread_create(&thread, NULL, flood, &f));
    assert_int_equal(-1, stream(&b, &g, 0));
    assert_int_equal(ERROR_UNAVAILABLE, b.err.code);
    assert_string_equal("GET /api/v1/pods: HTTP status 503", b.err.text);
    kube_http_free(b.http);
    b.http = NULL;
    pthread_join(thread, NULL);
    assert_true(f.sent < 64 * 1024 * 1024);
    close(f.fd);
    bench_deinit(&b);
}

/* ---- TLS ------------------------------------------------------------------------------------ */

struct secure {
    const char *row;
    const char *ca;   /* which member of twin_tls; NULL: the system's */
    bool client;      /* show the client certificate */
    bool want_client; /* the server asks for one */
    const char *name; /* tls-server-name */
    bool with_ip;     /* the server's certificate names 127.0.0.1 */
    const char *host;
    bool good;
};

static void try_secure(const struct secure *s)
{
    struct twin_tls *tls = twin_tls_new(s->with_ip);
    struct bench b = {.twin = twin_start(tls, s->want_client), .options = twin_options()};
    AUTO_STRBUF y = {0};
    strbuf_addf(
        &y,
        "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {");
    if (s->ca)
        twin_tls_add_data(&y, "certificate-authority-data",
                          str_eq(s->ca, "ca") ? tls->ca : tls->other_ca);
    if (s->name)
        strbuf_addf(&y, "tls-server-name: %s, ", s->name);
    strbuf_addf(&y, "server: 'https://%s:%u'}}]\nusers: [{name: u, user: {", s->host,
                twin_port(b.twin));
    if (s->client) {
        twin_tls_add_data(&y, "client-certificate-data", tls->client_cert);
        twin_tls_add_data(&y, "client-key-data", tls->client_key);
    }
    strbuf_adds(&y, "token: s3cr3t}}]\n");
    struct error err = ERROR_INIT;
    if (kube_config_parse(&b.config, strbuf_str(&y), y.len, NULL, "", false, &err) < 0)
        fail_msg("%s: %s", s->row, err.text);
    open_http(&b);
    twin_script(b.twin, 200, "", "{}");
    expect_int(s->row, s->good ? 0 : -1, get(&b, "/x"));
    if (s->good != (b.err.code == ERROR_NONE))
        expect_str(s->row, "another outcome", b.err.text);
    if (!s->good) {
        expect_int(s->row, ERROR_UNAVAILABLE, b.err.code);
        expect_int(s->row, 0, (int64_t)twin_requests(b.twin, TWIN_ANY));
    } else if (s->name) {
        AUTO_STRBUF seen = {0}, host = {0};
        strbuf_addf(&host, "\r\nHost: %s:%u\r\n", s->host, twin_port(b.twin));
        twin_request(b.twin, 0, &seen);
        expect_true(s->row, strstr(strbuf_str(&seen), strbuf_str(&host)) != NULL);
    }
    bench_deinit(&b);
    twin_tls_free(tls);
}

static void test_tls(void **state)
{
    (void)state;
    static const struct secure rows[] = {
        {"our CA and the address in the certificate", "ca", false, false, NULL, true, "127.0.0.1",
         true},
        {"another CA is not trusted", "other", false, false, NULL, true, "127.0.0.1", false},
        {"the system's CAs do not know it", NULL, false, false, NULL, true, "127.0.0.1", false},
        {"an address that the certificate does not name", "ca", false, false, NULL, false,
         "127.0.0.1", false},
        {"unless tls-server-name says whom we mean", "ca", false, false, "twin.test", false,
         "127.0.0.1", true},
        {"tls-server-name with a host name", "ca", false, false, "twin.test", false, "localhost",
         true},
        {"the wrong tls-server-name", "ca", false, false, "other.test", true, "127.0.0.1", false},
        {"a client certificate that is asked for", "ca", true, true, NULL, true, "127.0.0.1", true},
        {"one that is asked for and not there", "ca", false, true, NULL, true, "127.0.0.1", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        try_secure(&rows[i]);
    expect_done();
}

static void test_escape(void **state)
{
    (void)state;
    AUTO_STRBUF out = {0};
    kube_http_escape(&out, "aZ09-_.~ /?&=%\xc3\xa4\n");
    assert_string_equal("aZ09-_.~%20%2F%3F%26%3D%25%C3%A4%0A", strbuf_str(&out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_and_reply),
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_a_write_is_not_repeated),
        cmocka_unit_test(test_an_answer_may_end_anywhere),
        cmocka_unit_test(test_never_sent),
        cmocka_unit_test(test_not_after),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_what_libcurl_refuses),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_sleep),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_long_error_page),
        cmocka_unit_test(test_endless_error_page),
        cmocka_unit_test(test_tls),
        cmocka_unit_test(test_escape),
    };
    kube_http_global_init();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return failed;
}

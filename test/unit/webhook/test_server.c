// SPDX-License-Identifier: Apache-2.0
/* The server over real TLS on loopback; lib/kube/http is the client, verifying as it does with an
 * API server. */
#include "webhook/server.h"

#include "test/unit/lib/base/expect.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "lib/base/base64.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/metrics.h"
#include "lib/kube/http.h"
#include "lib/model/names.h"
#include "test/unit/webhook/webhook_kit.h"
#include "webhook/certs.h"
#include "webhook/patch.h"

#define GPU_POD                                                                                      \
    "{\"metadata\":{},\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":" \
    "\"3\"}}}]}}"

static const char *const names[] = {"127.0.0.1"};
static const struct kube_options kube = {
    .max_reply_bytes = 1 << 20, .request_timeout_ms = 20000, .page_size = 500};

struct site {
    struct server *server;
    struct certs_pair ca;
};

static void new_leaf(struct site *s)
{
    struct error err = ERROR_INIT;
    struct certs_pair leaf = {0};
    if (certs_make_leaf(&s->ca, names, 1, clock_wall_ns() / 1000000000, 3600, &leaf, &err) < 0 ||
        server_set_certificate(s->server, leaf.cert_pem, leaf.key_pem, &err) < 0)
        fail_msg("%s", err.text);
    certs_pair_deinit(&leaf);
}

static void new_ca(struct site *s)
{
    struct error err = ERROR_INIT;
    certs_pair_deinit(&s->ca);
    if (certs_make_ca("test", clock_wall_ns() / 1000000000, 7200, &s->ca, &err) < 0)
        fail_msg("%s", err.text);
    new_leaf(s);
}

static int set_up(void **state)
{
    static struct site site;
    struct error err = ERROR_INIT;
    kube_http_global_init();
    struct server_options o = {.address = "127.0.0.1",
                               .threads = 2,
                               .max_body_bytes = 16 * 1024,
                               .max_connections = 64,
                               .idle_timeout_ms = 5000};
    struct review_config config = {.rules = {.scheduler = NAME_SCHEDULER}};
    if (server_start(&site.server, &o, &config, &err) < 0)
        fail_msg("%s", err.text);
    new_ca(&site);
    *state = &site;
    return 0;
}

static int tear_down(void **state)
{
    struct site *s = *state;
    server_stop(s->server);
    certs_pair_deinit(&s->ca);
    metrics_reset();
    kube_http_global_cleanup();
    return 0;
}

/* A client that trusts this CA. */
struct client {
    struct kube_config *config;
    struct kube_http *http;
};

static void connect_to(struct client *c, const struct site *s, const char *ca_pem)
{
    struct error err = ERROR_INIT;
    AUTO_STRBUF text;
    AUTO_STRBUF ca;
    strbuf_init(&text);
    strbuf_init(&ca);
    base64_encode(ca_pem, strlen(ca_pem), &ca);
    strbuf_addf(&text,
                "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                "clusters: [{name: k, cluster: {server: \"https://127.0.0.1:%u\", "
                "certificate-authority-data: %s}}]\n"
                "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
                "users: [{name: u, user: {token: t}}]\n",
                (unsigned)server_port(s->server), strbuf_str(&ca));
    if (kube_config_parse(&c->config, text.ptr, text.len, NULL, "", false, &err) < 0 ||
        kube_http_new(&c->http, c->config, &kube, "test", &err) < 0)
        fail_msg("%s", err.text);
}

static void disconnect(struct client *c)
{
    kube_http_free(c->http);
    kube_config_free(c->config);
}

/* The HTTP status, or 0 with err when there was none. */
static int ask(struct client *c, const char *method, const char *path, const char *type,
               const char *body, struct strbuf *reply, struct error *err)
{
    int status = 0;
    struct kube_request r = {.method = method,
                             .path = path,
                             .content_type = type,
                             .body = body,
                             .body_len = body ? strlen(body) : 0};
    int rc = kube_http_do(c->http, &r, reply, &status, NULL, err);
    return rc == 0 ? status : err->http_status;
}

static void requests_get_the_right_answer(void **state)
{
    struct site *s = *state;
    AUTO_STRBUF review;
    AUTO_STRBUF huge;
    AUTO_STRBUF long_review; /* the server reads it in many steps: longer than a microsecond */
    strbuf_init(&review);
    strbuf_init(&huge);
    strbuf_init(&long_review);
    webhook_kit_review(&review, GPU_POD, "default", "CREATE");
    strbuf_adds(&long_review, review.ptr);
    while (long_review.len < 16 * 1024)
        strbuf_addc(&long_review, ' ');
    for (int i = 0; i < 16 * 1024 + 1; i++)
        strbuf_addc(&huge, ' ');
    const struct {
        const char *row, *method, *path, *type, *body;
        int status;
        const char *has; /* a part of the reply */
    } rows[] = {
        {"a review", "POST", "/mutate?timeout=5s", "application/json", review.ptr, 200,
         "\"allowed\":true,\"patchType\":\"JSONPatch\""},
        {"with a charset", "POST", "/mutate", "application/json; charset=utf-8", review.ptr, 200,
         "\"allowed\":true"},
        {"the other path has no patch", "POST", "/validate?timeout=1m30s", "application/json",
         review.ptr, 200, "\"allowed\":true}}"},
        {"a deadline that is over", "POST", "/mutate?timeout=0ms1us", "application/json",
         long_review.ptr, 504, "longer on its way than its timeout"},
        {"a deadline that is none", "POST", "/mutate?timeout=soon", "application/json", review.ptr,
         400, "timeout: must be a time such as 5s"},
        {"a deadline with a fraction", "POST", "/validate?timeout=1.5s", "application/json",
         review.ptr, 200, "\"allowed\":true}}"},
        {"a fraction that is over", "POST", "/mutate?timeout=0.000001s", "application/json",
         long_review.ptr, 504, "longer on its way than its timeout"},
        {"a fraction of nothing", "POST", "/mutate?timeout=.5s", "application/json", review.ptr,
         400, "timeout: must be a time such as 5s"},
        {"a deadline before now", "POST", "/mutate?timeout=-5s", "application/json", review.ptr,
         400, "timeout: must be a time such as 5s"},
        {"a deadline without a unit", "POST", "/mutate?timeout=5", "application/json", review.ptr,
         400, "timeout: must be a time such as 5s"},
        {"a deadline beyond all time", "POST", "/mutate?timeout=9223372036854775807h",
         "application/json", review.ptr, 400, "timeout: must be a time such as 5s"},
        {"another version of the review", "POST", "/mutate", "application/json",
         "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1beta1\"}", 400,
         "only admission.k8s.io/v1 is spoken here, got 'admission.k8s.io/v1beta1'"},
        {"no JSON", "POST", "/mutate", "application/json", "x", 400, "body: not JSON"},
        {"no body", "POST", "/mutate", "application/json", "", 400, "body: not JSON"},
        {"another type", "POST", "/mutate", "text/plain", review.ptr, 415,
         "reviews are application/json"},
        {"a type that begins alike", "POST", "/mutate", "application/jsonp", review.ptr, 415,
         "reviews are application/json"},
        {"another path", "POST", "/", "application/json", review.ptr, 404,
         "only /mutate and /validate"},
        {"another method", "GET", "/mutate", NULL, NULL, 405, "reviews are sent by POST"},
        {"a body over the bound", "POST", "/mutate", "application/json", huge.ptr, 413,
         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"the body is "
         "larger than 16384 bytes\",\"reason\":\"RequestEntityTooLarge\",\"code\":413}"},
        {"and after all that, a review", "POST", "/mutate", "application/json", review.ptr, 200,
         "\"allowed\":true"},
    };
    struct client c;
    connect_to(&c, s, s->ca.cert_pem);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        AUTO_STRBUF reply;
        strbuf_init(&reply);
        expect_int(rows[i].row, rows[i].status,
                   ask(&c, rows[i].method, rows[i].path, rows[i].type, rows[i].body, &reply, &err));
        if (!strstr(strbuf_str(&reply), rows[i].has))
            expect_str(rows[i].row, rows[i].has, strbuf_str(&reply));
    }
    disconnect(&c);
    AUTO_STRBUF metrics;
    strbuf_init(&metrics);
    metrics_render(&metrics);
    expect_true("they are counted",
                strstr(metrics.ptr, "cosched_webhook_requests_total{result=\"patched\"} 3") !=
                    NULL);
    expect_true("by trigger",
                strstr(metrics.ptr, "cosched_webhook_injections_total{trigger=\"gpu-mem\"} 3") !=
                    NULL);
    expect_true("with their time",
                strstr(metrics.ptr, "cosched_webhook_request_duration_seconds_count 8") != NULL);
    expect_true("by kind",
                strstr(metrics.ptr, "cosched_webhook_objects_total{kind=\"Pod\"} 5") != NULL);
    expect_done();
}

static void a_client_that_trusts_another_ca_gets_nothing(void **state)
{
    struct site *s = *state;
    struct error err = ERROR_INIT;
    AUTO_STRBUF reply;
    strbuf_init(&reply);
    char *old_ca = strdup(s->ca.cert_pem);
    new_ca(s);
    struct client c;
    connect_to(&c, s, old_ca);
    expect_int("the old CA", 0, ask(&c, "GET", "/mutate", NULL, NULL, &reply, &err));
    disconnect(&c);
    connect_to(&c, s, s->ca.cert_pem);
    expect_int("the new CA", 405, ask(&c, "GET", "/mutate", NULL, NULL, &reply, &err));
    disconnect(&c);
    free(old_ca);
    expect_done();
}

struct load {
    struct site *site;
    const char *body;
    atomic_int good, bad;
};

static void *worker_load(void *arg)
{
    struct load *l = arg;
    for (int i = 0; i < 10; i++) {
        struct client c; /* a new handshake each time */
        connect_to(&c, l->site, l->site->ca.cert_pem);
        for (int k = 0; k < 3; k++) {
            struct error err = ERROR_INIT;
            AUTO_STRBUF reply;
            strbuf_init(&reply);
            int status = ask(&c, "POST", "/mutate", "application/json", l->body, &reply, &err);
            if (status != 200)
                print_error("status %d: %s\n", status, err.text);
            atomic_fetch_add(status == 200 ? &l->good : &l->bad, 1);
        }
        disconnect(&c);
    }
    return NULL;
}

static void no_request_fails_while_certificates_change(void **state)
{
    struct site *s = *state;
    enum { THREADS = 4 };
    AUTO_STRBUF review;
    strbuf_init(&review);
    webhook_kit_review(&review, GPU_POD, "default", "CREATE");
    struct load l = {.site = s, .body = review.ptr};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, worker_load, &l));
    while (atomic_load(&l.good) + atomic_load(&l.bad) < THREADS * 30 / 2)
        new_leaf(s);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    expect_int("good", (int64_t)THREADS * 30, atomic_load(&l.good));
    expect_int("bad", 0, atomic_load(&l.bad));
    expect_done();
}

static void what_is_not_tls_is_dropped(void **state)
{
    struct site *s = *state;
    static const char *const greetings[] = {"POST /mutate HTTP/1.1\r\nHost: x\r\n\r\n",
                                            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                                            "\x16\x03\x01\xff\xff"};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(server_port(s->server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (size_t i = 0; i < 3; i++) {
        AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(0, connect(fd, (struct sockaddr *)&to, sizeof to));
        assert_true(send(fd, greetings[i], strlen(greetings[i]), MSG_NOSIGNAL) > 0);
        (void)shutdown(fd, SHUT_WR); /* it may have hung up already */
        char buf[512];
        ssize_t n = 0;
        size_t total = 0;
        while ((n = recv(fd, buf, sizeof buf, 0)) > 0)
            total += (size_t)n;
        expect_true("an alert at most", total < 64);
    }
    struct client c;
    struct error err = ERROR_INIT;
    AUTO_STRBUF reply;
    strbuf_init(&reply);
    connect_to(&c, s, s->ca.cert_pem);
    expect_int("others are served", 405, ask(&c, "GET", "/mutate", NULL, NULL, &reply, &err));
    disconnect(&c);
    expect_done();
}

static void a_taken_port_is_an_error(void **state)
{
    struct site *s = *state;
    struct server *second = NULL;
    struct error err = ERROR_INIT;
    struct server_options o = {.address = "127.0.0.1",
                               .port = server_port(s->server),
                               .threads = 1,
                               .max_body_bytes = 1024,
                               .max_connections = 1,
                               .idle_timeout_ms = 1000};
    struct review_config config = {.rules = {.scheduler = NAME_SCHEDULER}};
    expect_int("taken", -1, server_start(&second, &o, &config, &err));
    expect_true("the sentence names it", str_starts(err.text, "listen on 127.0.0.1 port "));
    expect_done();
}

static void a_client_ca_that_is_none_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *file, *words;
    } rows[] = {{"/nonexistent/ca.crt", "--client-ca-file: "}, {"/dev/null", "CA of clients: "}};
    struct review_config config = {.rules = {.scheduler = NAME_SCHEDULER}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct server *s = NULL;
        struct error err = ERROR_INIT;
        struct server_options o = {.address = "127.0.0.1",
                                   .threads = 1,
                                   .max_body_bytes = 1024,
                                   .max_connections = 1,
                                   .idle_timeout_ms = 1000,
                                   .client_ca_file = rows[i].file};
        expect_int(rows[i].file, -1, server_start(&s, &o, &config, &err));
        if (strstr(err.text, rows[i].words) == NULL)
            expect_str(rows[i].file, rows[i].words, err.text);
    }
    expect_done();
}

/* An API server that asks on a connection which we are closing loses its review. */
static void idle_connections_outlive_those_of_the_api_server(void **state)
{
    (void)state;
    enum { API_SERVER_IDLE_MS = 90 * 1000 };
    for (const struct option_row *r = server_option_rows; r->name || r->section; r++)
        if (str_eq(r->name, "idle-timeout"))
            expect_true("at least", r->min > API_SERVER_IDLE_MS);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_get_the_right_answer),
        cmocka_unit_test(a_client_that_trusts_another_ca_gets_nothing),
        cmocka_unit_test(no_request_fails_while_certificates_change),
        cmocka_unit_test(what_is_not_tls_is_dropped),
        cmocka_unit_test(a_taken_port_is_an_error),
        cmocka_unit_test(a_client_ca_that_is_none_is_an_error),
        cmocka_unit_test(idle_connections_outlive_those_of_the_api_server),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

// SPDX-License-Identifier: Apache-2.0
/* httpd with TLS: certificates made here, a GnuTLS client that trusts only the one it expects. */
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "lib/base/httpd.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/base/wire.h"

enum { CERTIFICATES = 9, CLIENTS = 4, HANDSHAKES = 60 };

struct pem {
    char cert[4096], key[4096];
    gnutls_x509_crt_t crt;
    gnutls_x509_privkey_t secret;
};

static struct pem pems[CERTIFICATES];
static struct httpd *server;

/* A certificate for 127.0.0.1, signed by issuer (NULL: by itself). */
static void make_pem(struct pem *p, unsigned char serial, const struct pem *issuer)
{
    static const unsigned char address[] = {127, 0, 0, 1};
    assert_int_equal(0, gnutls_x509_privkey_init(&p->secret));
    assert_int_equal(
        0, gnutls_x509_privkey_generate(p->secret, GNUTLS_PK_ECDSA,
                                        GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
    assert_int_equal(0, gnutls_x509_crt_init(&p->crt));
    assert_int_equal(0, gnutls_x509_crt_set_version(p->crt, 3));
    assert_int_equal(0, gnutls_x509_crt_set_serial(p->crt, &serial, 1));
    assert_int_equal(0, gnutls_x509_crt_set_activation_time(p->crt, time(NULL) - 3600));
    assert_int_equal(0, gnutls_x509_crt_set_expiration_time(p->crt, time(NULL) + 3600));
    char name[32];
    str_format(name, sizeof name, "test %u", (unsigned)serial);
    assert_int_equal(0, gnutls_x509_crt_set_dn_by_oid(p->crt, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                                      (unsigned)strlen(name)));
    assert_int_equal(0, gnutls_x509_crt_set_subject_alt_name(p->crt, GNUTLS_SAN_IPADDRESS, address,
                                                             sizeof address, GNUTLS_FSAN_SET));
    assert_int_equal(0, gnutls_x509_crt_set_basic_constraints(p->crt, issuer == NULL, -1));
    assert_int_equal(0, gnutls_x509_crt_set_key(p->crt, p->secret));
    assert_int_equal(0, gnutls_x509_crt_sign2(p->crt, issuer != NULL ? issuer->crt : p->crt,
                                              issuer != NULL ? issuer->secret : p->secret,
                                              GNUTLS_DIG_SHA256, 0));
    size_t n = sizeof p->cert - 1;
    assert_int_equal(0, gnutls_x509_crt_export(p->crt, GNUTLS_X509_FMT_PEM, p->cert, &n));
    p->cert[n] = '\0';
    n = sizeof p->key - 1;
    assert_int_equal(0, gnutls_x509_privkey_export(p->secret, GNUTLS_X509_FMT_PEM, p->key, &n));
    p->key[n] = '\0';
}

static void free_pem(struct pem *p)
{
    gnutls_x509_crt_deinit(p->crt);
    gnutls_x509_privkey_deinit(p->secret);
}

static int make_all(void **state)
{
    (void)state;
    for (int i = 0; i < CERTIFICATES; i++)
        make_pem(&pems[i], (unsigned char)(i + 1), NULL);
    return 0;
}

static int free_all(void **state)
{
    (void)state;
    for (int i = 0; i < CERTIFICATES; i++)
        free_pem(&pems[i]);
    return 0;
}

static void handle(void *arg, const struct httpd_request *r, struct httpd_response *response)
{
    (void)arg;
    strbuf_addf(&response->body, "%s %s %s", r->method, r->path, r->body);
}

static struct httpd *start_for(const char *client_ca_pem)
{
    struct httpd_config config = {.address = "127.0.0.1",
                                  .client_ca_pem = client_ca_pem,
                                  .threads = 2,
                                  .max_body_bytes = 1000,
                                  .max_connections = 64,
                                  .timeout_s = 20,
                                  .tls = true,
                                  .handler = handle};
    struct httpd *h = NULL;
    struct error err = ERROR_INIT;
    if (httpd_start(&h, &config, &err) < 0)
        fail_msg("httpd_start: %s", err.text);
    return h;
}

static struct httpd *start(void)
{
    return start_for(NULL);
}

static int begin(void **state)
{
    (void)state;
    server = start();
    return 0;
}

static int end(void **state)
{
    (void)state;
    httpd_stop(server);
    server = NULL;
    return 0;
}

struct client {
    int fd;
    gnutls_session_t session;
    gnutls_certificate_credentials_t trusted;
};

static void close_client(struct client *c)
{
    if (c->session != NULL)
        gnutls_deinit(c->session);
    if (c->trusted != NULL)
        gnutls_certificate_free_credentials(c->trusted);
    if (c->fd >= 0)
        close(c->fd);
}

/* A handshake with a peer that must show one of the trusted certificates; own is shown to it (NULL:
 * none). Returns GnuTLS' word: 0 is good. */
static int handshake_as(struct client *c, const struct httpd *h, const struct pem *own,
                        const struct pem *trusted, int trusted_len, const char *priorities)
{
    *c = (struct client){.fd = wire_connect("127.0.0.1", httpd_port(h))};
    if (c->fd < 0)
        return -1;
    gnutls_certificate_allocate_credentials(&c->trusted);
    for (int i = 0; i < trusted_len; i++)
        gnutls_certificate_set_x509_trust(c->trusted, &(gnutls_x509_crt_t){trusted[i].crt}, 1);
    if (own != NULL)
        gnutls_certificate_set_x509_key(c->trusted, &(gnutls_x509_crt_t){own->crt}, 1, own->secret);
    gnutls_init(&c->session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL);
    gnutls_priority_set_direct(c->session, priorities != NULL ? priorities : "NORMAL", NULL);
    gnutls_credentials_set(c->session, GNUTLS_CRD_CERTIFICATE, c->trusted);
    gnutls_session_set_verify_cert(c->session, NULL, 0);
    gnutls_transport_set_int(c->session, c->fd);
    int rc;
    do
        rc = gnutls_handshake(c->session);
    while (rc < 0 && gnutls_error_is_fatal(rc) == 0);
    return rc;
}

static int handshake(struct client *c, const struct httpd *h, const struct pem *trusted,
                     int trusted_len, const char *priorities)
{
    return handshake_as(c, h, NULL, trusted, trusted_len, priorities);
}

/* Serial number of the certificate that the peer showed. */
static int serial_of(const struct client *c)
{
    unsigned n = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(c->session, &n);
    gnutls_x509_crt_t crt;
    unsigned char serial[8] = {0};
    size_t len = sizeof serial;
    if (chain == NULL || n == 0 || gnutls_x509_crt_init(&crt) < 0)
        return -1;
    int result = gnutls_x509_crt_import(crt, &chain[0], GNUTLS_X509_FMT_DER) < 0 ||
                         gnutls_x509_crt_get_serial(crt, serial, &len) < 0
                     ? -1
                     : serial[len - 1];
    gnutls_x509_crt_deinit(crt);
    return result;
}

static bool ask(struct client *c, const char *request, const char *until)
{
    if (gnutls_record_send(c->session, request, strlen(request)) < 0)
        return false;
    AUTO_STRBUF reply = {0};
    while (strstr(strbuf_str(&reply), until) == NULL) {
        char buf[2048];
        ssize_t n = gnutls_record_recv(c->session, buf, sizeof buf);
        if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
            continue;
        if (n <= 0)
            return false;
        strbuf_add(&reply, buf, (size_t)n);
    }
    return true;
}

static const char post[] = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";

static void without_a_certificate_no_handshake_succeeds(void **state)
{
    (void)state;
    struct client c;
    expect_true("none yet", handshake(&c, server, pems, 1, NULL) != 0);
    close_client(&c);
    expect_int("now there is one", 0,
               httpd_set_certificate(server, pems[0].cert, pems[0].key, NULL));
    expect_int("handshake", 0, handshake(&c, server, pems, 1, NULL));
    expect_true("and a reply", ask(&c, post, "POST /a {}"));
    close_client(&c);
    expect_done();
}

static void only_tls_1_2_and_1_3(void **state)
{
    (void)state;
    static const struct {
        const char *row, *priorities;
        bool good;
    } rows[] = {
        {"1.3", "NORMAL:-VERS-ALL:+VERS-TLS1.3", true},
        {"1.2", "NORMAL:-VERS-ALL:+VERS-TLS1.2", true},
        {"1.1", "NORMAL:-VERS-ALL:+VERS-TLS1.1", false},
    };
    expect_int("set", 0, httpd_set_certificate(server, pems[0].cert, pems[0].key, NULL));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct client c;
        expect_int(rows[i].row, rows[i].good,
                   handshake(&c, server, pems, 1, rows[i].priorities) == 0);
        if (rows[i].good)
            expect_true(rows[i].row, ask(&c, post, "POST /a {}"));
        close_client(&c);
    }
    AUTO_STRBUF reply = {0};
    (void)wire_ask(httpd_port(server), "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                   &reply);
    expect_int("no plain HTTP", 0, wire_status(&reply));
    expect_done();
}

static void a_running_connection_keeps_its_certificate(void **state)
{
    (void)state;
    struct client old, new;
    expect_int("set", 0, httpd_set_certificate(server, pems[0].cert, pems[0].key, NULL));
    expect_int("old", 0, handshake(&old, server, &pems[0], 1, NULL));
    expect_int("rotated", 0, httpd_set_certificate(server, pems[1].cert, pems[1].key, NULL));
    expect_int("new", 0, handshake(&new, server, &pems[1], 1, NULL));
    expect_int("the old one was shown", 1, serial_of(&old));
    expect_int("the new one is shown", 2, serial_of(&new));
    expect_true("the old connection still works", ask(&old, post, "POST /a {}"));
    expect_true("so does the new one", ask(&new, post, "POST /a {}"));
    close_client(&new);
    expect_true("after the rotation, too", ask(&old, post, "POST /a {}"));
    close_client(&old);
    expect_done();
}

static void two_servers_show_their_own(void **state)
{
    (void)state;
    struct httpd *other = start();
    expect_int("first", 0, httpd_set_certificate(server, pems[0].cert, pems[0].key, NULL));
    expect_int("second", 0, httpd_set_certificate(other, pems[1].cert, pems[1].key, NULL));
    struct client a, b;
    expect_int("first", 0, handshake(&a, server, &pems[0], 1, NULL));
    expect_int("second", 0, handshake(&b, other, &pems[1], 1, NULL));
    close_client(&a);
    close_client(&b);
    httpd_stop(other);
    expect_done();
}

static void a_chain_is_shown_whole(void **state)
{
    (void)state;
    static struct pem leaf;
    make_pem(&leaf, 77, &pems[0]);
    AUTO_STRBUF chain = {0}, wrong_order = {0};
    strbuf_addf(&chain, "%s%s", leaf.cert, pems[0].cert);
    strbuf_addf(&wrong_order, "%s%s", pems[0].cert, leaf.cert);
    struct error err = ERROR_INIT;
    expect_int("set", 0, httpd_set_certificate(server, strbuf_str(&chain), leaf.key, &err));
    expect_str("set", "", err.text);
    struct client c;
    expect_int("trusted by its CA", 0, handshake(&c, server, &pems[0], 1, NULL));
    expect_int("the leaf comes first", 77, serial_of(&c));
    unsigned n = 0;
    (void)gnutls_certificate_get_peers(c.session, &n);
    expect_int("both were sent", 2, n);
    close_client(&c);
    expect_int("the wrong order", -1,
               httpd_set_certificate(server, strbuf_str(&wrong_order), pems[0].key, &err));
    expect_true("says so", str_starts(err.text, "certificate: "));
    free_pem(&leaf);
    expect_done();
}

static void what_is_no_certificate_changes_nothing(void **state)
{
    (void)state;
    AUTO_STRBUF many = {0};
    for (int i = 0; i < 17; i++)
        strbuf_adds(&many, pems[0].cert);
    const struct {
        const char *row, *cert, *key, *error;
    } rows[] = {
        {"nothing", "", "", "private key: "},
        {"no key", pems[1].cert, "", "private key: "},
        {"no certificate", "", pems[1].key, "certificate: "},
        {"garbage", "-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n", pems[1].key,
         "certificate: "},
        {"the key of another", pems[1].cert, pems[2].key,
         "private key: does not belong to the certificate"},
        {"a key in place of the certificate", pems[1].key, pems[1].key, "certificate: "},
        {"too many", strbuf_str(&many), pems[0].key, "certificate: "},
    };
    expect_int("set", 0, httpd_set_certificate(server, pems[0].cert, pems[0].key, NULL));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = ERROR_INIT;
        expect_int(rows[i].row, -1, httpd_set_certificate(server, rows[i].cert, rows[i].key, &err));
        if (!str_starts(err.text, rows[i].error))
            expect_str(rows[i].row, rows[i].error, err.text);
    }
    struct client c;
    expect_int("the first one is still shown", 0, handshake(&c, server, &pems[0], 1, NULL));
    close_client(&c);
    expect_done();
}

static _Atomic int handshakes, failures;

static void *shake_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < HANDSHAKES; i++) {
        struct client c;
        int rc = handshake(&c, server, pems, CERTIFICATES, NULL);
        if (rc != 0 || !ask(&c, post, "POST /a {}"))
            atomic_fetch_add(&failures, 1);
        close_client(&c);
        atomic_fetch_add(&handshakes, 1);
    }
    return NULL;
}

/* A rotation after each ninth of the handshakes, while they go on. */
static void rotation_breaks_no_handshake(void **state)
{
    (void)state;
    handshakes = failures = 0;
    expect_int("set", 0, httpd_set_certificate(server, pems[0].cert, pems[0].key, NULL));
    pthread_t threads[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, shake_often, NULL));
    for (int i = 1; i < CERTIFICATES; i++) {
        while (atomic_load(&handshakes) < i * CLIENTS * HANDSHAKES / CERTIFICATES)
            sched_yield();
        expect_int("rotate", 0, httpd_set_certificate(server, pems[i].cert, pems[i].key, NULL));
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    expect_int("all done", CLIENTS * HANDSHAKES, handshakes);
    expect_int("none failed", 0, failures);
    struct client c;
    expect_int("the last one is shown", 0, handshake(&c, server, &pems[CERTIFICATES - 1], 1, NULL));
    close_client(&c);
    expect_done();
}

/* pems[1] is the CA of the clients. */
static void only_clients_of_the_ca_are_answered(void **state)
{
    (void)state;
    static struct pem good, foreign;
    make_pem(&good, 50, &pems[1]);
    make_pem(&foreign, 51, &pems[2]);
    static const struct {
        const char *row;
        const struct pem *own;
        bool answered;
    } rows[] = {{"of the CA", &good, true},
                {"of another CA", &foreign, false},
                {"of itself", &pems[3], false},
                {"none", NULL, false}};
    httpd_stop(server);
    server = start_for(pems[1].cert);
    expect_int("set", 0, httpd_set_certificate(server, pems[0].cert, pems[0].key, NULL));
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        struct client c;
        const char *version =
            i % 2 == 0 ? "NORMAL:-VERS-ALL:+VERS-TLS1.3" : "NORMAL:-VERS-ALL:+VERS-TLS1.2";
        /* In TLS 1.3 the client is done before the server has judged it. */
        bool done = handshake_as(&c, server, rows[i / 2].own, pems, 1, version) == 0;
        expect_int(rows[i / 2].row, rows[i / 2].answered, done && ask(&c, post, "POST /a {}"));
        close_client(&c);
    }
    struct httpd_config config = {
        .address = "127.0.0.1", .tls = true, .client_ca_pem = "none", .handler = handle};
    struct httpd *h = NULL;
    struct error err = ERROR_INIT;
    expect_int("no CA", -1, httpd_start(&h, &config, &err));
    expect_true("says so", str_starts(err.text, "CA of clients: "));
    free_pem(&good);
    free_pem(&foreign);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_a_certificate_no_handshake_succeeds, begin, end),
        cmocka_unit_test_setup_teardown(only_tls_1_2_and_1_3, begin, end),
        cmocka_unit_test_setup_teardown(a_running_connection_keeps_its_certificate, begin, end),
        cmocka_unit_test_setup_teardown(two_servers_show_their_own, begin, end),
        cmocka_unit_test_setup_teardown(a_chain_is_shown_whole, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_certificate_changes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(rotation_breaks_no_handshake, begin, end),
        cmocka_unit_test_setup_teardown(only_clients_of_the_ca_are_answered, begin, end),
    };
    return cmocka_run_group_tests_name("httpd_tls", tests, make_all, free_all);
}

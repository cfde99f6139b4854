// SPDX-License-Identifier: Apache-2.0
/* The server over TLS, with a client that verifies. */
#include "test/local/server/server.h"

#include "test/unit/lib/base/expect.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "test/local/server/pki.h"
#include "test/unit/local/site.h"

static int tls_say(struct client *c, SSL *ssl, const char *text)
{
    int done = 0, n = (int)strlen(text);
    for (int i = 0; i < ROUNDS && done < n; i++) {
        int rc = SSL_write(ssl, text + done, n - done);
        if (rc > 0)
            done += rc;
        loop_once(c->loop, 1);
    }
    return done == n ? 0 : -1;
}

static bool tls_await(struct client *c, SSL *ssl, const char *text, size_t at_least)
{
    static char buf[65536];
    for (int i = 0; i < ROUNDS * 10; i++) {
        int n = SSL_read(ssl, buf, sizeof buf);
        if (n > 0)
            strbuf_add(&c->in, buf, (size_t)n);
        else
            loop_once(c->loop, 1);
        if (c->in.len >= at_least && strstr(strbuf_str(&c->in), text))
            return true;
    }
    return false;
}

static void tls_serves_the_same(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct pki pki = {0};
    static const char *const names[] = {"127.0.0.1", "localhost", NULL};
    if (pki_make(&pki, names, &err) < 0)
        fail_msg("%s", err.text);
    struct site s;
    start(&s, (struct server_config){.cert_pem = pki.cert_pem, .key_pem = pki.key_pem});
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    BIO *bio = BIO_new_mem_buf(pki.ca_pem, -1);
    X509 *ca = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca);
    X509_free(ca);
    BIO_free(bio);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)"\x02h2\x08http/1.1", 12);
    SSL *ssl = SSL_new(ctx);
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), "127.0.0.1");
    struct client c = dial(s.loop, server_port(s.server));
    SSL_set_fd(ssl, c.fd);
    SSL_set_connect_state(ssl);
    expect_int("a request", 0, tls_say(&c, ssl, "GET /e?q=tls HTTP/1.1\r\n" HOST "\r\n"));
    expect_true("its reply", tls_await(&c, ssl, "GET /e q=tls", 0));
    const unsigned char *protocol = NULL;
    unsigned len = 0;
    SSL_get0_alpn_selected(ssl, &protocol, &len);
    expect_true("http/1.1 was chosen", len == 8 && memcmp(protocol, "http/1.1", 8) == 0);
    strbuf_reset(&c.in);
    tls_say(&c, ssl, "GET /big HTTP/1.1\r\n" HOST "\r\nGET /2 HTTP/1.1\r\n" HOST "\r\n");
    expect_true("more than a socket holds, and the pipelined one behind it",
                tls_await(&c, ssl, "GET /2", 3 * 1024 * 1024));
    strbuf_reset(&c.in);
    tls_say(&c, ssl, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    expect_true("a stream", tls_await(&c, ssl, "chunked", 0));
    struct shared_bytes *l = line("{\"one\":1}\n");
    call_stream_write(s.streams.items[0], l);
    shared_bytes_unref(l);
    expect_true("its line", tls_await(&c, ssl, "a\r\n{\"one\":1}\n\r\n", 0));
    SSL_shutdown(ssl);
    SSL_free(ssl);
    hang_up(&c);
    for (int i = 0; i < ROUNDS && s.closed == 0; i++)
        loop_once(s.loop, 1);
    expect_int("its end is noticed", 1, s.closed);
    c = dial(s.loop, server_port(s.server));
    say(&c, "GET /plain HTTP/1.1\r\n" HOST "\r\n");
    expect_true("plain HTTP on a TLS port ends", await_end(&c));
    expect_true("without a reply", !strstr(strbuf_str(&c.in), "200"));
    hang_up(&c);
    SSL_CTX_free(ctx);
    stop(&s);

    struct server *none;
    struct loop *loop;
    assert_int_equal(0, loop_new(&loop, &err));
    expect_int("a key of another certificate", -1,
               server_start(&none, loop,
                            &(struct server_config){.address = "127.0.0.1",
                                                    .cert_pem = pki.ca_pem,
                                                    .key_pem = pki.key_pem},
                            &err));
    expect_true(err.text, str_starts(err.text, "key of the serving certificate: "));
    expect_int("no certificate at all", -1,
               server_start(&none, loop,
                            &(struct server_config){
                                .address = "127.0.0.1", .cert_pem = "x", .key_pem = pki.key_pem},
                            &err));
    expect_int("no such address", -1,
               server_start(&none, loop, &(struct server_config){.address = "nowhere"}, &err));
    loop_free(loop);
    pki_deinit(&pki);
    expect_done();
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tls_serves_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

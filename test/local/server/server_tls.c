// SPDX-License-Identifier: Apache-2.0
#include "test/local/server/server_tls.h"

#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

struct server_tls_context {
    SSL_CTX *ssl;
};

struct server_tls {
    SSL *ssl;
};

static int fail(struct error *err, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    int rc = error_set(err, ERROR_INVALID, "%s: %s", what, reason ? reason : "no reason given");
    ERR_clear_error();
    return rc;
}

/* Go's clients offer h2 first; the answer is http/1.1 or, if they do not speak it, none. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned in_len, void *arg)
{
    (void)ssl;
    (void)arg;
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, out_len, ours, sizeof ours - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static int use_chain(SSL_CTX *ssl, const char *cert_pem, const char *key_pem, struct error *err)
{
    BIO *bio = BIO_new_mem_buf(cert_pem, -1);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    int ok = cert && SSL_CTX_use_certificate(ssl, cert) == 1;
    X509_free(cert);
    while (ok && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)))
        ok = SSL_CTX_add0_chain_cert(ssl, cert) == 1;
    BIO_free(bio);
    if (!ok)
        return fail(err, "serving certificate");
    ERR_clear_error(); /* of the end of the chain */
    bio = BIO_new_mem_buf(key_pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    ok = key && SSL_CTX_use_PrivateKey(ssl, key) == 1 && SSL_CTX_check_private_key(ssl) == 1;
    EVP_PKEY_free(key);
    BIO_free(bio);
    return ok ? 0 : fail(err, "key of the serving certificate");
}

int server_tls_context_new(struct server_tls_context **out, const char *cert_pem,
                           const char *key_pem, struct error *err)
{
    SSL_CTX *ssl = SSL_CTX_new(TLS_server_method());
    if (!ssl)
        return fail(err, "TLS");
    SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION);
    SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    /* A peer that goes without a goodbye is an end like any other: HTTP knows its own ends. */
    SSL_CTX_set_options(ssl, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, NULL);
    if (use_chain(ssl, cert_pem, key_pem, err) < 0) {
        SSL_CTX_free(ssl);
        return -1;
    }
    *out = mem_new(struct server_tls_context, 1);
    (*out)->ssl = ssl;
    return 0;
}

void server_tls_context_free(struct server_tls_context *c)
{
    if (!c)
        return;
    SSL_CTX_free(c->ssl);
    free(c);
}

struct server_tls *server_tls_new(struct server_tls_context *c, int fd)
{
    SSL *ssl = SSL_new(c->ssl);
    if (!ssl || SSL_set_fd(ssl, fd) != 1)
        abort(); /* both fail only for want of memory */
    SSL_set_accept_state(ssl);
    struct server_tls *t = mem_new(struct server_tls, 1);
    t->ssl = ssl;
    return t;
}

void server_tls_free(struct server_tls *t)
{
    if (!t)
        return;
    SSL_free(t->ssl);
    free(t);
}

static ssize_t result_of(struct server_tls *t, int rc)
{
    if (rc > 0)
        return rc;
    int why = SSL_get_error(t->ssl, rc);
    ERR_clear_error();
    switch (why) {
    case SSL_ERROR_WANT_READ:
        return SERVER_TLS_WANT_READ;
    case SSL_ERROR_WANT_WRITE:
        return SERVER_TLS_WANT_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        return SERVER_TLS_FAILED;
    }
}

ssize_t server_tls_read(struct server_tls *t, char *buf, size_t n)
{
    return result_of(t, SSL_read(t->ssl, buf, n > INT_MAX ? INT_MAX : (int)n));
}

ssize_t server_tls_write(struct server_tls *t, const char *buf, size_t n)
{
    ssize_t rc = result_of(t, SSL_write(t->ssl, buf, n > INT_MAX ? INT_MAX : (int)n));
    return rc == 0 ? SERVER_TLS_FAILED : rc;
}

void server_tls_say_goodbye(struct server_tls *t)
{
    if (SSL_is_init_finished(t->ssl))
        SSL_shutdown(t->ssl);
    ERR_clear_error();
}

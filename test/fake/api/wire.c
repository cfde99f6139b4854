// SPDX-License-Identifier: Apache-2.0
#include "test/fake/api/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "lib/base/http_parse.h"

enum { BODY_MAX = 64 * 1024 * 1024 };

struct wire {
    int fd;
    SSL *ssl;
    struct strbuf in;
};

struct wire_context {
    SSL_CTX *ssl;
};

static X509 *read_cert(const char *pem)
{
    BIO *b = BIO_new_mem_buf(pem, -1);
    X509 *x = PEM_read_bio_X509(b, NULL, NULL, NULL);
    BIO_free(b);
    if (!x)
        abort();
    return x;
}

struct wire_context *wire_context_new(const char *cert_pem, const char *key_pem,
                                      const char *client_ca_pem)
{
    struct wire_context *c = calloc(1, sizeof *c);
    if (!c || !(c->ssl = SSL_CTX_new(TLS_server_method())))
        abort();
    X509 *cert = read_cert(cert_pem);
    BIO *b = BIO_new_mem_buf(key_pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(b, NULL, NULL, NULL);
    BIO_free(b);
    if (SSL_CTX_use_certificate(c->ssl, cert) != 1 || SSL_CTX_use_PrivateKey(c->ssl, key) != 1)
        abort();
    X509_free(cert);
    EVP_PKEY_free(key);
    if (client_ca_pem) {
        X509 *ca = read_cert(client_ca_pem);
        X509_STORE_add_cert(SSL_CTX_get_cert_store(c->ssl), ca);
        X509_free(ca);
        SSL_CTX_set_verify(c->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    return c;
}

void wire_context_free(struct wire_context *c)
{
    if (!c)
        return;
    SSL_CTX_free(c->ssl);
    free(c);
}

struct wire *wire_accept(int fd, struct wire_context *context)
{
    struct wire *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    w->fd = fd;
    if (context) {
        w->ssl = SSL_new(context->ssl);
        SSL_set_fd(w->ssl, fd);
        if (SSL_accept(w->ssl) != 1) {
            wire_close(w, false);
            return NULL;
        }
    }
    return w;
}

void wire_close(struct wire *w, bool reset)
{
    if (reset) {
        struct linger hard = {.l_onoff = 1, .l_linger = 0};
        setsockopt(w->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    }
    if (w->ssl)
        SSL_free(w->ssl);
    close(w->fd);
    strbuf_deinit(&w->in);
    free(w);
}

bool wire_write(struct wire *w, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done =
            w->ssl ? SSL_write(w->ssl, bytes, (int)n) : send(w->fd, bytes, n, MSG_NOSIGNAL);
        if (done <= 0) {
            if (!w->ssl && errno == EINTR)
                continue;
            return false;
        }
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

static bool read_more(struct wire *w)
{
    char buf[16384];
    ssize_t n;
    do
        n = w->ssl ? SSL_read(w->ssl, buf, sizeof buf) : recv(w->fd, buf, sizeof buf, 0);
    while (n < 0 && !w->ssl && errno == EINTR);
    if (n <= 0)
        return false;
    strbuf_add(&w->in, buf, (size_t)n);
    return true;
}

bool wire_read_request(struct wire *w, struct strbuf *head, struct strbuf *body)
{
    AUTO_STRBUF text = {0}; /* a copy: the parser writes into it */
    struct http_parse p = {0};
    for (size_t fed = 0;; fed = w->in.len) {
        if (fed == w->in.len && !read_more(w))
            return false;
        strbuf_add(&text, w->in.ptr + fed, w->in.len - fed);
        enum http_parse_progress progress = http_parse(&p, &text, BODY_MAX);
        if (progress == HTTP_PARSE_REFUSED)
            return false;
        if (progress == HTTP_PARSE_COMPLETE)
            break;
    }
    strbuf_reset(head);
    strbuf_add(head, w->in.ptr, p.body_at);
    strbuf_reset(body);
    strbuf_add(body, text.ptr + p.body_at, p.body_len);
    strbuf_consume(&w->in, p.at);
    return true;
}

bool wire_peer_closed(struct wire *w)
{
    char c;
    ssize_t n = recv(w->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

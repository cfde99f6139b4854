// SPDX-License-Identifier: Apache-2.0
/*
 * httpd - a small HTTP server, plain or TLS. The only file that knows libmicrohttpd (and the GnuTLS beneath it).
 *
 * The handler runs on one of the server's own threads. A body over the bound is answered 413, a slow peer is dropped after the
 * timeout, connections beyond the bound wait in the backlog.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

struct httpd;

struct httpd_request {
    const char *method;
    const char *path; /* without the query */
    const char *query; /* value of one query argument: httpd_query() */
    const char *content_type; /* "" when absent */
    const char *body; /* NUL-terminated, never NULL; JSON_PADDING bytes beyond body_len are writable */
    size_t body_len;
    void *connection_;
};
/* Value of a query argument, or NULL. Borrowed for the call. */
const char *httpd_query(const struct httpd_request *r, const char *name);
const char *httpd_header(const struct httpd_request *r, const char *name);

struct httpd_response {
    int status;               /* 200 unless set */
    const char *content_type; /* static string; "text/plain; charset=utf-8" unless set */
    struct strbuf body;
};

typedef void (*httpd_handler)(void *arg, const struct httpd_request *request, struct httpd_response *response);

struct httpd_config {
    const char *address; /* "0.0.0.0", "127.0.0.1", "::" */
    uint16_t port;       /* 0: a free one, see httpd_port */
    unsigned threads;    /* 0 means 1 */
    size_t max_body_bytes;
    unsigned max_connections;
    unsigned timeout_s; /* idle connections and slow peers */
    bool tls;           /* httpd_set_certificate must be called before the first handshake can succeed */
    httpd_handler handler;
    void *arg;
};

int httpd_start(struct httpd **out, const struct httpd_config *config, struct error *err);
/* Running requests are finished. */
void httpd_stop(struct httpd *h);
uint16_t httpd_port(const struct httpd *h);
/* Replaces the certificate for new handshakes; any thread; running connections keep the old one. PEM chain, leaf first. */
int httpd_set_certificate(struct httpd *h, const char *cert_pem, const char *key_pem, struct error *err);

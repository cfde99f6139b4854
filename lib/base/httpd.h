// SPDX-License-Identifier: Apache-2.0
/* httpd - a small HTTP server, plain or TLS. Only httpd.c and httpd_cert.c use libmicrohttpd and
 * GnuTLS. The handler runs on a server thread. A body over the limit gets 413. An idle peer is
 * dropped after the timeout, a slow one after twice the timeout in each of three phases (request
 * line, rest of the request, reply), the latter two after 30 s at most; a TLS handshake has 5 s at
 * most. A connection over the limit is accepted, and another one goes for it: see httpd_conns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

struct httpd;

enum { HTTPD_SMALL_BODY = 16 * 1024, HTTPD_SPARE_FILES = 32 };

struct httpd_request {
    const char *method;
    const char *path;         /* without the query */
    const char *query;        /* raw; "" if absent; see httpd_query() */
    const char *content_type; /* "" if absent */
    const char *body;         /* NUL-terminated, never NULL */
    size_t body_len;
    /* the same bytes for json_parse_insitu: writable, JSON_PADDING more bytes after them */
    char *body_insitu;
    int64_t began_us; /* clock_mono_us when the request line arrived */
    void *connection_;
};
/* Decoded value of a query argument; "" without a value, NULL if absent. Borrowed for the call. */
const char *httpd_query(const struct httpd_request *r, const char *name);

struct httpd_response {
    int status;               /* 200 unless set */
    const char *content_type; /* static string; "text/plain; charset=utf-8" unless set */
    struct strbuf body;       /* if empty with status >= 400, the reason phrase is sent */
    bool close;               /* close the connection after this reply */
};

typedef void (*httpd_handler)(void *arg, const struct httpd_request *request,
                              struct httpd_response *response);
/* Called instead of the handler for a refused body. response has the status and the sentence. */
typedef void (*httpd_refuser)(void *arg, const char *sentence, struct httpd_response *response);

struct httpd_config {
    const char *address;   /* "0.0.0.0", "127.0.0.1", "::" */
    uint16_t port;         /* 0: any free port, see httpd_port */
    unsigned threads;      /* 0 means 1 */
    size_t max_body_bytes; /* 0: no bodies */
    /* limit for all bodies over HTTPD_SMALL_BODY together, three quarters of it from one address;
     * 0: none. The connection of another is ended for one too many, or that one gets 503: see
     * httpd_conns. */
    size_t max_large_bytes;
    unsigned large_ms;        /* after which a large body gives way to any other; 0 means 1 s */
    unsigned max_connections; /* 0 means 256; HTTPD_SPARE_FILES more for each thread may be open */
    unsigned timeout_s;       /* 0 means 30 */
    bool tls;                 /* handshakes fail until httpd_set_certificate */
    /* PEM; with tls, clients must show a certificate for clients of one of these CAs. NULL: none */
    const char *client_ca_pem;
    httpd_handler handler;
    httpd_refuser refuser; /* NULL: plain text */
    void *arg;
};

int httpd_start(struct httpd **out, const struct httpd_config *config, struct error *err);
/* Stops accepting and gives running requests 1 s. Not from a server thread. NULL is fine. */
void httpd_stop(struct httpd *h);
uint16_t httpd_port(const struct httpd *h);
/* Replaces the certificate (PEM chain, leaf first) for new handshakes. Any thread. On error (not
 * PEM, wrong order, key does not match) the previous one stays. */
int httpd_set_certificate(struct httpd *h, const char *cert_pem, const char *key_pem,
                          struct error *err);

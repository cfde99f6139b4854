// SPDX-License-Identifier: Apache-2.0
/*
 * httpd - a small HTTP server, plain or TLS. The only file that knows libmicrohttpd (and the GnuTLS
 * beneath it).
 *
 * The handler runs on one of the server's own threads. A body over the bound is answered 413, an
 * idle peer is dropped after the timeout and one that drips after twice the timeout (counted anew
 * for the request line, the rest of the request, and the reply), connections beyond the bound wait
 * in the backlog.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

struct httpd;

enum { HTTPD_SMALL_BODY = 16 * 1024 };

struct httpd_request {
    const char *method;
    const char *path;  /* without the query */
    const char *query; /* as sent, after the '?', "" when absent; value of one query argument:
                          httpd_query() */
    const char *content_type; /* "" when absent */
    const char *body;         /* NUL-terminated, never NULL */
    size_t body_len;
    char *body_insitu; /* the same bytes, for json_parse_insitu: writable, with JSON_PADDING more
                          behind them */
    int64_t began_us;  /* on clock_mono_us: when the request line was here */
    void *connection_;
};
/* Value of a query argument, decoded; "" when it has none, NULL when it is absent. Borrowed for the
 * call. */
const char *httpd_query(const struct httpd_request *r, const char *name);
/* Value of a header, or NULL; the name's case does not matter. Borrowed for the call. */
const char *httpd_header(const struct httpd_request *r, const char *name);

struct httpd_response {
    int status;               /* 200 unless set */
    const char *content_type; /* static string; "text/plain; charset=utf-8" unless set */
    struct strbuf body; /* left empty with a status from 400 on: the status' own name in one line */
    bool close;         /* the connection ends with this reply */
};

typedef void (*httpd_handler)(void *arg, const struct httpd_request *request,
                              struct httpd_response *response);
/* Words for a body that is not taken, and so no request for the handler: response has its status, and that sentence as its body. */
typedef void (*httpd_refuser)(void *arg, const char *sentence, struct httpd_response *response);

struct httpd_config {
    const char *address;    /* "0.0.0.0", "127.0.0.1", "::" */
    uint16_t port;          /* 0: a free one, see httpd_port */
    unsigned threads;       /* 0 means 1 */
    size_t max_body_bytes;  /* 0: no request may have a body */
    size_t max_large_bytes; /* of all bodies over HTTPD_SMALL_BODY that are held at a time; one more
                                 is answered 503. 0: no bound */
    unsigned max_connections; /* 0 means 256 */
    unsigned timeout_s;       /* 0 means 30 */
    bool tls; /* httpd_set_certificate must be called before the first handshake can succeed */
    httpd_handler handler;
    httpd_refuser refuser; /* NULL: the sentence in plain text */
    void *arg;
};

int httpd_start(struct httpd **out, const struct httpd_config *config, struct error *err);
/* No new connections; requests that have begun get 1 s to be finished and answered. From a thread
 * that is none of the server's. NULL is fine. */
void httpd_stop(struct httpd *h);
uint16_t httpd_port(const struct httpd *h);
/* Replaces the certificate for new handshakes; any thread; running connections keep the old one.
 * PEM chain, leaf first. On an error (not PEM, wrong order, the key is another certificate's) the
 * one before stays. */
int httpd_set_certificate(struct httpd *h, const char *cert_pem, const char *key_pem,
                          struct error *err);

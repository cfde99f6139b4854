// SPDX-License-Identifier: Apache-2.0
/*
 * http - requests to the API server, by libcurl (see also conn, for those that speak themselves).
 * HTTP/1.1 (see docs: early answers over HTTP/2 lose the status), keep-alive, TLS verified always,
 * proxies off for loopback as usual by environment.
 *
 * A kube_http is one connection: one thread uses it at a time; each worker and each watch has its
 * own. kube_http_cancel is for any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/kube/config.h"

struct kube_http;

/* Once per process, before threads. SIGPIPE is ignored from then on (a peer may close while we
 * write). */
void kube_http_global_init(void);
void kube_http_global_cleanup(void);

int kube_http_new(struct kube_http **out, struct kube_config *config, const struct kube_options *o,
                  const char *user_agent, struct error *err);
void kube_http_free(struct kube_http *h);
/* A running request ends with ERROR_CANCELLED within 100 ms, and so does every later one. Any
 * thread. */
void kube_http_cancel(struct kube_http *h);
bool kube_http_is_cancelled(const struct kube_http *h); /* any thread */
/* Waits so long on the owner's thread; false at once when cancelled. */
bool kube_http_sleep(struct kube_http *h, int64_t ms);

struct kube_request {
    const char *method;
    const char *path;         /* "/api/v1/pods?limit=500": escaped by the caller, see kube_api */
    const char *content_type; /* NULL when there is no body */
    const char *body;
    size_t body_len;
    int64_t timeout_ms; /* whole request; 0: options' request timeout; -1: none (watches) */
    /* on clock_mono_ms: not sent later than this, however long we were stopped before; 0: whenever
     * */
    int64_t not_after_ms;
    int64_t idle_ms;   /* no byte for so long: ERROR_TIMEOUT; 0: no such limit */
    int64_t max_bytes; /* of the reply; 0: options' max_reply_bytes */
};

/* The reply is appended to body. 0: an HTTP status below 400 (in *status). -1:
 * ERROR_TIMEOUT/UNAVAILABLE (never_sent tells whether the request cannot have reached the server),
 * ERROR_TOO_LARGE, ERROR_CANCELLED, or an HTTP error status turned into an error code by
 * kube_http_status_error, its body in `body`. A redirect is an error (ERROR_UNSUPPORTED). status
 * and never_sent may be NULL. A connection that could not be made, in time or at all, is
 * ERROR_UNAVAILABLE; ERROR_TIMEOUT means that the request may have been done, unless not_after_ms
 * had passed (never_sent). */
int kube_http_do(struct kube_http *h, const struct kube_request *r, struct strbuf *body,
                 int *status, bool *never_sent, struct error *err);

/* Streams the reply: on_bytes gets each piece of a 2xx reply; returning false ends the request with
 * -1 and what it left in err. */
typedef bool (*kube_http_sink)(void *arg, const char *bytes, size_t n, struct error *err);
int kube_http_stream(struct kube_http *h, const struct kube_request *r, kube_http_sink on_bytes,
                     void *arg, int *status, struct error *err);

/* Appends s with everything but unreserved characters as %XX. */
void kube_http_escape(struct strbuf *out, const char *s);

/* Fills err from a status of 300 or more, the reply's Retry-After (0: none) and the Status object
 * in its body (reason, message, details.retryAfterSeconds). Returns -1. */
int kube_http_status_error(struct error *err, int status, const char *body, size_t n,
                           int64_t retry_after_s);

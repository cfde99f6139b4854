// SPDX-License-Identifier: Apache-2.0
/*
 * http - requests to the API server by libcurl (see also conn, which does not use it for HTTP).
 * HTTP/1.1 (see docs: early answers over HTTP/2 lose the status), keep-alive, TLS always verified,
 * proxies from the environment but not for loopback.
 *
 * A kube_http is one connection, used by one thread at a time; each worker and each watch has its
 * own. Any thread may call kube_http_cancel.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/kube/config.h"

struct kube_http;

/* Once per process, before threads start. Ignores SIGPIPE from then on (a peer may close while we
 * write). */
void kube_http_global_init(void);
void kube_http_global_cleanup(void);

int kube_http_new(struct kube_http **out, struct kube_config *config, const struct kube_options *o,
                  const char *user_agent, struct error *err);
void kube_http_free(struct kube_http *h);
/* Ends the running request within 100 ms and every later one with ERROR_CANCELLED. Any thread. */
void kube_http_cancel(struct kube_http *h);
bool kube_http_is_cancelled(const struct kube_http *h); /* any thread */
/* Sleeps on the owner's thread; returns false at once when cancelled. */
bool kube_http_sleep(struct kube_http *h, int64_t ms);

struct kube_request {
    const char *method;
    const char *path;         /* "/api/v1/pods?limit=500": escaped by the caller, see kube_api */
    const char *content_type; /* NULL when there is no body */
    const char *body;
    size_t body_len;
    int64_t timeout_ms; /* whole request; 0: options' request timeout; -1: none (watches) */
    /* on clock_mono_ms: never sent later, however long the process was stopped; 0: no limit */
    int64_t not_after_ms;
    int64_t idle_ms;   /* so long without a byte: ERROR_TIMEOUT; 0: no limit */
    int64_t max_bytes; /* of the reply; 0: options' max_reply_bytes */
};

/* Appends the reply to body. 0: an HTTP status below 400 (in *status). -1:
 * ERROR_TIMEOUT/UNAVAILABLE (never_sent: the request cannot have reached the server),
 * ERROR_TOO_LARGE, ERROR_CANCELLED, or an HTTP error status mapped by kube_http_status_error, with
 * its body in `body`. A redirect is ERROR_UNSUPPORTED. status and never_sent may be NULL. A failed
 * connection attempt, in time or not, is ERROR_UNAVAILABLE; ERROR_TIMEOUT means that the request
 * may have been done, unless not_after_ms had passed (never_sent). */
int kube_http_do(struct kube_http *h, const struct kube_request *r, struct strbuf *body,
                 int *status, bool *never_sent, struct error *err);

/* Streams the reply: on_bytes gets each piece of a 2xx reply; if it returns false, the request ends
 * with -1 and the err that it set. */
typedef bool (*kube_http_sink)(void *arg, const char *bytes, size_t n, struct error *err);
int kube_http_stream(struct kube_http *h, const struct kube_request *r, kube_http_sink on_bytes,
                     void *arg, int *status, struct error *err);

/* Appends s, with all but unreserved characters as %XX. */
void kube_http_escape(struct strbuf *out, const char *s);

/* Fills err from a status of 300 or more, the reply's Retry-After (0: none) and the Status object
 * in its body (reason, message, details.retryAfterSeconds). Returns -1. */
int kube_http_status_error(struct error *err, int status, const char *body, size_t n,
                           int64_t retry_after_s);

// SPDX-License-Identifier: Apache-2.0
/* CURLOPT_CONNECT_ONLY, driven by its own multi handle: only curl_multi_wakeup can interrupt the
 * wait for a handshake. The easy handle stays in it while the connection lives, because removing it
 * would close the connection. */
#include "lib/kube/conn.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/kube/transport.h"

enum { POLL_MAX_MS = 1000, LIMIT_SLACK_MS = 100 };

struct conn {
    struct transport transport;
    CURL *easy;
    CURLM *multi;
    curl_socket_t fd;
    int64_t limit_ms; /* last value set in the kernel */
    _Atomic bool cancelled;
};

int conn_new(struct conn **out, struct kube_config *config, const char *user_agent,
             struct error *err)
{
    struct conn *d = mem_new(struct conn, 1);
    d->fd = CURL_SOCKET_BAD;
    transport_init(&d->transport, config);
    d->easy = curl_easy_init();
    d->multi = curl_multi_init();
    CURLcode rc = d->easy && d->multi ? transport_set_up(&d->transport, d->easy, user_agent)
                                      : CURLE_FAILED_INIT;
    TRANSPORT_SET(rc, d->easy, CURLOPT_URL, d->transport.base);
    TRANSPORT_SET(rc, d->easy, CURLOPT_CONNECT_ONLY, 1L);
    if (rc != CURLE_OK) {
        conn_free(d);
        return error_set(err, ERROR_INTERNAL, "libcurl could not be set up: %s",
                         curl_easy_strerror(rc));
    }
    *out = d;
    return 0;
}

void conn_free(struct conn *d)
{
    if (d == NULL)
        return;
    if (d->easy && d->multi)
        curl_multi_remove_handle(d->multi, d->easy);
    if (d->easy)
        curl_easy_cleanup(d->easy);
    if (d->multi)
        curl_multi_cleanup(d->multi);
    transport_deinit(&d->transport);
    free(d);
}

void conn_cancel(struct conn *d)
{
    atomic_store(&d->cancelled, true);
    curl_multi_wakeup(d->multi);
}

/* Whether the transfer has ended; *result is its code. */
static bool has_ended(struct conn *d, CURLcode *result)
{
    int left = 0;
    for (CURLMsg *m; (m = curl_multi_info_read(d->multi, &left));)
        if (m->msg == CURLMSG_DONE) {
            *result = m->data.result;
            return true;
        }
    return false;
}

static int transport_error(struct conn *d, CURLcode rc, struct error *err)
{
    const char *text = d->transport.curl_text[0] ? d->transport.curl_text : curl_easy_strerror(rc);
    return error_set(err, ERROR_UNAVAILABLE, "%s", text);
}

int conn_connect(struct conn *d, int64_t timeout_ms, struct error *err)
{
    CURLcode result = CURLE_OK;
    long limit = (long)num_min(timeout_ms, TRANSPORT_CONNECT_MS);
    TRANSPORT_SET(result, d->easy, CURLOPT_CONNECTTIMEOUT_MS, limit);
    TRANSPORT_SET(result, d->easy, CURLOPT_TIMEOUT_MS, limit);
    if (result != CURLE_OK || curl_multi_add_handle(d->multi, d->easy) != CURLM_OK)
        return error_set(err, ERROR_UNAVAILABLE, "libcurl gave up");
    for (;;) {
        int running = 0;
        CURLMcode rc = curl_multi_perform(d->multi, &running);
        if (has_ended(d, &result))
            break;
        if (atomic_load(&d->cancelled))
            return error_set(err, ERROR_CANCELLED, "cancelled");
        if (rc != CURLM_OK || running == 0 ||
            curl_multi_poll(d->multi, NULL, 0, POLL_MAX_MS, NULL) != CURLM_OK)
            return error_set(err, ERROR_UNAVAILABLE, "libcurl gave up");
    }
    if (result != CURLE_OK)
        return transport_error(d, result, err);
    if (curl_easy_getinfo(d->easy, CURLINFO_ACTIVESOCKET, &d->fd) != CURLE_OK ||
        d->fd == CURL_SOCKET_BAD)
        return error_set(err, ERROR_UNAVAILABLE, "libcurl has no connection");
    return 0;
}

int conn_fd(const struct conn *d)
{
    return d->fd;
}

const char *conn_host(const struct conn *d)
{
    return d->transport.host;
}

const char *conn_root(const struct conn *d)
{
    const char *host = strstr(d->transport.base, "://");
    host = host ? host + 3 : d->transport.base;
    return host + strcspn(host, "/");
}

void conn_begin(struct conn *d, int64_t limit_ms)
{
    d->transport.unanswered = true;
    /* Saves a system call per write: a slightly shorter limit is good enough. */
    if (d->limit_ms > limit_ms || d->limit_ms < limit_ms - LIMIT_SLACK_MS) {
        transport_limit_delivery(&d->transport, limit_ms);
        d->limit_ms = limit_ms;
    }
}

void conn_end(struct conn *d)
{
    d->transport.unanswered = false;
}

int conn_send(struct conn *d, const char *bytes, size_t n, size_t *done, struct error *err)
{
    *done = 0;
    CURLcode rc = curl_easy_send(d->easy, bytes, n, done);
    return rc == CURLE_OK || rc == CURLE_AGAIN ? 0 : transport_error(d, rc, err);
}

int conn_recv(struct conn *d, char *buf, size_t size, size_t *done, bool *closed, struct error *err)
{
    *done = 0;
    CURLcode rc = curl_easy_recv(d->easy, buf, size, done);
    *closed = rc == CURLE_OK && *done == 0;
    return rc == CURLE_OK || rc == CURLE_AGAIN ? 0 : transport_error(d, rc, err);
}

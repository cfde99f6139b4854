// SPDX-License-Identifier: Apache-2.0
/*
 * libmicrohttpd with its poll threads. (With epoll, libmicrohttpd 0.9.75 spins as long as one peer
 * is in the middle of its handshake.) The handler gets the whole body. Phases of a request:
 *
 *     (line read) on_uri → collecting: on_access, collect → answer (the handler) → reply →
 *     on_completed
 *                              │                                                   ↑
 *                              ├ over the bound: discarded, reply_too_large ───────┤
 *                              └ far over it: 413 at once, or the connection is cut ┘
 *
 * A body over the bound is read and discarded up to DISCARD_BYTES: if a server replies and closes
 * while the peer still writes, the peer's kernel drops the reply.
 *
 * Many peers: each may withhold the last byte of a body, so large bodies share max_large_bytes, and
 * httpd_conns decides which of them goes. Its memory is freed at once, by the newcomer's thread, so
 * a large body is touched under the lock until the handler has it. Small bodies always pass.
 *
 * Silent and slow peers: libmicrohttpd's timeout restarts with each byte, so a peer could hold its
 * connection forever, and at its limit of connections libmicrohttpd stops accepting. So its limit
 * is HTTPD_SPARE_FILES for each thread higher than ours (a thread accepts at most ten before it
 * cleans up), and httpd_conns decides which connection goes when there are too many; the sweeper
 * thread does the same for those that are too long in a phase. Both shut down the socket under the
 * lock; libmicrohttpd then sees the end of the stream and cleans up. It closes a descriptor only
 * after on_connection removed it from the list, so a reused descriptor is never shut down.
 *
 * The server holds a reference to the current certificate, and each connection to its handshake's.
 * GnuTLS borrows what the callback returns until the session ends, before on_connection is called.
 * The callback gets only the session, so on_connection attaches c to it.
 */
#include "lib/base/httpd.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/httpd_cert.h"
#include "lib/base/httpd_conns.h"
#include "lib/base/json.h"
#include "lib/base/listener.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"

enum {
    DISCARD_BYTES = 4 * 1024 * 1024,
    DRAIN_MS = 1000,
    SWEEP_MS = 1000,
    HANDSHAKE_MS = 5000,
    REQUEST_MS = 30 * 1000, /* the API server waits no longer for a review */
    DEFAULT_CONNS = 256,
    DEFAULT_TIMEOUT_S = 30,
    DEFAULT_LARGE_MS = 1000,
};

struct connection {
    struct httpd_conn conn; /* first */
    struct httpd *server;
    struct httpd_cert *certificate;
    struct request *request; /* NULL: none */
};

struct request {
    struct httpd *server;
    struct connection *connection;
    char *query;
    int64_t began_us;
    struct strbuf body; /* over HTTPD_SMALL_BODY: under the lock, until the handler has it */
    size_t received, discarded;
    bool begun;
    bool too_large;
    bool too_many; /* implies too_large */
};

struct httpd {
    struct httpd_config config;
    struct MHD_Daemon *daemon;
    uint16_t port;
    pthread_t sweeper;
    bool has_sweeper;

    pthread_mutex_t lock;
    /* monotonic clock; signals requests == 0, stopping, or a connection while the sweeper rests */
    pthread_cond_t changed;
    struct httpd_conns connections;
    size_t requests;
    bool stopping;
    bool sweeper_ends;
    bool sweeper_rests; /* no connection */
    struct httpd_cert *certificate;
    struct httpd_trust *client_ca; /* NULL: clients show no certificate; never changes */
};

static int64_t timeout_ms(const struct httpd *h)
{
    return (int64_t)h->config.timeout_s * 1000;
}

static void wait_changed(struct httpd *h, int64_t until_ms)
{
    struct timespec ts = {.tv_sec = (time_t)(until_ms / 1000),
                          .tv_nsec = (long)(until_ms % 1000) * 1000000};
    pthread_cond_timedwait(&h->changed, &h->lock, &ts);
}

/* ---- certificates ---- */

int httpd_set_certificate(struct httpd *h, const char *cert_pem, const char *key_pem,
                          struct error *err)
{
    if (!h->config.tls)
        return error_set(err, ERROR_INVALID, "certificate: the server speaks no TLS");
    struct httpd_cert *c = httpd_cert_new(cert_pem, key_pem, err);
    if (c == NULL)
        return -1;
    pthread_mutex_lock(&h->lock);
    struct httpd_cert *old = h->certificate;
    h->certificate = c;
    httpd_cert_release(old);
    pthread_mutex_unlock(&h->lock);
    return 0;
}

/* GnuTLS callback. */
static int on_certificate(gnutls_session_t session, const gnutls_datum_t *names, int names_len,
                          const gnutls_pk_algorithm_t *algorithms, int algorithms_len,
                          gnutls_pcert_st **chain, unsigned *chain_len, gnutls_privkey_t *key)
{
    (void)names, (void)names_len, (void)algorithms, (void)algorithms_len;
    struct connection *c = gnutls_session_get_ptr(session);
    if (c == NULL)
        return -1;
    struct httpd *h = c->server;
    pthread_mutex_lock(&h->lock);
    if (c->certificate == NULL && h->certificate != NULL) {
        c->certificate = h->certificate;
        c->certificate->references++;
    }
    pthread_mutex_unlock(&h->lock);
    if (c->certificate == NULL)
        return -1; /* none yet: the handshake fails */
    *chain = c->certificate->chain;
    *chain_len = c->certificate->chain_len;
    *key = c->certificate->key;
    return 0;
}

/* ---- connections ---- */

/* Under the lock. */
static void begin_phase(struct connection *c, enum httpd_phase phase)
{
    c->conn.phase = phase;
    c->conn.since_ms = clock_mono_ms();
}

/* GnuTLS callback: the client's part of the handshake is complete. */
static int on_finished(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
                       const gnutls_datum_t *message)
{
    (void)type, (void)when, (void)message;
    struct connection *c = gnutls_session_get_ptr(session);
    if (incoming == 0 || c == NULL)
        return 0;
    pthread_mutex_lock(&c->server->lock);
    begin_phase(c, HTTPD_IDLE);
    pthread_mutex_unlock(&c->server->lock);
    return 0;
}

/* GnuTLS callback: 0 if the client's certificate is good. */
static int on_client_certificate(gnutls_session_t session)
{
    const struct connection *c = gnutls_session_get_ptr(session);
    return c != NULL && httpd_cert_is_trusted(c->server->client_ca, session) ? 0 : -1;
}

static void begin_tls(struct connection *c, gnutls_session_t session)
{
    gnutls_session_set_ptr(session, c);
    gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_FINISHED, GNUTLS_HOOK_POST,
                                       on_finished);
    if (c->server->client_ca == NULL)
        return;
    gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
    gnutls_session_set_verify_function(session, on_client_certificate);
}

static void on_connection(void *arg, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct httpd *h = arg;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct connection *c = mem_new(struct connection, 1);
        c->server = h;
        begin_phase(c, h->config.tls ? HTTPD_HANDSHAKE : HTTPD_IDLE);
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        c->conn.fd = info != NULL ? info->connect_fd : -1;
        if (h->config.tls) {
            info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
            if (info != NULL)
                begin_tls(c, info->tls_session);
        }
        info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        pthread_mutex_lock(&h->lock);
        httpd_conns_add(&h->connections, &c->conn, info != NULL ? info->client_addr : NULL);
        if (h->sweeper_rests)
            pthread_cond_broadcast(&h->changed);
        pthread_mutex_unlock(&h->lock);
        *context = c;
        return;
    }
    struct connection *c = *context;
    *context = NULL;
    if (c == NULL)
        return;
    pthread_mutex_lock(&h->lock);
    httpd_conns_remove(&h->connections, &c->conn);
    httpd_cert_release(c->certificate);
    pthread_mutex_unlock(&h->lock);
    free(c);
}

static void *sweeper_main(void *arg)
{
    struct httpd *h = arg;
    pthread_mutex_lock(&h->lock);
    while (!h->sweeper_ends) {
        int64_t now_ms = clock_mono_ms();
        httpd_conns_sweep(&h->connections, now_ms);
        int64_t until_ms = now_ms + num_min(SWEEP_MS, timeout_ms(h) / 2);
        while (!h->sweeper_ends && clock_mono_ms() < until_ms)
            wait_changed(h, until_ms);
        h->sweeper_rests = true;
        while (!h->sweeper_ends && h->connections.items == NULL)
            pthread_cond_wait(&h->changed, &h->lock);
        h->sweeper_rests = false;
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

/* ---- requests ---- */

/* Called when the request line has arrived. NULL: the connection is closed. */
static void *on_uri(void *arg, const char *uri, struct MHD_Connection *mhd)
{
    struct httpd *h = arg;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (info == NULL || info->socket_context == NULL)
        return NULL;
    struct request *r = mem_new(struct request, 1);
    const char *mark = strchr(uri, '?');
    r->query = mem_strdup(mark != NULL ? mark + 1 : "");
    r->server = h;
    r->began_us = clock_mono_us();
    strbuf_init(&r->body);
    r->connection = info->socket_context;
    pthread_mutex_lock(&h->lock);
    h->requests++;
    r->connection->request = r;
    begin_phase(r->connection, HTTPD_REQUEST);
    pthread_mutex_unlock(&h->lock);
    return r;
}

static void free_body(struct request *r)
{
    strbuf_deinit(&r->body);
    strbuf_init(&r->body);
}

/* Of httpd_conns, under the lock, on any thread. */
static void drop_large(struct httpd_conn *conn)
{
    free_body(((struct connection *)conn)->request);
}

/* Under the lock. */
static bool hold(struct request *r, size_t n)
{
    struct connection *c = r->connection;
    return httpd_conns_hold(&c->server->connections, &c->conn, n, clock_mono_ms());
}

static void drop_body(struct request *r)
{
    pthread_mutex_lock(&r->server->lock);
    (void)hold(r, 0);
    free_body(r);
    pthread_mutex_unlock(&r->server->lock);
}

/* False: there are too many large bodies, and this one has to go. */
static bool add_to_body(struct request *r, const char *data, size_t n)
{
    struct httpd *h = r->server;
    r->received += n;
    if (r->received <= HTTPD_SMALL_BODY || h->config.max_large_bytes == 0) {
        strbuf_add(&r->body, data, n);
        return true;
    }
    pthread_mutex_lock(&h->lock);
    r->too_many = !hold(r, r->received);
    if (!r->too_many)
        strbuf_add(&r->body, data, n);
    pthread_mutex_unlock(&h->lock);
    return !r->too_many;
}

static void on_completed(void *arg, struct MHD_Connection *mhd, void **context,
                         enum MHD_RequestTerminationCode code)
{
    (void)mhd, (void)code;
    struct httpd *h = arg;
    struct request *r = *context;
    *context = NULL;
    if (r == NULL)
        return;
    drop_body(r);
    pthread_mutex_lock(&h->lock);
    if (--h->requests == 0 && h->stopping)
        pthread_cond_broadcast(&h->changed);
    r->connection->request = NULL;
    begin_phase(r->connection, HTTPD_IDLE);
    pthread_mutex_unlock(&h->lock);
    free(r->query);
    free(r);
}

const char *httpd_query(const struct httpd_request *r, const char *name)
{
    const char *value = NULL;
    if (r->connection_ == NULL ||
        MHD_lookup_connection_value_n(r->connection_, MHD_GET_ARGUMENT_KIND, name, strlen(name),
                                      &value, NULL) != MHD_YES)
        return NULL;
    return str_or_empty(value);
}

/* Takes the response's body. */
static enum MHD_Result reply(struct request *r, struct MHD_Connection *mhd,
                             struct httpd_response *response)
{
    int status = response->status >= 100 && response->status <= 599 ? response->status : 500;
    if (response->body.len == 0 && status >= 400)
        strbuf_addf(&response->body, "%s\n", MHD_get_reason_phrase_for((unsigned)status));
    size_t n = response->body.len;
    struct MHD_Response *out =
        MHD_create_response_from_buffer(n, strbuf_take(&response->body), MHD_RESPMEM_MUST_FREE);
    if (out == NULL)
        abort();
    MHD_add_response_header(out, MHD_HTTP_HEADER_CONTENT_TYPE, response->content_type);
    pthread_mutex_lock(&r->server->lock);
    bool closing = r->server->stopping || response->close;
    begin_phase(r->connection, HTTPD_REPLY);
    if (status < 400)
        httpd_conns_prove(&r->connection->conn);
    pthread_mutex_unlock(&r->server->lock);
    if (closing)
        MHD_add_response_header(out, MHD_HTTP_HEADER_CONNECTION, "close");
    enum MHD_Result result = MHD_queue_response(mhd, (unsigned)status, out);
    MHD_destroy_response(out);
    return result;
}

static enum MHD_Result reply_too_large(struct request *r, struct MHD_Connection *mhd)
{
    const struct httpd_config *config = &r->server->config;
    AUTO_STRBUF sentence = {0};
    struct httpd_response response = {.status = r->too_many ? MHD_HTTP_SERVICE_UNAVAILABLE
                                                            : MHD_HTTP_CONTENT_TOO_LARGE,
                                      .content_type = "text/plain; charset=utf-8"};
    if (r->too_many)
        strbuf_adds(&sentence, "too many large bodies at a time");
    else
        strbuf_addf(&sentence, "the body is larger than %zu bytes", config->max_body_bytes);
    if (config->refuser)
        config->refuser(config->arg, strbuf_str(&sentence), &response);
    else
        strbuf_addf(&response.body, "%s\n", strbuf_str(&sentence));
    return reply(r, mhd, &response);
}

/* Called with the header, before the body. */
static enum MHD_Result begin_request(struct request *r, struct MHD_Connection *mhd)
{
    r->begun = true;
    const char *text =
        MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    int64_t length;
    if (text == NULL || num_parse(text, strlen(text), &length, NULL) < 0)
        return MHD_YES; /* chunked, or none */
    int64_t max = (int64_t)num_min((int64_t)r->server->config.max_body_bytes, INT64_MAX / 2);
    if (length <= max)
        return MHD_YES;
    r->too_large = true;
    bool asks_first =
        MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT) != NULL;
    return asks_first || length > max + DISCARD_BYTES ? reply_too_large(r, mhd) : MHD_YES;
}

static enum MHD_Result collect(struct request *r, const char *data, size_t n)
{
    if (!r->too_large && n <= r->server->config.max_body_bytes - r->received &&
        add_to_body(r, data, n))
        return MHD_YES;
    r->too_large = true;
    drop_body(r);
    r->discarded += n;
    return r->discarded <= DISCARD_BYTES + r->server->config.max_body_bytes ? MHD_YES : MHD_NO;
}

static enum MHD_Result answer(struct request *r, struct MHD_Connection *mhd, const char *path,
                              const char *method)
{
    static const char padding[JSON_PADDING];
    pthread_mutex_lock(&r->server->lock);
    bool dropped = r->connection->conn.dropped;
    begin_phase(r->connection, HTTPD_OURS); /* the body is ours from here on */
    pthread_mutex_unlock(&r->server->lock);
    if (dropped)
        return MHD_NO;
    size_t n = r->body.len;
    strbuf_add(&r->body, padding, sizeof padding);
    struct httpd_request request = {
        .method = method,
        .path = path,
        .query = r->query,
        .content_type = str_or_empty(
            MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE)),
        .body = r->body.ptr,
        .body_len = n,
        .body_insitu = r->body.ptr,
        .began_us = r->began_us,
        .connection_ = mhd,
    };
    struct httpd_response response = {.status = 200, .content_type = "text/plain; charset=utf-8"};
    strbuf_init(&response.body);
    r->server->config.handler(r->server->config.arg, &request, &response);
    drop_body(r); /* before replying, since the peer may retry at once */
    return reply(r, mhd, &response);
}

/* Called once with the header, for each piece of the body, and once at the end. */
static enum MHD_Result on_access(void *arg, struct MHD_Connection *mhd, const char *path,
                                 const char *method, const char *version, const char *data,
                                 size_t *data_len, void **context)
{
    (void)arg, (void)version;
    struct request *r = *context;
    if (r == NULL || !r->begun)
        return r == NULL ? MHD_NO : begin_request(r, mhd);
    if (*data_len > 0) {
        size_t n = *data_len;
        *data_len = 0;
        return collect(r, data, n);
    }
    return r->too_large ? reply_too_large(r, mhd) : answer(r, mhd, path, method);
}

/* ---- server ---- */

__attribute__((format(printf, 2, 0))) static void on_log(void *arg, const char *fmt, va_list ap)
{
    (void)arg;
    if (!log_enabled(LOG_DEBUG))
        return;
    AUTO_STRBUF text = {0};
    strbuf_vaddf(&text, fmt, ap);
    while (text.len > 0 && text.ptr[text.len - 1] == '\n')
        text.ptr[--text.len] = '\0';
    log_debug("http server", kv("text", strbuf_str(&text)));
}

static struct MHD_Daemon *start_daemon(struct httpd *h, int fd)
{
    unsigned flags = MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_ERROR_LOG;
    if (h->config.tls)
        flags |= MHD_USE_TLS;
    unsigned pool = h->config.threads > 1 ? h->config.threads : 0;
    unsigned limit = h->config.max_connections + h->config.threads * HTTPD_SPARE_FILES;
    /* Without TLS the option list ends before the TLS options. */
    return MHD_start_daemon(
        flags, h->port, NULL, NULL, on_access, h, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, limit,
        MHD_OPTION_CONNECTION_TIMEOUT, h->config.timeout_s, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_THREAD_POOL_SIZE, pool, MHD_OPTION_URI_LOG_CALLBACK, on_uri, h,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, h, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        h, h->config.tls ? MHD_OPTION_HTTPS_CERT_CALLBACK : MHD_OPTION_END, on_certificate,
        MHD_OPTION_HTTPS_PRIORITIES, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2", MHD_OPTION_END);
}

/* Requires that no thread of the server runs. */
static void free_server(struct httpd *h)
{
    httpd_cert_release(h->certificate);
    httpd_cert_free_trust(h->client_ca);
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

int httpd_start(struct httpd **out, const struct httpd_config *config, struct error *err)
{
    struct httpd *h = mem_new(struct httpd, 1);
    h->config = *config;
    h->config.address = h->config.client_ca_pem = NULL; /* borrowed, not kept */
    h->config.threads = config->threads ? config->threads : 1;
    h->config.max_connections = config->max_connections ? config->max_connections : DEFAULT_CONNS;
    h->config.timeout_s = config->timeout_s ? config->timeout_s : DEFAULT_TIMEOUT_S;
    h->config.large_ms = config->large_ms ? config->large_ms : DEFAULT_LARGE_MS;
    /* An idle peer is dropped by libmicrohttpd; here, one that never ends its request line. */
    h->connections = (struct httpd_conns){
        .max = h->config.max_connections,
        .max_large = h->config.max_large_bytes,
        .large_ms = h->config.large_ms,
        .drop_large = drop_large,
        .limit_ms = {[HTTPD_HANDSHAKE] = num_min(2 * timeout_ms(h), HANDSHAKE_MS),
                     [HTTPD_IDLE] = 2 * timeout_ms(h),
                     [HTTPD_REQUEST] = num_min(2 * timeout_ms(h), REQUEST_MS),
                     [HTTPD_REPLY] = num_min(2 * timeout_ms(h), REQUEST_MS)}};
    pthread_mutex_init(&h->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&h->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);

    if (config->client_ca_pem != NULL &&
        (h->client_ca = httpd_cert_new_trust(config->client_ca_pem, err)) == NULL)
        goto fail;
    int fd = listener_open(config->address, config->port, &h->port, err);
    if (fd < 0)
        goto fail;
    errno = 0;
    /* On failure libmicrohttpd may have closed fd. Closing it here could close a reused descriptor,
     * so it is leaked. */
    h->daemon = start_daemon(h, fd);
    if (h->daemon == NULL) {
        error_errno(err, errno != 0 ? errno : EIO, "start the HTTP server on %s port %u",
                    config->address, (unsigned)h->port);
        goto fail;
    }
    int rc = pthread_create(&h->sweeper, NULL, sweeper_main, h);
    h->has_sweeper = rc == 0;
    if (rc != 0) {
        error_errno(err, rc, "start the HTTP server on %s port %u", config->address,
                    (unsigned)h->port);
        httpd_stop(h);
        return -1;
    }
    *out = h;
    return 0;
fail:
    free_server(h);
    return -1;
}

void httpd_stop(struct httpd *h)
{
    if (h == NULL)
        return;
    int fd = MHD_quiesce_daemon(h->daemon);
    pthread_mutex_lock(&h->lock);
    h->stopping = true;
    int64_t until_ms = clock_mono_ms() + DRAIN_MS;
    while (h->requests > 0 && clock_mono_ms() < until_ms)
        wait_changed(h, until_ms);
    h->sweeper_ends = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    if (h->has_sweeper)
        pthread_join(h->sweeper, NULL);
    MHD_stop_daemon(h->daemon);
    if (fd != MHD_INVALID_SOCKET)
        close(fd);
    free_server(h);
}

uint16_t httpd_port(const struct httpd *h)
{
    return h->port;
}

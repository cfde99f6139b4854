// SPDX-License-Identifier: Apache-2.0
/*
 * rpc - the server, on gRPC core. Outgoing calls are in rpc_channel.
 *
 * A server has one completion queue, served by RPC_THREADS threads. Every event is a tag from that
 * queue; a tag is a function and a call:
 *
 *   arm_method ──accepted──► call_accepted
 *       ├─unary──► handler, one batch with the whole answer ─────────────► unary_done ─► free
 *       └─stream─► batch 1: RECV_CLOSE (completes when the peer is gone) ─► stream_closed
 *                  batch 2: SEND_MESSAGE, never two at a time ────────────► stream_sent
 *                           └─ newer generation? send again ◄── rpc_server_notify
 *
 * A stream is freed when the peer is gone and no batch is in flight. Two threads suffice: the
 * kubelet calls serially, and while one handler waits for pod resources the other thread serves the
 * streams.
 *
 * Stopping follows gRPC's rules: end the streams, shutdown_and_notify, wait, cancel what is left,
 * destroy the server (which unlinks the socket), shut down the queue, drain it, join.
 */
#include "device-plugin/kubelet/rpc_internal.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"

enum { RPC_THREADS = 2 };

struct call;

/* gRPC guarantees that writes before hand_over are visible to the thread that takes the tag, but
 * compilers and sanitizers cannot see how. The flag states it in C. */
struct tag {
    void (*fn)(struct call *c, bool ok);
    struct call *call;
    _Atomic bool ready;
};

struct call {
    struct rpc_server *server;
    const struct rpc_method *method; /* NULL: the catch-all */
    grpc_call *call;
    grpc_byte_buffer *payload;
    grpc_metadata_array metadata;
    grpc_call_details details; /* catch-all only */
    gpr_timespec deadline;
    struct tag accepted, done, closed, sent;
    int cancelled;

    /* Streams, under the server's lock. */
    struct call *next;
    unsigned pending; /* batches in flight */
    bool sending, peer_gone, ended, status_sent;
    uint64_t generation; /* of the message sent last */
    bool sent_any;
};

struct rpc_server {
    struct rpc_server_config config;
    grpc_server *server;
    grpc_completion_queue *cq;
    void *registered[RPC_METHODS_MAX];
    pthread_t threads[RPC_THREADS];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct call *streams;
    size_t streams_len;
    size_t calls; /* requested or accepted, not yet freed: the queue must outlive them */
    bool stopping;
    bool shut; /* shutdown_and_notify has completed */
    struct tag shut_tag;
    struct call shut_call;
};

/* Logs gRPC's messages in our format, at debug level: callers get the same text as an error. A
 * failed assertion aborts next. */
static void on_log(gpr_log_func_args *args)
{
    bool fatal = strstr(args->message, "assertion") != NULL;
    if (fatal || log_enabled(LOG_DEBUG))
        log_write(fatal ? LOG_ERROR : LOG_DEBUG, "gRPC", kv("file", args->file),
                  kv("line", args->line), kv("message", args->message), log_kv_str(NULL, NULL));
}

void rpc_init(void)
{
    gpr_set_log_function(on_log);
    grpc_init();
}

void rpc_shutdown(void)
{
    grpc_shutdown_blocking();
}

static bool (*abandon)(void *arg);
static void *abandon_arg;

void rpc_abandon_when(bool (*when)(void *arg), void *arg)
{
    abandon = when;
    abandon_arg = arg;
}

bool rpc_may_abandon(void)
{
    return abandon != NULL;
}

bool rpc_is_abandoned(void)
{
    return abandon != NULL && abandon(abandon_arg);
}

static void *zeroed(size_t n)
{
    void *p = calloc(1, n);
    if (p == NULL)
        abort();
    return p;
}

static struct tag *hand_over(struct tag *tag, void (*fn)(struct call *c, bool ok), struct call *c)
{
    tag->fn = fn;
    tag->call = c;
    atomic_store_explicit(&tag->ready, true, memory_order_release);
    return tag;
}

/* ---- bytes ---- */

grpc_byte_buffer *rpc_buffer_of(const void *bytes, size_t n)
{
    grpc_slice slice = grpc_slice_from_copied_buffer(bytes != NULL ? (const char *)bytes : "", n);
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    return buffer;
}

/* gRPC has already bounded the message (4 MiB). */
int rpc_bytes_of(grpc_byte_buffer *buffer, struct strbuf *out, struct error *err)
{
    grpc_byte_buffer_reader reader;
    if (buffer == NULL || !grpc_byte_buffer_reader_init(&reader, buffer))
        return error_set(err, ERROR_INVALID, "the message could not be read");
    grpc_slice all = grpc_byte_buffer_reader_readall(&reader);
    strbuf_add(out, GRPC_SLICE_START_PTR(all), GRPC_SLICE_LENGTH(all));
    grpc_slice_unref(all);
    grpc_byte_buffer_reader_destroy(&reader);
    return 0;
}

static const struct {
    enum error_code code;
    grpc_status_code status;
} statuses[] = {
    {ERROR_INVALID, GRPC_STATUS_INVALID_ARGUMENT},
    {ERROR_THROTTLED, GRPC_STATUS_RESOURCE_EXHAUSTED},
    {ERROR_TOO_LARGE, GRPC_STATUS_RESOURCE_EXHAUSTED},
    {ERROR_UNSUPPORTED, GRPC_STATUS_FAILED_PRECONDITION},
    {ERROR_NOT_FOUND, GRPC_STATUS_NOT_FOUND},
    {ERROR_CONFLICT, GRPC_STATUS_ABORTED},
    {ERROR_TIMEOUT, GRPC_STATUS_DEADLINE_EXCEEDED},
    {ERROR_UNAVAILABLE, GRPC_STATUS_UNAVAILABLE},
    {ERROR_CANCELLED, GRPC_STATUS_CANCELLED},
};

static grpc_status_code status_of(enum error_code code)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (statuses[i].code == code)
            return statuses[i].status;
    return GRPC_STATUS_INTERNAL;
}

enum error_code rpc_code_of(grpc_status_code status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (statuses[i].status == status)
            return statuses[i].code;
    return ERROR_INTERNAL;
}

/* ---- server: calls ---- */

static void call_free(struct call *c)
{
    struct rpc_server *s = c->server;
    if (c->call != NULL)
        grpc_call_unref(c->call);
    grpc_byte_buffer_destroy(c->payload);
    grpc_metadata_array_destroy(&c->metadata);
    if (c->method == NULL)
        grpc_call_details_destroy(&c->details);
    free(c);
    pthread_mutex_lock(&s->lock);
    s->calls--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void start_batch(struct call *c, const grpc_op *ops, size_t n, struct tag *tag,
                        void (*fn)(struct call *, bool))
{
    grpc_call_error e = grpc_call_start_batch(c->call, ops, n, hand_over(tag, fn, c), NULL);
    /* gRPC refuses a batch only on API misuse, which is a bug here. */
    if (e != GRPC_CALL_OK)
        abort();
}

static void unary_done(struct call *c, bool ok)
{
    (void)ok;
    call_free(c);
}

/* reply is read only with GRPC_STATUS_OK. */
static void answer(struct call *c, const struct strbuf *reply, grpc_status_code status,
                   const char *text)
{
    grpc_byte_buffer *message = NULL;
    grpc_slice details = grpc_slice_from_copied_string(text);
    grpc_op ops[4] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                      {.op = GRPC_OP_RECV_CLOSE_ON_SERVER},
                      {.op = GRPC_OP_SEND_STATUS_FROM_SERVER}};
    ops[1].data.recv_close_on_server.cancelled = &c->cancelled;
    ops[2].data.send_status_from_server.status = status;
    ops[2].data.send_status_from_server.status_details = &details;
    size_t n = 3;
    if (status == GRPC_STATUS_OK) {
        message = rpc_buffer_of(reply->ptr, reply->len);
        ops[n++] = (grpc_op){.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message};
    }
    start_batch(c, ops, n, &c->done, unary_done);
    grpc_byte_buffer_destroy(message);
    grpc_slice_unref(details);
}

static void run_unary(struct call *c)
{
    AUTO_STRBUF request;
    AUTO_STRBUF reply;
    strbuf_init(&request);
    strbuf_init(&reply);
    struct error err = ERROR_INIT;
    int result = rpc_bytes_of(c->payload, &request, &err);
    if (result == 0)
        result = c->method->unary(c->server->config.arg, strbuf_str(&request), request.len, &reply,
                                  &err);
    answer(c, &reply, result == 0 ? GRPC_STATUS_OK : status_of(err.code), err.text);
}

/* ---- server: streams; the caller holds the lock unless noted ---- */

static void stream_sent(struct call *c, bool ok);

/* Sends one message or the final status, if due and no send is in flight. */
static void stream_advance(struct call *c)
{
    struct rpc_server *s = c->server;
    if (c->sending || c->peer_gone || c->status_sent)
        return;
    grpc_op ops[2] = {{.op = GRPC_OP_SEND_MESSAGE}, {.op = GRPC_OP_SEND_INITIAL_METADATA}};
    grpc_slice no_details = grpc_empty_slice();
    grpc_byte_buffer *buffer = NULL;
    if (s->stopping) {
        ops[0].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
        ops[0].data.send_status_from_server.status = GRPC_STATUS_OK;
        ops[0].data.send_status_from_server.status_details = &no_details;
        c->status_sent = true;
    } else {
        AUTO_STRBUF message;
        strbuf_init(&message);
        uint64_t generation = c->method->newest(s->config.arg, &message);
        if (c->sent_any && generation == c->generation)
            return;
        c->generation = generation;
        buffer = rpc_buffer_of(message.ptr, message.len);
        ops[0].data.send_message.send_message = buffer;
    }
    size_t n = c->sent_any ? 1 : 2; /* the first batch carries the initial metadata */
    c->sent_any = c->sending = true;
    c->pending++;
    start_batch(c, ops, n, &c->sent, stream_sent);
    grpc_byte_buffer_destroy(buffer);
}

/* Releases the lock. */
static void stream_settle(struct call *c)
{
    struct rpc_server *s = c->server;
    bool gone = c->peer_gone && c->pending == 0;
    bool lost = false;
    if (c->peer_gone && !c->ended) {
        c->ended = true;
        struct call **at = &s->streams;
        while (*at != c)
            at = &(*at)->next;
        *at = c->next;
        s->streams_len--;
        lost = !s->stopping;
    }
    pthread_mutex_unlock(&s->lock);
    if (lost && s->config.stream_ended != NULL)
        s->config.stream_ended(s->config.ended_arg);
    if (gone)
        call_free(c);
}

static void stream_sent(struct call *c, bool ok)
{
    pthread_mutex_lock(&c->server->lock);
    c->pending--;
    c->sending = false;
    /* A send fails when the peer is gone; RECV_CLOSE handles that. */
    if (ok)
        stream_advance(c);
    stream_settle(c);
}

static void stream_closed(struct call *c, bool ok)
{
    (void)ok;
    pthread_mutex_lock(&c->server->lock);
    c->pending--;
    c->peer_gone = true;
    stream_settle(c);
}

static void run_stream(struct call *c)
{
    struct rpc_server *s = c->server;
    pthread_mutex_lock(&s->lock);
    c->next = s->streams;
    s->streams = c;
    s->streams_len++;
    c->pending = 1;
    grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
    op.data.recv_close_on_server.cancelled = &c->cancelled;
    start_batch(c, &op, 1, &c->closed, stream_closed);
    stream_advance(c);
    pthread_mutex_unlock(&s->lock);
}

/* ---- server: accepting ---- */

static void arm(struct rpc_server *s, const struct rpc_method *method);

static void call_accepted(struct call *c, bool ok)
{
    if (!ok) { /* the server is shutting down */
        call_free(c);
        return;
    }
    arm(c->server, c->method);
    if (c->method == NULL) {
        answer(c, NULL, GRPC_STATUS_UNIMPLEMENTED,
               "cosched-device-plugin does not serve this method");
    } else if (c->method->unary != NULL) {
        run_unary(c);
    } else {
        run_stream(c);
    }
}

/* Asks gRPC for the next call of the method; NULL: of any other method. */
static void arm(struct rpc_server *s, const struct rpc_method *method)
{
    struct call *c = zeroed(sizeof *c);
    pthread_mutex_lock(&s->lock);
    s->calls++;
    pthread_mutex_unlock(&s->lock);
    c->server = s;
    c->method = method;
    grpc_metadata_array_init(&c->metadata);
    grpc_call_error e;
    if (method != NULL) {
        void *registered = s->registered[method - s->config.methods];
        e = grpc_server_request_registered_call(s->server, registered, &c->call, &c->deadline,
                                                &c->metadata, &c->payload, s->cq, s->cq,
                                                hand_over(&c->accepted, call_accepted, c));
    } else {
        grpc_call_details_init(&c->details);
        e = grpc_server_request_call(s->server, &c->call, &c->details, &c->metadata, s->cq, s->cq,
                                     hand_over(&c->accepted, call_accepted, c));
    }
    if (e != GRPC_CALL_OK)
        call_free(c);
}

static void *serve(void *arg)
{
    struct rpc_server *s = arg;
    gpr_timespec never = gpr_inf_future(GPR_CLOCK_REALTIME);
    grpc_event ev;
    while ((ev = grpc_completion_queue_next(s->cq, never, NULL)).type != GRPC_QUEUE_SHUTDOWN) {
        struct tag *tag = ev.tag;
        if (atomic_load_explicit(&tag->ready, memory_order_acquire))
            tag->fn(tag->call, ev.success != 0);
    }
    return NULL;
}

/* ---- server: lifecycle ---- */

int rpc_check_path(const char *path, struct error *err)
{
    if (path[0] != '/' || strlen(path) > RPC_PATH_MAX)
        return error_set(err, ERROR_INVALID, "socket %s: must be absolute and at most %d bytes",
                         path, RPC_PATH_MAX);
    return 0;
}

static void server_shut(struct call *c, bool ok)
{
    (void)ok;
    struct rpc_server *s = c->server;
    pthread_mutex_lock(&s->lock);
    s->shut = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

int rpc_server_start(struct rpc_server **out, const struct rpc_server_config *c, struct error *err)
{
    assert(c->methods_len <= RPC_METHODS_MAX);
    if (rpc_check_path(c->path, err) < 0)
        return -1;
    if (unlink(c->path) < 0 && errno != ENOENT)
        return error_errno(err, errno, "socket %s: remove what is there", c->path);
    struct rpc_server *s = zeroed(sizeof *s);
    s->config = *c;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    grpc_arg no_probes = rpc_integer((char[]){GRPC_ARG_HTTP2_BDP_PROBE}, 0);
    grpc_channel_args args = {.num_args = 1, .args = &no_probes};
    s->server = grpc_server_create(&args, NULL);
    s->cq = grpc_completion_queue_create_for_next(NULL);
    grpc_server_register_completion_queue(s->server, s->cq, NULL);
    for (size_t i = 0; i < c->methods_len; i++)
        s->registered[i] = grpc_server_register_method(
            s->server, c->methods[i].path, NULL, GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
    AUTO_STRBUF address;
    strbuf_init(&address);
    strbuf_addf(&address, "unix:%s", c->path);
    grpc_server_credentials *creds = grpc_insecure_server_credentials_create();
    int bound = grpc_server_add_http2_port(s->server, strbuf_str(&address), creds);
    grpc_server_credentials_release(creds);
    grpc_server_start(s->server);
    for (size_t i = 0; i <= c->methods_len; i++)
        arm(s, i < c->methods_len ? &c->methods[i] : NULL);
    for (size_t i = 0; i < RPC_THREADS; i++)
        if (pthread_create(&s->threads[i], NULL, serve, s) != 0)
            abort();
    if (bound != 0) {
        *out = s;
        return 0;
    }
    rpc_server_stop(s, 0);
    return error_set(err, ERROR_IO, "socket %s: cannot listen", c->path);
}

void rpc_server_notify(struct rpc_server *s)
{
    pthread_mutex_lock(&s->lock);
    for (struct call *c = s->streams; c != NULL; c = c->next)
        stream_advance(c);
    pthread_mutex_unlock(&s->lock);
}

size_t rpc_server_streams(struct rpc_server *s)
{
    pthread_mutex_lock(&s->lock);
    size_t n = s->streams_len;
    pthread_mutex_unlock(&s->lock);
    return n;
}

void rpc_server_stop(struct rpc_server *s, int64_t grace_ms)
{
    if (s == NULL)
        return;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_mutex_unlock(&s->lock);
    rpc_server_notify(s);

    s->shut_call.server = s;
    grpc_server_shutdown_and_notify(s->server, s->cq,
                                    hand_over(&s->shut_tag, server_shut, &s->shut_call));

    int64_t until_ms = clock_mono_ms() + grace_ms;
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    pthread_mutex_lock(&s->lock);
    while (!s->shut && pthread_cond_clockwait(&s->changed, &s->lock, CLOCK_MONOTONIC, &until) == 0)
        ;
    bool shut = s->shut;
    pthread_mutex_unlock(&s->lock);
    if (!shut)
        grpc_server_cancel_all_calls(s->server);
    pthread_mutex_lock(&s->lock);
    /* gRPC counts a call that the peer gave up as done while its handler still runs. */
    while (!s->shut || s->calls > 0)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);

    grpc_server_destroy(s->server);
    grpc_completion_queue_shutdown(s->cq);
    for (size_t i = 0; i < RPC_THREADS; i++)
        pthread_join(s->threads[i], NULL);
    grpc_completion_queue_destroy(s->cq);
    pthread_cond_destroy(&s->changed), pthread_mutex_destroy(&s->lock);
    free(s);
}

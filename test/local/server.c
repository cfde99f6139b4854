// SPDX-License-Identifier: Apache-2.0
/*
 * server - see server.h.
 *
 * One connection, one request at a time: the next one that is already in the buffer waits until
 * the call in hand is answered, which is all that pipelining needs.
 *
 *   on_event ──► receive ──► process ──► handle() ··· call_reply / call_stream_write (call.c)
 *                                             │             │
 *                                          settle      server_mark ──► on_flush ──► process, settle
 *                                             │
 *        flush, then: go on │ closing: shut our half, linger │ dead: bury
 *
 * A reply made inside handle() goes out at the end of on_event, all pipelined ones in one writev.
 * What is written later, and watch lines above all, waits for the timer at the end of the round,
 * and watches are written to at most once in a millisecond: a hundred binds that arrive together
 * cost each watcher one system call, and wake it once.
 *
 * Nothing is freed where it may still be in use: whoever finds a connection broken sets `dead`, and
 * only on_event's end and the timer bury. So a handler may close every connection, its own too.
 *
 * Lingering: closing a socket with unread bytes in it resets the connection, and the peer would
 * lose the reply that says why. So our half is shut first, and what still comes is read and thrown
 * away until the peer has closed too, at most two seconds.
 */
#include "test/local/server.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/listener.h"
#include "lib/base/mem.h"
#include "test/local/server_conn.h"

enum {
    READ_SIZE = 16 * 1024,
    READS_PER_EVENT = 16,
    WAITING_MAX = 64 * 1024,      /* bytes read ahead while a call is being answered */
    HIGH_WATER = 4 * 1024 * 1024, /* unsent replies: no new requests of this connection */
    PIECES_PER_WRITE = 512,
    TLS_RECORD = 16 * 1024,
    SWEEP_MS = 1000,
    PATIENCE_MS = 60 * 1000,
    IDLE_PATIENCES = 5,
    LINGER_MS = 2000,
    STOP_MS = 500,
    CONNECTIONS = 4096,
};

static void on_event(void *arg, uint32_t events);
static void on_flush(void *arg);
static void on_sweep(void *arg);

void server_wake(struct server *s)
{
    if (s->flush_set)
        return;
    s->flush_set = true;
    loop_timer_set(s->loop, &s->flush, 0, on_flush, s);
}

void server_mark(struct conn *c)
{
    if (c->dirty)
        return;
    c->dirty = true;
    c->next_dirty = c->server->dirty;
    c->server->dirty = c;
    server_wake(c->server);
}

/* ---- sending ---------------------------------------------------------------------------------- */

static ssize_t send_plain(struct conn *c)
{
    struct iovec iov[PIECES_PER_WRITE];
    int n = server_out_gather(&c->out, iov, PIECES_PER_WRITE);
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};
    ssize_t sent;
    do
        sent = sendmsg(c->fd, &msg, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN)
        c->dead = true;
    return sent;
}

static ssize_t send_tls(struct conn *c)
{
    char record[TLS_RECORD];
    size_t n = server_out_copy(&c->out, record, sizeof record);
    ssize_t sent = server_tls_write(c->tls, record, n);
    if (sent == SERVER_TLS_FAILED)
        c->dead = true;
    return sent;
}

void server_flush(struct conn *c)
{
    bool was_blocked = c->blocked;
    while (c->out.unsent > 0 && !c->dead) {
        ssize_t sent = c->tls ? send_tls(c) : send_plain(c);
        if (sent < 0) {
            /* A TLS write that waits for a handshake is waked by the peer's bytes. */
            c->blocked = sent != SERVER_TLS_WANT_READ || !c->tls;
            if (!was_blocked)
                c->blocked_ms = loop_now_ms(c->server->loop);
            return;
        }
        was_blocked = false;
        c->server->stats.bytes_out += sent;
        server_out_sent(&c->out, (size_t)sent);
    }
    c->blocked = false;
}

/* ---- the end of a connection ------------------------------------------------------------------ */

void server_leave(struct call *call)
{
    struct server *s = call->server;
    call->conn = NULL;
    call->next = s->gone;
    call->prev = &s->gone;
    if (call->next)
        call->next->prev = &call->next;
    s->gone = call;
    if (call->stream) {
        s->stats.open_streams--;
        server_wake(s);
    }
}

/* Tells the streams whose peer has gone. on_close may do anything, so each time from the start. */
static void tell_the_gone(struct server *s)
{
    for (struct call *call = s->gone; call;) {
        if (!call->stream) {
            call = call->next;
            continue;
        }
        void (*on_close)(void *arg) = call->on_close;
        void *arg = call->arg;
        call->stream = false;
        call_drop(call); /* without a connection that only frees it */
        if (on_close)
            on_close(arg);
        call = s->gone;
    }
}

static void bury(struct conn *c)
{
    struct server *s = c->server;
    if (c->dirty) {
        struct conn **at = &s->dirty;
        while (*at != c)
            at = &(*at)->next_dirty;
        *at = c->next_dirty;
    }
    if (c->call)
        server_leave(c->call);
    loop_unwatch_fd(s->loop, c->fd);
    if (c->dead) { /* a reset */
        struct linger now = {.l_onoff = 1, .l_linger = 0};
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    server_tls_free(c->tls);
    close(c->fd);
    *c->prev = c->next;
    if (c->next)
        c->next->prev = c->prev;
    server_out_deinit(&c->out);
    strbuf_deinit(&c->in);
    free(c);
    s->stats.open_connections--;
    server_watch_listener(s);
}

static void set_interest(struct conn *c)
{
    bool full = c->call ? c->in.len >= WAITING_MAX : c->out.unsent > HIGH_WATER;
    uint32_t events = 0;
    if (!c->eof && (!full || c->lingering))
        events |= EPOLLIN;
    if (c->blocked || c->read_wants_write)
        events |= EPOLLOUT;
    if (events == c->interest)
        return;
    if (loop_watch_fd(c->server->loop, c->fd, events, on_event, c, NULL) < 0)
        c->dead = true;
    c->interest = events;
}

/* The connection may be gone afterwards. */
static void settle(struct conn *c)
{
    if (!c->dead && !c->blocked)
        server_flush(c);
    if (!c->dead && c->closing && c->out.unsent == 0 && !c->call && !c->lingering) {
        if (c->eof) {
            bury(c);
            return;
        }
        if (c->tls)
            server_tls_say_goodbye(c->tls);
        shutdown(c->fd, SHUT_WR);
        c->lingering = true;
        c->since_ms = loop_now_ms(c->server->loop);
        strbuf_deinit(&c->in);
    }
    if (!c->dead)
        set_interest(c);
    if (c->dead)
        bury(c);
}

/* ---- receiving -------------------------------------------------------------------------------- */

/* Takes as long for a wrong token as for a right one of the same length. */
static bool same_secret(const char *a, const char *b)
{
    size_t n = strlen(a);
    if (n != strlen(b))
        return false;
    unsigned char different = 0;
    for (size_t i = 0; i < n; i++)
        different |= (unsigned char)(a[i] ^ b[i]);
    return different == 0;
}

static bool is_authenticated(const struct call *call)
{
    if (!call->server->tokens)
        return true;
    const char *header = call_header(call, "authorization");
    if (!header || strncasecmp(header, "bearer ", 7) != 0)
        return false;
    bool known = false;
    for (char **t = call->server->tokens; *t; t++)
        known |= same_secret(*t, header + 7);
    return known;
}

/* A complete request becomes a call with its own buffer; what came behind it stays. */
static struct call *new_call(struct conn *c)
{
    struct call *call = mem_new(struct call, 1);
    call->server = c->server;
    call->conn = c;
    call->parse = c->parse;
    call->buf = c->in;
    strbuf_init(&c->in);
    size_t used = c->parse.at, end = c->parse.body_at + c->parse.body_len;
    if (call->buf.len > used)
        strbuf_add(&c->in, call->buf.ptr + used, call->buf.len - used);
    strbuf_reserve(&call->buf, 1);
    call->buf.len = end;
    call->buf.ptr[end] = '\0';
    call->authenticated = is_authenticated(call);
    c->parse = (struct server_parse){0};
    c->continued = false;
    c->call = call;
    c->server->stats.requests++;
    return call;
}

/* Before there is a request for whoever answers. Too large is what a client of the API may do, and expects a Status for. */
static void refuse(struct conn *c, int status, const char *why)
{
    struct strbuf text = {0};
    if (status == 413) {
        char body[256];
        (void)str_format(body, sizeof body,
                         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                         "\"status\":\"Failure\",\"message\":\"Request entity too large: limit is "
                         "%zu\",\"reason\":\"RequestEntityTooLarge\",\"code\":413}",
                         c->server->config.max_body_bytes);
        strbuf_addf(&text,
                    "HTTP/1.1 413 Request Entity Too Large\r\nContent-Type: application/json\r\n"
                    "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
                    strlen(body), body);
        server_out_take(&c->out, &text);
        c->closing = true;
        return;
    }
    strbuf_addf(&text,
                "HTTP/1.1 %d Refused\r\nContent-Type: text/plain\r\nConnection: close\r\n"
                "Content-Length: %zu\r\n\r\n%s\n",
                status, strlen(why) + 1, why);
    server_out_take(&c->out, &text);
    c->closing = true;
}

/* Requests that are in the buffer, while there is no reason to wait. */
static void process(struct conn *c)
{
    struct server *s = c->server;
    c->busy = true;
    while (!c->call && !c->dead && !c->closing && c->out.unsent <= HIGH_WATER) {
        if (c->in.len == 0 && c->parse.phase == SERVER_HEAD) {
            c->since_ms = 0;
            c->idle_ms = c->used ? loop_now_ms(s->loop) : c->idle_ms;
            break;
        }
        enum server_progress got = server_parse(&c->parse, &c->in, s->config.max_body_bytes);
        if (got == SERVER_COMPLETE) {
            c->since_ms = 0;
            c->used = true;
            s->config.handle(s->config.arg, new_call(c));
            continue;
        }
        if (got == SERVER_REFUSED) {
            refuse(c, c->parse.status, c->parse.why);
            break;
        }
        if (c->since_ms == 0)
            c->since_ms = loop_now_ms(s->loop);
        if (c->parse.expects_continue && c->parse.phase != SERVER_HEAD && !c->continued) {
            c->continued = true;
            server_out_text(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
        }
        break;
    }
    c->busy = false;
    /* Nobody sends the rest of it, and nobody waits for an answer to what is not asked. A watcher
     * that has closed its half has left. */
    if (c->eof && !c->dead) {
        if (!c->call && c->out.unsent <= HIGH_WATER)
            c->closing = true;
        else if (c->call && c->call->stream)
            c->dead = true;
    }
}

/* How much to read at once: a body whose length is known, or a usual piece. */
static size_t read_size(const struct conn *c)
{
    if (c->parse.phase == SERVER_LENGTH) {
        size_t whole = c->parse.body_at + c->parse.left;
        if (whole > c->in.len && whole - c->in.len > READ_SIZE)
            return whole - c->in.len;
    }
    return READ_SIZE;
}

/* false: nothing more to read now. */
static bool receive_once(struct conn *c)
{
    size_t want = read_size(c);
    if (want > 1024 * 1024)
        want = 1024 * 1024; /* memory follows the bytes that came, not the promise */
    strbuf_reserve(&c->in, want + JSON_PADDING);
    ssize_t n;
    if (c->tls) {
        n = server_tls_read(c->tls, c->in.ptr + c->in.len, want);
        c->read_wants_write = n == SERVER_TLS_WANT_WRITE;
        if (n == SERVER_TLS_FAILED)
            c->dead = true;
    } else {
        do
            n = recv(c->fd, c->in.ptr + c->in.len, want, 0);
        while (n < 0 && errno == EINTR);
        if (n < 0 && errno != EAGAIN)
            c->dead = true;
    }
    if (n == 0)
        c->eof = true;
    if (n <= 0)
        return false;
    if (!c->lingering)
        c->in.len += (size_t)n;
    c->in.ptr[c->in.len] = '\0';
    return c->tls || (size_t)n == want;
}

static void receive(struct conn *c)
{
    for (int i = 0;; i++) {
        if (i == READS_PER_EVENT) { /* others have their turn */
            server_mark(c);
            break;
        }
        bool more = receive_once(c);
        if (!c->lingering)
            process(c);
        else if (c->eof)
            c->closing = true;
        if (!more || c->dead || c->closing || (c->call && c->in.len >= WAITING_MAX) ||
            c->out.unsent > HIGH_WATER)
            break;
    }
}

static void on_event(void *arg, uint32_t events)
{
    struct conn *c = arg;
    if (events & (EPOLLERR | EPOLLHUP)) {
        /* Both ways closed in good order (ours is only shut for lingering), or a reset. */
        if (!c->lingering)
            c->dead = true;
        bury(c);
        return;
    }
    if (events & EPOLLOUT) {
        server_flush(c);
        if (!c->dead && !c->blocked && !c->lingering && !c->call)
            process(c); /* what waited for the high water to fall */
    }
    if (!c->dead && (events & EPOLLIN || c->tls))
        receive(c);
    if (c->lingering && c->eof) {
        bury(c);
        return;
    }
    settle(c);
}

/* The round ends: everything that was marked. */
static void on_flush(void *arg)
{
    struct server *s = arg;
    s->flush_set = false;
    /* Whatever is marked from now on waits for the next round. */
    struct conn *list = s->dirty;
    s->dirty = NULL;
    bool early = s->flushed_ms == loop_now_ms(s->loop), later = false;
    for (struct conn *c; (c = list);) {
        list = c->next_dirty;
        if (early && c->call && c->call->stream && !c->dead) {
            c->next_dirty = s->dirty;
            s->dirty = c;
            later = true;
            continue;
        }
        c->dirty = false;
        if (!c->dead && !c->lingering) {
            process(c);
            if (c->tls && !c->dead && !c->closing && !c->eof &&
                (!c->call || c->in.len < WAITING_MAX))
                receive(c); /* bytes that OpenSSL holds wake nobody */
        }
        settle(c);
    }
    if (!early)
        s->flushed_ms = loop_now_ms(s->loop);
    if (later && !s->flush_set) {
        s->flush_set = true;
        loop_timer_set(s->loop, &s->flush, 1, on_flush, s);
    }
    tell_the_gone(s);
}

/* Has the peer had its time? */
static void sweep(struct conn *c, int64_t now)
{
    int64_t patience = c->server->config.patience_ms;
    bool waits = !c->call && !c->closing && !c->lingering;
    if (c->dead)
        return;
    if (c->lingering) {
        c->dead = now - c->since_ms > LINGER_MS;
    } else if (c->blocked && now - c->blocked_ms > patience) {
        c->dead = true;
        c->server->stats.slow_streams += c->call && c->call->stream;
    } else if (waits && c->since_ms != 0 && now - c->since_ms > patience) {
        refuse(c, 408, "the request did not arrive in time");
    } else if (waits && !c->used && now - c->idle_ms > patience) {
        c->dead = true; /* not even a handshake */
    } else if (waits && c->since_ms == 0 && now - c->idle_ms > IDLE_PATIENCES * patience) {
        c->closing = true;
    }
    if (c->dead || c->closing)
        server_mark(c);
}

static int64_t sweep_ms(const struct server *s)
{
    return s->config.patience_ms / 4 < SWEEP_MS ? s->config.patience_ms / 4 + 1 : SWEEP_MS;
}

static void on_sweep(void *arg)
{
    struct server *s = arg;
    int64_t now = loop_now_ms(s->loop);
    for (struct conn *c = s->conns; c; c = c->next)
        sweep(c, now);
    server_watch_listener(s);
    loop_timer_set(s->loop, &s->sweep, sweep_ms(s), on_sweep, s);
}

/* ---- beginning and end ------------------------------------------------------------------------ */

void server_welcome(struct server *s, int fd)
{
    struct conn *c = mem_new(struct conn, 1);
    c->server = s;
    c->fd = fd;
    c->idle_ms = loop_now_ms(s->loop);
    c->tls = s->tls ? server_tls_new(s->tls, fd) : NULL;
    c->next = s->conns;
    c->prev = &s->conns;
    if (c->next)
        c->next->prev = &c->next;
    s->conns = c;
    s->stats.connections++;
    s->stats.open_connections++;
    set_interest(c);
    if (c->dead)
        bury(c);
}

static char **copy_list(const char *const *list)
{
    size_t n = 0;
    while (list[n])
        n++;
    char **copy = mem_new(char *, n + 1);
    for (size_t i = 0; i < n; i++)
        copy[i] = mem_strdup(list[i]);
    return copy;
}

int server_start(struct server **out, struct loop *l, const struct server_config *c,
                 struct error *err)
{
    struct server *s = mem_new(struct server, 1);
    s->loop = l;
    s->config = *c;
    if (s->config.max_connections == 0)
        s->config.max_connections = CONNECTIONS;
    if (s->config.patience_ms == 0)
        s->config.patience_ms = PATIENCE_MS;
    s->address = mem_strdup(c->address);
    s->tokens = c->tokens ? copy_list(c->tokens) : NULL;
    s->port = c->port;
    s->fd = -1;
    s->accepting = true;
    signal(SIGPIPE, SIG_IGN);
    if ((c->cert_pem && server_tls_context_new(&s->tls, c->cert_pem, c->key_pem, err) < 0) ||
        server_listen(s, true, err) < 0) {
        server_stop(s);
        return -1;
    }
    loop_timer_set(l, &s->sweep, sweep_ms(s), on_sweep, s);
    *out = s;
    return 0;
}

uint16_t server_port(const struct server *s)
{
    return s->port;
}

void server_stats(const struct server *s, struct server_stats *out)
{
    *out = s->stats;
}

/* Waits for sockets that have something to send, all together at most STOP_MS. */
static void drain(struct server *s)
{
    int64_t until = clock_mono_ms() + STOP_MS;
    for (struct conn *c = s->conns; c; c = c->next) {
        server_flush(c);
        while (c->blocked && !c->dead && clock_mono_ms() < until) {
            struct pollfd p = {.fd = c->fd, .events = POLLOUT};
            poll(&p, 1, 10);
            server_flush(c);
        }
        if (!c->dead && !c->lingering) {
            if (c->tls)
                server_tls_say_goodbye(c->tls);
            shutdown(c->fd, SHUT_WR);
        }
        c->dead = c->dead || c->out.unsent > 0;
    }
}

void server_stop(struct server *s)
{
    if (!s)
        return;
    server_listen(s, false, NULL);
    for (struct conn *c = s->conns; c; c = c->next)
        if (c->call && c->call->stream && !c->dead && !c->call->parse.http10)
            server_out_text(&c->out, "0\r\n\r\n");
    drain(s);
    for (struct conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        bury(c);
    }
    tell_the_gone(s);
    for (struct call *call = s->gone, *next; call; call = next) { /* answered into nothing later */
        next = call->next;
        call->server = NULL;
        call->next = NULL;
        call->prev = NULL;
    }
    loop_timer_cancel(s->loop, &s->flush);
    loop_timer_cancel(s->loop, &s->sweep);
    server_tls_context_free(s->tls);
    for (char **t = s->tokens; t && *t; t++)
        free(*t);
    free(s->tokens);
    free(s->address);
    free(s);
}

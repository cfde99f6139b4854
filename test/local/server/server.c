// SPDX-License-Identifier: Apache-2.0
/*
 * server - see server.h.
 *
 * One connection, one request at a time: the next one that is already in the buffer waits until
 * the call in hand is answered, which is all that pipelining needs.
 *
 *   on_event ──► server_in ──► handle() ··· call_reply / call_stream_write (call.c)
 *                                 │             │
 *                              settle      server_mark ──► on_flush ──► server_in, settle
 *                                 │
 *        flush, then: go on │ closing: shut our half, linger │ dead: bury
 *
 * A reply made inside handle() goes out at the end of on_event, all pipelined ones in one writev.
 * What is written later, and watch lines above all, waits for the timer at the end of the round,
 * and watches are written to at most once in a millisecond: a hundred binds that arrive together
 * cost each watcher one system call, and wake it once.
 *
 * Nothing is freed while it may be in use: code that finds a connection broken sets `dead`, and
 * only the end of on_event and the timer free it. So a handler may close every connection, even its
 * own.
 *
 * Lingering: closing a socket with unread bytes resets the connection, and the peer would lose the
 * reply that says why. So our half is shut down first, and input is discarded until the peer has
 * closed too, for at most two seconds.
 */
#include "test/local/server/server.h"

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
#include "lib/base/listener.h"
#include "lib/base/mem.h"
#include "test/local/server/server_conn.h"
#include "test/local/server/server_in.h"

enum {
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

/* ---- sending ---- */

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

/* ---- the end of a connection ---- */

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
    bool full = c->call ? c->in.len >= SERVER_IN_WAITING : c->out.unsent > SERVER_IN_HIGH_WATER;
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

/* ---- rounds ---- */

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
            server_in_process(c); /* what waited for the high water to fall */
    }
    if (!c->dead && (events & EPOLLIN || c->tls))
        server_in_receive(c);
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
            server_in_process(c);
            if (c->tls && !c->dead && !c->closing && !c->eof &&
                (!c->call || c->in.len < SERVER_IN_WAITING))
                server_in_receive(c); /* epoll does not report bytes that OpenSSL has buffered */
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
        server_in_refuse(c, 408, "the request did not arrive in time");
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

/* ---- beginning and end ---- */

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
        if (c->call && c->call->stream && !c->dead && !c->call->parse.message.http10)
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

// SPDX-License-Identifier: Apache-2.0
/*
 * server_conn - the inside of the server: its connections and their calls. For server*.c and call.c
 * alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/loop.h"
#include "lib/base/str.h"
#include "test/local/server/server.h"
#include "test/local/server/server_out.h"
#include "test/local/server/server_parse.h"
#include "test/local/server/server_tls.h"

struct conn {
    struct server *server;
    struct conn *next, **prev;
    struct conn *next_dirty;
    int fd;
    struct server_tls *tls; /* NULL: plain */
    struct strbuf in;
    struct server_parse parse;
    struct server_out out;
    struct call *call;     /* being answered; the next request waits for its end */
    uint32_t interest;     /* what epoll was asked for */
    int64_t since_ms;      /* the request under way, or the lingering, began */
    int64_t idle_ms;       /* accepted, or free of requests, since */
    int64_t blocked_ms;    /* the socket has taken nothing since, if blocked */
    bool used;             /* a request has come, whole */
    bool dirty;            /* in the server's list: to be looked at when the round ends */
    bool busy;             /* inside server_in_process: replies need not mark it dirty */
    bool blocked;          /* the socket takes no more: wait for EPOLLOUT */
    bool read_wants_write; /* TLS */
    bool eof;              /* the peer sends no more */
    bool continued;        /* "100 Continue" was sent */
    bool closing;          /* no more requests; closed when everything is sent */
    bool lingering;        /* our half is closed; what still comes is thrown away */
    bool dead;             /* to be freed, with a reset */
};

struct call {
    struct server *server;     /* NULL: stopped meanwhile */
    struct conn *conn;         /* NULL: the peer is gone, and the call is in server's `gone` */
    struct call *next, **prev; /* in `gone` */
    struct server_parse parse;
    struct strbuf buf; /* head and body */
    bool authenticated, stream, lose_reply;
    bool begun;       /* of a stream: what is written now is news */
    size_t allowance; /* unsent initial bytes, to which the bound does not apply */
    void (*on_close)(void *arg);
    void *arg;
    struct shared_bytes *last; /* of a stream: for a cut in the middle of a line */
};

struct server {
    struct loop *loop;
    struct server_config config;
    char *address;
    char **tokens;
    struct server_tls_context *tls;
    int fd; /* listening; -1: closed */
    uint16_t port;
    bool accepting, watching;
    struct conn *conns;
    struct conn *dirty;
    struct call *gone; /* calls whose peer is gone; the timer calls on_close of the streams */
    struct loop_timer flush, sweep;
    bool flush_set;
    int64_t flushed_ms; /* watches were written to last */
    struct server_stats stats;
};

/* Looks at the connection when the round ends. */
void server_mark(struct conn *c);
/* Something is to be done when the round ends. */
void server_wake(struct server *s);
/* Sends what the socket takes. A broken connection becomes dead. */
void server_flush(struct conn *c);
/* A new connection. */
void server_welcome(struct server *s, int fd);
/* Watches the listening socket or not, as things are now. */
void server_watch_listener(struct server *s);
/* The call loses its peer. A stream's on_close follows from the loop; any other call must still be
 * answered by its handler. */
void server_leave(struct call *call);

// SPDX-License-Identifier: Apache-2.0
/*
 * server - HTTP/1.1 on loopback, for cosched-local: epoll on the loop's thread, keep-alive,
 * pipelining-safe, streaming watches, plain or TLS, bearer tokens.
 *
 * Replies and watch lines are collected and written with one system call per connection and round
 * of the loop, so that the server is no bottleneck.
 *
 * Bounds: see http_parse.h for a request's head. Connections beyond max_connections wait in the
 * backlog, so idle peers must not hold connections: a request that takes longer than patience_ms
 * gets 408; a peer that sends nothing, or reads nothing of its reply, for that long is reset; a
 * connection idle for five times as long is closed. SIGPIPE is ignored from server_start on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "test/local/admission/call.h"

struct server_config {
    const char *address;            /* "127.0.0.1" */
    uint16_t port;                  /* 0: a free one */
    const char *cert_pem, *key_pem; /* NULL: plain HTTP */
    const char *const *tokens;      /* NULL-terminated; NULL: everyone is welcome (--insecure) */
    size_t max_body_bytes;
    size_t max_unsent_bytes; /* of one stream beyond its beginning; then the watcher is dropped */
    size_t max_connections;  /* 0: 4096 */
    int64_t patience_ms;     /* 0: 60 s */
    void (*handle)(void *arg, struct call *c);
    void *arg;
};

struct server;
int server_start(struct server **out, struct loop *l, const struct server_config *c,
                 struct error *err);
uint16_t server_port(const struct server *s);
/* Streams are ended (their on_close is called), replies that wait get up to half a second to be
 * sent. Not from a handler. NULL is fine. */
void server_stop(struct server *s);

/* Faults. */
void server_close_all(struct server *s); /* connections are reset, at the end of this round */
/* Watches end (on_close is called), in the middle of a line if asked. */
void server_close_streams(struct server *s, bool mid_line);
void server_accept(struct server *s, bool accept); /* false: new connections wait in the backlog */
/* false: the listening socket is closed, connecting is refused. true: it is opened again, same
 * port. */
int server_listen(struct server *s, bool listen, struct error *err);

struct server_stats {
    int64_t requests, connections, streams, bytes_out;
    int64_t open_connections, open_streams, slow_streams;
};
void server_stats(const struct server *s, struct server_stats *out);

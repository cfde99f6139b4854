// SPDX-License-Identifier: Apache-2.0
/*
 * server - HTTP/1.1 on loopback, for cosched-local: epoll on the loop's thread, keep-alive, pipelining-safe, streaming watches, plain or TLS, bearer tokens.
 *
 * Built to be no bottleneck: replies and watch lines are gathered and written with writev once per round of the loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "test/local/call.h"

struct server_config {
    const char *address;            /* "127.0.0.1" */
    uint16_t port;                  /* 0: a free one */
    const char *cert_pem, *key_pem; /* NULL: plain HTTP */
    const char *const *tokens;      /* NULL-terminated; NULL: everyone is welcome (--insecure) */
    size_t max_body_bytes;
    size_t max_unsent_bytes; /* of one stream; beyond it the watcher is dropped */
    void (*handle)(void *arg, struct call *c);
    void *arg;
};

struct server;
int server_start(struct server **out, struct loop *l, const struct server_config *c,
                 struct error *err);
uint16_t server_port(const struct server *s);
void server_stop(struct server *s);

/* Faults. */
void server_close_all(struct server *s); /* connections are reset */
void server_close_streams(struct server *s,
                          bool mid_line); /* watches end, in the middle of a line if asked */
void call_drop(struct call *c);           /* no answer: the connection is reset */
void server_accept(struct server *s, bool accept); /* false: new connections wait in the backlog */
struct server_stats {
    int64_t requests, connections, streams, bytes_out;
};
void server_stats(const struct server *s, struct server_stats *out);

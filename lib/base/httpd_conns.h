// SPDX-License-Identifier: Apache-2.0
/*
 * httpd_conns - the open connections of a server, and which of them goes when there are too many
 * or when it has used up the time of its phase. Private to httpd.c, whose lock guards it.
 *
 * A newcomer is never turned away: nobody could tell a client from a flood by its first packet.
 * Room is made by shutting down another connection:
 *   1. of those that never got a good reply, one whose source never did either;
 *   2. of those that never got a good reply, any;
 *   3. of those that did, one whose request is not being handled.
 * Among equals one of the source with most connections goes, and of these the one that has been
 * longest in its phase. Of those that got a good reply, sources with an eighth of all connections
 * or less count as equally large: a client that keeps many must not lose them to many sources that
 * keep a few each. So neither silent nor slow peers, however many, keep a client from being
 * answered, even if they share its address. A connection whose request is being handled stays.
 *
 * Large bodies share max_large bytes by the same order, with bytes for connections. Room is made
 * only by one that is worth less than the newcomer, of a larger source, or older than large_ms:
 * others are about to be complete, and dropping them would lose the work for nothing.
 *
 * A source is an IPv4 address or a /64 of IPv6, all of which one host may have.
 *
 * Shutting down leaves the descriptor open. The server closes it later, after httpd_conns_remove,
 * so a descriptor in use by others is never shut down.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum httpd_phase {
    HTTPD_HANDSHAKE, /* TLS only */
    HTTPD_IDLE,      /* until a request line has come */
    HTTPD_REQUEST,   /* until the whole request has come */
    HTTPD_OURS,      /* in the handler: not limited */
    HTTPD_REPLY,     /* until it is sent */
    HTTPD_PHASES,
};

struct httpd_source;

struct httpd_conn {
    struct httpd_conn *prev, *next;
    struct httpd_source *source;
    int fd; /* -1: unknown, never shut down */
    enum httpd_phase phase;
    int64_t since_ms; /* when the phase began */
    size_t large;     /* bytes of its large body */
    bool proven;      /* got a good reply */
    bool dropped;     /* shut down and no longer counted */
};

struct httpd_conns {
    size_t max;                     /* of all sources; at least 1 */
    int64_t limit_ms[HTTPD_PHASES]; /* longest time in each phase; 0: none */
    struct httpd_conn *items;
    struct httpd_source *sources;
    size_t len; /* without dropped ones */

    size_t max_large, large; /* bytes of large bodies of all, 0: no bound; and now */
    int64_t large_ms;
    void (*drop_large)(struct httpd_conn *c); /* frees the body of one that is dropped */
};

/* Most connections of one source: three quarters of all, at least 1. Of bytes as much. */
size_t httpd_conns_max_of_source(const struct httpd_conns *s);
/* c->fd, phase and since_ms are set. peer NULL: unknown. Drops another if there are too
 * many. */
void httpd_conns_add(struct httpd_conns *s, struct httpd_conn *c, const struct sockaddr *peer);
void httpd_conns_remove(struct httpd_conns *s, struct httpd_conn *c);
/* c got a good reply; from now on it and its source are kept in preference to others. */
void httpd_conns_prove(struct httpd_conn *c);
/* c's large body has n bytes now; 0: none. Drops others that hold more than their share. False:
 * none can go, and c holds nothing. */
bool httpd_conns_hold(struct httpd_conns *s, struct httpd_conn *c, size_t n, int64_t now_ms);
/* Drops the connections that are in their phase for too long. */
void httpd_conns_sweep(struct httpd_conns *s, int64_t now_ms);

// SPDX-License-Identifier: Apache-2.0
/* Every search is linear in the number of connections, which is bounded. */
#include "lib/base/httpd_conns.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"

struct httpd_source {
    struct httpd_source *prev, *next;
    struct in6_addr address; /* IPv4 mapped into IPv6, or a /64; all zero: unknown */
    size_t held;             /* by connections, dropped ones too */
    size_t len, large;       /* without dropped ones */
    bool proven;
};

enum { PREFIX_BYTES = 8 }; /* of an IPv6 network */

static size_t share_of(size_t max)
{
    return max - max / 4;
}

size_t httpd_conns_max_of_source(const struct httpd_conns *s)
{
    return share_of(s->max);
}

static struct in6_addr address_of(const struct sockaddr *peer)
{
    struct in6_addr address = {0};
    if (peer != NULL && peer->sa_family == AF_INET6) {
        address = ((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr;
        if (!IN6_IS_ADDR_V4MAPPED(&address) && !IN6_IS_ADDR_LOOPBACK(&address))
            memset(&address.s6_addr[PREFIX_BYTES], 0, sizeof address - PREFIX_BYTES);
    } else if (peer != NULL && peer->sa_family == AF_INET) {
        address.s6_addr[10] = address.s6_addr[11] = 0xff;
        memcpy(&address.s6_addr[12], &((const struct sockaddr_in *)(const void *)peer)->sin_addr,
               4);
    }
    return address;
}

static struct httpd_source *take_source(struct httpd_conns *s, const struct sockaddr *peer)
{
    struct in6_addr address = address_of(peer);
    struct httpd_source *source = s->sources;
    while (source != NULL && memcmp(&source->address, &address, sizeof address) != 0)
        source = source->next;
    if (source == NULL) {
        source = mem_new(struct httpd_source, 1);
        source->address = address;
        source->next = s->sources;
        if (source->next != NULL)
            source->next->prev = source;
        s->sources = source;
    }
    source->held++;
    source->len++;
    return source;
}

static void release_source(struct httpd_conns *s, struct httpd_source *source)
{
    if (--source->held > 0)
        return;
    if (source->prev != NULL)
        source->prev->next = source->next;
    else
        s->sources = source->next;
    if (source->next != NULL)
        source->next->prev = source->prev;
    free(source);
}

static void discount(struct httpd_conns *s, struct httpd_conn *c)
{
    c->source->len--;
    s->len--;
}

static void set_large(struct httpd_conns *s, struct httpd_conn *c, size_t n)
{
    s->large += n - c->large;
    c->source->large += n - c->large;
    c->large = n;
}

static void drop(struct httpd_conns *s, struct httpd_conn *c)
{
    discount(s, c);
    if (c->large > 0)
        s->drop_large(c);
    set_large(s, c, 0);
    c->dropped = true;
    shutdown(c->fd, SHUT_RDWR);
}

/* Higher: more worth keeping. */
static int worth(const struct httpd_conn *c)
{
    return c->proven ? 2 : c->source->proven ? 1 : 0;
}

/* Of what there is a bound: connections, or bytes of large bodies. */
struct bound {
    size_t max;
    bool bytes;
};

/* Of c's source. Small ones count as equal where c was answered. */
static size_t size_of(const struct bound *b, const struct httpd_conn *c)
{
    size_t n = b->bytes ? c->source->large : c->source->len;
    return c->proven && n <= b->max / 8 ? 0 : n;
}

static bool goes_before(const struct bound *b, const struct httpd_conn *x,
                        const struct httpd_conn *y)
{
    if (worth(x) != worth(y))
        return worth(x) < worth(y);
    if (size_of(b, x) != size_of(b, y))
        return size_of(b, x) > size_of(b, y);
    return x->since_ms < y->since_ms;
}

/* source NULL: of any. NULL: none can go. */
static struct httpd_conn *find_victim(const struct httpd_conns *s, const struct bound *b,
                                      const struct httpd_source *source,
                                      const struct httpd_conn *newcomer)
{
    struct httpd_conn *victim = NULL;
    for (struct httpd_conn *c = s->items; c != NULL; c = c->next) {
        if (c == newcomer || c->dropped || c->fd < 0 || c->phase == HTTPD_OURS ||
            (b->bytes && c->large == 0) || (source != NULL && c->source != source))
            continue;
        if (victim == NULL || goes_before(b, c, victim))
            victim = c;
    }
    return victim;
}

/* Whether c's body may be lost for a newcomer's. */
static bool gives_way(const struct httpd_conns *s, const struct httpd_conn *c,
                      const struct httpd_conn *newcomer, int64_t now_ms)
{
    return worth(c) < worth(newcomer) ||
           (c->source != newcomer->source && c->source->large > newcomer->source->large) ||
           num_sub_sat(now_ms, c->since_ms) >= s->large_ms;
}

bool httpd_conns_hold(struct httpd_conns *s, struct httpd_conn *c, size_t n, int64_t now_ms)
{
    const struct bound b = {.max = s->max_large, .bytes = true};
    if (c->dropped)
        return false;
    for (set_large(s, c, n); s->max_large > 0;) {
        struct httpd_source *source = c->source;
        bool of_source = source->large > share_of(b.max) && source->large > c->large;
        if (!of_source && s->large <= b.max)
            break;
        struct httpd_conn *victim = find_victim(s, &b, of_source ? source : NULL, c);
        if (victim == NULL || !gives_way(s, victim, c, now_ms)) {
            set_large(s, c, 0);
            return false;
        }
        drop(s, victim);
    }
    return true;
}

void httpd_conns_add(struct httpd_conns *s, struct httpd_conn *c, const struct sockaddr *peer)
{
    c->source = take_source(s, peer);
    c->next = s->items;
    if (c->next != NULL)
        c->next->prev = c;
    s->items = c;
    s->len++;
    bool of_source = c->source->len > httpd_conns_max_of_source(s);
    if (!of_source && s->len <= s->max)
        return;
    const struct bound b = {.max = s->max, .bytes = false};
    struct httpd_conn *victim = find_victim(s, &b, of_source ? c->source : NULL, c);
    if (victim != NULL)
        drop(s, victim);
}

void httpd_conns_remove(struct httpd_conns *s, struct httpd_conn *c)
{
    if (!c->dropped)
        discount(s, c);
    set_large(s, c, 0);
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        s->items = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    release_source(s, c->source);
}

void httpd_conns_prove(struct httpd_conn *c)
{
    c->proven = c->source->proven = true;
}

void httpd_conns_sweep(struct httpd_conns *s, int64_t now_ms)
{
    for (struct httpd_conn *c = s->items; c != NULL; c = c->next) {
        int64_t limit_ms = s->limit_ms[c->phase];
        if (!c->dropped && c->fd >= 0 && limit_ms > 0 &&
            num_sub_sat(now_ms, c->since_ms) > limit_ms)
            drop(s, c);
    }
}

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
    struct in6_addr address; /* IPv4 mapped into IPv6; all zero: unknown */
    size_t held;             /* by connections, dropped ones too */
    size_t len;              /* without dropped ones */
    bool proven;
};

size_t httpd_conns_max_of_source(const struct httpd_conns *s)
{
    return s->max - s->max / 4;
}

static struct in6_addr address_of(const struct sockaddr *peer)
{
    struct in6_addr address = {0};
    if (peer != NULL && peer->sa_family == AF_INET6) {
        address = ((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr;
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

static void drop(struct httpd_conns *s, struct httpd_conn *c)
{
    discount(s, c);
    c->dropped = true;
    shutdown(c->fd, SHUT_RDWR);
}

/* Higher: more worth keeping. */
static int worth(const struct httpd_conn *c)
{
    return c->proven ? 2 : c->source->proven ? 1 : 0;
}

static bool goes_before(const struct httpd_conn *a, const struct httpd_conn *b)
{
    if (worth(a) != worth(b))
        return worth(a) < worth(b);
    if (a->source != b->source && a->source->len != b->source->len)
        return a->source->len > b->source->len;
    return a->since_ms < b->since_ms;
}

/* source NULL: of any. NULL: none can go. */
static struct httpd_conn *find_victim(const struct httpd_conns *s,
                                      const struct httpd_source *source,
                                      const struct httpd_conn *newcomer)
{
    struct httpd_conn *victim = NULL;
    for (struct httpd_conn *c = s->items; c != NULL; c = c->next) {
        if (c == newcomer || c->dropped || c->fd < 0 || c->phase == HTTPD_OURS ||
            (source != NULL && c->source != source))
            continue;
        if (victim == NULL || goes_before(c, victim))
            victim = c;
    }
    return victim;
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
    struct httpd_conn *victim = find_victim(s, of_source ? c->source : NULL, c);
    if (victim != NULL)
        drop(s, victim);
}

void httpd_conns_remove(struct httpd_conns *s, struct httpd_conn *c)
{
    if (!c->dropped)
        discount(s, c);
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

// SPDX-License-Identifier: Apache-2.0
/*
 * fake_call - requests without a server: call.h over plain memory, for tests of the API. It takes
 * the place of call.c, so one file of a test program includes it, and that program starts no
 * server.
 *
 * What was answered is collected: one text for a reply, all lines of a stream.
 */
#pragma once

#include <stdlib.h>
#include <strings.h>

#include "lib/base/mem.h"
#include "test/local/admission/call.h"

struct call {
    const char *method;
    char path[1024];
    char query[16][2][256];
    size_t queries;
    const char *content_type, *accept, *body;
    bool anonymous;
    /* answered */
    int status;
    bool done, stream, ended;
    char headers[1024];
    struct strbuf out;
    void (*on_close)(void *arg);
    void *arg;
};

static int fake_hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c - 'A' + 10;
}

static void fake_decode(const char *from, size_t n, char *to, size_t size)
{
    size_t len = 0;
    for (size_t i = 0; i < n && len + 1 < size; i++) {
        if (from[i] == '%' && i + 2 < n) {
            to[len++] = (char)(fake_hex(from[i + 1]) * 16 + fake_hex(from[i + 2]));
            i += 2;
        } else {
            to[len++] = from[i];
        }
    }
    to[len] = '\0';
}

static struct call *fake_call(const char *method, const char *url, const char *content_type,
                              const char *body)
{
    struct call *c = mem_new(struct call, 1);
    c->method = method;
    c->content_type = content_type;
    c->body = body ? body : "";
    strbuf_init(&c->out);
    size_t n = strcspn(url, "?");
    fake_decode(url, n, c->path, sizeof c->path);
    for (const char *at = url[n] == '?' ? url + n + 1 : url + n; *at != '\0';) {
        size_t pair = strcspn(at, "&");
        const char *eq = memchr(at, '=', pair);
        size_t key = eq ? (size_t)(eq - at) : pair;
        fake_decode(at, key, c->query[c->queries][0], sizeof c->query[0][0]);
        if (eq)
            fake_decode(eq + 1, pair - key - 1, c->query[c->queries][1], sizeof c->query[0][1]);
        c->queries++;
        at += pair + (at[pair] == '&' ? 1 : 0);
    }
    return c;
}

static void fake_call_free(struct call *c)
{
    strbuf_deinit(&c->out);
    free(c);
}

const char *call_method(const struct call *c)
{
    return c->method;
}

const char *call_path(const struct call *c)
{
    return c->path;
}

const char *call_query(const struct call *c, const char *name)
{
    for (size_t i = 0; i < c->queries; i++)
        if (strcmp(c->query[i][0], name) == 0)
            return c->query[i][1];
    return NULL;
}

const char *call_header(const struct call *c, const char *name)
{
    if (strcasecmp(name, "Content-Type") == 0)
        return c->content_type;
    return strcasecmp(name, "Accept") == 0 ? c->accept : NULL;
}

const char *call_body(const struct call *c, size_t *n)
{
    if (n)
        *n = strlen(c->body);
    return c->body;
}

char *call_body_insitu(struct call *c, size_t *n)
{
    (void)c;
    (void)n;
    abort();
}

bool call_authenticated(const struct call *c)
{
    return !c->anonymous;
}

void call_reply(struct call *c, int status, const char *content_type, const char *extra_headers,
                struct strbuf *body)
{
    (void)content_type;
    if (c->done || c->stream)
        abort(); /* exactly once */
    c->done = true;
    c->status = status;
    (void)str_format(c->headers, sizeof c->headers, "%s", str_or_empty(extra_headers));
    if (body) {
        strbuf_add(&c->out, strbuf_str(body), body->len);
        strbuf_deinit(body);
    }
}

struct shared_bytes *shared_bytes_new(struct strbuf *take)
{
    struct shared_bytes *b = mem_new(struct shared_bytes, 1);
    b->refs = 1;
    b->len = take->len;
    b->bytes = strbuf_take(take);
    return b;
}

struct shared_bytes *shared_bytes_ref(struct shared_bytes *b)
{
    b->refs++;
    return b;
}

void shared_bytes_unref(struct shared_bytes *b)
{
    if (--b->refs > 0)
        return;
    free(b->bytes);
    free(b);
}

void call_stream_begin(struct call *c, int status, const char *content_type,
                       void (*on_close)(void *arg), void *arg)
{
    (void)content_type;
    if (c->done || c->stream)
        abort();
    c->stream = true;
    c->status = status;
    c->on_close = on_close;
    c->arg = arg;
}

void call_stream_begun(struct call *c)
{
    (void)c;
}

void call_stream_write(struct call *c, struct shared_bytes *b)
{
    if (!c->stream || c->ended)
        abort();
    strbuf_add(&c->out, b->bytes, b->len);
}

void call_stream_end(struct call *c)
{
    c->ended = true;
}

void call_drop(struct call *c)
{
    c->done = true;
}

void call_lose_reply(struct call *c)
{
    (void)c;
}

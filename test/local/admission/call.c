// SPDX-License-Identifier: Apache-2.0
/*
 * call - see call.h; the connection's side is in server.c.
 *
 *   handle() ──call_reply──────────────────────────────► freed, the connection reads on
 *       │ ────call_drop────────────────────────────────► freed, the connection is reset
 *       └─────call_stream_begin──► stream ──call_stream_end──► freed, the connection reads on
 *                                     └──peer gone──► on_close, freed by server.c
 */
#include "test/local/admission/call.h"

#include <stdlib.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "test/local/server/server_conn.h"

enum { FLUSH_EARLY = 1024 * 1024 };

const char *call_method(const struct call *c)
{
    return c->buf.ptr + c->parse.message.method;
}

const char *call_path(const struct call *c)
{
    return c->buf.ptr + c->parse.path;
}

const char *call_query(const struct call *c, const char *name)
{
    return server_parse_query(&c->parse, c->buf.ptr, name);
}

const char *call_header(const struct call *c, const char *name)
{
    return http_parse_header(&c->parse.message, c->buf.ptr, name);
}

const char *call_body(const struct call *c, size_t *n)
{
    if (n)
        *n = c->parse.message.body_len;
    return c->buf.ptr + c->parse.message.body_at;
}

char *call_body_insitu(struct call *c, size_t *n)
{
    strbuf_reserve(&c->buf, JSON_PADDING);
    if (n)
        *n = c->parse.message.body_len;
    return c->buf.ptr + c->parse.message.body_at;
}

bool call_authenticated(const struct call *c)
{
    return c->authenticated;
}

static void call_free(struct call *c)
{
    if (c->prev) {
        *c->prev = c->next;
        if (c->next)
            c->next->prev = c->prev;
    }
    if (c->last)
        shared_bytes_unref(c->last);
    strbuf_deinit(&c->buf);
    free(c);
}

/* The connection is free for the next request. */
static void detach(struct call *c)
{
    struct conn *conn = c->conn;
    conn->call = NULL;
    if (!conn->busy)
        server_mark(conn);
    call_free(c);
}

static const char *reason_of(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 201:
        return "Created";
    case 202:
        return "Accepted";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 406:
        return "Not Acceptable";
    case 408:
        return "Request Timeout";
    case 409:
        return "Conflict";
    case 410:
        return "Gone";
    case 413:
        return "Request Entity Too Large";
    case 414:
        return "Request URI Too Long";
    case 415:
        return "Unsupported Media Type";
    case 417:
        return "Expectation Failed";
    case 422:
        return "Unprocessable Entity";
    case 429:
        return "Too Many Requests";
    case 431:
        return "Request Header Fields Too Large";
    case 500:
        return "Internal Server Error";
    case 501:
        return "Not Implemented";
    case 503:
        return "Service Unavailable";
    case 504:
        return "Gateway Timeout";
    case 505:
        return "HTTP Version Not Supported";
    default:
        return "Status";
    }
}

static void print_head(struct strbuf *out, int status, const char *content_type)
{
    const char digits[] = {(char)('0' + status / 100 % 10), (char)('0' + status / 10 % 10),
                           (char)('0' + status % 10), ' ', '\0'};
    strbuf_adds(out, "HTTP/1.1 ");
    strbuf_adds(out, digits);
    strbuf_adds(out, reason_of(status));
    strbuf_adds(out, "\r\nCache-Control: no-cache, private\r\nContent-Type: ");
    strbuf_adds(out, content_type ? content_type : "text/plain");
    strbuf_adds(out, "\r\n");
}

void call_reply(struct call *c, int status, const char *content_type, const char *extra_headers,
                struct strbuf *body)
{
    struct conn *conn = c->conn;
    struct strbuf none = {0};
    if (!body)
        body = &none;
    if (!conn || conn->dead) {
        strbuf_deinit(body);
        if (conn)
            detach(c);
        else
            call_free(c);
        return;
    }
    if (c->lose_reply) {
        strbuf_deinit(body);
        call_drop(c);
        return;
    }
    struct strbuf head = {0};
    strbuf_reserve(&head, 256 + (body->len < 4096 ? body->len : 0));
    print_head(&head, status, content_type);
    strbuf_addf(&head, "Content-Length: %zu\r\n%s%s\r\n", body->len, str_or_empty(extra_headers),
                !c->parse.message.keep_alive ? "Connection: close\r\n"
                : c->parse.message.http10    ? "Connection: keep-alive\r\n"
                                             : "");
    if (strcmp(call_method(c), "HEAD") == 0) {
        strbuf_deinit(body);
    } else if (body->len < 4096) { /* one piece is cheaper than two */
        strbuf_add(&head, strbuf_str(body), body->len);
        strbuf_deinit(body);
    }
    server_out_take(&conn->out, &head);
    server_out_take(&conn->out, body);
    if (!c->parse.message.keep_alive)
        conn->closing = true;
    detach(c);
}

struct shared_bytes *shared_bytes_new(struct strbuf *take)
{
    /* One block: the struct, the chunk's size, the bytes, CRLF. */
    char size[24];
    str_format(size, sizeof size, "%zx\r\n", take->len);
    size_t head = strlen(size);
    char *block = mem_new(char, sizeof(struct shared_bytes) + head + take->len + 3);
    struct shared_bytes *b = (struct shared_bytes *)(void *)block;
    char *frame = block + sizeof *b;
    memcpy(frame, size, head);
    memcpy(frame + head, strbuf_str(take), take->len);
    memcpy(frame + head + take->len, "\r\n", 3);
    *b = (struct shared_bytes){.refs = 1,
                               .len = take->len,
                               .bytes = frame + head,
                               .frame_ = frame,
                               .frame_len_ = head + take->len + 2};
    strbuf_deinit(take);
    return b;
}

struct shared_bytes *shared_bytes_ref(struct shared_bytes *b)
{
    b->refs++;
    return b;
}

void shared_bytes_unref(struct shared_bytes *b)
{
    if (--b->refs == 0)
        free(b);
}

void call_stream_begin(struct call *c, int status, const char *content_type,
                       void (*on_close)(void *arg), void *arg)
{
    c->stream = true;
    c->on_close = on_close;
    c->arg = arg;
    struct conn *conn = c->conn;
    if (!conn) { /* gone already: on_close follows from the loop, as always */
        if (c->server)
            server_wake(c->server);
        return;
    }
    c->server->stats.streams++;
    c->server->stats.open_streams++;
    if (c->lose_reply)
        conn->dead = true;
    if (!conn->busy || conn->dead)
        server_mark(conn);
    if (conn->dead)
        return;
    struct strbuf head = {0};
    print_head(&head, status, content_type);
    if (c->parse.message.http10) {
        c->parse.message.keep_alive = false;
        strbuf_adds(&head, "Connection: close\r\n\r\n");
    } else {
        strbuf_adds(&head, "Transfer-Encoding: chunked\r\n\r\n");
    }
    server_out_take(&conn->out, &head);
}

void call_stream_begun(struct call *c)
{
    c->begun = true;
    c->allowance = c->conn ? c->conn->out.unsent : 0;
}

void call_stream_write(struct call *c, struct shared_bytes *b)
{
    struct conn *conn = c->conn;
    if (!conn || conn->dead || b->len == 0)
        return;
    server_out_share(&conn->out, b, !c->parse.message.http10);
    if (c->last)
        shared_bytes_unref(c->last);
    c->last = shared_bytes_ref(b);
    /* A long replay: what can be on its way already need not wait, and is not counted as slow. */
    if (conn->out.unsent > FLUSH_EARLY && !conn->blocked)
        server_flush(conn);
    /* The beginning shrinks as it is sent, and what comes after it is counted alone. */
    if (c->allowance > conn->out.unsent)
        c->allowance = conn->out.unsent;
    if (c->begun && conn->out.unsent - c->allowance > c->server->config.max_unsent_bytes &&
        !conn->dead) {
        c->server->stats.slow_streams++;
        conn->dead = true;
        server_out_clear(&conn->out);
    }
    server_mark(conn);
}

void call_stream_end(struct call *c)
{
    struct conn *conn = c->conn;
    if (!conn) {
        call_free(c);
        return;
    }
    c->server->stats.open_streams--;
    if (!c->parse.message.http10)
        server_out_text(&conn->out, "0\r\n\r\n");
    if (!c->parse.message.keep_alive)
        conn->closing = true;
    detach(c);
}

void call_drop(struct call *c)
{
    if (!c->conn) {
        call_free(c);
        return;
    }
    c->conn->dead = true;
    server_mark(c->conn);
    detach(c);
}

void call_lose_reply(struct call *c)
{
    c->lose_reply = true;
}

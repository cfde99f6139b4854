// SPDX-License-Identifier: Apache-2.0
/*
 * server_in - see server_in.h.
 *
 * Memory is allocated for what a peer has sent, not for what it announces: a body is read in pieces
 * of at most a megabyte, and a peer that sends faster than it is answered, or does not read, is not
 * read from. A call owns its buffer; bytes of the next request move to a new one.
 */
#include "test/local/server/server_in.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"

enum {
    READ_SIZE = 16 * 1024,
    READ_MAX = 1024 * 1024,
    READS_PER_EVENT = 16,
};

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
    size_t used = c->parse.message.at, end = c->parse.message.body_at + c->parse.message.body_len;
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

/* Too large is what a client of the API may do, and expects a Status for. */
void server_in_refuse(struct conn *c, int status, const char *why)
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

void server_in_process(struct conn *c)
{
    struct server *s = c->server;
    c->busy = true;
    while (!c->call && !c->dead && !c->closing && c->out.unsent <= SERVER_IN_HIGH_WATER) {
        if (c->in.len == 0 && c->parse.message.phase == HTTP_PARSE_FIRST_LINE) {
            c->since_ms = 0;
            c->idle_ms = c->used ? loop_now_ms(s->loop) : c->idle_ms;
            break;
        }
        enum http_parse_progress got = server_parse(&c->parse, &c->in, s->config.max_body_bytes);
        if (got == HTTP_PARSE_COMPLETE) {
            c->since_ms = 0;
            c->used = true;
            s->config.handle(s->config.arg, new_call(c));
            continue;
        }
        if (got == HTTP_PARSE_REFUSED) {
            server_in_refuse(c, c->parse.message.refusal, c->parse.message.why);
            break;
        }
        if (c->since_ms == 0)
            c->since_ms = loop_now_ms(s->loop);
        if (c->parse.message.expects_continue && c->parse.message.phase > HTTP_PARSE_HEADERS &&
            !c->continued) {
            c->continued = true;
            server_out_text(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
        }
        break;
    }
    c->busy = false;
    /* An incomplete request gets no answer. A watcher that has closed its half is gone. */
    if (c->eof && !c->dead) {
        if (!c->call && c->out.unsent <= SERVER_IN_HIGH_WATER)
            c->closing = true;
        else if (c->call && c->call->stream)
            c->dead = true;
    }
}

/* How much to read at once: a body whose length is known, or a usual piece. */
static size_t read_size(const struct conn *c)
{
    if (c->parse.message.phase == HTTP_PARSE_LENGTH) {
        size_t whole = c->parse.message.body_at + c->parse.message.left;
        if (whole > c->in.len && whole - c->in.len > READ_SIZE)
            return whole - c->in.len;
    }
    return READ_SIZE;
}

/* false: nothing more to read now. */
static bool receive_once(struct conn *c)
{
    size_t want = read_size(c);
    if (want > READ_MAX)
        want = READ_MAX;
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

void server_in_receive(struct conn *c)
{
    for (int i = 0;; i++) {
        if (i == READS_PER_EVENT) { /* others have their turn */
            server_mark(c);
            break;
        }
        bool more = receive_once(c);
        if (!c->lingering)
            server_in_process(c);
        else if (c->eof)
            c->closing = true;
        if (!more || c->dead || c->closing || (c->call && c->in.len >= SERVER_IN_WAITING) ||
            c->out.unsent > SERVER_IN_HIGH_WATER)
            break;
    }
}

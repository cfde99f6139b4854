// SPDX-License-Identifier: Apache-2.0
/*
 * site - a server for tests, whose handler says what it understood.
 */
#pragma once

#include "test/local/server/server.h"
#include "test/unit/local/client.h"

#include "lib/base/vec.h"

struct site {
    struct loop *loop;
    struct server *server;
    struct VEC(struct call *) streams;
    struct call *held; /* by /hold */
    int closed;        /* on_close was called */
    struct strbuf last;
};

static inline void on_close(void *arg)
{
    struct site *s = arg;
    s->closed++;
    s->streams.len = 0;
}

/* /echo says what it understood; /hold is answered by the test; /stream; /beginning: a stream that
 * has not begun; /big; /drop; /lose. */
static inline void handle(void *arg, struct call *c)
{
    struct site *s = arg;
    struct strbuf body = {0};
    size_t n;
    const char *text = call_body(c, &n);
    if (str_eq(call_path(c), "/hold")) {
        s->held = c;
        return;
    }
    if (str_eq(call_path(c), "/stream") || str_eq(call_path(c), "/beginning")) {
        call_stream_begin(c, 200, "application/json", on_close, s);
        if (str_eq(call_path(c), "/stream"))
            call_stream_begun(c); /* otherwise the test says when */
        vec_push(&s->streams, c);
        return;
    }
    if (str_eq(call_path(c), "/drop")) {
        call_drop(c);
        return;
    }
    if (str_eq(call_path(c), "/reset-all")) {
        server_close_all(s->server);
        call_reply(c, 200, NULL, NULL, NULL);
        return;
    }
    if (str_eq(call_path(c), "/lose"))
        call_lose_reply(c);
    if (str_eq(call_path(c), "/big")) {
        while (body.len < 3 * 1024 * 1024)
            strbuf_adds(&body, "0123456789abcdef");
        call_reply(c, 200, "text/plain", NULL, &body);
        return;
    }
    strbuf_addf(&body, "%s %s q=%s h=%s auth=%d body=%zu:", call_method(c), call_path(c),
                str_or_empty(call_query(c, "q")), str_or_empty(call_header(c, "x-test")),
                call_authenticated(c), n);
    strbuf_add(&body, text, n > 64 ? 64 : n);
    strbuf_reset(&s->last);
    strbuf_add(&s->last, body.ptr, body.len);
    call_reply(c, 200, "text/plain", "X-Extra: yes\r\n", &body);
}

static inline void start(struct site *s, struct server_config c)
{
    struct error err = ERROR_INIT;
    *s = (struct site){0};
    c.address = "127.0.0.1";
    c.handle = handle;
    c.arg = s;
    if (c.max_body_bytes == 0)
        c.max_body_bytes = 1000;
    if (c.max_unsent_bytes == 0)
        c.max_unsent_bytes = 64 * 1024 * 1024;
    if (loop_new(&s->loop, &err) < 0 || server_start(&s->server, s->loop, &c, &err) < 0)
        fail_msg("%s", err.text);
}

static inline void stop(struct site *s)
{
    server_stop(s->server);
    loop_free(s->loop);
    vec_deinit(&s->streams);
    strbuf_deinit(&s->last);
}

static inline struct shared_bytes *line(const char *text)
{
    struct strbuf b = {0};
    strbuf_adds(&b, text);
    return shared_bytes_new(&b);
}

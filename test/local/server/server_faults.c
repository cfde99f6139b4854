// SPDX-License-Identifier: Apache-2.0
/*
 * server_faults - connections that break on purpose.
 */
#include "test/local/server/server_conn.h"

void server_close_all(struct server *s)
{
    for (struct conn *c = s->conns; c; c = c->next) {
        c->dead = true;
        server_mark(c);
    }
}

/* Half of the line that was sent last, once more, in a chunk that promises all of it. */
static void begin_line(struct conn *c)
{
    static const char fallback[] = "{\"type\":\"MODIFIED\",\"object\":{\"ki";
    const struct shared_bytes *last = c->call->last;
    const char *line = last ? last->bytes : fallback;
    size_t half = last ? last->len / 2 : sizeof fallback - 1;
    struct strbuf text = {0};
    if (!c->call->parse.message.http10)
        strbuf_addf(&text, "%zx\r\n", half * 2 + 1);
    strbuf_add(&text, line, half);
    server_out_take(&c->out, &text);
}

void server_close_streams(struct server *s, bool mid_line)
{
    for (struct conn *c = s->conns; c; c = c->next) {
        if (!c->call || !c->call->stream || c->dead)
            continue;
        if (mid_line)
            begin_line(c);
        else if (!c->call->parse.message.http10)
            server_out_text(&c->out, "0\r\n\r\n");
        struct call *call = c->call;
        if (mid_line || !call->parse.message.keep_alive)
            c->closing = true;
        c->call = NULL;
        server_leave(call);
        server_mark(c);
    }
}

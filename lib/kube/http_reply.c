// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/http_reply.h"

#include <string.h>

#include "lib/base/num.h"
#include "lib/kube/http.h"

enum { KEPT_MAX = 64 * 1024 }; /* memory kept for the next answer */

void http_reply_reset(struct http_reply *r)
{
    if (r->in.cap > KEPT_MAX)
        strbuf_deinit(&r->in);
    strbuf_reset(&r->in);
    r->head = (struct http_parse){.reply = true};
}

void http_reply_deinit(struct http_reply *r)
{
    strbuf_deinit(&r->in);
}

static int explain(const struct http_reply *r, struct error *err)
{
    if (r->head.refusal == 413)
        return error_set(err, ERROR_TOO_LARGE, "reply is larger than %zu bytes", r->max_body);
    if (r->head.refusal == 431)
        return error_set(err, ERROR_TOO_LARGE, "the reply's head is too large");
    if (r->head.refusal > 0)
        return error_set(err, ERROR_UNAVAILABLE, "the answer is not HTTP: %s", r->head.why);
    return error_set(err, ERROR_UNAVAILABLE, "the connection was closed %s",
                     r->in.len > 0 || r->head.head_bytes > 0 ? "in the middle of the answer"
                                                             : "before an answer");
}

enum http_reply_progress http_reply_take(struct http_reply *r, bool closed, struct error *err)
{
    enum http_parse_progress got = http_parse(&r->head, &r->in, r->max_body);
    if (got == HTTP_PARSE_MORE && !closed)
        return HTTP_REPLY_MORE;
    if (got == HTTP_PARSE_COMPLETE || (got == HTTP_PARSE_MORE && http_parse_closed(&r->head)))
        return HTTP_REPLY_DONE;
    (void)explain(r, err);
    return HTTP_REPLY_BAD;
}

bool http_reply_keeps(const struct http_reply *r)
{
    return r->head.keep_alive && r->head.at == r->in.len;
}

/* 0: none, or given as a date. */
static int64_t retry_after_s(const struct http_reply *r)
{
    int64_t seconds;
    const char *text = http_parse_header(&r->head, r->in.ptr, "Retry-After");
    return text != NULL && num_parse(text, strlen(text), &seconds, NULL) == 0 ? seconds : 0;
}

int http_reply_status_error(const struct http_reply *r, struct error *err)
{
    return kube_http_status_error(err, r->head.status, r->in.ptr + r->head.body_at,
                                  r->head.body_len, retry_after_s(r));
}

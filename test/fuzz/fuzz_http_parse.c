// SPDX-License-Identifier: Apache-2.0
/*
 * The first two bytes say what the rest is, a request or a reply, and how to cut it into pieces.
 * However a message is cut, the same comes of it as when it is read byte by byte, it is within its
 * bounds, and what is complete lies in the buffer.
 */
#include "lib/base/http_parse.h"
#include "test/fuzz/fuzz_kit.h"

enum { MAX_BODY = 300 };

static enum http_parse_progress cut(struct http_parse *p, struct strbuf *in, const char *bytes,
                                    size_t n, size_t first, size_t step)
{
    enum http_parse_progress got = HTTP_PARSE_MORE;
    for (size_t at = 0, piece = first; at < n && got == HTTP_PARSE_MORE;
         at += piece, piece = step) {
        piece = piece > n - at ? n - at : piece;
        strbuf_add(in, bytes + at, piece);
        got = http_parse(p, in, MAX_BODY);
        if (p->at > in->len || p->body_len > MAX_BODY + (p->refusal == 413 ? piece : 0) ||
            (got == HTTP_PARSE_REFUSED) != (p->refusal != 0))
            abort();
    }
    return got == HTTP_PARSE_MORE && http_parse_closed(p) ? HTTP_PARSE_COMPLETE : got;
}

static void check_complete(const struct http_parse *p, const struct strbuf *in)
{
    if (p->body_at + p->body_len > in->len || p->at < p->body_at + p->body_len)
        abort();
    if (p->reply ? p->status < 200 || p->status > 599
                 : strlen(in->ptr + p->method) == 0 || strlen(in->ptr + p->target) > p->at)
        abort();
    for (unsigned i = 0; i < p->headers_len; i++)
        if (p->headers[i].name + strlen(in->ptr + p->headers[i].name) >= p->headers[i].value ||
            p->headers[i].value + strlen(in->ptr + p->headers[i].value) >= p->body_at)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t first = 1 + data[0] / 2, step = 1 + data[1];
    struct http_parse p[2];
    struct strbuf in[2] = {{0}, {0}};
    enum http_parse_progress got[2];
    for (int i = 0; i < 2; i++) {
        p[i] = (struct http_parse){.reply = data[0] % 2 == 0};
        got[i] = cut(&p[i], &in[i], (const char *)data + 2, size - 2, i ? first : 1, i ? step : 1);
        if (got[i] == HTTP_PARSE_COMPLETE)
            check_complete(&p[i], &in[i]);
    }
    if (got[0] != got[1] || p[0].refusal != p[1].refusal || p[0].status != p[1].status)
        abort();
    if (got[0] == HTTP_PARSE_COMPLETE &&
        (p[0].keep_alive != p[1].keep_alive || p[0].headers_len != p[1].headers_len ||
         p[0].body_len != p[1].body_len ||
         memcmp(in[0].ptr + p[0].body_at, in[1].ptr + p[1].body_at, p[0].body_len) != 0))
        abort();
    strbuf_deinit(&in[0]);
    strbuf_deinit(&in[1]);
    return 0;
}

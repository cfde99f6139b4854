// SPDX-License-Identifier: Apache-2.0
/*
 * Requests as bytes: each is read whole, cut in two at every place, and byte by byte. Replies are
 * in test/unit/lib/kube/test_http_reply.c.
 */
#include "lib/base/http_parse.h"

#include "test/unit/lib/base/expect.h"

enum { MAX_BODY = 100 };
#define HOST "Host: x\r\n"

static const struct row {
    const char *sentence, *text;
    int refusal; /* 0: it is complete */
    const char *target, *body;
    size_t left; /* bytes after it */
    bool close, continues;
} rows[] = {
    {"no body", "GET /a?b HTTP/1.1\r\n" HOST "\r\n", .target = "/a?b", .body = ""},
    {"empty lines before it, bare LFs in it", "\r\n\nGET / HTTP/1.1\nHost: x\n\n", .target = "/",
     .body = ""},
    {"a length, and the next request behind it",
     "PUT / HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nabGET", .target = "/", .body = "ab",
     .left = 3},
    {"chunks",
     "PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x\r\nbc\r\n0\r\n"
     "X: y\r\n\r\n",
     .target = "/", .body = "abc"},
    {"chunks whose lines end in bare LFs",
     "PUT / HTTP/1.1\n" HOST "Transfer-Encoding: chunked\n\n1\na\n0\n\n", .target = "/",
     .body = "a"},
    {"the last one", "GET / HTTP/1.1\r\n" HOST "Connection: foo, close\r\n\r\n", .target = "/",
     .body = "", .close = true},
    {"something that only looks like it", "GET / HTTP/1.1\r\n" HOST "Connection: closed\r\n\r\n",
     .target = "/", .body = ""},
    {"HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", .target = "/", .body = "", .close = true},
    {"HTTP/1.0 that stays", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", .target = "/",
     .body = ""},
    {"a client that waits for a go-ahead",
     "PUT / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx", .target = "/",
     .body = "x", .continues = true},
    {"another expectation", "PUT / HTTP/1.1\r\n" HOST "Expect: cake\r\n", .refusal = 417},
    {"a tab in the target", "GET /a\tb HTTP/1.1\r\n", .refusal = 400},
    {"no Host", "GET / HTTP/1.1\r\n\r\n", .refusal = 400},
    {"two Hosts", "GET / HTTP/1.1\r\n" HOST HOST, .refusal = 400},
    {"HTTP/2", "PRI * HTTP/2.0\r\n", .refusal = 505},
    {"a length and chunks",
     "PUT / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
     .refusal = 400},
    {"a trailer that is no header",
     "PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\nno colon\r\n",
     .refusal = 400},
    {"a body over the bound", "PUT / HTTP/1.1\r\n" HOST "Content-Length: 101\r\n\r\n",
     .refusal = 413},
};

static void play(const struct row *row, size_t first, size_t step)
{
    struct http_parse p = {0};
    AUTO_STRBUF in = {0}, body = {0};
    enum http_parse_progress got = HTTP_PARSE_MORE;
    size_t at = 0, n = strlen(row->text);
    for (size_t piece = first; at < n && got == HTTP_PARSE_MORE; at += piece, piece = step) {
        piece = piece < n - at ? piece : n - at;
        strbuf_add(&in, row->text + at, piece);
        got = http_parse(&p, &in, MAX_BODY);
    }
    expect_int(row->sentence, row->refusal, p.refusal);
    expect_int(row->sentence, row->refusal ? HTTP_PARSE_REFUSED : HTTP_PARSE_COMPLETE, got);
    if (row->refusal)
        return;
    strbuf_add(&body, in.ptr + p.body_at, p.body_len);
    expect_str(row->sentence, row->target, in.ptr + p.target);
    expect_str(row->sentence, row->body, strbuf_str(&body));
    expect_int(row->sentence, (int64_t)row->left, (int64_t)(in.len - p.at + n - (at < n ? at : n)));
    expect_int(row->sentence, !row->close, p.keep_alive);
    expect_int(row->sentence, row->continues, p.expects_continue);
    expect_true("it needs no end", http_parse_closed(&p));
}

static void however_it_is_cut_the_same_comes_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t first = 1; first <= strlen(rows[i].text); first++)
            play(&rows[i], first, SIZE_MAX);
        play(&rows[i], 1, 1);
    }
    expect_done();
}

static void a_header_in_any_case(void **state)
{
    (void)state;
    struct http_parse p = {0};
    AUTO_STRBUF in = {0};
    strbuf_adds(&in, "GET / HTTP/1.1\r\n" HOST "X-Y: \t a b \r\nX-y: 2\r\n\r\n");
    expect_int("read", HTTP_PARSE_COMPLETE, http_parse(&p, &in, 0));
    expect_str("the first", "a b", http_parse_header(&p, in.ptr, "x-Y"));
    expect_true("none", http_parse_header(&p, in.ptr, "X") == NULL);
    expect_done();
}

/* Many small chunks: the buffer stays in proportion to the body, not to what came. */
static void framing_is_not_kept(void **state)
{
    (void)state;
    enum { CHUNKS = 10000, LONG = 200 };
    struct http_parse p = {0};
    AUTO_STRBUF in = {0}, chunk = {0};
    strbuf_adds(&in, "PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    strbuf_adds(&chunk, "1;");
    while (chunk.len < LONG)
        strbuf_addc(&chunk, 'x');
    strbuf_adds(&chunk, "\r\nb\r\n");
    for (int i = 0; i < CHUNKS; i++) {
        strbuf_add(&in, chunk.ptr, chunk.len);
        expect_int("more", HTTP_PARSE_MORE, http_parse(&p, &in, CHUNKS));
    }
    expect_int("all of it", CHUNKS, (int64_t)p.body_len);
    expect_true("and little else", in.cap < 256 * 1024);
    strbuf_adds(&in, "0\r\n\r\n");
    expect_int("whole", HTTP_PARSE_COMPLETE, http_parse(&p, &in, CHUNKS));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(however_it_is_cut_the_same_comes_out),
        cmocka_unit_test(a_header_in_any_case),
        cmocka_unit_test(framing_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

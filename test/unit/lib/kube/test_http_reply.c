// SPDX-License-Identifier: Apache-2.0
/*
 * Answers as bytes. Every row is read whole, cut in two at every place, and byte by byte: what
 * comes out must not depend on that.
 */
#include "lib/kube/http_reply.h"

#include "test/unit/lib/base/expect.h"

enum { MAX_BODY = 100 };

static const struct row {
    const char *sentence;
    const char *text;
    enum http_reply_progress how; /* after the last byte */
    int status;
    const char *body;
    bool drop; /* the connection is not kept */
    int64_t retry_after_s;
    size_t left; /* bytes after the answer */
    const char *error;
    bool ends_by_close;
} rows[] = {
    {"a length", "HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello", HTTP_REPLY_DONE, 201,
     .body = "hello"},
    {"nothing in it", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", HTTP_REPLY_DONE, 200,
     .body = ""},
    {"no reason after the status", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", HTTP_REPLY_DONE,
     200, .body = ""},
    {"names in any case, blanks around the value",
     "HTTP/1.1 200 OK\r\ncontent-LENGTH: \t 2 \r\nX-Y:\r\n\r\nab", HTTP_REPLY_DONE, 200,
     .body = "ab"},
    {"a length said twice, the same",
     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"
     "Content-Length: 1\r\n\r\nx",
     HTTP_REPLY_DONE, 200, .body = "x"},
    {"bytes after it are not its own", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxyz",
     HTTP_REPLY_DONE, 200, .body = "x", .left = 2},
    {"not all of it", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", HTTP_REPLY_MORE, 200,
     .body = "hell", .error = "the connection was closed in the middle of the answer"},
    {"not even a status line", "HTTP/1.1 20", HTTP_REPLY_MORE, 0, .body = "",
     .error = "the connection was closed in the middle of the answer"},
    {"nothing at all", "", HTTP_REPLY_MORE, 0, .body = "",
     .error = "the connection was closed before an answer"},
    {"no body by its status", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
     HTTP_REPLY_DONE, 204, .body = ""},
    {"not modified: no body either", "HTTP/1.1 304 X\r\n\r\n", HTTP_REPLY_DONE, 304, .body = ""},
    {"until the connection is closed", "HTTP/1.1 200 OK\r\n\r\nsome", HTTP_REPLY_MORE, 200,
     .body = "some", .drop = true, .ends_by_close = true},
    {"the server closes after it",
     "HTTP/1.1 200 OK\r\nConnection: close\r\n"
     "Content-Length: 1\r\n\r\nx",
     HTTP_REPLY_DONE, 200, .body = "x", .drop = true},
    {"and says so in a list",
     "HTTP/1.1 200 OK\r\nConnection: foo , Close\r\n"
     "Content-Length: 1\r\n\r\nx",
     HTTP_REPLY_DONE, 200, .body = "x", .drop = true},
    {"something that only looks like it",
     "HTTP/1.1 200 OK\r\nConnection: closed, keep-alive\r\n"
     "Content-Length: 1\r\n\r\nx",
     HTTP_REPLY_DONE, 200, .body = "x"},
    {"HTTP/1.0 closes", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", HTTP_REPLY_DONE, 200,
     .body = "x", .drop = true},
    {"chunks",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n",
     HTTP_REPLY_DONE, 200, .body = "abc0123456789"},
    {"chunks with extensions and trailers",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n03;a=b\r\nabc\r\n0 ;c\r\nX: y\r\nContent-"
     "Length: 7\r\n\r\n!",
     HTTP_REPLY_DONE, 200, .body = "abc", .left = 1},
    {"a chunk with new lines in it",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n",
     HTTP_REPLY_DONE, 200, .body = "\r\n\r\n"},
    {"the last chunk is missing",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", HTTP_REPLY_MORE, 200,
     .body = "abc", .error = "the connection was closed in the middle of the answer"},
    {"as large as may be, in chunks",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
     "32\r\n01234567890123456789012345678901234567890123456789\r\n"
     "32\r\n01234567890123456789012345678901234567890123456789\r\n0\r\n\r\n",
     HTTP_REPLY_DONE, 200,
     .body =
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123"
         "456789"},
    {"larger than may be, in chunks",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
     "32\r\n01234567890123456789012345678901234567890123456789\r\n33\r\n",
     HTTP_REPLY_BAD, 200, .error = "reply is larger than 100 bytes"},
    {"a chunk beyond all numbers",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", HTTP_REPLY_BAD,
     200, .error = "reply is larger than 100 bytes"},
    {"a length just within", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", HTTP_REPLY_MORE, 200,
     .body = "", .error = "the connection was closed in the middle of the answer"},
    {"a length just beyond", "HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n", HTTP_REPLY_BAD, 200,
     .error = "reply is larger than 100 bytes"},
    {"100 and 103 come before the answer",
     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nConnection: close\r\nContent-Length: "
     "9\r\n\r\nHTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\n{}",
     HTTP_REPLY_DONE, 409, .body = "{}"},
    {"101 was not asked for", "HTTP/1.1 101 Switching Protocols\r\n\r\n", HTTP_REPLY_BAD, 101,
     .error = "the answer is not HTTP: it changes the protocol"},
    {"later, please", "HTTP/1.1 429 X\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n",
     HTTP_REPLY_DONE, 429, .body = "", .retry_after_s = 7},
    {"much later: an hour is enough",
     "HTTP/1.1 429 X\r\nRetry-After: 99999\r\nContent-Length: 0\r\n\r\n", HTTP_REPLY_DONE, 429,
     .body = "", .retry_after_s = 3600},
    {"later, as a date: not read",
     "HTTP/1.1 429 X\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\nContent-Length: 0\r\n\r\n",
     HTTP_REPLY_DONE, 429, .body = ""},
    {"less than nothing", "HTTP/1.1 429 X\r\nRetry-After: -7\r\nContent-Length: 0\r\n\r\n",
     HTTP_REPLY_DONE, 429, .body = ""},
    {"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
     HTTP_REPLY_BAD, 200, .error = "the answer is not HTTP: two different Content-Lengths"},
    {"a list of lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n", HTTP_REPLY_BAD, 200,
     .error = "the answer is not HTTP: Content-Length is not a number"},
    {"a length with a sign", "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", HTTP_REPLY_BAD, 200,
     .error = "the answer is not HTTP: Content-Length is not a number"},
    {"a length below nothing", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", HTTP_REPLY_BAD, 200,
     .error = "the answer is not HTTP: Content-Length is not a number"},
    {"a length beyond all numbers",
     "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", HTTP_REPLY_BAD, 200,
     .error = "the answer is not HTTP: Content-Length is not a number"},
    {"both a length and chunks",
     "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_REPLY_BAD,
     200, .error = "the answer is not HTTP: both Content-Length and Transfer-Encoding"},
    {"an encoding that we do not know", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n",
     HTTP_REPLY_BAD, 200,
     .error = "the answer is not HTTP: the only Transfer-Encoding known here is chunked"},
    {"no HTTP", "SSH-2.0-OpenSSH_9.2\r\n", HTTP_REPLY_BAD, 0,
     .error = "the answer is not HTTP: malformed status line"},
    {"a newer HTTP", "HTTP/2 200\r\n\r\n", HTTP_REPLY_BAD, 0,
     .error = "the answer is not HTTP: malformed status line"},
    {"a status of no class", "HTTP/1.1 600 X\r\n\r\n", HTTP_REPLY_BAD, 0,
     .error = "the answer is not HTTP: malformed status line"},
    {"a status of two digits", "HTTP/1.1 20 X\r\n\r\n", HTTP_REPLY_BAD, 0,
     .error = "the answer is not HTTP: malformed status line"},
    {"a line that ends half", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", HTTP_REPLY_BAD, 0,
     .error = "the answer is not HTTP: a line without its end"},
    {"a control character", "HTTP/1.1 200 OK\r\nX: a\rb\r\n", HTTP_REPLY_BAD, 200,
     .error = "the answer is not HTTP: a control character"},
    {"a folded header", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n", HTTP_REPLY_BAD, 200,
     .error = "the answer is not HTTP: malformed header"},
    {"a blank before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 3\r\n", HTTP_REPLY_BAD, 200,
     .error = "the answer is not HTTP: malformed header"},
    {"no colon", "HTTP/1.1 200 OK\r\nContent\r\n", HTTP_REPLY_BAD, 200,
     .error = "the answer is not HTTP: malformed header"},
    {"a chunk without a size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
     HTTP_REPLY_BAD, 200, .error = "the answer is not HTTP: malformed chunk size"},
    {"a chunk of a strange size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3g\r\n",
     HTTP_REPLY_BAD, 200, .error = "the answer is not HTTP: malformed chunk size"},
    {"a chunk longer than it said",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", HTTP_REPLY_BAD, 200,
     .error = "the answer is not HTTP: a chunk is longer than its size"},
};

/* Feeds pieces of `first` bytes and then of `step`; returns what http_reply_take said last. */
static enum http_reply_progress feed(struct http_reply *r, const char *text, size_t n, size_t first,
                                     size_t step, struct error *err)
{
    enum http_reply_progress how = HTTP_REPLY_MORE;
    size_t at = 0;
    for (size_t piece = first; at < n && how == HTTP_REPLY_MORE; piece = step) {
        piece = piece < n - at ? piece : n - at;
        strbuf_add(&r->in, text + at, piece);
        how = http_reply_take(r, false, err);
        at += piece;
    }
    strbuf_add(&r->in, text + at, n - at);
    return how;
}

static void play(struct http_reply *r, const struct row *row, size_t first, size_t step)
{
    struct error err = ERROR_INIT;
    http_reply_reset(r);
    enum http_reply_progress how = feed(r, row->text, strlen(row->text), first, step, &err);
    expect_int(row->sentence, row->how, how);
    expect_int(row->sentence, row->status, r->head.status);
    if (how == HTTP_REPLY_MORE) {
        how = http_reply_take(r, true, &err);
        expect_int(row->sentence, row->ends_by_close ? HTTP_REPLY_DONE : HTTP_REPLY_BAD, how);
    }
    if (how == HTTP_REPLY_DONE) {
        AUTO_STRBUF body = {0};
        strbuf_add(&body, r->in.ptr + r->head.body_at, r->head.body_len);
        expect_str(row->sentence, row->body, strbuf_str(&body));
        expect_int(row->sentence, !row->drop && row->left == 0, http_reply_keeps(r));
        expect_int(row->sentence, (int64_t)row->left, (int64_t)(r->in.len - r->head.at));
        expect_int(row->sentence, HTTP_REPLY_DONE, http_reply_take(r, true, &err));
        struct error status = ERROR_INIT;
        if (r->head.status >= 400)
            (void)http_reply_status_error(r, &status);
        expect_int(row->sentence, row->retry_after_s * 1000, status.retry_after_ms);
    }
    expect_str(row->sentence, row->error != NULL ? row->error : "", err.text);
    expect_int(row->sentence,
               row->error == NULL                          ? ERROR_NONE
               : str_starts(row->error, "reply is larger") ? ERROR_TOO_LARGE
                                                           : ERROR_UNAVAILABLE,
               err.code);
}

static void however_it_is_cut_the_same_comes_out(void **state)
{
    (void)state;
    struct http_reply r = {.max_body = MAX_BODY}; /* for all: reset must forget everything */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = strlen(rows[i].text);
        for (size_t first = 1; first <= n; first++)
            play(&r, &rows[i], first, n);
        play(&r, &rows[i], 1, 1);
        play(&r, &rows[i], n > 0 ? n : 1, 1);
    }
    http_reply_deinit(&r);
    expect_done();
}

/* Bytes of headers beyond the bound, in one line or in many, in one piece or in several. */
static void heads_have_an_end(void **state)
{
    (void)state;
    enum { HEAD = HTTP_PARSE_HEAD_MAX, LINE = HTTP_PARSE_CHUNK_LINE_MAX };
    static const char ok[] = "HTTP/1.1 200 OK\r\n",
                      chunked[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    static const struct {
        const char *sentence, *before, *unit;
        size_t limit;     /* bytes that may be */
        const char *more; /* what is too much then */
        enum error_code code;
    } table[] = {
        {"one long line", ok, "x", HEAD, "x", ERROR_TOO_LARGE},
        {"many headers", ok, "X: y\r\n", sizeof ok - 1 + 6 * (size_t)HTTP_PARSE_HEADERS_MAX,
         "X: y\r\n", ERROR_TOO_LARGE},
        {"answers before the answer", "", "HTTP/1.1 100 C\r\n\r\n", HEAD, "HTTP/1.1 100 C\r\n\r\n",
         ERROR_TOO_LARGE},
        {"the size line of a chunk", chunked, "0", sizeof chunked - 1 + LINE, "0",
         ERROR_UNAVAILABLE},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        for (size_t step = 1000; step <= HEAD * 2; step *= 120) {
            AUTO_STRBUF text = {0};
            struct error err = ERROR_INIT;
            struct http_reply r = {.max_body = MAX_BODY};
            http_reply_reset(&r);
            strbuf_adds(&text, table[i].before);
            while (text.len + strlen(table[i].unit) <= table[i].limit)
                strbuf_adds(&text, table[i].unit);
            expect_int(table[i].sentence, HTTP_REPLY_MORE,
                       feed(&r, text.ptr, text.len, step, step, &err));
            expect_int(table[i].sentence, HTTP_REPLY_BAD,
                       feed(&r, table[i].more, strlen(table[i].more), 24, 24, &err));
            expect_int(table[i].sentence, table[i].code, err.code);
            http_reply_deinit(&r);
        }
    }
    expect_done();
}

static void a_body_until_the_end_has_a_bound(void **state)
{
    (void)state;
    static const char head[] = "HTTP/1.1 503 X\r\n\r\n";
    char body[MAX_BODY] = {0};
    struct error err = ERROR_INIT;
    struct http_reply r = {.max_body = MAX_BODY};
    http_reply_reset(&r);
    expect_int("head", HTTP_REPLY_MORE, feed(&r, head, sizeof head - 1, SIZE_MAX, 1, &err));
    expect_int("all there may be", HTTP_REPLY_MORE, feed(&r, body, sizeof body, SIZE_MAX, 1, &err));
    expect_int("one more", HTTP_REPLY_BAD, feed(&r, body, 1, 1, 1, &err));
    expect_str("says so", "reply is larger than 100 bytes", err.text);
    http_reply_deinit(&r);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(however_it_is_cut_the_same_comes_out),
        cmocka_unit_test(heads_have_an_end),
        cmocka_unit_test(a_body_until_the_end_has_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

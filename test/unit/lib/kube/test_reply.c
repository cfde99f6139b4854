// SPDX-License-Identifier: Apache-2.0
/*
 * Answers as bytes. Every row is read whole, cut in two at every place, and byte by byte: what comes out must not depend on that.
 */
#include "lib/kube/reply.h"

#include "test/unit/lib/base/expect.h"

enum { MAX_BODY = 100 };

static const struct row {
    const char *sentence;
    const char *text;
    enum reply_progress how; /* after the last byte */
    int status;
    const char *body;
    bool drop; /* the connection is not kept */
    int64_t retry_after_s;
    size_t left; /* bytes after the answer */
    const char *error;
    bool ends_by_close;
} rows[] = {
    {"a length", "HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello", REPLY_DONE, 201,
     .body = "hello"},
    {"nothing in it", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", REPLY_DONE, 200, .body = ""},
    {"no reason after the status", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", REPLY_DONE, 200,
     .body = ""},
    {"names in any case, blanks around the value",
     "HTTP/1.1 200 OK\r\ncontent-LENGTH: \t 2 \r\nX-Y:\r\n\r\nab", REPLY_DONE, 200, .body = "ab"},
    {"a length said twice, the same",
     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"
     "Content-Length: 1\r\n\r\nx",
     REPLY_DONE, 200, .body = "x"},
    {"bytes after it are not its own", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxyz",
     REPLY_DONE, 200, .body = "x", .left = 2},
    {"not all of it", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", REPLY_MORE, 200,
     .body = "hell", .error = "the connection was closed in the middle of the answer"},
    {"not even a status line", "HTTP/1.1 20", REPLY_MORE, 0, .body = "",
     .error = "the connection was closed in the middle of the answer"},
    {"nothing at all", "", REPLY_MORE, 0, .body = "",
     .error = "the connection was closed before an answer"},
    {"no body by its status", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", REPLY_DONE,
     204, .body = ""},
    {"not modified: no body either", "HTTP/1.1 304 X\r\n\r\n", REPLY_DONE, 304, .body = ""},
    {"until the connection is closed", "HTTP/1.1 200 OK\r\n\r\nsome", REPLY_MORE, 200,
     .body = "some", .drop = true, .ends_by_close = true},
    {"the server closes after it",
     "HTTP/1.1 200 OK\r\nConnection: close\r\n"
     "Content-Length: 1\r\n\r\nx",
     REPLY_DONE, 200, .body = "x", .drop = true},
    {"and says so in a list",
     "HTTP/1.1 200 OK\r\nConnection: foo , Close\r\n"
     "Content-Length: 1\r\n\r\nx",
     REPLY_DONE, 200, .body = "x", .drop = true},
    {"something that only looks like it",
     "HTTP/1.1 200 OK\r\nConnection: closed, keep-alive\r\n"
     "Content-Length: 1\r\n\r\nx",
     REPLY_DONE, 200, .body = "x"},
    {"HTTP/1.0 closes", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", REPLY_DONE, 200,
     .body = "x", .drop = true},
    {"chunks",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n",
     REPLY_DONE, 200, .body = "abc0123456789"},
    {"chunks with extensions and trailers",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n03;a=b\r\nabc\r\n0 ;c\r\nX: y\r\nContent-"
     "Length: 7\r\n\r\n!",
     REPLY_DONE, 200, .body = "abc", .left = 1},
    {"a chunk with new lines in it",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n", REPLY_DONE,
     200, .body = "\r\n\r\n"},
    {"the last chunk is missing",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", REPLY_MORE, 200,
     .body = "abc", .error = "the connection was closed in the middle of the answer"},
    {"as large as may be, in chunks",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
     "32\r\n01234567890123456789012345678901234567890123456789\r\n"
     "32\r\n01234567890123456789012345678901234567890123456789\r\n0\r\n\r\n",
     REPLY_DONE, 200,
     .body =
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123"
         "456789"},
    {"larger than may be, in chunks",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
     "32\r\n01234567890123456789012345678901234567890123456789\r\n33\r\n",
     REPLY_BAD, 200, .body = NULL, .error = "reply is larger than 100 bytes"},
    {"a chunk beyond all numbers",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", REPLY_BAD, 200,
     .body = NULL, .error = "reply is larger than 100 bytes"},
    {"a length just within", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", REPLY_MORE, 200,
     .body = "", .error = "the connection was closed in the middle of the answer"},
    {"a length just beyond", "HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n", REPLY_BAD, 200,
     .body = NULL, .error = "reply is larger than 100 bytes"},
    {"100 and 103 come before the answer",
     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nConnection: close\r\nContent-Length: "
     "9\r\n\r\nHTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\n{}",
     REPLY_DONE, 409, .body = "{}"},
    {"101 was not asked for", "HTTP/1.1 101 Switching Protocols\r\n\r\n", REPLY_BAD, 101,
     .body = NULL, .error = "the answer is not HTTP: it changes the protocol"},
    {"later, please", "HTTP/1.1 429 X\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", REPLY_DONE,
     429, .body = "", .retry_after_s = 7},
    {"much later: an hour is enough",
     "HTTP/1.1 429 X\r\nRetry-After: 99999\r\nContent-Length: 0\r\n\r\n", REPLY_DONE, 429,
     .body = "", .retry_after_s = 3600},
    {"later, as a date: not read",
     "HTTP/1.1 429 X\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\nContent-Length: 0\r\n\r\n",
     REPLY_DONE, 429, .body = ""},
    {"less than nothing", "HTTP/1.1 429 X\r\nRetry-After: -7\r\nContent-Length: 0\r\n\r\n",
     REPLY_DONE, 429, .body = ""},
    {"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", REPLY_BAD,
     200, .body = NULL, .error = "the answer is not HTTP: its Content-Length"},
    {"a list of lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n", REPLY_BAD, 200,
     .body = NULL, .error = "the answer is not HTTP: its Content-Length"},
    {"a length with a sign", "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", REPLY_BAD, 200,
     .body = NULL, .error = "the answer is not HTTP: its Content-Length"},
    {"a length below nothing", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", REPLY_BAD, 200,
     .body = NULL, .error = "the answer is not HTTP: its Content-Length"},
    {"a length beyond all numbers",
     "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", REPLY_BAD, 200,
     .body = NULL, .error = "the answer is not HTTP: its Content-Length"},
    {"both a length and chunks",
     "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", REPLY_BAD, 200,
     .body = NULL,
     .error = "the answer is not HTTP: both a Content-Length and a Transfer-Encoding"},
    {"an encoding that we do not know", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n",
     REPLY_BAD, 200, .body = NULL, .error = "the answer is not HTTP: its Transfer-Encoding"},
    {"no HTTP", "SSH-2.0-OpenSSH_9.2\r\n", REPLY_BAD, 0, .body = NULL,
     .error = "the answer is not HTTP: its status line"},
    {"a newer HTTP", "HTTP/2 200\r\n\r\n", REPLY_BAD, 0, .body = NULL,
     .error = "the answer is not HTTP: its status line"},
    {"a status of no class", "HTTP/1.1 600 X\r\n\r\n", REPLY_BAD, 0, .body = NULL,
     .error = "the answer is not HTTP: its status line"},
    {"a status of two digits", "HTTP/1.1 20 X\r\n\r\n", REPLY_BAD, 0, .body = NULL,
     .error = "the answer is not HTTP: its status line"},
    {"a line that ends half", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", REPLY_BAD, 0, .body = NULL,
     .error = "the answer is not HTTP: a line without its end"},
    {"a control character", "HTTP/1.1 200 OK\r\nX: a\rb\r\n", REPLY_BAD, 200, .body = NULL,
     .error = "the answer is not HTTP: a control character"},
    {"a folded header", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n", REPLY_BAD, 200, .body = NULL,
     .error = "the answer is not HTTP: a header without a name"},
    {"a blank before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 3\r\n", REPLY_BAD, 200,
     .body = NULL, .error = "the answer is not HTTP: a header without a name"},
    {"no colon", "HTTP/1.1 200 OK\r\nContent\r\n", REPLY_BAD, 200, .body = NULL,
     .error = "the answer is not HTTP: a header without a name"},
    {"a chunk without a size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
     REPLY_BAD, 200, .body = NULL, .error = "the answer is not HTTP: the size of a chunk"},
    {"a chunk of a strange size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3g\r\n",
     REPLY_BAD, 200, .body = NULL, .error = "the answer is not HTTP: the size of a chunk"},
    {"a chunk longer than it said",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", REPLY_BAD, 200,
     .body = NULL, .error = "the answer is not HTTP: a chunk longer than it said"},
};

/* Feeds pieces of `first` bytes and then of `step`; returns what reply_take said last, *left bytes were not taken. */
static enum reply_progress feed(struct reply *r, const char *text, size_t n, size_t first,
                                size_t step, size_t *left, struct error *err)
{
    enum reply_progress how = REPLY_MORE;
    size_t at = 0;
    for (size_t piece = first; at < n && how == REPLY_MORE; piece = step) {
        size_t used = 0;
        piece = piece < n - at ? piece : n - at;
        /* On the heap, and no longer than it is: reading beyond would be seen. */
        char *copy = malloc(piece + 1);
        memcpy(copy, text + at, piece);
        how = reply_take(r, copy, piece, &used, err);
        free(copy);
        at += how == REPLY_DONE ? used : piece;
    }
    *left = n - at;
    return how;
}

static void play(struct reply *r, const struct row *row, size_t first, size_t step)
{
    struct error err = ERROR_INIT;
    size_t n = strlen(row->text), left = 0;
    reply_reset(r);
    enum reply_progress how = feed(r, row->text, n, first, step, &left, &err);
    expect_int(row->sentence, row->how, how);
    expect_int(row->sentence, row->status, r->status);
    if (how == REPLY_MORE) {
        how = reply_closed(r, &err);
        expect_int(row->sentence, row->ends_by_close ? REPLY_DONE : REPLY_BAD, how);
    }
    if (row->body != NULL)
        expect_str(row->sentence, row->body, strbuf_str(&r->body));
    if (how == REPLY_DONE) {
        expect_int(row->sentence, !row->drop, r->keep);
        expect_int(row->sentence, row->retry_after_s, r->retry_after_s);
        expect_int(row->sentence, (int64_t)row->left, (int64_t)left);
        expect_int(row->sentence, REPLY_DONE, reply_closed(r, &err));
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
    struct reply r; /* the same for all: reset must forget everything */
    reply_init(&r, MAX_BODY);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = strlen(rows[i].text);
        for (size_t first = 1; first <= n; first++)
            play(&r, &rows[i], first, n);
        play(&r, &rows[i], 1, 1);
        play(&r, &rows[i], n > 0 ? n : 1, 1);
    }
    reply_deinit(&r);
    expect_done();
}

/* Bytes of headers beyond the bound, in one line or in many, in one piece or in several. */
static void heads_have_an_end(void **state)
{
    (void)state;
    static const struct {
        const char *sentence, *unit;
        bool chunks;
    } table[] = {{"one long line", "x", false},
                 {"many headers", "X: y\r\n", false},
                 {"answers before the answer", "HTTP/1.1 100 C\r\n\r\n", false},
                 {"the size line of a chunk", "0", true}};
    static const char chunked[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        for (size_t step = 1000; step <= REPLY_HEAD_MAX * 2; step *= 120) {
            AUTO_STRBUF text = {0};
            struct error err = ERROR_INIT;
            struct reply r;
            size_t left = 0;
            if (table[i].unit[0] != 'H')
                strbuf_adds(&text, table[i].chunks ? chunked : "HTTP/1.1 200 OK\r\n");
            size_t limit =
                table[i].chunks ? text.len + REPLY_CHUNK_LINE_MAX : (size_t)REPLY_HEAD_MAX;
            while (text.len + strlen(table[i].unit) <= limit)
                strbuf_adds(&text, table[i].unit);
            reply_init(&r, MAX_BODY);
            expect_int(table[i].sentence, REPLY_MORE,
                       feed(&r, text.ptr, text.len, step, step, &left, &err));
            expect_int(table[i].sentence, REPLY_BAD,
                       feed(&r, "xxxxxxxxxxxxxxxxxxxxxxxx", 24, 24, 24, &left, &err));
            expect_int(table[i].sentence, ERROR_TOO_LARGE, err.code);
            reply_deinit(&r);
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
    struct reply r;
    size_t used;
    reply_init(&r, MAX_BODY);
    expect_int("head", REPLY_MORE, reply_take(&r, head, sizeof head - 1, &used, &err));
    expect_int("all there may be", REPLY_MORE, reply_take(&r, body, sizeof body, &used, &err));
    expect_int("one more", REPLY_BAD, reply_take(&r, body, 1, &used, &err));
    expect_str("says so", "reply is larger than 100 bytes", err.text);
    reply_deinit(&r);
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

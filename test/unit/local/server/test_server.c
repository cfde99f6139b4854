// SPDX-License-Identifier: Apache-2.0
/*
 * The server on loopback, driven round by round from the test's own thread: a client socket that
 * does not block, and after each step of it a round of the loop. What is expected is waited for by
 * rounds, never by time.
 */
#include "test/local/server/server.h"

#include "test/unit/lib/base/expect.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/cleanup.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "test/unit/local/site.h"

static void requests_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *row, *request, *reply;
    } rows[] = {
        {"a plain GET", "GET /echo HTTP/1.1\r\n" HOST "\r\n", "GET /echo q= h= auth=1 body=0:"},
        {"escapes in path and query", "GET /a%20b%2Fc?x=1&q=%41+b%2b&y HTTP/1.1\r\n" HOST "\r\n",
         "GET /a b/c q=A b+ h="},
        {"headers of any case, blanks around the value",
         "GET /e HTTP/1.1\r\nhOsT:x\r\nX-TEST: \t v w \t\r\n\r\n", "h=v w auth"},
        {"a bare LF ends a line as well", "GET /e HTTP/1.1\nHost: x\n\n", "GET /e q="},
        {"empty lines before a request", "\r\n\r\nGET /e HTTP/1.1\r\n" HOST "\r\n", "GET /e q="},
        {"an absolute target", "GET http://x/e?q=1 HTTP/1.1\r\n" HOST "\r\n", "GET /e q=1 "},
        {"a body", "POST /e HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", "body=5:hello"},
        {"the same length twice",
         "POST /e HTTP/1.1\r\n" HOST "Content-Length: 2\r\nContent-Length: 2\r\n\r\nab",
         "body=2:ab"},
        {"chunks",
         "POST /e HTTP/1.1\r\n" HOST
         "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n00A ;x=y\r\n0123456789\r\n0\r\n\r\n",
         "body=13:abc0123456789"},
        {"chunks with trailers",
         "POST /e HTTP/1.1\r\n" HOST
         "Transfer-Encoding: Chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\nZ: 1\r\n\r\n",
         "body=1:a"},
        {"no body in chunks",
         "POST /e HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "body=0:"},
        {"an extra header of the reply", "GET /e HTTP/1.1\r\n" HOST "\r\n", "X-Extra: yes\r\n"},
        {"HTTP/1.0 that stays", "GET /e HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
         "Connection: keep-alive\r\n"},
        {"a HEAD", "HEAD /e HTTP/1.1\r\n" HOST "\r\n", "Content-Length: 28\r\n"},
    };
    struct site s;
    start(&s, (struct server_config){0});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct client whole = dial(s.loop, server_port(s.server)),
                      torn = dial(s.loop, server_port(s.server));
        say(&whole, rows[i].request);
        bool found = await(&whole, rows[i].reply);
        expect_str(rows[i].row, found ? "" : rows[i].reply, found ? "" : strbuf_str(&whole.in));
        for (const char *byte = rows[i].request; *byte; byte++)
            say_n(&torn, byte, 1);
        found = await(&torn, rows[i].reply);
        expect_str("the same, byte by byte", found ? "" : rows[i].reply,
                   found ? "" : strbuf_str(&torn.in));
        say(&whole, "GET /again HTTP/1.1\r\n" HOST "\r\n");
        expect_true("the connection goes on", await(&whole, "GET /again"));
        hang_up(&whole);
        hang_up(&torn);
    }
    stop(&s);
    expect_done();
}

static void hostile_requests_are_refused(void **state)
{
    (void)state;
    struct row {
        const char *row;
        int status;
        char *request;
        size_t n;
    };
#define TEXT(t) mem_strdup(t)
#define POST "POST /e HTTP/1.1\r\n" HOST
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
    struct row rows[] = {
        {"no HTTP at all", 400, TEXT("hello\r\n\r\n"), 0},
        {"a TLS handshake", 400, TEXT("\x16\x03\x01\x02\r\n\r\n"), 0},
        {"no version", 400, TEXT("GET /\r\n\r\n"), 0},
        {"another protocol", 400, TEXT("GET / FTP/1.1\r\n\r\n"), 0},
        {"HTTP/2's preface", 505, TEXT("PRI * HTTP/2.0\r\n\r\n"), 0},
        {"a target that is no path", 400, TEXT("GET e HTTP/1.1\r\n" HOST "\r\n"), 0},
        {"a bad escape", 400, TEXT("GET /%4 HTTP/1.1\r\n" HOST "\r\n"), 0},
        {"an escaped NUL", 400, TEXT("GET /a%00b HTTP/1.1\r\n" HOST "\r\n"), 0},
        {"a bad escape in the query", 400, TEXT("GET /?q=%zz HTTP/1.1\r\n" HOST "\r\n"), 0},
        {"a control character in the target", 400, TEXT("GET /\x01 HTTP/1.1\r\n" HOST "\r\n"), 0},
        {"a method that is too long", 400, TEXT("GETGETGETGETGETGET / HTTP/1.1\r\n" HOST "\r\n"),
         0},
        {"no Host", 400, TEXT("GET / HTTP/1.1\r\n\r\n"), 0},
        {"two Hosts", 400, TEXT("GET / HTTP/1.1\r\n" HOST HOST "\r\n"), 0},
        {"a header without a colon", 400, TEXT("GET / HTTP/1.1\r\n" HOST "abc\r\n\r\n"), 0},
        {"a blank before the colon", 400, TEXT("GET / HTTP/1.1\r\n" HOST "a : b\r\n\r\n"), 0},
        {"a folded header", 400, TEXT("GET / HTTP/1.1\r\n" HOST "a: b\r\n c\r\n\r\n"), 0},
        {"a control character in a header", 400, TEXT("GET / HTTP/1.1\r\n" HOST "a: \x02\r\n\r\n"),
         0},
        {"a NUL in the head", 400, TEXT("GET / HTTP/1.1\r\n" HOST "a: b@c\r\n\r\n"), 0},
        {"a length that is no number", 400, TEXT(POST "Content-Length: 5x\r\n\r\n"), 0},
        {"a negative length", 400, TEXT(POST "Content-Length: -5\r\n\r\n"), 0},
        {"a length beyond all numbers", 400,
         TEXT(POST "Content-Length: 99999999999999999999\r\n\r\n"), 0},
        {"two lengths", 400, TEXT(POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n"), 0},
        {"length and chunks", 400,
         TEXT(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"), 0},
        {"chunks in HTTP/1.0", 400,
         TEXT("POST /e HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 0},
        {"an unknown encoding", 501, TEXT(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"), 0},
        {"an unknown expectation", 417, TEXT(POST "Expect: cake\r\n\r\n"), 0},
        {"a body over the bound by one", 413, TEXT(POST "Content-Length: 1001\r\n\r\n"), 0},
        {"a chunk over the bound by one", 413, TEXT(CHUNKED "3e9\r\n"), 0},
        {"chunks that sum up over the bound", 413,
         repeat(
             CHUNKED,
             "64\r\n"
             "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
             "\r\n",
             11, ""),
         0},
        {"a chunk size beyond all numbers", 413, TEXT(CHUNKED "fffffffffffffffff\r\n"), 0},
        {"a chunk size that is no number", 400, TEXT(CHUNKED "xyz\r\n"), 0},
        {"an empty chunk size", 400, TEXT(CHUNKED "\r\n"), 0},
        {"a chunk that is longer than it says", 400, TEXT(CHUNKED "2\r\nabc\r\n"), 0},
        {"an endless chunk size", 400, repeat(CHUNKED "1;", "x", 300, ""), 0},
        {"endless trailers", 431, repeat(CHUNKED "0\r\n", "X: 0123456789\r\n", 5000, ""), 0},
        {"a target over the bound by one", 414,
         repeat("GET /", "a", 16 * 1024, " HTTP/1.1\r\n" HOST "\r\n"), 0},
        {"an endless target", 414, repeat("GET /", "a", 70 * 1024, ""), 0},
        {"an endless head", 431, repeat("GET / HTTP/1.1\r\n" HOST, "X: 0123456789\r\n", 5000, ""),
         0},
        {"a header too many", 431, repeat("GET / HTTP/1.1\r\n" HOST, "X: y\r\n", 64, "\r\n"), 0},
        {"an argument too many", 400, repeat("GET /?", "a&", 33, " HTTP/1.1\r\n" HOST "\r\n"), 0},
    };
    struct site s;
    start(&s, (struct server_config){0});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct row *r = &rows[i];
        r->n = strlen(r->request);
        char *nul = strcmp(r->row, "a NUL in the head") == 0 ? strchr(r->request, '@') : NULL;
        if (nul)
            *nul = '\0';
        struct client c = dial(s.loop, server_port(s.server));
        say_n(&c, r->request, r->n);
        char expected[32];
        str_format(expected, sizeof expected, "HTTP/1.1 %d ", r->status);
        bool found = await(&c, expected);
        expect_str(r->row, found ? "" : expected, found ? "" : strbuf_str(&c.in));
        expect_true(r->row, await_end(&c)); /* and the connection is of no use any more */
        hang_up(&c);
        free(r->request);
    }
    struct client c = dial(s.loop, server_port(s.server));
    char *whole = repeat("GET /", "a", 16 * 1024 - 1, " HTTP/1.1\r\n" HOST "\r\n");
    say(&c, whole);
    expect_true("a target at the bound", await(&c, "200 OK"));
    free(whole);
    whole = repeat(POST "Content-Length: 1000\r\n\r\n", "x", 1000, "");
    say(&c, whole);
    expect_true("a body at the bound", await(&c, "body=1000:"));
    free(whole);
    hang_up(&c);
    stop(&s);
    expect_done();
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    (void)state;
    struct site s;
    start(&s, (struct server_config){0});
    struct client c = dial(s.loop, server_port(s.server));
    say(&c, "GET /1 HTTP/1.1\r\n" HOST "\r\nPOST /2 HTTP/1.1\r\n" HOST
            "Content-Length: 3\r\n\r\nabcGET /hold HTTP/1.1\r\n" HOST "\r\nGET /4 HTTP/1.1\r\n" HOST
            "\r\nGET /5 HTTP/1.1\r\n" HOST "\r\n");
    expect_true("the first two", await(&c, "POST /2 q= h= auth=1 body=3:abc"));
    for (int i = 0; i < 20; i++)
        turn(&c);
    expect_true("the third is held, the fourth waits for it",
                s.held != NULL && !strstr(strbuf_str(&c.in), "/4"));
    struct strbuf body = {0};
    strbuf_adds(&body, "third");
    call_reply(s.held, 200, "text/plain", NULL, &body);
    expect_true("all", await(&c, "GET /5"));
    const char *one = strstr(c.in.ptr, "GET /1"), *two = strstr(c.in.ptr, "POST /2"),
               *three = strstr(c.in.ptr, "third"), *four = strstr(c.in.ptr, "GET /4");
    expect_true("in order", one < two && two < three && three < four);
    hang_up(&c);

    c = dial(
        s.loop,
        server_port(
            s.server)); /* more than can be sent at once: memory stays bounded, nothing is lost */
    for (int i = 0; i < 20; i++)
        say(&c, "GET /big HTTP/1.1\r\n" HOST "\r\n");
    say(&c, "GET /end HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    expect_true("the end", await(&c, "GET /end"));
    expect_true("all of it", c.in.len > 20 * 3 * 1024 * 1024);
    expect_true("closed as asked", await_end(&c) && !c.reset);
    hang_up(&c);
    stop(&s);
    expect_done();
}

static void peers_that_leave_in_every_way(void **state)
{
    (void)state;
    struct site s;
    start(&s, (struct server_config){0});
    struct client c = dial(s.loop, server_port(s.server));
    say(&c, "GET /1 HTTP/1.1\r\n" HOST "\r\nGET /hold HTTP/1.1\r\n" HOST "\r\n");
    shutdown(c.fd, SHUT_WR);
    expect_true("a half-closed peer is answered", await(&c, "GET /1"));
    for (int i = 0; i < ROUNDS && !s.held; i++)
        turn(&c);
    for (int i = 0; i < 10; i++)
        turn(&c);
    expect_true("its second request is waited for", !c.eof && !c.reset);
    call_reply(s.held, 200, NULL, NULL, NULL);
    expect_true("and then the connection ends in order", await_end(&c) && !c.reset);
    s.held = NULL;
    hang_up(&c);

    c = dial(s.loop, server_port(s.server));
    say(&c, "GET /half HTTP/1.1\r\nHo");
    hang_up(&c);
    c = dial(s.loop, server_port(s.server));
    say(&c, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    for (int i = 0; i < ROUNDS && !s.held; i++)
        turn(&c);
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    hang_up(&c);
    struct server_stats stats;
    for (int i = 0; i < ROUNDS; i++) {
        loop_once(s.loop, 1);
        server_stats(s.server, &stats);
        if (stats.open_connections == 0)
            break;
    }
    expect_int("both are gone", 0, stats.open_connections);
    expect_str("a call without its peer can still be read", "/hold", call_path(s.held));
    call_stream_begin(s.held, 200, "x", on_close, &s);
    expect_int("it is told later", 0, s.closed);
    for (int i = 0; i < ROUNDS && s.closed == 0; i++)
        loop_once(s.loop, 1);
    expect_int("that its peer is gone", 1, s.closed);
    s.held = NULL;

    c = dial(s.loop, server_port(s.server));
    say(&c, "GET /drop HTTP/1.1\r\n" HOST "\r\n");
    expect_true("a dropped call resets", await_end(&c) && c.reset && c.in.len == 0);
    hang_up(&c);
    c = dial(s.loop, server_port(s.server));
    say(&c, "POST /lose HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx");
    expect_true("a lost reply resets", await_end(&c) && c.reset && c.in.len == 0);
    expect_str("but it was carried out", "POST /lose q= h= auth=1 body=1:x", strbuf_str(&s.last));
    hang_up(&c);
    struct client other = dial(s.loop, server_port(s.server));
    say(&other, "GET /e HTTP/1.1\r\n" HOST "\r\n");
    expect_true("another connection", await(&other, "GET /e"));
    c = dial(s.loop, server_port(s.server));
    say(&c, "GET /reset-all HTTP/1.1\r\n" HOST "\r\n");
    expect_true("a handler resets all connections", await_end(&other) && other.reset);
    expect_true("its own too", await_end(&c) && c.reset);
    hang_up(&c);
    hang_up(&other);
    stop(&s);
    expect_done();
}

static struct client watch(struct site *s, const char *version)
{
    struct client c = dial(s->loop, server_port(s->server));
    say(&c, "GET /stream HTTP/");
    say(&c, version);
    say(&c, "\r\n" HOST "\r\n");
    if (!await(&c, "\r\n\r\n"))
        fail_msg("no stream: %s", strbuf_str(&c.in));
    return c;
}

static void streams_share_their_lines(void **state)
{
    (void)state;
    struct site s;
    start(&s, (struct server_config){0});
    struct client a = watch(&s, "1.1"), b = watch(&s, "1.0");
    struct shared_bytes *l = line("{\"one\":1}\n");
    for (size_t i = 0; i < s.streams.len; i++)
        call_stream_write(s.streams.items[i], l);
    expect_int("one of ours, and two for each stream", 5, l->refs);
    shared_bytes_unref(l);
    l = line("{\"two\":2}\n");
    for (size_t i = 0; i < s.streams.len; i++)
        call_stream_write(s.streams.items[i], l);
    shared_bytes_unref(l);
    expect_true("in chunks", await(&a, "\r\n\r\na\r\n{\"one\":1}\n\r\na\r\n{\"two\":2}\n\r\n"));
    expect_true("as they are for HTTP/1.0", await(&b, "\r\n\r\n{\"one\":1}\n{\"two\":2}\n"));
    call_stream_end(s.streams.items[0]);
    call_stream_end(s.streams.items[1]);
    s.streams.len = 0;
    expect_true("the last chunk", await(&a, "0\r\n\r\n"));
    expect_true("HTTP/1.0 ends by closing", await_end(&b) && !b.reset);
    say(&a, "GET /e HTTP/1.1\r\n" HOST "\r\n");
    expect_true("the connection goes on", await(&a, "GET /e"));
    expect_int("nobody was told of an end", 0, s.closed);
    hang_up(&a);
    hang_up(&b);

    a = watch(&s, "1.1");
    hang_up(&a);
    for (int i = 0; i < ROUNDS && s.closed == 0; i++)
        loop_once(s.loop, 1);
    expect_int("a watcher that leaves is noticed", 1, s.closed);

    a = watch(&s, "1.1");
    l = line("{\"type\":\"ADDED\"}\n");
    call_stream_write(s.streams.items[0], l);
    shared_bytes_unref(l);
    server_close_streams(s.server, true);
    expect_true("cut in the middle of a line", await_end(&a) && !a.reset);
    expect_true("half of it came", str_ends(strbuf_str(&a.in), "\n\r\n11\r\n{\"type\":"));
    expect_int("its owner was told", 2, s.closed);
    hang_up(&a);
    a = watch(&s, "1.1");
    server_close_streams(s.server, false);
    expect_true("a watch that is ended in order", await(&a, "\r\n\r\n0\r\n\r\n"));
    expect_int("its owner was told as well", 3, s.closed);
    hang_up(&a);
    a = watch(&s, "1.1");
    struct server_stats stats;
    server_stats(s.server, &stats);
    expect_int("streams in all", 6, stats.streams);
    expect_int("open ones", 1, stats.open_streams);
    server_stop(s.server); /* with an open stream */
    expect_int("a stop tells it", 4, s.closed);
    receive(&a);
    expect_true("and ends it in order", str_ends(strbuf_str(&a.in), "0\r\n\r\n") && a.eof);
    hang_up(&a);
    s.server = NULL;
    stop(&s);
    expect_done();
}

static void slow_watchers_are_dropped(void **state)
{
    (void)state;
    struct site s;
    start(&s, (struct server_config){.max_unsent_bytes = 1024 * 1024});
    struct client slow = watch(&s, "1.1"), fast = watch(&s, "1.1");
    char *kilo = repeat("", "0123456789abcdef", 64, "\n");
    int sent = 0;
    for (; sent < 64 * 1024 && s.closed == 0; sent++) {
        struct shared_bytes *l = line(kilo);
        for (size_t i = 0; i < s.streams.len; i++)
            call_stream_write(s.streams.items[i], l);
        shared_bytes_unref(l);
        if (sent % 64 == 0) {
            turn(&fast);
            strbuf_reset(&fast.in);
        }
    }
    free(kilo);
    struct server_stats stats;
    server_stats(s.server, &stats);
    expect_int("the slow one is dropped", 1, s.closed);
    expect_int("and counted", 1, stats.slow_streams);
    expect_int("the fast one stays", 1, stats.open_streams);
    expect_true("after more than the bound", sent > 1024);
    receive(&slow);
    expect_true("by a reset", await_end(&slow));
    hang_up(&slow);
    hang_up(&fast);
    stop(&s);
    expect_done();
}

static void continue_is_said_when_asked_for(void **state)
{
    (void)state;
    struct site s;
    start(&s, (struct server_config){0});
    struct client c = dial(s.loop, server_port(s.server));
    say(&c, "POST /e HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    expect_true("go on", await(&c, "HTTP/1.1 100 Continue\r\n\r\n"));
    say(&c, "ab");
    expect_true("answered", await(&c, "body=2:ab"));
    strbuf_reset(&c.in);
    say(&c, "POST /e HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\ncd");
    expect_true("answered at once when it is all there", await(&c, "body=2:cd"));
    expect_true("without the courtesy", !strstr(strbuf_str(&c.in), "100 Continue"));
    say(&c, "POST /e HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2000\r\n\r\n");
    expect_true("a body that is too large is not asked for", await(&c, "HTTP/1.1 413 "));
    hang_up(&c);
    stop(&s);
    expect_done();
}

static void tokens_are_compared(void **state)
{
    (void)state;
    static const char *const tokens[] = {"secret", "other", NULL};
    static const struct {
        const char *row, *header;
        int known;
    } rows[] = {
        {"the first", "Authorization: Bearer secret\r\n", 1},
        {"the second", "authorization: bearer other\r\n", 1},
        {"a wrong one", "Authorization: Bearer secreT\r\n", 0},
        {"the beginning of one", "Authorization: Bearer secre\r\n", 0},
        {"more than one", "Authorization: Bearer secrets\r\n", 0},
        {"another scheme", "Authorization: Basic secret\r\n", 0},
        {"none", "", 0},
        {"an empty one", "Authorization: Bearer \r\n", 0},
    };
    struct site s;
    start(&s, (struct server_config){.tokens = tokens});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct client c = dial(s.loop, server_port(s.server));
        say(&c, "GET /e HTTP/1.1\r\n" HOST);
        say(&c, rows[i].header);
        say(&c, "\r\n");
        expect_true(rows[i].row, await(&c, rows[i].known ? "auth=1" : "auth=0"));
        hang_up(&c);
    }
    stop(&s);
    expect_done();
}

static void the_listener_can_pause(void **state)
{
    (void)state;
    struct site s;
    struct error err = ERROR_INIT;
    start(&s, (struct server_config){.max_connections = 2});
    server_accept(s.server, false);
    struct client a = dial(s.loop, server_port(s.server));
    say(&a, "GET /e HTTP/1.1\r\n" HOST "\r\n");
    for (int i = 0; i < 20; i++)
        turn(&a);
    expect_int("it waits in the backlog", 0, (int64_t)a.in.len);
    server_accept(s.server, true);
    expect_true("and is served then", await(&a, "GET /e"));
    struct client b = dial(s.loop, server_port(s.server)),
                  third = dial(s.loop, server_port(s.server));
    say(&b, "GET /b HTTP/1.1\r\n" HOST "\r\n");
    expect_true("a second connection", await(&b, "GET /b"));
    say(&third, "GET /c HTTP/1.1\r\n" HOST "\r\n");
    for (int i = 0; i < 20; i++)
        turn(&third);
    expect_int("a third waits", 0, (int64_t)third.in.len);
    hang_up(&a);
    expect_true("until there is room", await(&third, "GET /c"));
    uint16_t port = server_port(s.server);
    assert_int_equal(0, server_listen(s.server, false, &err));
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    expect_int("a closed listener refuses", -1, connect(fd, (struct sockaddr *)&to, sizeof to));
    hang_up(&b);
    hang_up(&third);
    if (server_listen(s.server, true, &err) < 0)
        fail_msg("%s", err.text);
    expect_int("the same port again", port, server_port(s.server));
    a = dial(s.loop, server_port(s.server));
    say(&a, "GET /e HTTP/1.1\r\n" HOST "\r\n");
    expect_true("served again", await(&a, "GET /e"));
    hang_up(&a);
    stop(&s);
    expect_done();
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_understood),
        cmocka_unit_test(hostile_requests_are_refused),
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(peers_that_leave_in_every_way),
        cmocka_unit_test(streams_share_their_lines),
        cmocka_unit_test(slow_watchers_are_dropped),
        cmocka_unit_test(continue_is_said_when_asked_for),
        cmocka_unit_test(tokens_are_compared),
        cmocka_unit_test(the_listener_can_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

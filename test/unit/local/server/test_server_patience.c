// SPDX-License-Identifier: Apache-2.0
/*
 * Peers that take a connection and do not use it. The server's patience is a tenth of a second
 * here; nothing is expected before or after a time, only that it comes.
 */
#include "test/unit/local/site.h"

enum { PATIENCE_MS = 100, TRIES = 3000 };

static int64_t open_connections(const struct site *s)
{
    struct server_stats stats;
    server_stats(s->server, &stats);
    return stats.open_connections;
}

/* Rounds of the loop until the server has no connection any more. */
static bool await_nobody(struct site *s)
{
    for (int i = 0; i < TRIES && open_connections(s) > 0; i++)
        loop_once(s->loop, 10);
    return open_connections(s) == 0;
}

static void who_does_not_use_a_connection_loses_it(void **state)
{
    (void)state;
    static const struct {
        const char *row, *says, *hears;
    } rows[] = {
        {"nothing at all", "", ""},
        {"blank lines", "\r\n\r\n", ""},
        {"half a head", "GET / HTT", "HTTP/1.1 408 "},
        {"half a body", "POST /e HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nabc",
         "HTTP/1.1 408 "},
        {"half a chunk", "POST /e HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\na",
         "HTTP/1.1 408 "},
        {"one request, and then no other", "GET /e HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 200 "},
        {"one request and a half", "GET /e HTTP/1.1\r\n" HOST "\r\nGET", "HTTP/1.1 408 "},
    };
    struct site s;
    start(&s, (struct server_config){.patience_ms = PATIENCE_MS});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct client c = dial(s.loop, server_port(s.server));
        say(&c, rows[i].says);
        turn(&c);
        expect_true(rows[i].row, open_connections(&s) == 1);
        expect_true(rows[i].row, await(&c, rows[i].hears));
        expect_true(rows[i].row, await_end(&c));
        hang_up(&c);
        expect_true(rows[i].row, await_nobody(&s));
    }
    stop(&s);
    expect_done();
}

static void who_takes_nothing_loses_it_too(void **state)
{
    (void)state;
    static const struct {
        const char *row, *path;
        int slow;
    } rows[] = {{"a reply", "/big", 0},
                {"a reply, the last one", "/big?close", 0},
                {"a watch", "/stream", 1}};
    char *lines = repeat("", "0123456789abcdef", 64 * 1024, "\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct site s;
        start(&s, (struct server_config){.patience_ms = PATIENCE_MS});
        struct client c = dial(s.loop, server_port(s.server));
        int small = 4096;
        setsockopt(c.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        char request[128];
        str_format(request, sizeof request, "GET %s HTTP/1.1\r\n" HOST "%s\r\n", rows[i].path,
                   strchr(rows[i].path, '?') ? "Connection: close\r\n" : "");
        (void)send(c.fd, request, strlen(request), 0);
        for (int k = 0; k < TRIES && open_connections(&s) == 0; k++)
            loop_once(s.loop, 10);
        for (int k = 0; k < TRIES && rows[i].slow && s.streams.len == 0; k++)
            loop_once(s.loop, 10);
        for (int k = 0; k < 16 && s.streams.len > 0; k++) {
            struct shared_bytes *l = line(lines);
            call_stream_write(s.streams.items[0], l);
            shared_bytes_unref(l);
        }
        expect_true(rows[i].row, await_nobody(&s));
        struct server_stats stats;
        server_stats(s.server, &stats);
        expect_int(rows[i].row, rows[i].slow, stats.slow_streams);
        expect_int(rows[i].row, rows[i].slow, s.closed);
        hang_up(&c);
        stop(&s);
    }
    free(lines);
    expect_done();
}

static void who_takes_it_piece_by_piece_keeps_it(void **state)
{
    (void)state;
    struct site s;
    start(&s, (struct server_config){.patience_ms = PATIENCE_MS});
    struct client c = dial(s.loop, server_port(s.server));
    say(&c, "GET /big HTTP/1.1\r\n" HOST "\r\n");
    expect_true("all of it", await(&c, "\r\n\r\n0123"));
    size_t wanted = 3 * 1024 * 1024;
    for (int i = 0; i < TRIES && c.in.len < wanted; i++)
        turn(&c);
    expect_true("all of it", c.in.len >= wanted);
    hang_up(&c);
    stop(&s);
    expect_done();
}

/* All there is may be more than a watcher may owe: it asked for it. */
static void a_long_beginning_is_nobodys_fault(void **state)
{
    (void)state;
    struct site s;
    start(&s, (struct server_config){.max_unsent_bytes = 1024 * 1024});
    struct client c = dial(s.loop, server_port(s.server));
    say(&c, "GET /beginning HTTP/1.1\r\n" HOST "\r\n");
    expect_true("it is there", await(&c, "200 OK"));
    assert_int_equal(1, s.streams.len);
    struct call *stream = s.streams.items[0];
    char *mega = repeat("", "0123456789abcdef", 64 * 1024, "\n");
    struct shared_bytes *l = line(mega);
    for (int i = 0; i < 8; i++)
        call_stream_write(stream, l);
    call_stream_begun(stream);
    struct shared_bytes *news = line("news\n");
    call_stream_write(stream, news);
    loop_once(s.loop, 0);
    expect_int("it is not slow", 0, s.closed);
    bool all = await(&c, "news\n");
    expect_true("and gets all of it", all);
    for (int i = 0; i < 256 && s.closed == 0; i++) {
        call_stream_write(stream, l);
        loop_once(s.loop, 5);
    }
    expect_int("what comes after it counts", 1, s.closed);
    shared_bytes_unref(l);
    shared_bytes_unref(news);
    free(mega);
    hang_up(&c);
    stop(&s);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_does_not_use_a_connection_loses_it),
        cmocka_unit_test(who_takes_nothing_loses_it_too),
        cmocka_unit_test(who_takes_it_piece_by_piece_keeps_it),
        cmocka_unit_test(a_long_beginning_is_nobodys_fault),
    };
    return cmocka_run_group_tests_name("server_patience", tests, NULL, NULL);
}

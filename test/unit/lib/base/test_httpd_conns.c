// SPDX-License-Identifier: Apache-2.0
#include "lib/base/httpd_conns.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "test/unit/lib/base/expect.h"

enum { CONNS = 26, NEVER = 1000 };

static struct httpd_conns conns;
static struct httpd_conn items[CONNS];
static int peers[CONNS];

static int64_t freed; /* bodies, as bits */

static void free_body(struct httpd_conn *c)
{
    expect_true("has one", c->large > 0);
    freed |= INT64_C(1) << (c - items);
}

static int begin(void **state)
{
    (void)state;
    freed = 0;
    conns = (struct httpd_conns){.max = 4,
                                 .limit_ms = {[HTTPD_HANDSHAKE] = 5, [HTTPD_IDLE] = 100},
                                 .max_large = 100,
                                 .large_ms = NEVER,
                                 .drop_large = free_body};
    for (int i = 0; i < CONNS; i++) {
        int pair[2];
        assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
        items[i] = (struct httpd_conn){.fd = pair[0]};
        peers[i] = pair[1];
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (int i = 0; i < CONNS; i++) {
        if (items[i].source != NULL)
            httpd_conns_remove(&conns, &items[i]);
        close(items[i].fd);
        close(peers[i]);
    }
    expect_int("none is left", 0, (int64_t)conns.len);
    expect_int("no body is left", 0, (int64_t)conns.large);
    expect_true("no source is left", conns.sources == NULL && conns.items == NULL);
    expect_done();
    return 0;
}

static void add(int i, const char *address)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    items[i].since_ms = i;
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
        httpd_conns_add(&conns, &items[i], (const struct sockaddr *)&v4);
    else if (inet_pton(AF_INET6, address, &v6.sin6_addr) == 1)
        httpd_conns_add(&conns, &items[i], (const struct sockaddr *)&v6);
    else
        httpd_conns_add(&conns, &items[i], NULL);
}

/* Which are dropped, as bits; the peer of such a one sees the end of the stream. */
static int64_t dropped(void)
{
    int64_t bits = 0;
    for (int i = 0; i < CONNS; i++) {
        char byte;
        bool ended = recv(peers[i], &byte, 1, MSG_DONTWAIT) == 0;
        expect_int("the stream has ended", items[i].dropped, ended);
        bits |= items[i].dropped ? INT64_C(1) << i : 0;
    }
    return bits;
}

static void within_the_bound_all_stay(void **state)
{
    (void)state;
    add(0, "10.0.0.1");
    add(1, "10.0.0.2");
    add(2, "2001:db8::1");
    add(3, "");
    expect_int("four", 0, dropped());
    httpd_conns_remove(&conns, &items[0]);
    items[0].source = NULL;
    add(4, "10.0.0.2");
    expect_int("the room of one that ended", 0, dropped());
    expect_done();
}

static void the_longest_silent_goes_before_those_that_were_answered(void **state)
{
    (void)state;
    add(0, "10.0.0.1");
    httpd_conns_prove(&items[0]);
    add(1, "10.0.0.2");
    add(2, "10.0.0.3");
    add(3, "10.0.0.4");
    add(4, "10.0.0.5");
    expect_int("the oldest silent one", 1 << 1, dropped());
    add(5, "10.0.0.1");
    expect_int("the next", 1 << 1 | 1 << 2, dropped());
    expect_int("four are counted", 4, (int64_t)conns.len);
    expect_done();
}

static void a_source_that_was_answered_goes_after_others(void **state)
{
    (void)state;
    add(0, "10.0.0.1");
    httpd_conns_prove(&items[0]);
    add(1, "10.0.0.1"); /* silent, of the same source */
    add(2, "10.0.0.9");
    add(3, "10.0.0.1");
    add(4, "10.0.0.8");
    expect_int("not the oldest", 1 << 2, dropped());
    expect_done();
}

static void the_largest_source_loses(void **state)
{
    (void)state;
    add(0, "10.0.0.1");
    add(1, "10.0.0.2");
    add(2, "10.0.0.2");
    add(3, "::ffff:10.0.0.2"); /* the same address */
    add(4, "10.0.0.3");
    expect_int("of the largest, the oldest", 1 << 1, dropped());
    for (int i = 2; i < 5; i++)
        httpd_conns_prove(&items[i]);
    httpd_conns_prove(&items[0]);
    add(5, "10.0.0.4");
    expect_int("the same among those that were answered", 1 << 1 | 1 << 2, dropped());
    expect_done();
}

static void one_address_has_three_quarters(void **state)
{
    (void)state;
    expect_int("of 4", 3, (int64_t)httpd_conns_max_of_source(&conns));
    for (int i = 0; i < 4; i++)
        add(i, "10.0.0.1");
    expect_int("its own oldest goes", 1 << 0, dropped());
    add(4, "10.0.0.2");
    expect_int("another has room", 1 << 0, dropped());
    expect_done();
}

static void a_request_that_is_handled_stays(void **state)
{
    (void)state;
    conns.max = 1;
    add(0, "10.0.0.1");
    items[0].phase = HTTPD_OURS;
    add(1, "10.0.0.2");
    expect_int("none can go", 0, dropped());
    add(2, "10.0.0.3");
    expect_int("the silent one", 1 << 1, dropped());
    expect_done();
}

static void each_phase_has_its_limit(void **state)
{
    (void)state;
    add(0, "10.0.0.1");
    add(1, "10.0.0.2");
    add(2, "10.0.0.3");
    for (int i = 0; i < 3; i++)
        items[i].since_ms = 0;
    items[1].phase = HTTPD_IDLE;
    items[2].phase = HTTPD_OURS;
    httpd_conns_sweep(&conns, 5);
    expect_int("all in time", 0, dropped());
    httpd_conns_sweep(&conns, 6);
    expect_int("the handshake", 1 << 0, dropped());
    httpd_conns_sweep(&conns, 101);
    expect_int("idle", 1 << 0 | 1 << 1, dropped());
    httpd_conns_sweep(&conns, INT64_MAX);
    expect_int("our turn has none", 1 << 0 | 1 << 1, dropped());
    expect_done();
}

/* An API server keeps a few connections; each of many sources keeps as many as it needs to look
 * smaller. */
static void many_small_sources_do_not_win(void **state)
{
    (void)state;
    conns.max = 24;
    for (int i = 0; i < 24; i++) {
        char address[20];
        str_format(address, sizeof address, "10.0.1.%d", i < 21 ? i : 0);
        add(i, i < 21 ? address : "10.0.0.1");
        httpd_conns_prove(&items[i]);
    }
    add(24, "10.0.2.1");
    expect_int("the longest idle of all", 1 << 0, dropped());
    httpd_conns_prove(&items[24]);
    conns.max = 16; /* of 24, with three of one source: more than an eighth */
    add(25, "10.0.2.2");
    expect_int("a crowd goes first", 1 << 0 | 1 << 21, dropped());
    expect_done();
}

static void a_network_of_ipv6_is_one_source(void **state)
{
    (void)state;
    add(0, "10.0.0.1");
    add(1, "2001:db8::1");
    add(2, "2001:db8::2:0:0:1");
    add(3, "2001:db8:0:1::1"); /* another network */
    add(4, "10.0.0.2");
    expect_int("its oldest", 1 << 1, dropped());
    expect_done();
}

static bool hold(int i, size_t n, int64_t now_ms)
{
    items[i].phase = HTTPD_REQUEST;
    return httpd_conns_hold(&conns, &items[i], n, now_ms);
}

static void a_withheld_body_goes_for_another(void **state)
{
    (void)state;
    conns.max = 8;
    for (int i = 0; i < 4; i++)
        add(i, "10.0.0.6");
    add(4, "10.0.0.1");
    add(5, "10.0.0.1");
    for (int i = 0; i < 3; i++)
        expect_true("his", hold(i, 25, 5));
    expect_true("three quarters, and the room is his own oldest's", !hold(3, 25, 5));
    expect_true("when that is old", hold(3, 25, NEVER));
    expect_int("it goes", 1 << 0, dropped());
    expect_true("the last quarter", hold(4, 25, 5));
    expect_true("another's oldest goes for what is beyond", hold(5, 25, 5));
    expect_int("the larger source's", 1 << 0 | 1 << 1, dropped());
    expect_int("and its body at once", 1 << 0 | 1 << 1, freed);
    expect_int("all is used", 100, (int64_t)conns.large);
    expect_true("a dropped one gets nothing", !hold(0, 1, 5));
    expect_true("given back", hold(5, 0, 5));
    expect_int("which is there again", 75, (int64_t)conns.large);
    expect_done();
}

static void a_body_whose_source_was_answered_stays(void **state)
{
    (void)state;
    conns.max = 8;
    for (int i = 0; i < 4; i++)
        add(i, i < 2 ? "10.0.0.1" : i == 2 ? "10.0.0.6" : "10.0.0.7");
    httpd_conns_prove(&items[0]);
    expect_true("a client's", hold(0, 40, 5));
    expect_true("and its next", hold(1, 30, 5));
    expect_true("a stranger's", hold(2, 30, 5));
    expect_true("another stranger's", !hold(3, 35, 5));
    expect_int("none went for it", 0, dropped());
    expect_true("what it has is given back", hold(3, 0, 5));
    expect_true("the client's grows", hold(1, 35, 5));
    expect_int("the stranger's goes", 1 << 2, dropped());
    items[0].phase = HTTPD_OURS;
    items[1].phase = HTTPD_OURS;
    expect_true("what is handled stays, however old", !hold(3, 30, 10 * NEVER));
    expect_int("there is no other", 1 << 2, dropped());
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(within_the_bound_all_stay, begin, end),
        cmocka_unit_test_setup_teardown(the_longest_silent_goes_before_those_that_were_answered,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_source_that_was_answered_goes_after_others, begin, end),
        cmocka_unit_test_setup_teardown(the_largest_source_loses, begin, end),
        cmocka_unit_test_setup_teardown(one_address_has_three_quarters, begin, end),
        cmocka_unit_test_setup_teardown(a_request_that_is_handled_stays, begin, end),
        cmocka_unit_test_setup_teardown(each_phase_has_its_limit, begin, end),
        cmocka_unit_test_setup_teardown(many_small_sources_do_not_win, begin, end),
        cmocka_unit_test_setup_teardown(a_network_of_ipv6_is_one_source, begin, end),
        cmocka_unit_test_setup_teardown(a_withheld_body_goes_for_another, begin, end),
        cmocka_unit_test_setup_teardown(a_body_whose_source_was_answered_stays, begin, end),
    };
    return cmocka_run_group_tests_name("httpd_conns", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* The reflector against the twin, one thing at a time. */
#include <stdatomic.h>

#include "test/unit/lib/kube/reflector_bench.h"

static void test_follows(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    put_many(&b, 20); /* three pages of 7 */
    struct reflector_config c = plain_config(&b);
    start(&b, &c);
    expect_equal(&b.copy, b.twin, "first list");
    await(stat_watches, &b, 1, "watches");
    assert_int_equal(3, twin_requests(b.twin, TWIN_LIST));
    put(&b, 3);
    put(&b, 100);
    twin_delete(b.twin, "p5");
    expect_equal(&b.copy, b.twin, "three changes");
    await(stat_events, &b, 3, "events");
    assert_int_equal(1, b.copy.resets);
    assert_int_equal(1, b.copy.deletes);
    assert_int_equal(1, stat_lists(&b));
    bench_deinit(&b);
}

static bool saw_request(struct bench *b, const char *part)
{
    AUTO_STRBUF text = {0};
    for (size_t i = 0; strbuf_reset(&text), twin_request(b->twin, i, &text); i++)
        if (strstr(strbuf_str(&text), part))
            return true;
    return false;
}

static void test_asks(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    struct reflector_config c = plain_config(&b);
    c.ns = "a b";
    c.label_selector = "x=y,z in (1)";
    c.field_selector = "spec.nodeName=n1";
    b.options.watch_timeout_ms = 60000;
    start(&b, &c);
    await(stat_watches, &b, 1, "watches");
    await(running_watches, &b, 1, "running watches");
    assert_true(saw_request(
        &b, "GET /api/v1/namespaces/a%20b/pods?limit=7&labelSelector=x%3Dy%2Cz%20in%20%281%29"
            "&fieldSelector=spec.nodeName%3Dn1&resourceVersion=0 HTTP"));
    assert_true(saw_request(&b, "?watch=1&allowWatchBookmarks=true&timeoutSeconds="));
    assert_true(saw_request(&b, "Authorization: Bearer s3cr3t-t0ken\r\n"));
    bench_deinit(&b);
}

static void test_from_etcd(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    struct reflector_config c = plain_config(&b);
    c.from_etcd = true;
    start(&b, &c);
    await(stat_watches, &b, 1, "watches");
    assert_true(saw_request(&b, "pods?limit=7 HTTP"));
    assert_false(saw_request(&b, "resourceVersion=0"));
    bench_deinit(&b);
}

static void test_bookmark_moves_the_version(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    put_many(&b, 3);
    struct reflector_config c = plain_config(&b);
    start(&b, &c);
    await(running_watches, &b, 1, "running watches");
    twin_compact(b.twin); /* what was listed is now too old ... */
    twin_bookmark(b.twin);
    await(stat_bookmarks, &b, 1, "bookmarks");
    twin_break(b.twin, TWIN_RESET);
    put(&b, 1);
    expect_equal(&b.copy, b.twin, "after the cut");
    assert_int_equal(1, stat_lists(&b)); /* ... and the bookmark was newer */
    assert_int_equal(0, stat_gone(&b));
    bench_deinit(&b);
}

static void test_resume_does_not_list(void **state)
{
    (void)state;
    static const enum twin_fault faults[] = {TWIN_CUT_LINE, TWIN_CUT_CHUNK,   TWIN_RESET,
                                             TWIN_HANG,     TWIN_HANG_MIDWAY, TWIN_CLOSE,
                                             TWIN_500};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct bench b;
        bench_init(&b);
        put_many(&b, 3);
        struct reflector_config c = plain_config(&b);
        start(&b, &c);
        await(running_watches, &b, 1, "running watches");
        put(&b, 0);
        await(stat_events, &b, 1, "events");
        twin_break(b.twin, faults[i]);
        put(&b, 1);
        twin_delete(b.twin, "p2");
        expect_equal(&b.copy, b.twin, twin_fault_name(faults[i]));
        if (stat_lists(&b) != 1)
            fail_msg("%s: expected 1 list, got %lld", twin_fault_name(faults[i]),
                     (long long)stat_lists(&b));
        bench_deinit(&b);
    }
}

static void test_lists_again(void **state)
{
    (void)state;
    static const enum twin_fault faults[] = {TWIN_GONE_STATUS, TWIN_GONE_EVENT,   TWIN_HTML,
                                             TWIN_OVERSIZE,    TWIN_UNKNOWN_TYPE, TWIN_NO_VERSION};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct bench b;
        bench_init(&b);
        put_many(&b, 3);
        twin_fault(b.twin, TWIN_WATCH, faults[i]);
        struct reflector_config c = plain_config(&b);
        start(&b, &c);
        await(stat_lists, &b, 2, twin_fault_name(faults[i]));
        put(&b, 1);
        expect_equal(&b.copy, b.twin, twin_fault_name(faults[i]));
        assert_int_equal(i < 2, stat_gone(&b));
        bench_deinit(&b);
    }
}

static void test_list_faults(void **state)
{
    (void)state;
    static const enum twin_fault faults[] = {
        TWIN_CUT_CHUNK, TWIN_RESET,    TWIN_CLOSE, TWIN_HANG_MIDWAY, TWIN_TRICKLE, TWIN_THROTTLE,
        TWIN_500,       TWIN_REDIRECT, TWIN_HTML,  TWIN_OVERSIZE,    TWIN_HANG};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct bench b;
        bench_init(&b);
        b.options.request_timeout_ms = 300;
        put_many(&b, 16);
        twin_fault(b.twin, TWIN_LIST, TWIN_NONE);
        twin_fault(b.twin, TWIN_LIST, faults[i]); /* on the second page */
        struct reflector_config c = plain_config(&b);
        start(&b, &c);
        expect_equal(&b.copy, b.twin, twin_fault_name(faults[i]));
        assert_int_equal(0, twin_faults_left(b.twin));
        assert_int_equal(1, copy_resets(&b));
        bench_deinit(&b);
    }
}

static void test_gone_on_a_continue_token(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    put_many(&b, 16);
    twin_fault(b.twin, TWIN_LIST, TWIN_NONE);
    twin_fault(b.twin, TWIN_LIST, TWIN_GONE_STATUS);
    struct reflector_config c = plain_config(&b);
    start(&b, &c);
    expect_equal(&b.copy, b.twin, "restarted list");
    await(stat_gone, &b, 1, "gone");
    assert_int_equal(1, copy_resets(&b));
    assert_int_equal(5, twin_requests(b.twin, TWIN_LIST)); /* two, then three from the beginning */
    bench_deinit(&b);
}

static void test_first_list_in_parts(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        enum twin_fault fault; /* on the second page */
        int64_t parts, listings, resets;
    } rows[] = {
        {"two pages, and the last", TWIN_NONE, 2, 1, 0},
        {"it breaks off after a part: what came is replaced as a whole", TWIN_500, 1, 0, 1},
        {"the token is too old", TWIN_GONE_STATUS, 1, 0, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench b;
        bench_init(&b);
        put_many(&b, 16);
        twin_fault(b.twin, TWIN_LIST, TWIN_NONE);
        twin_fault(b.twin, TWIN_LIST, rows[i].fault);
        struct reflector_config c = plain_config(&b);
        c.in_parts = true;
        twin_fault(b.twin, TWIN_WATCH, TWIN_GONE_STATUS); /* so that there is a later list */
        start(&b, &c);
        expect_equal(&b.copy, b.twin, rows[i].row);
        await(stat_lists, &b, 2, rows[i].row);
        put(&b, 1);
        expect_equal(&b.copy, b.twin, rows[i].row);
        pthread_mutex_lock(&b.copy.lock);
        print_message("%s\n", rows[i].row);
        assert_int_equal(rows[i].parts, b.copy.parts);
        assert_int_equal(rows[i].listings, b.copy.listings);
        assert_int_equal(rows[i].resets + 1, b.copy.resets);
        pthread_mutex_unlock(&b.copy.lock);
        bench_deinit(&b);
    }
}

/* Takes a part only when the page after it was asked for, or after a while. */
struct slow_reader {
    struct twin *twin;
    _Atomic size_t parts, asked_ahead;
};

static bool read_slowly(void *arg, struct reflector_message *l)
{
    struct slow_reader *reader = arg;
    if (l->event == REFLECTOR_PART) {
        size_t parts = atomic_fetch_add(&reader->parts, 1) + 1;
        int64_t end = clock_mono_ms() + 5000;
        while (twin_requests(reader->twin, TWIN_LIST) <= parts && clock_mono_ms() < end)
            clock_sleep_ms(1);
        reader->asked_ahead += twin_requests(reader->twin, TWIN_LIST) > parts;
    }
    reflector_message_free(l);
    return true;
}

static void test_the_next_page_comes_while_one_is_read(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    put_many(&b, 16);
    struct slow_reader reader = {.twin = b.twin};
    struct reflector_config c = plain_config(&b);
    c.in_parts = true;
    c.deliver = read_slowly;
    c.arg = &reader;
    start(&b, &c);
    await(stat_lists, &b, 1, "listed");
    assert_int_equal(2, reader.parts);
    assert_int_equal(2, reader.asked_ahead);
    bench_deinit(&b);
}

static int remains(json *j, const struct error *why, void **out, struct error *err)
{
    struct pod *p = NULL;
    int rc = decode_pod_remains(j, why, &p, err);
    *out = p;
    return rc;
}

static bool is_unreadable(struct bench *b, const char *name)
{
    pthread_mutex_lock(&b->copy.lock);
    const struct pod *p = map_get(&b->copy.pods, name);
    bool is = p && p->unreadable;
    pthread_mutex_unlock(&b->copy.lock);
    return is;
}

static void test_what_remains_of_an_undecodable_one(void **state)
{
    (void)state;
    static const char bad[] = "\"spec\":[]";
    struct bench b;
    bench_init(&b);
    put_many(&b, 3);
    twin_put(b.twin, "bad", bad);
    struct reflector_config c = plain_config(&b);
    c.type.remains = remains;
    start(&b, &c);
    await(stat_watches, &b, 1, "watches");
    expect_equal(&b.copy, b.twin, "it is in the list");
    assert_true(is_unreadable(&b, "bad"));
    assert_int_equal(1, stat_undecodable(&b));
    twin_put(b.twin, "p0", bad);
    expect_equal(&b.copy, b.twin, "a change");
    assert_true(is_unreadable(&b, "p0"));
    twin_put(b.twin, "p0", NULL);
    expect_equal(&b.copy, b.twin, "good again");
    assert_false(is_unreadable(&b, "p0"));
    twin_delete(b.twin, "bad");
    expect_equal(&b.copy, b.twin, "gone");
    bench_deinit(&b);
}

/* Each line that cannot be taken costs a whole list. Events before it do not make the next list
 * come sooner. */
static void test_lists_for_bad_lines_are_spaced(void **state)
{
    (void)state;
    enum { ROUNDS = 12 };
    struct bench b;
    bench_init(&b);
    struct reflector_config c = plain_config(&b);
    c.backoff_first_ms = 1;
    c.backoff_max_ms = 60000;
    start(&b, &c);
    int64_t began = clock_mono_ms();
    for (int64_t i = 1; i <= ROUNDS; i++) {
        await(running_watches, &b, 1, "running watches");
        put(&b, 1);
        twin_break(b.twin, TWIN_UNKNOWN_TYPE);
        await(stat_lists, &b, i + 1, "lists");
    }
    /* 1 + 2 + 4... ms, half of it at least: a lower bound, which no slow machine breaks. */
    assert_true(clock_mono_ms() - began >= ((1 << ROUNDS) - 1) / 2 - ROUNDS);
    assert_int_equal(ROUNDS + 1, stat_lists(&b));
    bench_deinit(&b);
}

static int decode_any_node(json *j, void **out, struct error *err)
{
    struct node *n = NULL;
    int rc = decode_node(j, &n, err);
    *out = n;
    return rc;
}

static void free_any_node(void *n)
{
    node_free(n);
}

static bool drop_message(void *arg, struct reflector_message *l)
{
    (void)arg;
    reflector_message_free(l);
    return true;
}

/* Pages may be of different times. The watch begins where the oldest of them stands, so that it
 * tells what the first pages did not have yet. */
static void test_watches_from_the_first_page(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    static const char *const pages[] = {
        "{\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"t\"},\"items\":[{\"metadata\":{\"name\":\"a\"}}]}",
        "{\"metadata\":{\"resourceVersion\":\"20\"},\"items\":[{\"metadata\":{\"name\":\"b\"}}]}",
        "",
    };
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        twin_script(b.twin, 200, "", pages[i]);
    struct reflector_config c = {.kind = &kube_nodes,
                                 .type = {.decode = decode_any_node, .free = free_any_node},
                                 .deliver = drop_message,
                                 .backoff_first_ms = 60000,
                                 .backoff_max_ms = 60000};
    start(&b, &c);
    await(stat_failures, &b, 1, "the watch ended at once");
    AUTO_STRBUF seen = {0};
    assert_true(twin_request(b.twin, 0, &seen));
    assert_non_null(strstr(strbuf_str(&seen), "watch=1"));
    assert_non_null(strstr(strbuf_str(&seen), "&resourceVersion=10 "));
    bench_deinit(&b);
}

static void test_undecodable_is_absent(void **state)
{
    (void)state;
    static const char bad[] = "\"spec\":[]";
    struct bench b;
    bench_init(&b);
    put_many(&b, 3);
    twin_put(b.twin, "bad", bad);
    struct reflector_config c = plain_config(&b);
    start(&b, &c);
    await(stat_watches, &b, 1, "watches");
    assert_int_equal(1, stat_undecodable(&b));
    assert_int_equal(3, map_count(&b.copy.pods));
    twin_put(b.twin, "bad", NULL);
    expect_equal(&b.copy, b.twin, "it is good now");
    twin_put(b.twin, "bad", bad);
    await(stat_undecodable, &b, 2, "undecodable");
    twin_put(b.twin, "p0", bad);
    twin_delete(b.twin, "bad");
    await(stat_undecodable, &b, 3, "undecodable");
    put(&b, 1);
    await(stat_events, &b, 5, "events");
    pthread_mutex_lock(&b.copy.lock);
    assert_null(map_get(&b.copy.pods, "bad"));
    assert_null(map_get(&b.copy.pods, "p0"));
    assert_non_null(map_get(&b.copy.pods, "p1"));
    pthread_mutex_unlock(&b.copy.lock);
    assert_int_equal(1, stat_lists(&b));
    bench_deinit(&b);
}

static void test_optional_kind(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    put_many(&b, 2);
    twin_absent(b.twin, true);
    struct reflector_config c = plain_config(&b);
    c.optional = true;
    start(&b, &c);
    await(copy_resets, &b, 1, "an empty RESET");
    assert_int_equal(0, map_count(&b.copy.pods));
    twin_absent(b.twin, false);
    expect_equal(&b.copy, b.twin, "installed");
    await(running_watches, &b, 1, "running watches");
    twin_absent(b.twin, true);
    twin_break(b.twin, TWIN_RESET);
    await(copy_resets, &b, 3, "an empty RESET again");
    assert_int_equal(0, map_count(&b.copy.pods));
    bench_deinit(&b);
}

static void test_not_found_is_a_failure_otherwise(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    twin_absent(b.twin, true);
    struct reflector_config c = plain_config(&b);
    start(&b, &c);
    await(stat_failures, &b, 2, "failures");
    assert_int_equal(0, copy_resets(&b));
    bench_deinit(&b);
}

static int said; /* lines about a collection that is not there */
static void count_said(void *arg, const char *line, size_t n)
{
    (void)arg;
    (void)n;
    said += strstr(line, "going on without a collection") && strstr(line, "means=\"no claims\"");
}

static void test_a_forbidden_kind_is_done_without_if_it_may_be(void **state)
{
    (void)state;
    static const struct {
        const char *without;
        bool optional;
        int status;
        bool goes_on;
    } rows[] = {
        {"no claims", true, 403, true},  {"no claims", true, 404, true},
        {NULL, true, 403, false},        {"no claims", false, 403, false},
        {"no claims", true, 401, false}, {"no claims", true, 500, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench b;
        bench_init(&b);
        said = 0;
        log_set_sink(count_said, NULL);
        /* The pods of the twin are another kind: this one is answered as it is told. */
        for (int k = 0; k < 3; k++)
            twin_script(b.twin, rows[i].status, "", "{}");
        for (int k = 0; k < 64; k++)
            twin_script(b.twin, 200, "", "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
        struct reflector_config c = plain_config(&b);
        c.kind = &kube_claims;
        c.optional = rows[i].optional;
        c.without = rows[i].without;
        start(&b, &c);
        await(stat_lists, &b, 1, "it can be read now");
        await(copy_resets, &b, rows[i].goes_on ? 2 : 1, "RESETs");
        /* A RESET follows its list, so more RESETs than lists means one without a list. */
        int64_t resets = copy_resets(&b), lists = stat_lists(&b);
        bench_deinit(&b);
        log_set_sink(drop_line, NULL);
        if (!rows[i].goes_on && resets > lists)
            fail_msg("row %zu: went on", i);
        if (said != (rows[i].goes_on ? 1 : 0))
            fail_msg("row %zu: said it %d times", i, said);
    }
}

static void test_bounds(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    put_many(&b, 9);
    b.options.max_objects = 8;
    struct reflector_config c = plain_config(&b);
    start(&b, &c);
    await(stat_failures, &b, 2, "failures");
    assert_int_equal(0, copy_resets(&b));
    twin_delete(b.twin, "p4");
    expect_equal(&b.copy, b.twin, "eight are allowed");
    bench_deinit(&b);
}

static void test_receiver_closes(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    put_many(&b, 2);
    b.copy.closed = true; /* refuses the RESET */
    struct reflector_config c = plain_config(&b);
    start(&b, &c);
    await(stat_lists, &b, 1, "lists");
    reflector_stop(b.reflector);
    assert_int_equal(0, twin_requests(b.twin, TWIN_WATCH));
    b.copy.closed = false;
    start(&b, &c);
    await(running_watches, &b, 1, "running watches");
    pthread_mutex_lock(&b.copy.lock);
    b.copy.closed = true; /* refuses a change */
    pthread_mutex_unlock(&b.copy.lock);
    put(&b, 1);
    await(stat_events, &b, 1, "events");
    bench_deinit(&b);
}

static void test_stops_in_every_state(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    b.options.request_timeout_ms = b.options.watch_idle_ms = 60000;
    struct reflector_config c = plain_config(&b);
    twin_fault(b.twin, TWIN_LIST, TWIN_HANG);
    start(&b, &c); /* in a list */
    while (twin_faults_left(b.twin) > 0)
        clock_sleep_ms(1);
    int64_t began = clock_mono_ms();
    reflector_stop(b.reflector);
    c.backoff_first_ms = c.backoff_max_ms = 60000;
    twin_fault(b.twin, TWIN_LIST, TWIN_500);
    start(&b, &c); /* in backoff */
    await(stat_failures, &b, 1, "failures");
    reflector_stop(b.reflector);
    start(&b, &c); /* in a watch */
    await(running_watches, &b, 1, "running watches");
    reflector_stop(b.reflector);
    b.reflector = NULL;
    /* Not a timing assertion: each of the three would have waited a minute. */
    assert_true(clock_mono_ms() - began < 50000);
    reflector_stop(NULL);
    bench_deinit(&b);
}

static void test_server_away(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b);
    struct kube_config *nowhere = NULL;
    static const char text[] = "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
                               "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:1'}}]\n";
    assert_int_equal(0, kube_config_parse(&nowhere, text, sizeof text - 1, NULL, "", false, NULL));
    struct kube_config *here = b.config;
    b.config = nowhere;
    struct reflector_config c = plain_config(&b);
    start(&b, &c);
    await(stat_failures, &b, 3, "failures");
    b.config = here;
    bench_deinit(&b);
    kube_config_free(nowhere);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows),
        cmocka_unit_test(test_asks),
        cmocka_unit_test(test_from_etcd),
        cmocka_unit_test(test_bookmark_moves_the_version),
        cmocka_unit_test(test_resume_does_not_list),
        cmocka_unit_test(test_lists_again),
        cmocka_unit_test(test_list_faults),
        cmocka_unit_test(test_gone_on_a_continue_token),
        cmocka_unit_test(test_first_list_in_parts),
        cmocka_unit_test(test_the_next_page_comes_while_one_is_read),
        cmocka_unit_test(test_lists_for_bad_lines_are_spaced),
        cmocka_unit_test(test_watches_from_the_first_page),
        cmocka_unit_test(test_undecodable_is_absent),
        cmocka_unit_test(test_what_remains_of_an_undecodable_one),
        cmocka_unit_test(test_optional_kind),
        cmocka_unit_test(test_a_forbidden_kind_is_done_without_if_it_may_be),
        cmocka_unit_test(test_not_found_is_a_failure_otherwise),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_receiver_closes),
        cmocka_unit_test(test_stops_in_every_state),
        cmocka_unit_test(test_server_away),
    };
    log_set_sink(drop_line, NULL);
    kube_http_global_init();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return failed;
}

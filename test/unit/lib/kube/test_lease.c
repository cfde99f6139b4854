// SPDX-License-Identifier: Apache-2.0
/*
 * The lease's thread against the twin. A last write may take 4 s, so every test takes at least that
 * long; where losing the lead is not tested, the deadline is long enough for a busy machine.
 */
#include "test/unit/lib/base/expect.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/kube/http.h"
#include "lib/kube/lease.h"
#include "test/fake/api/twin.h"

enum { WAIT_MS = 40000 };

/* How long the machine is taken to have slept: the one thing that tells CLOCK_BOOTTIME from
 * CLOCK_MONOTONIC, and that no test can do. */
static _Atomic int64_t slept_s;

int clock_gettime(clockid_t id, struct timespec *ts)
{
    long rc = syscall(SYS_clock_gettime, id, ts);
    if (rc == 0 && id == CLOCK_BOOTTIME)
        ts->tv_sec += (time_t)atomic_load(&slept_s);
    return (int)rc;
}

struct replica {
    struct lease *lease;
    _Atomic int started, lost;
};

struct bench {
    struct twin *twin;
    struct kube_config *config;
    struct kube_options kube;
    struct lease_options options;
};

static void bench_init(struct bench *b)
{
    *b = (struct bench){.twin = twin_start(NULL, false),
                        .kube = twin_options(),
                        .options = {.enabled = true,
                                    .name = "l",
                                    .ns = "kube-system",
                                    .duration_ms = 9100,
                                    .renew_deadline_ms = 5000,
                                    .retry_ms = 30}};
    b->config = twin_config(b->twin);
}

static void bench_deinit(struct bench *b)
{
    kube_config_free(b->config);
    twin_stop(b->twin);
}

static void on_started(void *arg)
{
    atomic_fetch_add(&((struct replica *)arg)->started, 1);
}

static void on_lost(void *arg)
{
    atomic_fetch_add(&((struct replica *)arg)->lost, 1);
}

static void start(struct bench *b, struct replica *r, const char *identity)
{
    struct error err = ERROR_INIT;
    struct lease_callbacks cb = {.started = on_started, .lost = on_lost, .arg = r};
    struct lease_options o = b->options;
    o.identity = identity;
    *r = (struct replica){0};
    if (lease_start(&r->lease, b->config, &b->kube, &o, &cb, &err) < 0)
        fail_msg("%s", err.text);
}

static void await(_Atomic int *figure, int n, const char *what)
{
    for (int64_t end = clock_mono_ms() + WAIT_MS; atomic_load(figure) < n; clock_sleep_ms(1))
        if (clock_mono_ms() >= end)
            fail_msg("%s: expected %d, got %d after %d ms", what, n, atomic_load(figure), WAIT_MS);
}

static void await_requests(struct bench *b, size_t n)
{
    for (int64_t end = clock_mono_ms() + WAIT_MS; twin_requests(b->twin, TWIN_ANY) < n;
         clock_sleep_ms(1))
        if (clock_mono_ms() >= end)
            fail_msg("expected %zu requests, got %zu after %d ms", n,
                     twin_requests(b->twin, TWIN_ANY), WAIT_MS);
}

static void expect_holder(struct bench *b, const char *want)
{
    char holder[256];
    twin_lease_holder(b->twin, holder, sizeof holder);
    assert_string_equal(want, holder);
}

static void test_first_comer_leads_and_renews(void **state)
{
    (void)state;
    struct bench b;
    struct replica r;
    bench_init(&b);
    start(&b, &r, "me");
    await(&r.started, 1, "started");
    assert_true(lease_is_leader(r.lease));
    expect_holder(&b, "me");
    await_requests(&b, 8); /* renewals */
    AUTO_STRBUF seen = {0};
    assert_true(twin_request(b.twin, 0, &seen));
    assert_true(
        str_starts(strbuf_str(&seen),
                   "PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l?timeout="));
    assert_non_null(strstr(strbuf_str(&seen), "\"leaseDurationSeconds\":10,\"acquireTime\":\"20"));
    assert_non_null(strstr(strbuf_str(&seen), "\"leaseTransitions\":0}"));
    lease_stop(r.lease, true);
    expect_holder(&b, "");
    assert_int_equal(0, atomic_load(&r.lost));
    bench_deinit(&b);
}

static void test_released_is_taken_at_once(void **state)
{
    (void)state;
    struct bench b;
    struct replica first, second;
    bench_init(&b);
    start(&b, &first, "first");
    await(&first.started, 1, "first started");
    start(&b, &second, "second");
    await_requests(&b, twin_requests(b.twin, TWIN_ANY) + 20);
    assert_int_equal(0, atomic_load(&second.started)); /* the first renews all the time */
    assert_false(lease_may_write(second.lease));
    lease_stop(first.lease, true);
    int64_t released = clock_mono_ms();
    await(&second.started, 1, "second started");
    assert_true(clock_mono_ms() - released <
                b.options.duration_ms); /* did not wait the lease out */
    expect_holder(&b, "second");
    lease_stop(second.lease, false);
    expect_holder(&b, "second"); /* not released: it runs out */
    bench_deinit(&b);
}

static void test_a_silent_holder_is_waited_out(void **state)
{
    (void)state;
    struct bench b;
    struct replica r;
    bench_init(&b);
    b.options.renew_deadline_ms = 2000;
    b.options.duration_ms = 6100;
    twin_lease_set(b.twin, "somebody");
    int64_t began = clock_mono_ms();
    start(&b, &r, "me");
    await(&r.started, 1, "started");
    assert_true(clock_mono_ms() - began >=
                b.options.duration_ms); /* a lower bound cannot be broken by a slow machine */
    expect_holder(&b, "me");
    AUTO_STRBUF seen = {0};
    await_requests(&b, twin_requests(b.twin, TWIN_ANY) + 1);
    assert_true(twin_request(b.twin, 0, &seen));
    assert_non_null(
        strstr(strbuf_str(&seen), "\"leaseTransitions\":8}")); /* one more than the record had */
    lease_stop(r.lease, true);
    bench_deinit(&b);
}

static void test_another_holder_ends_the_lead(void **state)
{
    (void)state;
    struct bench b;
    struct replica r;
    bench_init(&b);
    start(&b, &r, "me");
    await(&r.started, 1, "started");
    twin_lease_set(b.twin, "usurper");
    await(&r.lost, 1, "lost");
    assert_false(lease_is_leader(r.lease));
    assert_false(lease_may_write(r.lease));
    lease_stop(r.lease, true);
    assert_int_equal(1, atomic_load(&r.lost));
    expect_holder(&b, "usurper"); /* nothing to release */
    bench_deinit(&b);
}

static void test_a_deleted_lease_ends_the_lead(void **state)
{
    (void)state;
    struct bench b;
    struct replica r;
    bench_init(&b);
    start(&b, &r, "me");
    await(&r.started, 1, "started");
    twin_lease_delete(b.twin);
    await(&r.lost, 1, "lost");
    lease_stop(r.lease, true);
    bench_deinit(&b);
}

static void test_cut_off(void **state)
{
    (void)state;
    static const enum twin_fault faults[] = {TWIN_HANG, TWIN_500, TWIN_RESET};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct bench b;
        struct replica r;
        bench_init(&b);
        b.options.renew_deadline_ms = 500;
        b.options.duration_ms = 4600;
        start(&b, &r, "me");
        await(&r.started, 1, "started");
        for (int k = 0; k < 2000; k++)
            twin_fault(b.twin, TWIN_ANY, faults[i]);
        await(&r.lost, 1, twin_fault_name(faults[i]));
        assert_false(lease_may_write(r.lease));
        lease_stop(r.lease, true);
        bench_deinit(&b);
    }
}

static void test_short_trouble_is_survived(void **state)
{
    (void)state;
    struct bench b;
    struct replica r;
    bench_init(&b);
    b.options.renew_deadline_ms = 20000; /* a slow machine is not the subject here */
    b.options.duration_ms = 30000;
    start(&b, &r, "me");
    await(&r.started, 1, "started");
    static const enum twin_fault faults[] = {TWIN_500,  TWIN_RESET,       TWIN_CLOSE,
                                             TWIN_HTML, TWIN_GONE_STATUS, TWIN_NONE};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        twin_fault(b.twin, TWIN_ANY, faults[i]);
    while (twin_faults_left(b.twin) > 0)
        clock_sleep_ms(1);
    await_requests(&b, twin_requests(b.twin, TWIN_ANY) + 5);
    assert_true(lease_may_write(r.lease));
    assert_int_equal(0, atomic_load(&r.lost));
    lease_stop(r.lease, true);
    expect_holder(&b, "");
    bench_deinit(&b);
}

static void test_a_machine_that_slept(void **state)
{
    (void)state;
    struct bench b;
    struct replica r;
    bench_init(&b);
    b.options.retry_ms = 60000; /* no renewal in between */
    b.options.renew_deadline_ms = 120000;
    b.options.duration_ms = 130000;
    start(&b, &r, "me");
    await(&r.started, 1, "started");
    assert_true(lease_may_write(r.lease));
    atomic_store(&slept_s, 3600);
    bool may = lease_may_write(r.lease);
    lease_stop(r.lease, true);
    atomic_store(&slept_s, 0);
    assert_false(may);
    bench_deinit(&b);
}

/* A Lease with an unreadable holder is held. */
static void test_unreadable_holder(void **state)
{
    (void)state;
    struct bench b;
    struct replica r;
    bench_init(&b);
    twin_lease_set(b.twin, "some\\u0000body");
    start(&b, &r, "me");
    await_requests(&b, 10);
    assert_int_equal(0, atomic_load(&r.started));
    lease_stop(r.lease, true);
    bench_deinit(&b);
}

/* A server that says no to every renewal and yes to every look (the right to write was taken away)
 * is not asked without a pause: the lead would be lost long before so many refusals are used up. */
static void test_refused_renewals_are_spaced(void **state)
{
    (void)state;
    struct bench b;
    struct replica r;
    bench_init(&b);
    b.options.retry_ms = 1000;
    b.options.renew_deadline_ms = 3000;
    b.options.duration_ms = 7100;
    start(&b, &r, "me");
    await(&r.started, 1, "started");
    for (int i = 0; i < 400; i++)
        twin_fault(b.twin, TWIN_ANY, i % 2 ? TWIN_NONE : TWIN_500); /* PUT, GET, PUT... */
    await(&r.lost, 1, "lost");
    assert_true(twin_faults_left(b.twin) > 300);
    lease_stop(r.lease, true);
    bench_deinit(&b);
}

/* The reply to a renewal is lost, but it was stored: our version is old, the holder is still us. */
static void test_lost_reply(void **state)
{
    (void)state;
    struct bench b;
    struct replica r;
    bench_init(&b);
    b.options.renew_deadline_ms = 20000;
    b.options.duration_ms = 30000;
    start(&b, &r, "me");
    await(&r.started, 1, "started");
    twin_lease_set(b.twin, "me"); /* the version moved under us */
    await_requests(&b, twin_requests(b.twin, TWIN_ANY) + 8);
    assert_int_equal(0, atomic_load(&r.lost));
    assert_true(lease_may_write(r.lease));
    /* The same, at the moment of the release. */
    twin_lease_set(b.twin, "me");
    lease_stop(r.lease, true);
    expect_holder(&b, "");
    bench_deinit(&b);
}

static void test_release_that_fails(void **state)
{
    (void)state;
    struct bench b;
    struct replica r;
    bench_init(&b);
    b.options.retry_ms = 499; /* no renewal in between */
    b.options.renew_deadline_ms = 20000;
    b.options.duration_ms = 30000;
    start(&b, &r, "me");
    await(&r.started, 1, "started");
    for (int i = 0; i < 20; i++)
        twin_fault(b.twin, TWIN_ANY, TWIN_500);
    lease_stop(r.lease, true);
    expect_holder(&b, "me");
    bench_deinit(&b);
}

static void test_stop_while_waiting(void **state)
{
    (void)state;
    struct bench b;
    struct replica r;
    bench_init(&b);
    b.options.retry_ms = 499;
    twin_lease_set(b.twin, "somebody");
    start(&b, &r, NULL);
    await_requests(&b, 1);
    lease_stop(r.lease, true);
    lease_stop(NULL, true);
    assert_int_equal(0, atomic_load(&r.started) + atomic_load(&r.lost));
    expect_holder(&b, "somebody");
    bench_deinit(&b);
}

static void test_trouble_while_looking(void **state)
{
    (void)state;
    struct bench b;
    struct replica r;
    bench_init(&b);
    b.options.ns = NULL; /* ours, "ns" */
    twin_fault(b.twin, TWIN_ANY, TWIN_500);
    twin_fault(b.twin, TWIN_ANY, TWIN_HTML);
    twin_fault(b.twin, TWIN_ANY, TWIN_NONE);
    twin_fault(b.twin, TWIN_ANY, TWIN_500); /* the first POST */
    start(&b, &r, NULL);
    await(&r.started, 1, "started");
    AUTO_STRBUF seen = {0};
    assert_true(twin_request(b.twin, 0, &seen));
    assert_non_null(strstr(strbuf_str(&seen), "/namespaces/ns/leases"));
    char holder[256];
    twin_lease_holder(b.twin, holder, sizeof holder);
    assert_non_null(strchr(holder, '_')); /* made of host, process and a number */
    lease_stop(r.lease, true);
    bench_deinit(&b);
}

static void test_off(void **state)
{
    (void)state;
    struct bench b;
    struct replica r;
    bench_init(&b);
    b.options = (struct lease_options){.enabled = false};
    start(&b, &r, NULL);
    assert_int_equal(1, atomic_load(&r.started));
    assert_true(lease_may_write(r.lease));
    assert_true(lease_is_leader(r.lease));
    lease_stop(r.lease, true);
    assert_int_equal(0, twin_requests(b.twin, TWIN_ANY));
    bench_deinit(&b);
}

static void test_options(void **state)
{
    (void)state;
    static char long_name[300];
    memset(long_name, 'x', sizeof long_name - 1);
    static const struct {
        const char *row;
        struct lease_options o;
        bool good;
    } rows[] = {
        {"the usual times",
         {.enabled = true,
          .name = "l",
          .duration_ms = 15000,
          .renew_deadline_ms = 10000,
          .retry_ms = 2000},
         true},
        {"no time for a last write",
         {.enabled = true,
          .name = "l",
          .duration_ms = 14000,
          .renew_deadline_ms = 10000,
          .retry_ms = 2000},
         false},
        {"just enough",
         {.enabled = true,
          .name = "l",
          .duration_ms = 14001,
          .renew_deadline_ms = 10000,
          .retry_ms = 2000},
         true},
        {"no retry before the deadline",
         {.enabled = true,
          .name = "l",
          .duration_ms = 15000,
          .renew_deadline_ms = 2000,
          .retry_ms = 2000},
         false},
        {"no retry at all",
         {.enabled = true, .name = "l", .duration_ms = 15000, .renew_deadline_ms = 2000},
         false},
        {"no name",
         {.enabled = true,
          .name = "",
          .duration_ms = 15000,
          .renew_deadline_ms = 10000,
          .retry_ms = 2000},
         false},
        {"a long identity",
         {.enabled = true,
          .name = "l",
          .identity = long_name,
          .duration_ms = 15000,
          .renew_deadline_ms = 10000,
          .retry_ms = 2000},
         false},
    };
    struct bench b;
    bench_init(&b);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lease *l = NULL;
        struct error err = ERROR_INIT;
        struct lease_callbacks none = {0};
        expect_int(rows[i].row, rows[i].good ? 0 : -1,
                   lease_start(&l, b.config, &b.kube, &rows[i].o, &none, &err));
        lease_stop(l, false);
    }
    bench_deinit(&b);
    expect_done();
}

/* The lead of one ends before the next may write, whatever happens to the server in between. */
static void test_never_two(void **state)
{
    (void)state;
    struct bench b;
    struct replica r[2];
    bench_init(&b);
    b.options.renew_deadline_ms = 500;
    b.options.duration_ms = 4600;
    start(&b, &r[0], "a");
    start(&b, &r[1], "b");
    while (atomic_load(&r[0].started) + atomic_load(&r[1].started) == 0)
        clock_sleep_ms(1);
    for (int i = 0; i < 60; i++)
        twin_fault(b.twin, TWIN_ANY, i % 3 ? TWIN_500 : TWIN_RESET);
    int64_t end = clock_mono_ms() + 8000;
    int64_t both = 0;
    while (clock_mono_ms() < end && atomic_load(&r[0].started) + atomic_load(&r[1].started) < 2) {
        both += lease_may_write(r[0].lease) && lease_may_write(r[1].lease);
        clock_sleep_ms(1);
    }
    assert_int_equal(0, both);
    lease_stop(r[0].lease, true);
    lease_stop(r[1].lease, true);
    bench_deinit(&b);
}

static void drop_line(void *arg, const char *line, size_t n)
{
    (void)arg, (void)line, (void)n;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_comer_leads_and_renews),
        cmocka_unit_test(test_released_is_taken_at_once),
        cmocka_unit_test(test_a_silent_holder_is_waited_out),
        cmocka_unit_test(test_another_holder_ends_the_lead),
        cmocka_unit_test(test_a_deleted_lease_ends_the_lead),
        cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_short_trouble_is_survived),
        cmocka_unit_test(test_a_machine_that_slept),
        cmocka_unit_test(test_unreadable_holder),
        cmocka_unit_test(test_refused_renewals_are_spaced),
        cmocka_unit_test(test_lost_reply),
        cmocka_unit_test(test_release_that_fails),
        cmocka_unit_test(test_stop_while_waiting),
        cmocka_unit_test(test_trouble_while_looking),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_never_two),
    };
    log_set_sink(drop_line, NULL);
    kube_http_global_init();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return failed;
}

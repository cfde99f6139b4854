// SPDX-License-Identifier: Apache-2.0
/*
 * The reflector against the twin: after every fault its copy equals the twin's pods, object by object. COSCHED_SEED=N repeats a run.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/num.h"
#include "lib/kube/decode.h"
#include "lib/kube/http.h"
#include "lib/kube/reflector.h"
#include "test/fake/api/twin.h"

enum { WAIT_MS = 30000 };

/* ---- a receiver ----------------------------------------------------------------------------- */

struct copy {
    pthread_mutex_t lock;
    struct map pods; /* name → struct pod */
    int64_t resets, puts, deletes;
    bool closed;
};

static int decode(json *j, void **out, struct error *err)
{
    struct pod *p = NULL;
    int rc = decode_pod(j, &p, err);
    *out = p;
    return rc;
}

static void free_pod(void *p)
{
    pod_free(p);
}

static void empty(struct copy *c)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&c->pods, &i, &key, &value);) {
        map_remove(&c->pods, key);
        pod_free(value);
    }
}

static bool deliver(void *arg, struct reflector_letter *l)
{
    struct copy *c = arg;
    pthread_mutex_lock(&c->lock);
    bool open = !c->closed;
    if (open && l->event == REFLECTOR_RESET) {
        c->resets++;
        empty(c);
    }
    for (size_t i = 0; open && i < l->len; i++) {
        struct pod *p = l->objects[i];
        if (l->event == REFLECTOR_DELETE) {
            c->deletes++;
            pod_free(map_remove(&c->pods, p->name));
            continue;
        }
        c->puts += l->event == REFLECTOR_PUT;
        l->objects[i] = NULL;
        pod_free(map_put(&c->pods, p->name, p));
    }
    pthread_mutex_unlock(&c->lock);
    reflector_letter_free(l);
    return open;
}

static void copy_init(struct copy *c)
{
    *c = (struct copy){0};
    pthread_mutex_init(&c->lock, NULL);
    map_init(&c->pods);
}

static void copy_deinit(struct copy *c)
{
    empty(c);
    map_deinit(&c->pods);
    pthread_mutex_destroy(&c->lock);
}

/* "" when equal, else the first difference. */
static void compare(struct copy *c, struct twin *t, char *out, size_t size)
{
    struct twin_pod *want;
    size_t n = twin_pods(t, &want);
    out[0] = 0;
    pthread_mutex_lock(&c->lock);
    if (map_count(&c->pods) != n)
        str_format(out, size, "expected %zu pods, got %zu", n, map_count(&c->pods));
    for (size_t i = 0; i < n && !out[0]; i++) {
        const struct pod *p = map_get(&c->pods, want[i].name);
        const char *label = p ? str_or_empty(labels_get(&p->labels, "n")) : "";
        if (!p)
            str_format(out, size, "pod %s is missing", want[i].name);
        else if (!str_eq(p->uid, want[i].uid) || !str_eq(p->resource_version, want[i].version) ||
                 !str_eq(label, want[i].version))
            str_format(out, size, "pod %s: expected %s at %s, got %s at %s, label %s", want[i].name,
                       want[i].uid, want[i].version, p->uid, p->resource_version, label);
    }
    pthread_mutex_unlock(&c->lock);
    free(want);
}

static void expect_equal(struct copy *c, struct twin *t, const char *when)
{
    char difference[256];
    int64_t end = clock_mono_ms() + WAIT_MS;
    do {
        compare(c, t, difference, sizeof difference);
        if (!difference[0])
            return;
        clock_sleep_ms(1);
    } while (clock_mono_ms() < end);
    fail_msg("%s: not equal after %d ms: %s", when, WAIT_MS, difference);
}

/* ---- setting up ----------------------------------------------------------------------------- */

struct bench {
    struct twin *twin;
    struct kube_config *config;
    struct kube_options options;
    struct copy copy;
    struct reflector *reflector;
};

static void bench_init(struct bench *b)
{
    *b = (struct bench){.twin = twin_start(NULL, false), .options = twin_options()};
    b->config = twin_config(b->twin);
    copy_init(&b->copy);
}

static struct reflector_config plain_config(struct bench *b)
{
    return (struct reflector_config){.kind = &kube_pods,
                                     .type = {.decode = decode, .free = free_pod},
                                     .deliver = deliver,
                                     .arg = &b->copy,
                                     .backoff_first_ms = 2,
                                     .backoff_max_ms = 50,
                                     .optional_ms = 20};
}

static void start(struct bench *b, const struct reflector_config *c)
{
    struct error err = ERROR_INIT;
    if (reflector_start(&b->reflector, b->config, &b->options, c, &err) < 0)
        fail_msg("reflector_start: %s", err.text);
}

static void bench_deinit(struct bench *b)
{
    reflector_stop(b->reflector);
    twin_stop(b->twin);
    kube_config_free(b->config);
    copy_deinit(&b->copy);
}

/* Polls a figure until it is at least n. */
static void await(int64_t (*figure)(struct bench *), struct bench *b, int64_t n, const char *what)
{
    int64_t end = clock_mono_ms() + WAIT_MS, got;
    while ((got = figure(b)) < n) {
        if (clock_mono_ms() >= end)
            fail_msg("%s: expected at least %lld, got %lld after %d ms", what, (long long)n,
                     (long long)got, WAIT_MS);
        clock_sleep_ms(1);
    }
}

#define STAT(field)                              \
    static int64_t stat_##field(struct bench *b) \
    {                                            \
        struct reflector_stats s;                \
        reflector_stats(b->reflector, &s);       \
        return s.field;                          \
    }
STAT(lists)
STAT(watches)
STAT(events)
STAT(bookmarks)
STAT(gone)
STAT(failures)
STAT(undecodable)

static int64_t copy_resets(struct bench *b)
{
    pthread_mutex_lock(&b->copy.lock);
    int64_t n = b->copy.resets;
    pthread_mutex_unlock(&b->copy.lock);
    return n;
}

static int64_t running_watches(struct bench *b)
{
    return (int64_t)twin_break(b->twin, TWIN_NONE);
}

static int64_t broken(struct bench *b)
{
    return (int64_t)twin_broken(b->twin);
}

static int64_t faults_met(struct bench *b)
{
    return -(int64_t)twin_faults_left(b->twin);
}

static void put(struct bench *b, unsigned i)
{
    char name[32];
    str_format(name, sizeof name, "p%u", i);
    twin_put(b->twin, name, NULL);
}

static void put_many(struct bench *b, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        put(b, i);
}

/* ---- tests ---------------------------------------------------------------------------------- */

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

static void test_undecodable_is_absent(void **state)
{
    (void)state;
    static const char bad[] =
        "\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"x\"}}}]}";
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

/* Its own generator: the same on every machine. */
static uint64_t random_state;
static unsigned any(unsigned n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % n;
}

static void change(struct bench *b, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned which = any(40);
        char name[32];
        str_format(name, sizeof name, "p%u", which);
        if (any(3) == 0)
            twin_delete(b->twin, name);
        else
            twin_put(b->twin, name, NULL);
    }
}

static void test_fifty_faults(void **state)
{
    (void)state;
    enum { FAULTS = 60 };
    int64_t seed = clock_wall_ns() / 1000 % 1000000;
    if (getenv("COSCHED_SEED"))
        assert_int_equal(
            0, num_parse(getenv("COSCHED_SEED"), strlen(getenv("COSCHED_SEED")), &seed, NULL));
    random_state = (uint64_t)seed;
    printf("seed %lld\n", (long long)seed);
    struct bench b;
    bench_init(&b);
    b.options.request_timeout_ms = 300;
    change(&b, 60);
    struct reflector_config c = plain_config(&b);
    start(&b, &c);
    expect_equal(&b.copy, b.twin, "first list");
    unsigned met[TWIN_FAULTS] = {0};
    for (unsigned i = 0; i < FAULTS; i++) {
        enum twin_fault fault = (enum twin_fault)(1 + any(TWIN_FAULTS - 1));
        char when[128];
        str_format(when, sizeof when, "seed %lld, fault %u: %s", (long long)seed, i,
                   twin_fault_name(fault));
        met[fault]++;
        change(&b, any(4));
        await(running_watches, &b, 1, when);
        int64_t breaks = broken(&b);
        if (any(3) == 0)
            twin_compact(b.twin);
        if (any(4) == 0)
            twin_bookmark(b.twin);
        switch (any(3)) {
        case 0:
            twin_break(b.twin, fault);
            break;
        case 1:
            twin_fault(b.twin, TWIN_WATCH, fault);
            twin_break(b.twin, TWIN_RESET);
            break;
        default:
            twin_fault(b.twin, TWIN_LIST, fault);
            twin_fault(b.twin, TWIN_WATCH, TWIN_GONE_STATUS);
            twin_break(b.twin, TWIN_CUT_LINE);
        }
        change(&b, any(6));
        await(broken, &b, breaks + 1, when);
        await(faults_met, &b, 0, when);
        change(&b, any(3));
        expect_equal(&b.copy, b.twin, when);
    }
    for (unsigned f = 1; f < TWIN_FAULTS; f++)
        if (met[f])
            printf("  %-12s %u\n", twin_fault_name((enum twin_fault)f), met[f]);
    bench_deinit(&b);
}

static void drop_line(void *arg, const char *line, size_t n)
{
    (void)arg, (void)line, (void)n;
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
        cmocka_unit_test(test_undecodable_is_absent),
        cmocka_unit_test(test_optional_kind),
        cmocka_unit_test(test_not_found_is_a_failure_otherwise),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_receiver_closes),
        cmocka_unit_test(test_stops_in_every_state),
        cmocka_unit_test(test_server_away),
        cmocka_unit_test(test_fifty_faults),
    };
    log_set_sink(drop_line, NULL);
    kube_http_global_init();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return failed;
}

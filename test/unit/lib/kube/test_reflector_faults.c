// SPDX-License-Identifier: Apache-2.0
/*
 * Fault after fault, by chance: after each the reflector's copy equals the twin's pods, object by
 * object. COSCHED_SEED=N repeats a run, COSCHED_FAULTS=N makes it longer.
 */
#include "test/unit/lib/kube/reflector_bench.h"

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

static void from_environment(const char *name, int64_t *out)
{
    const char *text = getenv(name);
    if (text && num_parse_range(text, 1, 1000000, out, NULL) < 0)
        fail_msg("%s=%s is not a number from 1 to 1000000", name, text);
}

static void test_fifty_faults(void **state)
{
    (void)state;
    int64_t faults = 60;
    int64_t seed = clock_wall_ns() / 1000 % 1000000;
    from_environment("COSCHED_SEED", &seed);
    from_environment("COSCHED_FAULTS", &faults);
    random_state = (uint64_t)seed;
    printf("seed %lld\n", (long long)seed);
    struct bench b;
    bench_init(&b);
    b.options.request_timeout_ms = b.options.watch_idle_ms = 300;
    change(&b, 60);
    struct reflector_config c = plain_config(&b);
    start(&b, &c);
    expect_equal(&b.copy, b.twin, "first list");
    unsigned met[TWIN_FAULTS] = {0};
    for (int64_t i = 0; i < faults; i++) {
        enum twin_fault fault = (enum twin_fault)(1 + any(TWIN_FAULTS - 1));
        char when[128];
        str_format(when, sizeof when, "seed %lld, fault %lld: %s", (long long)seed, (long long)i,
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

/* A tenant decides how large his pods are, but not whether the others can be listed. */
static void test_large_objects_make_small_pages(void **state)
{
    (void)state;
    enum { SMALL = 20, LARGE = 9, BYTES = 3000, PAGE_MAX = 8192 };
    struct bench b;
    AUTO_STRBUF note = {0};
    bench_init(&b);
    put_many(&b, SMALL);
    strbuf_adds(&note, "\"spec\":{\"x\":\"");
    for (int i = 0; i < BYTES; i++)
        strbuf_addc(&note, 'x');
    strbuf_adds(&note, "\"}");
    for (unsigned i = 0; i < LARGE; i++) {
        char name[32];
        str_format(name, sizeof name, "large%u", i);
        twin_put(b.twin, name, strbuf_str(&note));
    }
    struct reflector_config c = plain_config(&b);
    b.options.max_list_bytes = PAGE_MAX;
    start(&b, &c);
    await(stat_watches, &b, 1, "watches");
    expect_equal(&b.copy, b.twin, "all are there");
    assert_int_equal(SMALL + LARGE, map_count(&b.copy.pods));
    assert_int_equal(0, stat_failures(&b));
    bench_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fifty_faults),
                                       cmocka_unit_test(test_large_objects_make_small_pages)};
    log_set_sink(drop_line, NULL);
    kube_http_global_init();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return failed;
}

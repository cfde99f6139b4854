// SPDX-License-Identifier: Apache-2.0
#include "lib/model/cpuset.h"

#include "test/unit/lib/base/expect.h"

static struct cpuset set_of(const char *text)
{
    struct cpuset s;
    struct error err = ERROR_INIT;

    if (cpuset_parse(text, &s, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return s;
}

static void lists_are_read_and_printed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *printed;
        unsigned count;
    } rows[] = {
        {"", "", 0},           {" \t\n", "", 0},
        {"\n", "", 0},         {"0", "0", 1},
        {"0-0", "0", 1},       {"0-3,8,10-11", "0-3,8,10-11", 7},
        {" 0-3\n", "0-3", 4},  {"63-64", "63-64", 2},
        {"1023", "1023", 1},   {"0-1023", "0-1023", 1024},
        {"3,2,1", "1-3", 3},   {"0-3,2-5", "0-5", 6},
        {"5,5,5", "5", 1},     {"007", "7", 1},
        {"0,2,4", "0,2,4", 3}, {"0-63,128-191", "0-63,128-191", 128},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cpuset s = set_of(rows[i].text);
        AUTO_STRBUF out;
        strbuf_init(&out);
        cpuset_print(&s, &out);
        expect_str(rows[i].text, rows[i].printed, strbuf_str(&out));
        expect_int(rows[i].text, rows[i].count, cpuset_count(&s));
        expect_int(rows[i].text, rows[i].count == 0, cpuset_is_empty(&s));
    }
    expect_done();
}

static void bad_lists_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum error_code code;
    } rows[] = {
        {"x", ERROR_INVALID},
        {"-", ERROR_INVALID},
        {"1-", ERROR_INVALID},
        {"-1", ERROR_INVALID},
        {"1,", ERROR_INVALID},
        {",1", ERROR_INVALID},
        {"1,,2", ERROR_INVALID},
        {"1 2", ERROR_INVALID},
        {"1, 2", ERROR_INVALID},
        {"1 -2", ERROR_INVALID},
        {"1-2-3", ERROR_INVALID},
        {"3-1", ERROR_INVALID},
        {"+1", ERROR_INVALID},
        {"0x1", ERROR_INVALID},
        {"1.5", ERROR_INVALID},
        {"0-10:2/4", ERROR_INVALID},
        {"1024", ERROR_RANGE},
        {"0-1024", ERROR_RANGE},
        {"99999999999999999999", ERROR_RANGE},
        {"4294967296", ERROR_RANGE},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cpuset s;
        struct error err = ERROR_INIT;
        expect_int(rows[i].text, -1, cpuset_parse(rows[i].text, &s, &err));
        expect_str(rows[i].text, error_code_name(rows[i].code), error_code_name(err.code));
        expect_true("nothing is left in it", cpuset_is_empty(&s));
    }
    expect_done();
}

static void single_cpus(void **state)
{
    (void)state;
    struct cpuset s;

    cpuset_clear(&s);
    for (unsigned cpu = 0; cpu < CPUSET_MAX; cpu += 63) {
        expect_int("before", false, cpuset_has(&s, cpu));
        cpuset_add(&s, cpu);
        expect_true("added", cpuset_has(&s, cpu));
    }
    cpuset_remove(&s, 63);
    expect_int("removed", false, cpuset_has(&s, 63));
    expect_true("its neighbour stays", cpuset_has(&s, 126));
    struct cpuset before = s;
    cpuset_add(&s, CPUSET_MAX);
    cpuset_remove(&s, CPUSET_MAX);
    expect_true("beyond the end nothing happens", cpuset_equal(&s, &before));
    expect_int("beyond the end", false, cpuset_has(&s, CPUSET_MAX));
    expect_done();
}

static void walking_meets_each_cpu_once(void **state)
{
    (void)state;
    struct cpuset s = set_of("0,63-64,127,1023");
    static const int expected[] = {0, 63, 64, 127, 1023};
    size_t n = 0;

    for (int cpu = -1; (cpu = cpuset_next(&s, cpu)) >= 0;) {
        assert_true(n < 5);
        expect_int("cpu", expected[n++], cpu);
    }
    expect_int("all of them", 5, (int64_t)n);
    expect_int("after the last possible", -1, cpuset_next(&s, CPUSET_MAX - 1));
    expect_int("far behind", -1, cpuset_next(&s, INT32_MAX));
    cpuset_clear(&s);
    expect_int("in the empty set", -1, cpuset_next(&s, -1));
    expect_done();
}

static void sets_combine(void **state)
{
    (void)state;
    struct cpuset a = set_of("0-3,100"), b = set_of("2-5,200"), both = set_of("2-3"), s;
    struct cpuset whole = set_of("0-5,100,200"), rest = set_of("0-1,100");

    s = a;
    cpuset_union(&s, &b);
    expect_true("union", cpuset_equal(&s, &whole));
    s = a;
    cpuset_intersect(&s, &b);
    expect_true("intersection", cpuset_equal(&s, &both));
    s = a;
    cpuset_subtract(&s, &b);
    expect_true("difference", cpuset_equal(&s, &rest));
    expect_true("part of the union", cpuset_is_subset(&a, &whole));
    expect_true("part of itself", cpuset_is_subset(&a, &a));
    expect_int("not part of the other", false, cpuset_is_subset(&a, &b));
    expect_int("not equal", false, cpuset_equal(&a, &b));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_read_and_printed),
        cmocka_unit_test(bad_lists_are_refused),
        cmocka_unit_test(single_cpus),
        cmocka_unit_test(walking_meets_each_cpu_once),
        cmocka_unit_test(sets_combine),
    };
    return cmocka_run_group_tests_name("cpuset", tests, NULL, NULL);
}

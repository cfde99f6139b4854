// SPDX-License-Identifier: Apache-2.0
#include "lib/base/clock.h"

#include <pthread.h>

#include "test/unit/lib/base/expect.h"

static const int64_t s = INT64_C(1000000000);

static void clocks_go_forward(void **state)
{
    (void)state;
    int64_t us = clock_mono_us();
    int64_t ms = clock_mono_ms();
    expect_true("microseconds and milliseconds are one clock", ms >= us / 1000);
    expect_true("it does not go back", clock_mono_us() >= us);
    expect_true("time asleep counts on the boot clock", clock_boot_ms() >= ms);
    expect_true("the wall clock is past the day this was written",
                clock_wall_ns() > 1700000000 * s);
    clock_sleep_ms(0);
    clock_sleep_ms(-5);
    int64_t before = clock_mono_us();
    clock_sleep_ms(2);
    expect_true("a sleep is not shorter than asked", clock_mono_us() - before >= 2000);
    expect_done();
}

static void writing_rfc3339(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        int64_t ns;
        int micros;
        const char *text;
    } rows[] = {
        {"the epoch", 0, 0, "1970-01-01T00:00:00Z"},
        {"the epoch, with micros", 0, 1, "1970-01-01T00:00:00.000000Z"},
        {"a MicroTime", INT64_C(1772366400123456789), 1, "2026-03-01T12:00:00.123456Z"},
        {"without the fraction", INT64_C(1772366400123456789), 0, "2026-03-01T12:00:00Z"},
        {"the last nanosecond before a second", INT64_C(999999999), 1,
         "1970-01-01T00:00:00.999999Z"},
        {"one nanosecond before the epoch", -1, 1, "1969-12-31T23:59:59.999999Z"},
        {"one second before the epoch", INT64_C(-1000000000), 0, "1969-12-31T23:59:59Z"},
        {"a leap day", INT64_C(951782400000000000), 0, "2000-02-29T00:00:00Z"},
        {"the last that there is", INT64_MAX, 1, "2262-04-11T23:47:16.854775Z"},
        {"the first that there is", INT64_MIN, 1, "1677-09-21T00:12:43.145224Z"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[CLOCK_RFC3339_SIZE];
        clock_rfc3339(rows[i].ns, rows[i].micros, out);
        expect_str(rows[i].row, rows[i].text, out);
    }
    expect_done();
}

static void reading_rfc3339(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *text;
        int64_t ns;
    } rows[] = {
        {"the epoch", "1970-01-01T00:00:00Z", 0},
        {"the second before it", "1969-12-31T23:59:59Z", -1},
        {"a MicroTime", "2026-03-01T12:00:00.123456Z", INT64_C(1772366400123456000)},
        {"one digit of fraction", "1970-01-01T00:00:01.5Z", INT64_C(1500000000)},
        {"nine digits", "1970-01-01T00:00:01.000000001Z", INT64_C(1000000001)},
        {"finer than a nanosecond is dropped", "1970-01-01T00:00:01.0000000019999999999999Z",
         INT64_C(1000000001)},
        {"a dot without digits", "1970-01-01T00:00:01.Z", -1},
        {"east is earlier", "1970-01-01T02:00:00+02:00", 0},
        {"west is later", "1970-01-01T00:00:00-00:30", INT64_C(1800000000000)},
        {"the largest offset", "1970-01-02T00:00:00+23:59", INT64_C(60000000000)},
        {"hours of 24 are no offset", "1970-01-03T00:00:00+24:00", -1},
        {"minutes of 60 neither", "1970-01-03T00:00:00+00:60", -1},
        {"an offset without a colon", "1970-01-03T00:00:00+0100", -1},
        {"an offset before the epoch", "1970-01-01T00:00:00+00:01", -1},
        {"a leap day", "2000-02-29T00:00:00Z", INT64_C(951782400000000000)},
        {"a leap day in a year that is not", "2001-02-29T00:00:00Z", -1},
        {"a century is no leap year", "2100-02-29T00:00:00Z", -1},
        {"but its last day of February is one", "2100-02-28T00:00:00Z",
         INT64_C(4107456000000000000)},
        {"April has 30 days", "2026-04-30T00:00:00Z", INT64_C(1777507200000000000)},
        {"not 31", "2026-04-31T00:00:00Z", -1},
        {"month 0", "2026-00-01T00:00:00Z", -1},
        {"month 12", "2026-12-31T23:59:59Z", INT64_C(1798761599000000000)},
        {"month 13", "2026-13-01T00:00:00Z", -1},
        {"day 0", "2026-01-00T00:00:00Z", -1},
        {"hour 24", "2026-01-01T24:00:00Z", -1},
        {"minute 60", "2026-01-01T00:60:00Z", -1},
        {"second 60", "2026-12-31T23:59:60Z", -1},
        {"the last second that there is", "2262-04-11T23:47:16Z", INT64_C(9223372036000000000)},
        {"the last nanosecond", "2262-04-11T23:47:16.854775807Z", INT64_MAX},
        {"one more", "2262-04-11T23:47:16.854775808Z", -1},
        {"the next second", "2262-04-11T23:47:17Z", -1},
        {"the last year with four digits", "9999-12-31T23:59:59Z", -1},
        {"year 0", "0000-01-01T00:00:00Z", -1},
        {"a small t", "1970-01-01t00:00:00Z", -1},
        {"a small z", "1970-01-01T00:00:00z", -1},
        {"a blank instead of T", "1970-01-01 00:00:00Z", -1},
        {"no zone", "1970-01-01T00:00:00", -1},
        {"something behind Z", "1970-01-01T00:00:00Z ", -1},
        {"something behind the offset", "1970-01-01T00:00:00-00:00x", -1},
        {"one digit missing", "1970-1-01T00:00:00Z", -1},
        {"no seconds", "1970-01-01T00:00Z", -1},
        {"a sign in a number", "1970-01-01T00:00:-1Z", -1},
        {"a date only", "1970-01-01", -1},
        {"cut inside the year", "19", -1},
        {"cut inside the offset", "1970-01-01T00:00:00+0", -1},
        {"nothing", "", -1},
        {"NULL", NULL, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_int(rows[i].row, rows[i].ns, clock_parse_rfc3339(rows[i].text));
    expect_done();
}

static void what_is_written_can_be_read(void **state)
{
    (void)state;
    /* Odd steps through the whole range, so that every field takes many values. */
    for (int64_t ns = 0; ns < INT64_MAX - INT64_C(7777777777777777);
         ns += INT64_C(7777777777777777)) {
        char out[CLOCK_RFC3339_SIZE];
        clock_rfc3339(ns, 1, out);
        expect_int(out, ns / 1000 * 1000, clock_parse_rfc3339(out));
        clock_rfc3339(ns, 0, out);
        expect_int(out, ns / s * s, clock_parse_rfc3339(out));
    }
    expect_done();
}

static void *roll(void *out)
{
    int64_t *numbers = out;
    for (int i = 0; i < 8; i++)
        numbers[i] = clock_jitter(INT64_MAX);
    return NULL;
}

static void jitter_stays_inside(void **state)
{
    (void)state;
    expect_int("of one there is only 0", 0, clock_jitter(1));
    expect_int("of none too", 0, clock_jitter(0));
    expect_int("of less than none too", 0, clock_jitter(-3));
    int seen[5] = {0};
    for (int i = 0; i < 5000; i++) {
        int64_t r = clock_jitter(5);
        if (r < 0 || r >= 5)
            fail_msg("jitter(5) gave %lld", (long long)r);
        seen[r]++;
    }
    for (int i = 0; i < 5; i++) /* about 1000 each; less than 500 once in 10^60 runs */
        expect_true("every number comes", seen[i] > 500);
    for (int i = 0; i < 1000; i++)
        expect_true("the largest range", clock_jitter(INT64_MAX) >= 0);

    int64_t here[8];
    int64_t there[8];
    pthread_t thread;
    assert_int_equal(0, pthread_create(&thread, NULL, roll, there));
    (void)roll(here);
    assert_int_equal(0, pthread_join(thread, NULL));
    expect_true("threads do not roll in step", memcmp(here, there, sizeof here) != 0);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_go_forward),   cmocka_unit_test(writing_rfc3339),
        cmocka_unit_test(reading_rfc3339),     cmocka_unit_test(what_is_written_can_be_read),
        cmocka_unit_test(jitter_stays_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "lib/base/num.h"

#include <stdlib.h>
#include <string.h>

#include "test/unit/lib/base/expect.h"

static void arithmetic_refuses_to_wrap(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        bool (*op)(int64_t, int64_t, int64_t *);
        int64_t a, b;
        bool fits;
        int64_t result;
    } rows[] = {
        {"max + 0", num_add, INT64_MAX, 0, true, INT64_MAX},
        {"max + 1", num_add, INT64_MAX, 1, false, 0},
        {"min + 0", num_add, INT64_MIN, 0, true, INT64_MIN},
        {"min - 1 by adding", num_add, INT64_MIN, -1, false, 0},
        {"max + min", num_add, INT64_MAX, INT64_MIN, true, -1},
        {"0 - max", num_sub, 0, INT64_MAX, true, -INT64_MAX},
        {"0 - min", num_sub, 0, INT64_MIN, false, 0},
        {"-1 - min", num_sub, -1, INT64_MIN, true, INT64_MAX},
        {"min - 1", num_sub, INT64_MIN, 1, false, 0},
        {"max * 1", num_mul, INT64_MAX, 1, true, INT64_MAX},
        {"2^62 * 2", num_mul, INT64_C(1) << 62, 2, false, 0},
        {"2^62 * -2", num_mul, INT64_C(1) << 62, -2, true, INT64_MIN},
        {"min * -1", num_mul, INT64_MIN, -1, false, 0},
        {"min * 0", num_mul, INT64_MIN, 0, true, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t out = 4711;
        expect_int(rows[i].row, rows[i].fits, rows[i].op(rows[i].a, rows[i].b, &out));
        expect_int(rows[i].row, rows[i].fits ? rows[i].result : 4711, out);
    }
    expect_done();
}

static void saturating_arithmetic_holds_at_the_ends(void **state)
{
    (void)state;
    expect_int("1 + 2", 3, num_add_sat(1, 2));
    expect_int("max + 1", INT64_MAX, num_add_sat(INT64_MAX, 1));
    expect_int("min + -1", INT64_MIN, num_add_sat(INT64_MIN, -1));
    expect_int("1 - 2", -1, num_sub_sat(1, 2));
    expect_int("min - 1", INT64_MIN, num_sub_sat(INT64_MIN, 1));
    expect_int("max - -1", INT64_MAX, num_sub_sat(INT64_MAX, -1));
    expect_int("0 - min", INT64_MAX, num_sub_sat(0, INT64_MIN));
    expect_int("max(1, 2)", 2, num_max(1, 2));
    expect_int("max(2, 1)", 2, num_max(2, 1));
    expect_int("min(1, 2)", 1, num_min(1, 2));
    expect_int("min(2, 1)", 1, num_min(2, 1));
    expect_done();
}

static void parsing_is_strict(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *in;
        enum error_code code;
        int64_t value;
        const char *text;
    } rows[] = {
        {"zero", "0", ERROR_NONE, 0, ""},
        {"minus zero is zero", "-0", ERROR_NONE, 0, ""},
        {"leading zeros are decimal", "0010", ERROR_NONE, 10, ""},
        {"the largest", "9223372036854775807", ERROR_NONE, INT64_MAX, ""},
        {"one more", "9223372036854775808", ERROR_RANGE, 0,
         "does not fit in 64 bits: '9223372036854775808'"},
        {"the smallest", "-9223372036854775808", ERROR_NONE, INT64_MIN, ""},
        {"one less", "-9223372036854775809", ERROR_RANGE, 0,
         "does not fit in 64 bits: '-9223372036854775809'"},
        {"ten times too much", "99999999999999999999", ERROR_RANGE, 0,
         "does not fit in 64 bits: '99999999999999999999'"},
        {"nothing", "", ERROR_INVALID, 0, "not an integer: ''"},
        {"a sign alone", "-", ERROR_INVALID, 0, "not an integer: '-'"},
        {"two signs", "--1", ERROR_INVALID, 0, "not an integer: '--1'"},
        {"a plus", "+1", ERROR_INVALID, 0, "not an integer: '+1'"},
        {"a blank in front", " 1", ERROR_INVALID, 0, "not an integer: ' 1'"},
        {"a blank behind", "1 ", ERROR_INVALID, 0, "not an integer: '1 '"},
        {"a letter behind", "4x", ERROR_INVALID, 0, "not an integer: '4x'"},
        {"a letter behind too many digits", "99999999999999999999x", ERROR_INVALID, 0,
         "not an integer: '99999999999999999999x'"},
        {"a fraction", "1.0", ERROR_INVALID, 0, "not an integer: '1.0'"},
        {"the byte before '0'", "/", ERROR_INVALID, 0, "not an integer: '/'"},
        {"the byte after '9'", ":", ERROR_INVALID, 0, "not an integer: ':'"},
        {"a long one is not shown whole",
         "x123456789012345678901234567890123456789012345678901234567890123456789", ERROR_INVALID, 0,
         "not an integer: 'x123456789012345678901234567890123456789012345678901234567890123'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        int64_t out = 4711;
        int rc = num_parse(rows[i].in, strlen(rows[i].in), &out, &err);
        expect_int(rows[i].row, rows[i].code == ERROR_NONE ? 0 : -1, rc);
        expect_int(rows[i].row, rows[i].code, err.code);
        expect_int(rows[i].row, rc == 0 ? rows[i].value : 4711, out);
        expect_str(rows[i].row, rows[i].text, err.text);
    }
    int64_t out = 0;
    expect_int("only n bytes are read", 0, num_parse("12x", 2, &out, NULL));
    expect_int("and are the number", 12, out);
    expect_int("NULL with no bytes is nothing", -1, num_parse(NULL, 0, &out, NULL));
    expect_done();
}

static void a_range_has_two_ends(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *in;
        const char *text; /* "" = accepted */
    } rows[] = {
        {"below", "0", "must be between 1 and 65535: '0'"},
        {"the first", "1", ""},
        {"the last", "65535", ""},
        {"above", "65536", "must be between 1 and 65535: '65536'"},
        {"far above 64 bits is only out of range", "99999999999999999999",
         "must be between 1 and 65535: '99999999999999999999'"},
        {"not a number", "http", "not an integer: 'http'"},
        {"absent", NULL, "not an integer: ''"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        int64_t out = 4711;
        int rc = num_parse_range(rows[i].in, 1, 65535, &out, &err);
        expect_str(rows[i].row, rows[i].text, err.text);
        expect_int(rows[i].row, rows[i].text[0] == '\0' ? 0 : -1, rc);
        expect_true(rows[i].row, (rc == 0) == (out != 4711));
    }
    int64_t out = 0;
    expect_int("the whole range is a range", 0,
               num_parse_range("-9223372036854775808", INT64_MIN, INT64_MAX, &out, NULL));
    expect_int("nobody needs to care", -1, num_parse_range("7", 1, 6, &out, NULL));
    expect_done();
}

static void an_index_is_written_in_one_way(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        bool ok;
    } rows[] = {{"0", true},
                {"7", true},
                {"63", true},
                {"64", false},
                {"", false},
                {"00", false},
                {"07", false},
                {"-0", false},
                {"-1", false},
                {"+1", false},
                {" 1", false},
                {"1x", false},
                {"99999999999999999999", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t out = 0;
        bool ok = num_parse_index(rows[i].in, strlen(rows[i].in), 64, &out);
        expect_int(rows[i].in, rows[i].ok, ok);
        expect_int(rows[i].in, rows[i].ok ? atoll(rows[i].in) : (int64_t)out, (int64_t)out);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_refuses_to_wrap),
        cmocka_unit_test(saturating_arithmetic_holds_at_the_ends),
        cmocka_unit_test(parsing_is_strict),
        cmocka_unit_test(a_range_has_two_ends),
        cmocka_unit_test(an_index_is_written_in_one_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The rows follow Kubernetes' documented grammar; each says what a request (rounded up) and a
 * capacity (rounded down) make of the text. Where up and down differ, both sides are in the row.
 */
#include "lib/model/quantity.h"

#include "test/unit/lib/base/expect.h"

#define MAX INT64_MAX
#define MIN INT64_MIN

static void check(const char *text, enum quantity_scale scale, int64_t up, int64_t down)
{
    const int64_t expected[] = {up, down};

    for (int round = QUANTITY_UP; round <= QUANTITY_DOWN; round++) {
        struct error err = ERROR_INIT;
        int64_t got = 4711;
        char row[320];
        int failed =
            quantity_parse(text, strlen(text), scale, (enum quantity_round)round, &got, &err);
        (void)str_format(row, sizeof row, "'%s' %s, rounded %s", text,
                         scale == QUANTITY_MILLI ? "in milli" : "in units",
                         round == QUANTITY_UP ? "up" : "down");
        expect_str(row, "", err.text);
        expect_int(row, 0, failed);
        expect_int(row, expected[round], got);
    }
}

static void amounts_in_units_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t up, down;
    } rows[] = {
        /* plain */
        {"0", 0, 0},
        {"1", 1, 1},
        {"+1", 1, 1},
        {"-1", -1, -1},
        {"-0", 0, 0},
        {"+0", 0, 0},
        {"007", 7, 7},
        {"00", 0, 0},
        {"42", 42, 42},
        {"9007199254740993", INT64_C(9007199254740993), INT64_C(9007199254740993)}, /* no double */
        {"9223372036854775806", MAX - 1, MAX - 1},
        {"9223372036854775807", MAX, MAX},
        {"-9223372036854775807", -MAX, -MAX},
        {"-9223372036854775808", MIN, MIN},
        /* fractions */
        {"0.0", 0, 0},
        {"5.", 5, 5},
        {".5", 1, 0},
        {"0.5", 1, 0},
        {"0.1", 1, 0},
        {"1.5", 2, 1},
        {"-1.5", -1, -2},
        {"-.5", 0, -1},
        {"+.5", 1, 0},
        {"1.0", 1, 1},
        {"1.000000000000000000000000000000", 1, 1},
        {"1.000000000000000000000000000001", 2, 1},
        {"0.999999999999999999999999999999", 1, 0},
        {"9223372036854775806.5", MAX, MAX - 1},
        {"9223372036854775807.0", MAX, MAX},
        {"-9223372036854775807.5", -MAX, MIN},
        {"-9223372036854775808.0", MIN, MIN},
        /* decimal suffixes, small */
        {"1n", 1, 0},
        {"1u", 1, 0},
        {"1m", 1, 0},
        {"999m", 1, 0},
        {"1000m", 1, 1},
        {"1001m", 2, 1},
        {"1000000u", 1, 1},
        {"1000001u", 2, 1},
        {"1000000000n", 1, 1},
        {"1000000001n", 2, 1},
        {"0n", 0, 0},
        {"-1n", 0, -1},
        {"-1m", 0, -1},
        {"0.001m", 1, 0},
        {"128974848000m", 128974848, 128974848},
        {"9223372036854775807m", INT64_C(9223372036854776), INT64_C(9223372036854775)},
        /* decimal suffixes, large */
        {"1k", 1000, 1000},
        {"1M", 1000000, 1000000},
        {"1G", 1000000000, 1000000000},
        {"1T", INT64_C(1000000000000), INT64_C(1000000000000)},
        {"1P", INT64_C(1000000000000000), INT64_C(1000000000000000)},
        {"1E", INT64_C(1000000000000000000), INT64_C(1000000000000000000)},
        {"9E", INT64_C(9000000000000000000), INT64_C(9000000000000000000)},
        {"129M", 129000000, 129000000},
        {"1.5k", 1500, 1500},
        {"0.0001k", 1, 0},
        {"1.5G", 1500000000, 1500000000},
        {".5M", 500000, 500000},
        {"5.k", 5000, 5000},
        {"-1k", -1000, -1000},
        {"+1k", 1000, 1000},
        {"0E", 0, 0},
        {"9223372036854775.807k", MAX, MAX},
        {"9223372036854775.8069k", MAX, MAX - 1},
        {"9223372036854.775807M", MAX, MAX},
        {"9223372036.854775807G", MAX, MAX},
        {"9223372.036854775807T", MAX, MAX},
        {"9223.372036854775807P", MAX, MAX},
        {"9.223372036854775807E", MAX, MAX},
        {"9.2233720368547758069E", MAX, MAX - 1},
        {"-9.223372036854775808E", MIN, MIN},
        /* binary suffixes */
        {"1Ki", 1024, 1024},
        {"1Mi", 1048576, 1048576},
        {"1Gi", 1073741824, 1073741824},
        {"1Ti", INT64_C(1) << 40, INT64_C(1) << 40},
        {"1Pi", INT64_C(1) << 50, INT64_C(1) << 50},
        {"1Ei", INT64_C(1) << 60, INT64_C(1) << 60},
        {"7Ei", INT64_C(7) << 60, INT64_C(7) << 60},
        {"123Mi", INT64_C(123) << 20, INT64_C(123) << 20},
        {"1.5Gi", INT64_C(1610612736), INT64_C(1610612736)},
        {"0.5Ki", 512, 512},
        {".5Ki", 512, 512},
        {"1.Ki", 1024, 1024},
        {"0.1Ki", 103, 102},
        {"0.1Gi", 107374183, 107374182},
        {"1.1Mi", 1153434, 1153433},
        {"0.0009765625Ki", 1, 1},
        {"0.00097656250000000001Ki", 2, 1},
        {"-1Ki", -1024, -1024},
        {"-0.1Ki", -102, -103},
        {"0Ei", 0, 0},
        {"9007199254740991Ki", INT64_C(9223372036854774784), INT64_C(9223372036854774784)},
        {"9007199254740991.9990234375Ki", MAX, MAX},
        {"7.999999999999999999132638262011596452794037759304046630859375Ei", MAX, MAX},
        {"7.9999999999999999991326382620115964527940Ei", MAX, MAX - 1},
        {"-8Ei", MIN, MIN},
        {"-8192Pi", MIN, MIN},
        /* exponents: E alone is exa, E with digits is ten to the power of */
        {"1e0", 1, 1},
        {"1E0", 1, 1},
        {"1e3", 1000, 1000},
        {"1E3", 1000, 1000},
        {"1e+3", 1000, 1000},
        {"1E+3", 1000, 1000},
        {"1e-3", 1, 0},
        {"1000e-3", 1, 1},
        {"1001E-3", 2, 1},
        {"1.5e3", 1500, 1500},
        {"1.5e1", 15, 15},
        {"1.55e1", 16, 15},
        {"12e6", 12000000, 12000000},
        {".5e1", 5, 5},
        {"5.e1", 50, 50},
        {"1e18", INT64_C(1000000000000000000), INT64_C(1000000000000000000)},
        {"9e18", INT64_C(9000000000000000000), INT64_C(9000000000000000000)},
        {"9.223372036854775807e18", MAX, MAX},
        {"92233720368547758070e-1", MAX, MAX},
        {"-9.223372036854775808e18", MIN, MIN},
        {"1e-9", 1, 0},
        {"1e-30", 1, 0},
        {"-1e-30", 0, -1},
        {"1e-2147483648", 1, 0},
        {"0.1e-2147483648", 1, 0},
        {"0.0000001e-2147483648", 1, 0},
        {"0e2147483647", 0, 0},
        {"0.000000000000000000000000000001e30", 1, 1},
        {"1e003", 1000, 1000},
        /* absurd lengths */
        {"0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000009",
         9, 9},
        {"9223372036854775807.000000000000000000000000000000000000000000000000000000000000000000000",
         MAX, MAX},
        {"10000000000000000000000000000000000000000000000000000000000000000000e-67", 1, 1},
        {"10000000000000000000000000000000000000000000000000000000000000000001e-67", 2, 1},
    };

    assert_true(sizeof rows / sizeof rows[0] >= 120);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check(rows[i].text, QUANTITY_UNITS, rows[i].up, rows[i].down);
    expect_done();
}

static void amounts_in_milli_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t up, down;
    } rows[] = {
        {"0", 0, 0},
        {"1", 1000, 1000},
        {"100m", 100, 100},
        {"0.1", 100, 100},
        {"0.5", 500, 500},
        {"1.5", 1500, 1500},
        {"2", 2000, 2000},
        {"2e3", 2000000, 2000000},
        {"1u", 1, 0},
        {"1n", 1, 0},
        {"1e-30", 1, 0},
        {"1500u", 2, 1},
        {"0.0005", 1, 0},
        {"0.0015", 2, 1},
        {"1k", 1000000, 1000000},
        {"1Ki", 1024000, 1024000},
        {"-0.0005", 0, -1},
        {"9223372036854775807m", MAX, MAX},
        {"9223372036854775.807", MAX, MAX},
        {"9223372036854775.8065", MAX, MAX - 1},
        {"-9223372036854775.808", MIN, MIN},
        {"9223372036854.775807k", MAX, MAX},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check(rows[i].text, QUANTITY_MILLI, rows[i].up, rows[i].down);
    expect_done();
}

static void refused(const char *text, size_t n, enum quantity_scale scale,
                    enum quantity_round round, enum error_code code)
{
    struct error err = ERROR_INIT;
    int64_t got = 4711;
    char row[512];

    (void)str_format(row, sizeof row, "'%s' is refused", text);
    expect_int(row, -1, quantity_parse(text, n, scale, round, &got, &err));
    expect_str(row, error_code_name(code), error_code_name(err.code));
    expect_int(row, code != ERROR_RANGE ? 4711 : text[0] == '-' ? INT64_MIN : INT64_MAX, got);
}

static void what_does_not_fit_is_a_range_error(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum quantity_scale scale;
        enum quantity_round round;
    } rows[] = {
        {"9223372036854775808", QUANTITY_UNITS, QUANTITY_DOWN},
        {"9223372036854775807.1", QUANTITY_UNITS, QUANTITY_UP},
        {"9223372036854775807.000000000000000000000000000000000001", QUANTITY_UNITS, QUANTITY_UP},
        {"-9223372036854775809", QUANTITY_UNITS, QUANTITY_UP},
        {"-9223372036854775808.1", QUANTITY_UNITS, QUANTITY_DOWN},
        {"10000000000000000000", QUANTITY_UNITS, QUANTITY_DOWN},
        {"99999999999999999999999999999999999999", QUANTITY_UNITS, QUANTITY_DOWN},
        {"8Ei", QUANTITY_UNITS, QUANTITY_DOWN},
        {"16Ei", QUANTITY_UNITS, QUANTITY_DOWN},
        {"8192Pi", QUANTITY_UNITS, QUANTITY_DOWN},
        {"7.99999999999999999999Ei", QUANTITY_UNITS, QUANTITY_UP},
        {"10E", QUANTITY_UNITS, QUANTITY_DOWN},
        {"9.223372036854775808E", QUANTITY_UNITS, QUANTITY_DOWN},
        {"9223372036854775.808k", QUANTITY_UNITS, QUANTITY_DOWN},
        {"1e19", QUANTITY_UNITS, QUANTITY_DOWN},
        {"1e100000", QUANTITY_UNITS, QUANTITY_DOWN},
        {"1e2147483647", QUANTITY_UNITS, QUANTITY_DOWN},
        {"0.0000001e2147483647", QUANTITY_UNITS, QUANTITY_DOWN},
        {"-1e19", QUANTITY_UNITS, QUANTITY_DOWN},
        {"9223372036854775807", QUANTITY_MILLI, QUANTITY_DOWN},
        {"9223372036854775.808", QUANTITY_MILLI, QUANTITY_DOWN},
        {"9223372036854775.8071", QUANTITY_MILLI, QUANTITY_UP},
        {"10P", QUANTITY_MILLI, QUANTITY_DOWN},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        refused(rows[i].text, strlen(rows[i].text), rows[i].scale, rows[i].round, ERROR_RANGE);
    expect_done();
}

static void what_is_not_a_quantity_is_invalid(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",      " ",        "+",
        "-",     ".",        "-.",
        "k",     "Ki",       "m",
        "e3",    "E",        "E3",
        "x",     "4x",       "1 ",
        " 1",    "1 k",      "1K",
        "1ki",   "1KI",      "1mi",
        "1Mib",  "1MB",      "1i",
        "1ni",   "1kk",      "1e",
        "1e+",   "1e-",      "1E+",
        "1ee3",  "1e3k",     "1e3.5",
        "1e 3",  "1.2.3",    "1..2",
        "--1",   "+-1",      "1-",
        "1+1",   "0x10",     "1_000",
        "1,5",   "1,000",    "NaN",
        "inf",   "1Ee3",     "1Ei3",
        "1e3Ki", "1.5.Gi",   "1Gi1",
        "1\n",   "1e--3",    "..",
        "1.k.",  "\xd9\xa1", "1e9223372036854775808",
        "1e+-3",
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        refused(rows[i], strlen(rows[i]), QUANTITY_UNITS, QUANTITY_UP, ERROR_INVALID);
    refused("1", 0, QUANTITY_UNITS, QUANTITY_UP, ERROR_INVALID);
    refused("1\0002", 3, QUANTITY_UNITS, QUANTITY_UP, ERROR_INVALID);
    expect_done();
}

/* n times the character, then the end. */
static int64_t of_long_text(const char *begin, char c, size_t n, const char *end,
                            enum quantity_round round)
{
    AUTO_STRBUF text = {0};
    int64_t got = -1;

    strbuf_adds(&text, begin);
    for (size_t i = 0; i < n; i++)
        strbuf_addc(&text, c);
    strbuf_adds(&text, end);
    (void)quantity_parse(text.ptr, text.len, QUANTITY_UNITS, round, &got, NULL);
    return got;
}

static void text_of_any_length_is_read(void **state)
{
    (void)state;
    enum { MANY = 100000 };

    /* The API server keeps such text as it is. */
    expect_int("000...01Ei", INT64_C(1) << 60, of_long_text("", '0', MANY, "1Ei", QUANTITY_UP));
    expect_int("1e000...03", 1000, of_long_text("1e", '0', MANY, "3", QUANTITY_UP));
    expect_int("0.999...9Ei up", INT64_C(1) << 60,
               of_long_text("0.", '9', MANY, "Ei", QUANTITY_UP));
    expect_int("0.999...9Ei down", (INT64_C(1) << 60) - 1,
               of_long_text("0.", '9', MANY, "Ei", QUANTITY_DOWN));
    expect_int("1.000...01 up", 2, of_long_text("1.", '0', MANY, "1", QUANTITY_UP));
    expect_int("1.000...01 down", 1, of_long_text("1.", '0', MANY, "1", QUANTITY_DOWN));
    expect_int("999...9e-99999", 9, of_long_text("", '9', MANY, "e-99999", QUANTITY_DOWN));
    expect_int("999...9 is too large", INT64_MAX, of_long_text("", '9', MANY, "", QUANTITY_UP));
    expect_int("999...9Ei too", INT64_MAX, of_long_text("", '9', MANY, "Ei", QUANTITY_UP));
    expect_done();
}

static void exponents_are_modulo_32_bits_as_for_the_api_server(void **state)
{
    (void)state;
    check("1e4294967299", QUANTITY_UNITS, 1000, 1000);
    check("1e4294967296", QUANTITY_UNITS, 1, 1);
    check("5e-4294967296", QUANTITY_UNITS, 5, 5);
    check("1e2147483648", QUANTITY_UNITS, 1, 0); /* -2^31 */
    expect_done();
}

static void messages_show_the_text(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    int64_t got;

    expect_int("4x", -1, quantity_parse("4x", 2, QUANTITY_UNITS, QUANTITY_UP, &got, &err));
    expect_str("4x", "not a quantity: '4x'", err.text);
    expect_int("16Ei", -1,
               quantity_parse("16Ei, and more", 4, QUANTITY_UNITS, QUANTITY_UP, &got, &err));
    expect_str("16Ei", "quantity too large: '16Ei'", err.text);
    expect_int("without an error", -1,
               quantity_parse("4x", 2, QUANTITY_UNITS, QUANTITY_UP, &got, NULL));
    expect_done();
}

static void printing_takes_the_shortest_usual_form(void **state)
{
    (void)state;
    static const struct {
        bool milli;
        int64_t value;
        const char *text;
    } rows[] = {
        {true, 0, "0"},
        {true, 1500, "1500m"},
        {true, 2000, "2"},
        {true, 1, "1m"},
        {true, -500, "-500m"},
        {true, -2000, "-2"},
        {true, MAX, "9223372036854775807m"},
        {true, MIN, "-9223372036854775808m"},
        {false, 0, "0"},
        {false, 1000, "1000"},
        {false, 1023, "1023"},
        {false, 1024, "1Ki"},
        {false, 1025, "1025"},
        {false, 1536, "1536"},
        {false, INT64_C(1) << 20, "1Mi"},
        {false, INT64_C(1) << 30, "1Gi"},
        {false, INT64_C(3) << 29, "1536Mi"},
        {false, INT64_C(1) << 40, "1Ti"},
        {false, INT64_C(1) << 50, "1Pi"},
        {false, INT64_C(1) << 60, "1Ei"},
        {false, MAX, "9223372036854775807"},
        {false, MIN, "-8Ei"},
        {false, -1024, "-1Ki"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_STRBUF out;
        int64_t back = 0;
        strbuf_init(&out);
        if (rows[i].milli)
            quantity_print_milli(rows[i].value, &out);
        else
            quantity_print_bytes(rows[i].value, &out);
        expect_str(rows[i].text, rows[i].text, strbuf_str(&out));
        expect_int("and read again", 0,
                   quantity_parse(out.ptr, out.len, rows[i].milli ? QUANTITY_MILLI : QUANTITY_UNITS,
                                  QUANTITY_UP, &back, NULL));
        expect_int(rows[i].text, rows[i].value, back);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts_in_units_are_exact),
        cmocka_unit_test(amounts_in_milli_are_exact),
        cmocka_unit_test(what_does_not_fit_is_a_range_error),
        cmocka_unit_test(what_is_not_a_quantity_is_invalid),
        cmocka_unit_test(text_of_any_length_is_read),
        cmocka_unit_test(exponents_are_modulo_32_bits_as_for_the_api_server),
        cmocka_unit_test(messages_show_the_text),
        cmocka_unit_test(printing_takes_the_shortest_usual_form),
    };
    return cmocka_run_group_tests_name("quantity", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "lib/base/yaml_scalar.h"

#include "test/unit/lib/base/expect.h"

/* "null", "true", "false", the number, the string in quotes, or the message. */
static const char *resolve(const char *text, size_t n, enum yaml_scalar_tag tag, bool plain)
{
    static char shown[ERROR_TEXT_SIZE];
    AUTO_STRBUF number = {0};
    enum yaml_scalar_kind kind;
    struct error err = ERROR_INIT;
    if (yaml_scalar_resolve(text, n, tag, plain, &kind, &number, &err) < 0) {
        (void)str_format(shown, sizeof shown, "%s: %s", error_code_name(err.code), err.text);
        return shown;
    }
    switch (kind) {
    case SCALAR_NULL:
        return "null";
    case SCALAR_TRUE:
        return "true";
    case SCALAR_FALSE:
        return "false";
    case SCALAR_NUMBER:
        (void)str_format(shown, sizeof shown, "%s", strbuf_str(&number));
        return shown;
    case SCALAR_STRING:
        (void)str_format(shown, sizeof shown, "'%s'", text);
        return shown;
    }
    return "?";
}

static void plain_words_and_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        const char *out;
    } rows[] = {
        {"", "null"},
        {"~", "null"},
        {"null", "null"},
        {"Null", "null"},
        {"NULL", "null"},
        {"nULL", "'nULL'"},
        {"true", "true"},
        {"TRUE", "true"},
        {"tRue", "'tRue'"},
        {"yes", "true"},
        {"On", "true"},
        {"y", "true"},
        {"false", "false"},
        {"No", "false"},
        {"OFF", "false"},
        {"N", "false"},
        {"yess", "'yess'"},
        {"nginx", "'nginx'"},
        {"0", "0"},
        {"-0", "-0"},
        {"12", "12"},
        {"-12", "-12"},
        {"+12", "12"},
        {"1_000", "1000"},
        {"123456789012345678901234567890", "123456789012345678901234567890"},
        {"-", "'-'"},
        {"+", "'+'"},
        {"--1", "'--1'"},
        {"1-1", "'1-1'"},
        {"_1", "'_1'"},
        {"0644", "420"},
        {"-010", "-8"},
        {"00", "0"},
        {"08", "8"},
        {"0o17", "15"},
        {"0O17", "15"},
        {"0o8", "'0o8'"},
        {"0x1F", "31"},
        {"0XaF", "175"},
        {"-0x10", "-16"},
        {"0x", "'0x'"},
        {"0xg", "'0xg'"},
        {"0b101", "5"},
        {"-0B11", "-3"},
        {"0b2", "'0b2'"},
        {"0x0", "0"},
        {"-0x0", "0"},
        {"0xffffffffffffffff", "18446744073709551615"},
        {"0x10000000000000000", "out of range: does not fit in 64 bits: '0x10000000000000000'"},
        {"-0x8000000000000000", "-9223372036854775808"},
        {"-0x8000000000000001", "out of range: does not fit in 64 bits: '-0x8000000000000001'"},
        {"01777777777777777777777", "18446744073709551615"},
        {"02000000000000000000000",
         "out of range: does not fit in 64 bits: '02000000000000000000000'"},
        {"0.10", "0.10"},
        {"-1.5", "-1.5"},
        {"1.", "1"},
        {".5", "0.5"},
        {"-.5", "-0.5"},
        {"007.5", "7.5"},
        {"1e3", "1e3"},
        {"1E+3", "1E+3"},
        {"1.5e-3", "1.5e-3"},
        {"1.e3", "1e3"},
        {"1e", "'1e'"},
        {"1e+", "'1e+'"},
        {"e3", "'e3'"},
        {".", "'.'"},
        {"..", "'..'"},
        {".e3", "'.e3'"},
        {"1.2.3", "'1.2.3'"},
        {"100m", "'100m'"},
        {"1Gi", "'1Gi'"},
        {"12:30", "'12:30'"},
        {"2026-01-01", "'2026-01-01'"},
        {"2026-01-01T00:00:00Z", "'2026-01-01T00:00:00Z'"},
        {"10.0.0.1", "'10.0.0.1'"},
        {".inf", "unsupported: JSON has no '.inf'"},
        {"-.INF", "unsupported: JSON has no '-.INF'"},
        {".NaN", "unsupported: JSON has no '.NaN'"},
        {"inf", "'inf'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_str(rows[i].in, rows[i].out,
                   resolve(rows[i].in, strlen(rows[i].in), SCALAR_TAG_NONE, true));
    expect_str("a NUL ends no number", "'1'", resolve("1\0x", 3, SCALAR_TAG_NONE, true));
    expect_done();
}

static void quotes_and_tags(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *in;
        enum yaml_scalar_tag tag;
        bool plain;
        const char *out;
    } rows[] = {
        {"quoted digits are a string", "5", SCALAR_TAG_NONE, false, "'5'"},
        {"quoted nothing is a string", "", SCALAR_TAG_NONE, false, "''"},
        {"!!str makes a string", "5", SCALAR_TAG_STRING, true, "'5'"},
        {"so does !", "yes", SCALAR_TAG_PLAIN_BANG, true, "'yes'"},
        {"!!int reads quoted digits", "5", SCALAR_TAG_INTEGER, false, "5"},
        {"!!int wants an integer", "5.5", SCALAR_TAG_INTEGER, true,
         "invalid: not an integer: '5.5'"},
        {"!!int wants a number", "x", SCALAR_TAG_INTEGER, true, "invalid: not an integer: 'x'"},
        {"!!float takes a fraction", "5.5", SCALAR_TAG_FLOAT, true, "5.5"},
        {"!!float takes an integer", "5", SCALAR_TAG_FLOAT, true, "5"},
        {"!!float wants a number", "yes", SCALAR_TAG_FLOAT, true, "invalid: not a number: 'yes'"},
        {"!!bool reads quoted words", "on", SCALAR_TAG_BOOLEAN, false, "true"},
        {"!!bool takes false", "off", SCALAR_TAG_BOOLEAN, true, "false"},
        {"!!bool wants one", "1", SCALAR_TAG_BOOLEAN, true, "invalid: not a boolean: '1'"},
        {"!!null takes nothing", "", SCALAR_TAG_NULL, true, "null"},
        {"!!null wants nothing", "0", SCALAR_TAG_NULL, true, "invalid: not null: '0'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_str(rows[i].row, rows[i].out,
                   resolve(rows[i].in, strlen(rows[i].in), rows[i].tag, rows[i].plain));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_words_and_numbers),
        cmocka_unit_test(quotes_and_tags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

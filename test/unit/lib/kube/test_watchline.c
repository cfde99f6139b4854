// SPDX-License-Identifier: Apache-2.0
#include "test/unit/lib/base/expect.h"

#include "lib/base/json.h"
#include "lib/kube/watchline.h"

/* Keeps each line with a '|' behind it; a line "stop" is refused. */
static int keep(void *arg, char *line, size_t n, struct error *err)
{
    if (n == 4 && memcmp(line, "stop", 4) == 0)
        return error_set(err, ERROR_CANCELLED, "asked to");
    strbuf_add(arg, line, n);
    strbuf_addc(arg, '|');
    memset(line, '#', n + JSON_PADDING); /* as parsing in place does */
    return 0;
}

static void test_table(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *expected;
        int rc;
        enum error_code code;
    } rows[] = {
        {"one line", "abc\n", "abc|", 0, 0},
        {"two lines", "abc\ndef\n", "abc|def|", 0, 0},
        {"half a line waits", "abc\nde", "abc|", 0, 0},
        {"empty lines are skipped", "\n\nabc\n\n", "abc|", 0, 0},
        {"a character of several bytes", "\xe2\x82\xac\xc3\xa4\n", "\xe2\x82\xac\xc3\xa4|", 0, 0},
        {"a line of exactly the bound", "0123456789\nx\n", "0123456789|x|", 0, 0},
        {"a line one past the bound", "a\n01234567890\n", "a|", -1, ERROR_TOO_LARGE},
        {"half a line past the bound", "01234567890", "", -1, ERROR_TOO_LARGE},
        {"the reader refuses", "a\nstop\nb\n", "a|", -1, ERROR_CANCELLED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t piece = 1; piece < 16; piece++) {
            AUTO_STRBUF out = {0};
            struct watchline w;
            struct error err = ERROR_INIT;
            int rc = 0;
            size_t n = strlen(rows[i].text);
            watchline_init(&w, 10);
            for (size_t at = 0; at < n && rc == 0; at += piece)
                rc = watchline_feed(&w, rows[i].text + at, n - at < piece ? n - at : piece, keep,
                                    &out, &err);
            watchline_deinit(&w);
            expect_int(rows[i].row, rows[i].rc, rc);
            expect_int(rows[i].row, rows[i].code, err.code);
            expect_str(rows[i].row, rows[i].expected, strbuf_str(&out));
        }
    expect_done();
}

static void test_reset_forgets_half_a_line(void **state)
{
    (void)state;
    AUTO_STRBUF out = {0};
    struct watchline w;
    watchline_init(&w, 10);
    assert_int_equal(0, watchline_feed(&w, "old half", 8, keep, &out, NULL));
    watchline_reset(&w);
    assert_int_equal(0, watchline_feed(&w, "new\n", 4, keep, &out, NULL));
    watchline_deinit(&w);
    assert_string_equal("new|", strbuf_str(&out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table),
                                       cmocka_unit_test(test_reset_forgets_half_a_line)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "lib/base/error.h"

#include <errno.h>
#include <stdio.h>

#include "test/unit/lib/base/expect.h"

static void a_text_is_shown_safely(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *in;
        const char *out;
    } rows[] = {
        {"plain text stays", "node n1: not ready", "node n1: not ready"},
        {"an empty text stays empty", "", ""},
        {"a line feed cannot start a forged log line", "a\nlevel=error b", "a?level=error b"},
        {"an escape sequence cannot reach the terminal", "\x1b[31mred", "?[31mred"},
        {"delete is a control character", "a\x7f", "a?"},
        {"the byte before it is not", "a~", "a~"},
        {"a blank is the first that may be shown", "\x1f \x20", "?  "},
        {"two-byte characters stay", "K\xc3\xb6ln", "K\xc3\xb6ln"},
        {"three-byte characters stay", "\xe2\x82\xac", "\xe2\x82\xac"},
        {"four-byte characters stay", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"C1 controls hide in two bytes",
         "a\xc2\x9b"
         "31m",
         "a??31m"},
        {"the first character after C1 stays", "\xc2\xa0", "\xc2\xa0"},
        {"a lone continuation byte", "a\x80z", "a?z"},
        {"a character that is cut off", "a\xe2\x82", "a??"},
        {"a surrogate", "\xed\xa0\x80", "???"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        expect_int(rows[i].row, -1, error_set(&err, ERROR_INVALID, "%s", rows[i].in));
        expect_str(rows[i].row, rows[i].out, err.text);
        expect_int(rows[i].row, ERROR_INVALID, err.code);
    }
    expect_done();
}

static void a_long_text_ends_in_dots(void **state)
{
    (void)state;
    char longest[ERROR_TEXT_SIZE + 100];
    struct error err = ERROR_INIT;

    memset(longest, 'x', sizeof longest);
    longest[ERROR_TEXT_SIZE - 1] = '\0';
    (void)error_set(&err, ERROR_INVALID, "%s", longest);
    expect_str("the longest text that fits stays", longest, err.text);

    longest[ERROR_TEXT_SIZE - 1] = 'x';
    longest[ERROR_TEXT_SIZE] = '\0';
    (void)error_set(&err, ERROR_INVALID, "%s", longest);
    expect_int("one byte more is cut", ERROR_TEXT_SIZE - 1, (int64_t)strlen(err.text));
    expect_str("and marked", "xx...", err.text + ERROR_TEXT_SIZE - 1 - 5);

    /* Characters of three bytes: wherever the cut falls, none is split. */
    for (size_t before = 0; before < 4; before++) {
        memset(longest, 'x', before);
        size_t n = before;
        while (n + 3 < sizeof longest) {
            memcpy(longest + n, "\xe2\x82\xac", 3);
            n += 3;
        }
        longest[n] = '\0';
        (void)error_set(&err, ERROR_INVALID, "%s", longest);
        size_t len = strlen(err.text);
        expect_str("the dots are at the end", "...", err.text + len - 3);
        expect_str("whole characters before them", "\xe2\x82\xac...", err.text + len - 6);
        expect_true("and as many as fit", len > ERROR_TEXT_SIZE - 1 - 3);
        expect_int("no byte of a character was replaced", 0, strchr(err.text, '?') != NULL);
    }
    expect_done();
}

static void wrapping_puts_the_deed_in_front(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    (void)error_set(&err, ERROR_THROTTLED, "not an integer: '%s'", "4x");
    err.http_status = 429;
    err.retry_after_ms = 1500;
    expect_int("it returns -1", -1, error_wrap(&err, "gpu %s: memory", "GPU-7"));
    (void)error_wrap(&err, "node %s", "n\n1");
    expect_str("the text reads from the outside in",
               "node n?1: gpu GPU-7: memory: not an integer: '4x'", err.text);
    expect_int("the code stays", ERROR_THROTTLED, err.code);
    expect_int("the status stays", 429, err.http_status);
    expect_int("the wish stays", 1500, err.retry_after_ms);

    (void)error_wrap(&err, "again (%s)", err.text);
    expect_str("the arguments may be the error's own text",
               "again (node n?1: gpu GPU-7: memory: not an integer: '4x'): "
               "node n?1: gpu GPU-7: memory: not an integer: '4x'",
               err.text);
    for (int i = 0; i < 100; i++)
        (void)error_wrap(&err, "level %d", i);
    expect_int("it never overflows", ERROR_TEXT_SIZE - 1, (int64_t)strlen(err.text));
    expect_str("and is marked", "...", err.text + ERROR_TEXT_SIZE - 4);
    expect_done();
}

static void setting_again_forgets_the_old_error(void **state)
{
    (void)state;
    struct error err = {.code = ERROR_GONE, .http_status = 410, .retry_after_ms = 7, .text = "old"};
    (void)error_set(&err, ERROR_IO, "new, after %s", err.text);
    expect_str("the text", "new, after old", err.text);
    expect_int("the status", 0, err.http_status);
    expect_int("the wish", 0, err.retry_after_ms);
    err.http_status = 410;
    err.retry_after_ms = 7;
    (void)error_errno(&err, EIO, "read");
    expect_int("the status, by errno", 0, err.http_status);
    expect_int("the wish, by errno", 0, err.retry_after_ms);
    err.http_status = 500;
    err.retry_after_ms = 7;
    error_clear(&err);
    expect_int("cleared: code", ERROR_NONE, err.code);
    expect_int("cleared: status", 0, err.http_status);
    expect_int("cleared: wish", 0, (int64_t)err.retry_after_ms);
    expect_str("cleared: text", "", err.text);
    expect_done();
}

static void errno_becomes_a_code(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        int errnum;
        enum error_code code;
        const char *text;
    } rows[] = {
        {"ENOENT is not found", ENOENT, ERROR_NOT_FOUND, "open 'x': No such file or directory"},
        {"EACCES is denied", EACCES, ERROR_DENIED, "open 'x': Permission denied"},
        {"EPERM is denied", EPERM, ERROR_DENIED, "open 'x': Operation not permitted"},
        {"ETIMEDOUT is a timeout", ETIMEDOUT, ERROR_TIMEOUT, "open 'x': Connection timed out"},
        {"others are I/O", EIO, ERROR_IO, "open 'x': Input/output error"},
        {"one that does not exist is I/O", 99999, ERROR_IO, "open 'x': Unknown error 99999"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        expect_int(rows[i].row, -1, error_errno(&err, rows[i].errnum, "open '%s'", "x"));
        expect_int(rows[i].row, rows[i].code, err.code);
        expect_str(rows[i].row, rows[i].text, err.text);
    }
    expect_done();
}

static void nobody_needs_to_care(void **state)
{
    (void)state;
    expect_int("set", -1, error_set(NULL, ERROR_IO, "x"));
    expect_int("errno", -1, error_errno(NULL, EIO, "x"));
    expect_int("wrap", -1, error_wrap(NULL, "x"));
    error_clear(NULL);
    expect_done();
}

static void the_same_is_no_news(void **state)
{
    (void)state;
    char last[ERROR_TEXT_SIZE] = "", longer[2 * ERROR_TEXT_SIZE];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    const struct {
        const char *row, *text;
        bool news;
    } rows[] = {{"nothing is wrong", "", false}, {"something", "a", true},
                {"the same", "a", false},        {"something else", "ab", true},
                {"all is well", "", false},      {"it is back", "ab", true},
                {"cut", longer, true},           {"the same, cut", longer, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_int(rows[i].row, rows[i].news, error_is_news(last, rows[i].text));
    expect_done();
}

static void what_may_pass_is_transient(void **state)
{
    (void)state;
    for (int code = ERROR_NONE; code <= ERROR_INTERNAL; code++) {
        struct error err = {.code = (enum error_code)code};
        bool passes = code == ERROR_THROTTLED || code == ERROR_TIMEOUT || code == ERROR_UNAVAILABLE;
        expect_int(error_code_name(err.code), passes, error_is_transient(&err));
    }
    expect_done();
}

static void every_code_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int a = ERROR_NONE; a <= ERROR_INTERNAL; a++) {
        const char *name = error_code_name((enum error_code)a);
        if (strcmp(name, "unknown") == 0)
            fail_msg("code %d has no name", a);
        for (int b = ERROR_NONE; b < a; b++)
            assert_string_not_equal(name, error_code_name((enum error_code)b));
    }
    assert_string_equal("unknown", error_code_name((enum error_code)(ERROR_INTERNAL + 1)));
    assert_string_equal("invalid", error_code_name(ERROR_INVALID));
    assert_string_equal("not found", error_code_name(ERROR_NOT_FOUND));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_shown_safely),
        cmocka_unit_test(a_long_text_ends_in_dots),
        cmocka_unit_test(wrapping_puts_the_deed_in_front),
        cmocka_unit_test(setting_again_forgets_the_old_error),
        cmocka_unit_test(errno_becomes_a_code),
        cmocka_unit_test(nobody_needs_to_care),
        cmocka_unit_test(the_same_is_no_news),
        cmocka_unit_test(what_may_pass_is_transient),
        cmocka_unit_test(every_code_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

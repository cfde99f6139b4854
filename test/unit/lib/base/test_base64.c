// SPDX-License-Identifier: Apache-2.0
#include "test/unit/lib/base/expect.h"

#include "lib/base/base64.h"

static void test_table(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *expected; /* NULL: refused */
    } rows[] = {
        {"nothing stands for nothing", "", ""},
        {"three bytes need no padding", "Zm9v", "foo"},
        {"two bytes and one pad", "Zm8=", "fo"},
        {"one byte and two pads", "Zg==", "f"},
        {"several groups", "Zm9vYmFy", "foobar"},
        {"all of the alphabet's ends", "+/+/", "\xfb\xff\xbf"},
        {"lines may be wrapped", "Zm9v\nYmFy\r\n", "foobar"},
        {"a missing pad is refused", "Zg=", NULL},
        {"no padding at all is refused", "Zg", NULL},
        {"a single character is refused", "Z", NULL},
        {"a pad too many is refused", "Zm9v=", NULL},
        {"three pads are refused", "Z===", NULL},
        {"only pads are refused", "====", NULL},
        {"text after a pad is refused", "Zg==Zg==", NULL},
        {"a pad in the middle is refused", "Z=g=", NULL},
        {"bits left over are refused, two characters", "Zh==", NULL},
        {"bits left over are refused, three characters", "Zm9=", NULL},
        {"the URL alphabet is refused", "-_-_", NULL},
        {"blanks are refused", "Zm 9v", NULL},
        {"bytes outside ASCII are refused", "Zm9\xc3", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF out = {0};
        bool ok = base64_decode(rows[i].text, strlen(rows[i].text), &out);
        expect_str(rows[i].row, rows[i].expected, ok ? strbuf_str(&out) : NULL);
    }
    expect_done();
}

static void test_both_forms(void **state)
{
    (void)state;
    static const struct {
        const char *row, *bytes;
        size_t n;
        const char *usual;
    } rows[] = {
        {"nothing", "", 0, ""},
        {"one byte is padded twice", "f", 1, "Zg=="},
        {"two bytes are padded once", "fo", 2, "Zm8="},
        {"three bytes are not padded", "foo", 3, "Zm9v"},
        {"four bytes begin anew", "foob", 4, "Zm9vYg=="},
        {"five bytes", "fooba", 5, "Zm9vYmE="},
        {"six bytes", "foobar", 6, "Zm9vYmFy"},
        {"the last two digits", "\xfb\xff\xbf", 3, "+/+/"},
        {"zero bytes", "\0\0", 2, "AAA="},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF usual = {0}, back = {0};
        strbuf_adds(&usual, "key: "); /* it is appended */
        base64_encode(rows[i].bytes, rows[i].n, &usual);
        const char *text = strbuf_str(&usual) + strlen("key: ");
        expect_str(rows[i].row, rows[i].usual, text);
        expect_true(rows[i].row, base64_decode(text, strlen(text), &back));
        expect_int(rows[i].row, (int64_t)rows[i].n, (int64_t)back.len);
        expect_true(rows[i].row, rows[i].n == 0 || memcmp(back.ptr, rows[i].bytes, rows[i].n) == 0);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table),
                                       cmocka_unit_test(test_both_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "test/unit/lib/base/expect.h"

#include "lib/kube/base64.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

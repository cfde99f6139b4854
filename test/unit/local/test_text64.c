// SPDX-License-Identifier: Apache-2.0
#include "test/local/text64.h"

#include "lib/kube/base64.h"
#include "test/unit/lib/base/expect.h"

static void both_forms(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *usual, *url;
    } rows[] = {
        {"", 0, "", ""},
        {"f", 1, "Zg==", "Zg"},
        {"fo", 2, "Zm8=", "Zm8"},
        {"foo", 3, "Zm9v", "Zm9v"},
        {"foob", 4, "Zm9vYg==", "Zm9vYg"},
        {"fooba", 5, "Zm9vYmE=", "Zm9vYmE"},
        {"foobar", 6, "Zm9vYmFy", "Zm9vYmFy"},
        {"\xfb\xff\xbf", 3, "+/+/", "-_-_"},
        {"\0\0", 2, "AAA=", "AAA"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF usual = {0}, url = {0}, back = {0};
        text64_encode(rows[i].bytes, rows[i].n, &usual);
        text64_encode_url(rows[i].bytes, rows[i].n, &url);
        expect_str(rows[i].usual, rows[i].usual, strbuf_str(&usual));
        expect_str(rows[i].usual, rows[i].url, strbuf_str(&url));
        expect_true(rows[i].usual, base64_decode(strbuf_str(&usual), usual.len, &back));
        expect_int(rows[i].usual, (int64_t)rows[i].n, (int64_t)back.len);
        expect_true(rows[i].usual,
                    rows[i].n == 0 || memcmp(back.ptr, rows[i].bytes, rows[i].n) == 0);
    }
    expect_done();
}

static void it_is_appended(void **state)
{
    (void)state;
    AUTO_STRBUF out = {0};
    strbuf_adds(&out, "key: ");
    text64_encode("foo", 3, &out);
    assert_string_equal(strbuf_str(&out), "key: Zm9v");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms),
        cmocka_unit_test(it_is_appended),
    };
    return cmocka_run_group_tests_name("text64", tests, NULL, NULL);
}

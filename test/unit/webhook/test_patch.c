// SPDX-License-Identifier: Apache-2.0
#include "webhook/patch.h"

#include "test/unit/lib/base/expect.h"

static void operations_are_written_with_escaped_paths(void **state)
{
    (void)state;
    AUTO_PATCH p;
    patch_init(&p);
    expect_true("a new patch is empty", patch_is_empty(&p));
    patch_remove(&p, "metadata", "annotations", "cosched.io/a~b", NULL);
    patch_add_str(&p, "say \"x\"", "spec", "schedulerName", NULL);
    expect_true("no longer", !patch_is_empty(&p));
    const char *expected =
        "[{\"op\":\"remove\",\"path\":\"/metadata/annotations/cosched.io~1a~0b\"},"
        "{\"op\":\"add\",\"path\":\"/spec/schedulerName\",\"value\":\"say \\\"x\\\"\"}]";
    expect_str("two operations", expected, patch_text(&p));
    expect_str("asked twice", expected, patch_text(&p));
    expect_done();
}

static void an_empty_patch_is_an_empty_list(void **state)
{
    (void)state;
    AUTO_PATCH p;
    patch_init(&p);
    expect_str("nothing", "[]", patch_text(&p));
    expect_done();
}

static void base64_is_that_of_the_rfc(void **state)
{
    (void)state;
    static const struct {
        const char *row, *bytes;
        size_t n;
        const char *expected;
    } rows[] = {
        {"nothing", "", 0, ""},
        {"one byte is padded twice", "f", 1, "Zg=="},
        {"two bytes are padded once", "fo", 2, "Zm8="},
        {"three bytes are not padded", "foo", 3, "Zm9v"},
        {"four bytes begin anew", "foob", 4, "Zm9vYg=="},
        {"six bytes", "foobar", 6, "Zm9vYmFy"},
        {"the last two digits are + and /", "\xfb\xff\xfe", 3, "+//+"},
        {"zero bytes", "\0\0\0", 3, "AAAA"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_STRBUF out;
        strbuf_init(&out);
        patch_base64(&out, rows[i].bytes, rows[i].n);
        expect_str(rows[i].row, rows[i].expected, strbuf_str(&out));
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_are_written_with_escaped_paths),
        cmocka_unit_test(an_empty_patch_is_an_empty_list),
        cmocka_unit_test(base64_is_that_of_the_rfc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_are_written_with_escaped_paths),
        cmocka_unit_test(an_empty_patch_is_an_empty_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

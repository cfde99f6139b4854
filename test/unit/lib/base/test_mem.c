// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/base/mem.h"

static void memory_is_zeroed_and_an_empty_array_is_no_null(void **state)
{
    (void)state;
    int *four = mem_new(int, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(four[i], 0);
    free(four);
    int *none = mem_new(int, 0);
    assert_non_null(none);
    free(none);
}

static void a_copied_string_is_another_one_and_null_stays_null(void **state)
{
    (void)state;
    const char *text = "gpu";
    char *copy = mem_strdup(text);
    assert_string_equal(copy, text);
    assert_ptr_not_equal(copy, text);
    free(copy);
    assert_null(mem_strdup(NULL));
}

static void a_secret_is_gone_when_it_was_wiped(void **state)
{
    (void)state;
    char secret[] = "token", none[sizeof secret] = {0};
    mem_wipe(secret, 0);
    assert_string_equal(secret, "token");
    mem_wipe(secret, 3);
    assert_memory_equal(secret, none, 3);
    assert_string_equal(secret + 3, "en");
    mem_wipe(secret, sizeof secret);
    assert_memory_equal(secret, none, sizeof secret);
    mem_wipe(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_an_empty_array_is_no_null),
        cmocka_unit_test(a_secret_is_gone_when_it_was_wiped),
        cmocka_unit_test(a_copied_string_is_another_one_and_null_stays_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "kubectl/grid.h"

#include "test/unit/lib/base/expect.h"

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static void nothing_of_it_commands_a_terminal(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *expected;
    } rows[] = {
        {"plain text", "Tesla-T4 80GB (x)", "Tesla-T4 80GB (x)"},
        {"nothing", "", ""},
        {"letters of other scripts", "K\xc3\xa4lte \xe6\x98\xbe\xe5\x8d\xa1 \xf0\x9f\x98\x80",
         "K\xc3\xa4lte \xe6\x98\xbe\xe5\x8d\xa1 \xf0\x9f\x98\x80"},
        {"an escape sequence", "a\033[31mb", "a?[31mb"},
        {"line feeds, tabs and bells", "a\nb\tc\rd\a", "a?b?c?d?"},
        {"the last control character and the first that is none", "\x1f ", "? "},
        {"delete", "~\x7f", "~?"},
        {"the C1 controls, by their ends", "\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0", "???\xc2\xa0"},
        {"a C1 control as a single byte",
         "\x9b"
         "2J",
         "?2J"},
        {"overrides of the writing direction",
         "a\xe2\x80\xae"
         "b\xe2\x81\xa6"
         "c",
         "a?b?c"},
        {"a separator of lines",
         "a\xe2\x80\xa8"
         "b",
         "a?b"},
        {"bytes that are no UTF-8", "a\xff\xc3x", "a??x"},
        {"an overlong escape", "\xc0\x9b", "??"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_str(rows[i].row, rows[i].expected, grid_clean(rows[i].text, &arena));
    expect_str("no text", "", grid_clean(NULL, &arena));
    expect_done();
}

static void columns_are_as_wide_as_their_widest_cell(void **state)
{
    (void)state;
    struct grid g;
    AUTO_STRBUF out = {0};
    AUTO_STRBUF colours = {0};
    grid_init(&g, 3, &arena);
    for (int i = 0; i < 40; i++) {
        grid_add(&g, GRID_BOLD, i == 0 ? "NAME" : "n");
        grid_addf(&g, GRID_PLAIN, i == 1 ? "%d\xc3\xa4\xc3\xa4" : "%d", i);
        grid_add(&g, GRID_RED, i == 0 ? "C" : "");
    }
    expect_int("the longest line", 12, (int64_t)grid_print(&g, false, &out));
    expect_true("the first lines",
                str_starts(strbuf_str(&out), "NAME  0    C\nn     1\xc3\xa4\xc3\xa4\nn     2\n"));
    expect_int("colours do not count", 12, (int64_t)grid_print(&g, true, &colours));
    expect_true("colours",
                str_starts(strbuf_str(&colours), "\033[1mNAME\033[0m  0    \033[31mC\033[0m\n"));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_of_it_commands_a_terminal, setup, teardown),
        cmocka_unit_test_setup_teardown(columns_are_as_wide_as_their_widest_cell, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

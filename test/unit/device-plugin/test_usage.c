// SPDX-License-Identifier: Apache-2.0
/* Who takes more than it asked for? */
#include "device-plugin/usage.h"

#include "test/unit/lib/base/expect.h"

static void sums(void **state)
{
    (void)state;
    static const struct usage_process list[] = {
        {.card = 0, .pid = 10, .mib = 1000, .uid = "a"},
        {.card = 0, .pid = 11, .mib = -1, .uid = "a"},
        {.card = 0, .pid = 12, .mib = 70, .uid = "b"},
        {.card = 0, .pid = 13, .mib = 5},
        {.card = 1, .pid = 10, .mib = 500, .uid = "a"},
    };
    static const struct {
        const char *row, *uid;
        int64_t mib, processes;
    } rows[] = {
        {"a process on two cards counts once, its memory on both", "a", 1500, 2},
        {"another pod", "b", 70, 1},
        {"processes of no pod", "", 5, 1},
        {"a pod without processes", "c", 0, 0},
        {"all", NULL, 1575, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t mib, processes;
        usage_sum(list, sizeof list / sizeof list[0], rows[i].uid, &mib, &processes);
        expect_int(rows[i].row, rows[i].mib, mib);
        expect_int(rows[i].row, rows[i].processes, processes);
    }
    expect_done();
}

static void over_and_back(void **state)
{
    (void)state;
    struct usage u = {0};
    static const struct {
        const char *row;
        int64_t asked, mib;
        enum usage_change change;
    } rows[] = {
        {"exactly what it asked for is fine", 3072, 3072, USAGE_SAME},
        {"one MiB more is not", 3072, 3073, USAGE_OVER},
        {"said once", 3072, 5000, USAGE_SAME},
        {"one look within", 3072, 100, USAGE_SAME},
        {"a second", 3072, 100, USAGE_SAME},
        {"over again begins the count again", 3072, 4000, USAGE_SAME},
        {"one", 3072, 3072, USAGE_SAME},
        {"two", 3072, 0, USAGE_SAME},
        {"three looks within", 3072, 0, USAGE_WITHIN},
        {"and nothing more", 3072, 0, USAGE_SAME},
        {"who asked for nothing exceeds nothing", 0, 9999, USAGE_SAME},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_int(rows[i].row, rows[i].change, usage_look(&u, rows[i].asked, rows[i].mib, 1));
    expect_int("the last look is remembered", 9999, u.mib);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums), cmocka_unit_test(over_and_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

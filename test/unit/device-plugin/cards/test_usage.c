// SPDX-License-Identifier: Apache-2.0
/* Who takes more than it asked for? */
#include "device-plugin/cards/usage.h"

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
        expect_int(rows[i].row, rows[i].change, usage_scan(&u, rows[i].asked, rows[i].mib, 1));
    expect_int("the last look is remembered", 9999, u.mib);
    expect_done();
}

/* Each row is a look at the same pod, that many seconds after the first. */
static void what_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        int64_t second, mib, processes;
        bool told;
    } rows[] = {
        {"no process yet", 0, 0, 0, false},
        {"the first process, without memory", 10, 0, 1, true},
        {"it takes memory soon after", 20, 2000, 1, false},
        {"told when a minute has passed", 70, 2000, 1, true},
        {"a little more", 140, 2255, 1, false},
        {"more than a little", 150, 2256, 1, false}, /* a tenth of 10240 is 1024 */
        {"just not a tenth of what it asked for", 160, 3023, 1, false},
        {"a tenth", 170, 3024, 1, true},
        {"too soon after", 180, 9000, 1, false},
        {"exactly what it asked for", 230, 10240, 1, true},
        {"beyond it is told at once", 231, 10241, 1, true},
        {"still beyond", 232, 11000, 1, false},
        {"back within, but too soon", 240, 10240, 1, false},
        {"back within", 291, 10240, 1, true},
        {"beyond it again, at once", 292, 10300, 1, true},
        {"its end, at once", 293, 0, 0, true},
        {"and no more", 400, 0, 0, false},
        {"begins again", 401, 500, 1, true},
    };
    struct usage u = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)usage_scan(&u, 10240, rows[i].mib, rows[i].processes);
        expect_int(rows[i].row, rows[i].told, usage_is_news(&u, 10240, rows[i].second * 1000 + 1));
    }
    u = (struct usage){.told = {.any = true, .mib = 1000}};
    (void)usage_scan(&u, 1024, 1100, 1);
    expect_int("what the process before told is as if long ago: going beyond is news", true,
               usage_is_news(&u, 1024, 1000000));
    u = (struct usage){.told = {.any = true, .mib = 1000}};
    (void)usage_scan(&u, 1024, 1000, 1);
    expect_int("the same is none", false, usage_is_news(&u, 1024, 1000000));
    u = (struct usage){.told = {.any = true, .mib = 1000}};
    (void)usage_scan(&u, 0, 1256, 1);
    expect_int("who holds whole cards is told by 256 MiB", true, usage_is_news(&u, 0, 1000000));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums), cmocka_unit_test(over_and_back),
                                       cmocka_unit_test(what_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Device time in real processes: every way to launch is charged to the container, by every way to
 * find the driver's functions; processes share one budget; and a card without a limit of time is
 * not touched.
 */
#include "test/unit/device-plugin/isolation/crew.h"

#include "device-plugin/isolation/budget.h"
#include "lib/base/clock.h"

static struct regionfile look;

static struct region_card *region_of(const struct crew *c)
{
    char path[CREW_PATH];
    crew_path(c, "region", path);
    assert_int_equal(0, regionfile_attach(&look, path));
    return region_card(&look.region, 0);
}

static void every_launch_is_charged(void **state)
{
    static const char *const paths[] = {"link", "dlsym", "default", "next",
                                        "proc", "proc2", "ptsz"};
    static const struct {
        const char *command;
        uint64_t launches;
    } rows[] = {{"launch 0 7", 7},  {"ex 0 5", 5},         {"coop 0 3", 3},
                {"old 0 6", 6},     {"multi 0 2", 4},      {"graph 0 20 2", 40},
                {"graph 0 1 9", 9}, {"mixed 0 200 1", 100}};
    struct crew c;
    (void)state;
    crew_make(&c, NULL, 0, 0);
    crew_limit(&c, 64, 90, 0);
    struct region_card *region = region_of(&c);
    struct worker w = crew_begin(&c);
    for (size_t p = 0; p < sizeof paths / sizeof paths[0]; p++) {
        char line[CREW_LINE], row[CREW_LINE];
        expect_str(paths[p], "0", crew_ask(&w, line, "path %s", paths[p]));
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            uint64_t before = region->launches, charged = region->charged_ns;
            (void)str_format(row, sizeof row, "%s: %s", paths[p], rows[i].command);
            crew_expect(row, &w, "0", rows[i].command);
            expect_int(row, (int64_t)rows[i].launches, (int64_t)(region->launches - before));
            /* Before anything is known of what a launch needs. */
            expect_int(row, (int64_t)rows[i].launches * BUDGET_COST_US * 1000,
                       (int64_t)(region->charged_ns - charged));
        }
    }
    expect_true("nobody measures, and the region says so",
                (region->flags & REGION_UNMEASURED) != 0);
    uint64_t before = region->launches;
    crew_expect("a card without a limit", &w, "0", "path link");
    crew_expect("a card without a limit", &w, "0", "ctx 1");
    crew_expect("a card without a limit", &w, "0", "launch 0 100");
    expect_int("is not counted", (int64_t)before, (int64_t)region->launches);
    expect_int("ends well", 0, crew_stop(&w));
    regionfile_detach(&look);
    crew_limit(&c, 64, 100, 0);
    region = region_of(&c);
    w = crew_begin(&c);
    crew_expect("all of the time", &w, "0", "launch 0 1000");
    expect_int("costs nothing", 0, (int64_t)region->launches);
    expect_int("ends well", 0, crew_stop(&w));
    regionfile_detach(&look);
    crew_end(&c);
    expect_done();
}

/* Two processes together: what the first used up the second waits for. A debt of 400 ms at half of
 * the time is 800 ms to wait; less cannot be, more can on a busy machine. */
static void one_budget_for_all(void **state)
{
    struct crew c;
    (void)state;
    crew_make(&c, NULL, 0, 0);
    crew_limit(&c, 64, 50, 0);
    struct region_card *region = region_of(&c);
    struct worker a = crew_begin(&c), b = crew_begin(&c);
    crew_expect("the first", &a, "0", "launch 0 1");
    region->tokens_ns -= 400 * INT64_C(1000000);
    int64_t began_ms = clock_mono_ms();
    crew_expect("the second", &b, "0", "launch 0 1");
    expect_true("waits for both", clock_mono_ms() - began_ms >= 500);
    expect_true("which is counted", region->throttled_ns >= 500 * UINT64_C(1000000));
    region->tokens_ns -= INT64_C(3600) * 1000000000;
    fprintf(a.to, "launch 0 1\n");
    fflush(a.to);
    kill(a.pid, SIGKILL);
    expect_int("one that waits can be killed", 256 + SIGKILL, crew_stop(&a));
    region->tokens_ns = 1;
    crew_expect("and nobody else hangs", &b, "0", "launch 0 1");
    expect_int("ends well", 0, crew_stop(&b));
    regionfile_detach(&look);
    crew_end(&c);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_launch_is_charged),
                                       cmocka_unit_test(one_budget_for_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

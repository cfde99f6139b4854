// SPDX-License-Identifier: Apache-2.0
/*
 * Random stories: nobody sleeps past his chance, every event that helps is announced, and the model
 * is the one that a list of everything gives. Each run has other seeds, printed; COSCHED_SEED
 * repeats a story that failed, COSCHED_STORIES says how many there are.
 */
#include "test/unit/lib/base/expect.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "test/unit/scheduler/stories/story.h"

static uint64_t seed_of_run;
static int64_t stories;

static int64_t from_environment(const char *name, int64_t fallback)
{
    const char *text = getenv(name);
    int64_t value = fallback;
    struct error err = ERROR_INIT;
    if (text != NULL && num_parse_range(text, 0, INT64_MAX, &value, &err) < 0) {
        fprintf(stderr, "%s: %s\n", name, err.text);
        exit(2);
    }
    return value;
}

/* Prints the first story of each kind of failure, and how many there were. */
struct kinds {
    const char *kind[8];
    int64_t stories[8];
    size_t len;
};

static void note(struct kinds *all, struct story *s)
{
    size_t i = 0;
    expect_failures++;
    while (i < all->len && !str_eq(all->kind[i], s->kind))
        i++;
    if (i == sizeof all->kind / sizeof *all->kind)
        return;
    all->kind[i] = s->kind;
    if (all->stories[i]++ > 0)
        return;
    all->len++;
    story_shorten(s);
    story_print(s);
}

static void tell(int64_t n, bool answers)
{
    uint64_t asked = 0, placed = 0;
    struct kinds failed = {0};
    for (int64_t i = 0; i < n; i++) {
        struct story s;
        story_init(&s, seed_of_run + (uint64_t)i, STORY_STEPS);
        s.answers = answers;
        bool good = story_run(&s);
        asked += s.asked;
        placed += s.placed;
        if (!good)
            note(&failed, &s);
    }
    for (size_t i = 0; i < failed.len; i++)
        printf("%lld stories failed: %s\n", (long long)failed.stories[i], failed.kind[i]);
    printf("%lld stories, %llu sleepers asked, %llu pods placed\n", (long long)n,
           (unsigned long long)asked, (unsigned long long)placed);
    expect_true("things happened", n < 100 || (asked > 20 * (uint64_t)n && placed > (uint64_t)n));
    expect_done();
}

static void nobody_sleeps_past_his_chance(void **state)
{
    (void)state;
    tell(stories, false);
}

static void what_turns_a_no_into_a_yes_is_announced(void **state)
{
    (void)state;
    tell(stories / 10, true);
}

int main(void)
{
    seed_of_run = (uint64_t)from_environment("COSCHED_SEED", clock_wall_ns() & INT32_MAX);
    stories = from_environment("COSCHED_STORIES", getenv("COSCHED_SEED") != NULL ? 10 : 2000);
    printf("COSCHED_SEED=%llu COSCHED_STORIES=%lld\n", (unsigned long long)seed_of_run,
           (long long)stories);
    (void)fflush(stdout);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_turns_a_no_into_a_yes_is_announced),
        cmocka_unit_test(nobody_sleeps_past_his_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

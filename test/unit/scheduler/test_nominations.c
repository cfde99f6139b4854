// SPDX-License-Identifier: Apache-2.0
/*
 * Room that waiting pods have a right to: what the class remembers about it is what a scan finds, whatever happened to those pods meanwhile, and whatever the order in which they came.
 */
#include "scheduler/nominations.h"

#include "lib/model/names.h"
#include "scheduler/pipeline.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

static struct cluster c;
static struct arena arena;

static int setup(void **state)
{
    (void)state;
    cluster_init(&c, NAME_SCHEDULER);
    arena_init(&arena, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&arena);
    cluster_deinit(&c);
    return 0;
}

static struct cluster_pod *put(const struct fixture_pod *f)
{
    struct pod *p = fixture_make_pod(f);
    const char *key = p->key;
    (void)cluster_put_pod(&c, p, NULL);
    return cluster_find_pod(&c, key);
}
#define PUT(...) put(&(struct fixture_pod){__VA_ARGS__})

/* The node, or the sentence; a scan says the same. */
static const char *answer(const char *sentence, struct cluster_pod *cp)
{
    struct pipeline_choice quick, slow;
    pipeline_choose(&c, cp, &arena, &quick);
    pipeline_scan(&c, cp, &arena, &slow);
    const char *is = quick.node != NULL ? quick.node->name : reasons_sentence(&quick.why, &arena);
    const char *should = slow.node != NULL ? slow.node->name : reasons_sentence(&slow.why, &arena);
    expect_str(sentence, should, is);
    return is;
}

static void a_nominated_pod_that_changes_is_asked_about_again(void **state)
{
    (void)state;
    const struct row {
        const char *sentence;
        int64_t cpu_milli;
        int32_t priority;
        const char *expected;
        uint32_t events;
    } rows[] = {
        {"it asks for more: less is left, which helps nobody", 7000, 5,
         "0/1 nodes fit: 1 has too little cpu (asked: 4, largest free: 1 on n1)", 0},
        {"it asks for the same", 6000, 5,
         "0/1 nodes fit: 1 has too little cpu (asked: 4, largest free: 2 on n1)", 0},
        {"it asks for less, still too much", 5000, 5,
         "0/1 nodes fit: 1 has too little cpu (asked: 4, largest free: 3 on n1)", EVENT_POD_GONE},
        {"it asks for so little that both fit", 4000, 5, "n1", EVENT_POD_GONE},
        {"it is less important than the one that asks now", 6000, -1, "n1", EVENT_POD_GONE},
        {"it is more important than before", 6000, 6,
         "0/1 nodes fit: 1 has too little cpu (asked: 4, largest free: 2 on n1)", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)setup(NULL);
        (void)cluster_put_node(&c, NODE(.name = "n1"));
        (void)PUT(.name = "first", .nominated = "n1", .priority = 5, .c = {{.cpu_milli = 6000}});
        struct cluster_pod *second = PUT(.name = "second", .c = {{.cpu_milli = 4000}});
        expect_str(rows[i].sentence,
                   "0/1 nodes fit: 1 has too little cpu (asked: 4, largest free: 2 on n1)",
                   answer(rows[i].sentence, second));
        uint32_t events =
            cluster_put_pod(&c,
                            POD(.name = "first", .nominated = "n1", .priority = rows[i].priority,
                                .c = {{.cpu_milli = rows[i].cpu_milli}}),
                            NULL);
        expect_str(rows[i].sentence, rows[i].expected, answer(rows[i].sentence, second));
        expect_int(rows[i].sentence, rows[i].events, events & EVENT_POD_GONE);
        (void)teardown(NULL);
    }
    expect_done();
}

/* 5 GiB into cards of 8 and 6, then 6: 2 are left at most; the other way round 3. */
static const char *with_cards(const char *sentence, const char *const *order)
{
    (void)setup(NULL);
    (void)cluster_put_node(
        &c, NODE(.name = "n1", .gib = 14, .inventory = fixture_inventory(&arena, "cgpu", "8,6")));
    for (size_t i = 0; order[i] != NULL; i++) {
        bool five = order[i][0] == 'a', elsewhere = order[i][0] == 'x';
        (void)PUT(.name = order[i], .nominated = elsewhere ? "n2" : "n1",
                  .c = {{.gib = five ? 5 : 6}});
    }
    struct cluster_pod *asks = PUT(.name = "asks", .c = {{.gib = 3}});
    (void)answer(sentence, asks);
    (void)cluster_remove_pod(&c, "d/x", NULL, NULL);
    return answer(sentence, asks);
}

static void the_order_in_which_they_came_does_not_matter(void **state)
{
    (void)state;
    const struct row {
        const char *sentence;
        const char *order[4];
    } rows[] = {
        {"by name", {"a", "b"}},
        {"the other way round", {"b", "a"}},
        {"one that waits elsewhere came first and has gone", {"x", "a", "b"}},
        {"one that waits elsewhere came second and has gone", {"b", "x", "a"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect_str(rows[i].sentence,
                   "0/1 nodes fit: 1 has no card with 3 GiB free (largest free: 2 GiB on n1/GPU0)",
                   with_cards(rows[i].sentence, rows[i].order));
        (void)teardown(NULL);
    }
    expect_done();
}

static void whose_nominations_count(void **state)
{
    (void)state;
    const struct row {
        const char *sentence;
        const char *scheduler;
        int32_t priority;
        const char *node;
        bool fits;
    } rows[] = {
        {"ours, more important", NULL, 1, NULL, false},
        {"ours, as important", NULL, 0, NULL, false},
        {"ours, less important", NULL, -1, NULL, true},
        {"another scheduler's, more important", "default-scheduler", 1, NULL, false},
        {"another scheduler's, as important", "default-scheduler", 0, NULL, false},
        {"another scheduler's, less important", "default-scheduler", -1, NULL, true},
        {"bound elsewhere by now: it waits no more", "default-scheduler", 1, "n2", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)setup(NULL);
        (void)cluster_put_node(&c, NODE(.name = "n1"));
        (void)PUT(.name = "first", .scheduler = rows[i].scheduler, .nominated = "n1",
                  .priority = rows[i].priority, .node = rows[i].node, .c = {{.cpu_milli = 6000}});
        struct cluster_pod *second = PUT(.name = "second", .c = {{.cpu_milli = 4000}});
        expect_int(rows[i].sentence, rows[i].fits, str_eq(answer(rows[i].sentence, second), "n1"));
        (void)teardown(NULL);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whose_nominations_count),
        cmocka_unit_test(a_nominated_pod_that_changes_is_asked_about_again),
        cmocka_unit_test(the_order_in_which_they_came_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The invariants I1 to I4 over random stories. Each run has another seed, printed; COSCHED_SEED
 * repeats one, COSCHED_OPS makes it longer.
 */
#include "test/unit/lib/base/expect.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "test/unit/scheduler/world.h"

static uint64_t seed_of_run;

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

static int64_t ops(void)
{
    return from_environment("COSCHED_OPS", 20000);
}

enum { LIFE = 2500, LIVES = 4, LOAN_LIVES = 40 };

/* Lives in which little happens prove little. The sums are over this many lives with all nodes; of
 * 949 lives, the least eventful four in a row had 291 placed, 39 confirmed and 67 preemptions. */
static void check_eventful(uint64_t lives, const struct world *sum)
{
    if (lives < LIVES)
        return; /* COSCHED_OPS asks for a short one */
    expect_true("pods were placed", sum->placed > 40 * lives);
    expect_true("gangs were refused", sum->refused > 200 * lives);
    expect_true("bindings were confirmed", sum->confirmed > 6 * lives);
    expect_true("pods were preempted", sum->preempted > 8 * lives);
    expect_true("others bound pods", sum->foreign > 60 * lives);
    if (lives < LOAN_LIVES)
        return; /* few borrow what another one needs just then */
    expect_true("CPUs were reclaimed", sum->recalled > 0);
}

static void accounting_equals_a_recount_after_every_operation(void **state)
{
    (void)state;
    static struct world w, sum;
    uint64_t whole = 0;
    int64_t left = ops();
    /* Several shorter lives: beginnings are interesting, and with few nodes each refusal counts. */
    for (uint64_t lives = 0; left > 0; lives++) {
        world_init(&w, seed_of_run + lives);
        w.nodes = lives % 2 == 0 ? WORLD_NODES : 1 + lives / 2 % 2;
        int64_t life = num_min(left, LIFE);
        for (int64_t i = 0; i < life; i++) {
            world_step(&w);
            world_check(&w);
        }
        left -= life;
        sum.recalled += w.recalled;
        sum.recalled_for_gangs += w.recalled_for_gangs;
        if (life == LIFE && w.nodes == WORLD_NODES) {
            whole++;
            sum.placed += w.placed;
            sum.refused += w.refused;
            sum.confirmed += w.confirmed;
            sum.preempted += w.preempted;
            sum.foreign += w.foreign;
        }
        world_deinit(&w);
    }
    check_eventful(whole, &sum);
    expect_done();
}

static void the_same_story_gives_the_same_placements(void **state)
{
    (void)state;
    static struct world a, b;
    for (int64_t round = 0; round < num_max(ops() / 4000, 1); round++) {
        uint64_t seed = seed_of_run ^ (uint64_t)round;
        world_init(&a, seed);
        world_init(&b, seed);
        for (int i = 0; i < 400; i++) {
            world_step(&a);
            world_step(&b);
            if (a.story == b.story && cluster_digest(&a.cluster) == cluster_digest(&b.cluster))
                continue;
            print_error("two runs part after step %d of seed %llu\n", i, (unsigned long long)seed);
            expect_failures++;
            break;
        }
        world_deinit(&a);
        world_deinit(&b);
    }
    expect_done();
}

/* Nodes and pods of one random world, put into another in another order. */
static void the_order_of_arrival_does_not_matter(void **state)
{
    (void)state;
    static struct world a, b;
    for (int64_t round = 0; round < num_max(ops() / 800, 1); round++) {
        uint64_t seed = seed_of_run + (uint64_t)round * 977;
        world_init(&a, seed);
        world_init(&b, seed);
        a.attempt.all_stay = b.attempt.all_stay = true; /* who leaves at once is left to chance */
        for (uint64_t i = 0; i < WORLD_PODS; i++) {
            world_fill_pod(&a, i);
            world_fill_pod(&b, i);
        }
        for (uint64_t i = 0; i < WORLD_PODS; i++) {
            world_put_pod(&a, i);
            world_put_pod(&b, (i * 7 + (uint64_t)round) % WORLD_PODS); /* 7 and 40 are coprime */
        }
        for (uint64_t i = 0; i < WORLD_NODES; i++) {
            a.random = seed + i;
            world_put_node(&a, i);
            b.random = seed + WORLD_NODES - 1 - i;
            world_put_node(&b, WORLD_NODES - 1 - i);
        }
        world_check(&a);
        world_check(&b);
        bool more = true;
        for (int i = 0; more && i < 500; i++) {
            a.now_ms = b.now_ms = i;
            more = world_try(&a);
            expect_int("both have a gang to try, or none has", more, world_try(&b));
            if (a.story == b.story && cluster_digest(&a.cluster) == cluster_digest(&b.cluster))
                continue;
            print_error("seed %llu: placements part at attempt %d\n", (unsigned long long)seed, i);
            expect_failures++;
            break;
        }
        world_deinit(&a);
        world_deinit(&b);
    }
    expect_done();
}

int main(void)
{
    seed_of_run = (uint64_t)from_environment("COSCHED_SEED", clock_wall_ns() & INT32_MAX);
    printf("COSCHED_SEED=%llu COSCHED_OPS=%lld\n", (unsigned long long)seed_of_run,
           (long long)ops());
    (void)fflush(stdout);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accounting_equals_a_recount_after_every_operation),
        cmocka_unit_test(the_same_story_gives_the_same_placements),
        cmocka_unit_test(the_order_of_arrival_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The order of cpus.h against trying every subset on small machines, and what it promises on large
 * ones. Each run has another seed, printed; COSCHED_SEED repeats one.
 */
#include "test/unit/lib/base/expect.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/num.h"
#include "scheduler/accounts/cpus.h"

static uint64_t seed, state_of_random;

static uint64_t below(uint64_t n)
{
    uint64_t z = (state_of_random += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

struct machine {
    uint32_t numa, l3_each, cores_each, threads;
};

/* Thread t of core c is CPU c + t * cores. */
static void make_layout(const struct machine *m, const struct cpuset *reserved, struct arena *a,
                        struct cpus_layout *out)
{
    uint32_t l3s = m->numa * m->l3_each, cores = l3s * m->cores_each;
    struct cpu_topology t = {.threads = m->threads, .cores = cores, .reserved = *reserved};
    t.numa = arena_new(a, struct cpuset, m->numa);
    t.numa_len = m->numa;
    t.l3 = arena_new(a, struct cpuset, l3s);
    t.l3_len = l3s;
    memset(t.numa, 0, m->numa * sizeof *t.numa);
    memset(t.l3, 0, l3s * sizeof *t.l3);
    for (uint32_t c = 0; c < cores; c++)
        for (uint32_t i = 0; i < m->threads; i++) {
            cpuset_add(&t.l3[c / m->cores_each], c + i * cores);
            cpuset_add(&t.numa[c / m->cores_each / m->l3_each], c + i * cores);
        }
    struct error err = ERROR_INIT;
    if (cpus_layout_init(out, &t, a, &err) < 0)
        fail_msg("layout: %s", err.text);
}

static void print_cost(const char *what, const struct cpus_cost *c, const struct cpuset *s)
{
    AUTO_STRBUF text = {0};
    cpuset_print(s, &text);
    fprintf(stderr, "  %s: numa %u partial %u broken %u l3 %u left %u %u, CPUs %s\n", what,
            c->numa_nodes, c->partial_cores, c->broken_cores, c->l3_groups, c->numa_left,
            c->l3_left, strbuf_str(&text));
}

/* The best of all subsets of n. */
static struct cpus_cost best_of_all(const struct cpus_layout *l, const struct cpuset *open,
                                    uint32_t n, struct cpuset *best)
{
    unsigned cpus[16];
    size_t len = 0;
    for (int cpu = -1; (cpu = cpuset_next(open, cpu)) >= 0;)
        cpus[len++] = (unsigned)cpu;
    struct cpus_cost least = {.numa_nodes = UINT32_MAX};
    for (uint32_t bits = 0; bits < (1U << len); bits++) {
        if ((uint32_t)__builtin_popcount(bits) != n)
            continue;
        struct cpuset s;
        cpuset_clear(&s);
        for (size_t i = 0; i < len; i++)
            if (bits & (1U << i))
                cpuset_add(&s, cpus[i]);
        struct cpus_cost cost = cpus_cost_of(l, open, &s);
        if (cpus_cost_compare(&cost, &least) < 0) {
            least = cost;
            *best = s;
        }
    }
    return least;
}

static void no_subset_is_better(void **state)
{
    (void)state;
    static const struct machine machines[] = {
        {1, 1, 4, 2}, {1, 3, 2, 2}, {2, 1, 3, 2}, {2, 3, 2, 1}, {3, 1, 2, 2}, {3, 2, 2, 1},
        {2, 2, 3, 1}, {1, 4, 3, 1}, {1, 5, 1, 2}, {2, 2, 1, 2}, {2, 1, 2, 2}, {4, 1, 3, 1}};
    state_of_random = seed;
    struct arena a;
    arena_init(&a, 4096);
    for (int round = 0; round < 300; round++) {
        const struct machine *m = &machines[below(sizeof machines / sizeof *machines)];
        struct cpuset reserved, taken;
        cpuset_clear(&reserved);
        cpuset_clear(&taken);
        unsigned all = m->numa * m->l3_each * m->cores_each * m->threads;
        for (unsigned cpu = 0; cpu < all; cpu++) {
            if (below(8) == 0)
                cpuset_add(&reserved, cpu);
            if (below(4) == 0)
                cpuset_add(&taken, cpu);
        }
        struct cpus_layout l;
        arena_reset(&a);
        make_layout(m, &reserved, &a, &l);
        struct cpuset open = l.usable;
        cpuset_subtract(&open, &taken);
        for (uint32_t n = 1; n <= cpuset_count(&open); n++) {
            struct cpuset got, best;
            assert_true(cpus_choose(&l, &open, n, &got));
            assert_int_equal(cpuset_count(&got), n);
            assert_true(cpuset_is_subset(&got, &open));
            struct cpus_cost cost = cpus_cost_of(&l, &open, &got);
            struct cpus_cost least = best_of_all(&l, &open, n, &best);
            if (cpus_cost_compare(&cost, &least) != 0) {
                fprintf(
                    stderr, "machine %u numa, %u l3, %u cores, %u threads; %u CPUs, seed %llu\n",
                    m->numa, m->l3_each, m->cores_each, m->threads, n, (unsigned long long)seed);
                print_cost("expected", &least, &best);
                print_cost("got", &cost, &got);
                fail();
            }
        }
        struct cpuset got;
        assert_false(cpus_choose(&l, &open, cpuset_count(&open) + 1, &got));
    }
    arena_deinit(&a);
}

/* Whole cores that are open in one NUMA node. */
static uint32_t whole_cores(const struct cpus_layout *l, const struct cpuset *open, size_t numa)
{
    uint32_t n = 0;
    for (size_t i = 0; i < l->cores_len; i++)
        n += cpuset_is_subset(&l->cores[i], &l->numa[numa]) && cpuset_is_subset(&l->cores[i], open);
    return n;
}

static void large_machines(void **state)
{
    (void)state;
    /* 2 x 64 cores in L3 groups of 8; 2 x 96 in groups of 8; 2 x 20 with one L3 each; 8 NUMA nodes
     * of 3 groups; 24 groups in one node; 4 threads each */
    static const struct machine machines[] = {{2, 8, 8, 2}, {2, 12, 8, 2}, {2, 1, 20, 2},
                                              {8, 3, 8, 2}, {1, 24, 4, 2}, {2, 10, 2, 4}};
    state_of_random = seed;
    struct arena a;
    arena_init(&a, 4096);
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        struct cpus_layout l;
        struct cpuset none;
        cpuset_clear(&none);
        arena_reset(&a);
        make_layout(&machines[i], &none, &a, &l);
        unsigned all = cpuset_count(&l.usable);
        for (int round = 0; round < 20; round++) {
            struct cpuset open = l.usable;
            for (unsigned cpu = 0; cpu < all; cpu++)
                if (below(20) < (uint64_t)round)
                    cpuset_remove(&open, cpu);
            uint32_t most = 0, most_whole = 0, last = cpuset_count(&open);
            for (size_t k = 0; k < l.numa_len; k++) {
                struct cpuset in = open;
                cpuset_intersect(&in, &l.numa[k]);
                uint32_t whole = whole_cores(&l, &open, k) * machines[i].threads;
                most = cpuset_count(&in) > most ? cpuset_count(&in) : most;
                most_whole = whole > most_whole ? whole : most_whole;
            }
            for (uint32_t n = 1; n <= last; n++) {
                struct cpuset got;
                assert_true(cpus_choose(&l, &open, n, &got));
                assert_int_equal(cpuset_count(&got), n);
                assert_true(cpuset_is_subset(&got, &open));
                struct cpus_cost cost = cpus_cost_of(&l, &open, &got);
                if (n <= most)
                    assert_int_equal(cost.numa_nodes, 1);
                if (n <= most_whole)
                    assert_int_equal(cost.partial_cores, n % machines[i].threads != 0);
            }
        }
    }
    arena_deinit(&a);
}

static void the_choice_is_tight(void **state)
{
    (void)state;
    static const struct {
        const char *row, *taken;
        uint32_t n;
        const char *expected;
    } rows[] = {
        {"two CPUs are one core", "", 2, "0,16"},
        {"an L3 group of 4 cores for 8", "", 8, "0-3,16-19"},
        {"the NUMA node that is fuller", "8-9,24-25", 4, "10-11,26-27"},
        {"an odd CPU goes beside another odd one", "4", 1, "20"},
        {"three CPUs are a core and the odd one's neighbour", "4", 3, "5,20-21"},
        {"two groups of one NUMA node rather than one core each of two", "0,16,4,20,8,24,12,28", 12,
         "1-3,5-7,17-19,21-23"},
        {"no NUMA node has 14 left: whole cores of an L3 group in each", "0-2,8-10", 14,
         "4-7,12-14,20-23,28-30"},
    };
    const struct machine m = {2, 2, 4, 2}; /* 16 cores, 32 CPUs */
    struct arena a;
    arena_init(&a, 4096);
    struct cpuset none;
    cpuset_clear(&none);
    struct cpus_layout l;
    make_layout(&m, &none, &a, &l);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cpuset open = l.usable, taken, got;
        struct error err = ERROR_INIT;
        assert_int_equal(cpuset_parse(rows[i].taken, &taken, &err), 0);
        cpuset_subtract(&open, &taken);
        assert_true(cpus_choose(&l, &open, rows[i].n, &got));
        AUTO_STRBUF text = {0};
        cpuset_print(&got, &text);
        expect_str(rows[i].row, rows[i].expected, strbuf_str(&text));
    }
    expect_done();
    arena_deinit(&a);
}

/* Of hundreds of millions of sets of NUMA nodes only one has the CPUs: it is found, and not by
 * looking at all. */
static void many_numa_nodes(void **state)
{
    (void)state;
    const struct machine m = {32, 1, 10, 1};
    struct arena a;
    arena_init(&a, 4096);
    struct cpuset none, got, expected;
    cpuset_clear(&none);
    cpuset_clear(&expected);
    struct cpus_layout l;
    make_layout(&m, &none, &a, &l);
    struct cpuset open = l.usable;
    for (size_t i = 0; i < l.numa_len; i++)
        if (i % 2 == 0)
            cpuset_remove(&open, (unsigned)cpuset_next(&l.numa[i], -1));
        else
            cpuset_union(&expected, &l.numa[i]);
    assert_true(cpus_choose(&l, &open, 16 * 10, &got));
    assert_true(cpuset_equal(&got, &expected));
    arena_deinit(&a);
}

int main(void)
{
    int64_t given;
    const char *text = getenv("COSCHED_SEED");
    bool repeats = text != NULL && num_parse_range(text, 0, INT64_MAX, &given, NULL) == 0;
    seed = repeats ? (uint64_t)given : (uint64_t)clock_wall_ns() & INT32_MAX;
    printf("COSCHED_SEED=%llu\n", (unsigned long long)seed);
    (void)fflush(stdout);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_subset_is_better),
        cmocka_unit_test(large_machines),
        cmocka_unit_test(the_choice_is_tight),
        cmocka_unit_test(many_numa_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

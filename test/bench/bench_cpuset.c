// SPDX-License-Identifier: Apache-2.0
/*
 * bench_cpuset - the choice of CPUs, on the machines in ../shared/data/cpu-topology (hwloc XML; or
 * what COSCHED_CPU_TOPOLOGY names) and on some that hwloc makes up: the files there were written
 * with one NUMA node over both sockets, so the same machines are made up with one for each socket,
 * and one with eight.
 *
 * For every machine, 500 random occupancies and every pod size from 1 to what is free: a pod is on
 * no more NUMA nodes than need be, never has half a core where whole ones are free in that NUMA
 * node, and gets exactly what it asked for. On small machines every subset is tried, and none is
 * better by the order of cpus.h. What was checked is printed for each machine. What is timed is the
 * whole plan for a pod on one node, from the books to the grant (cpu_accounts_choose): CPU time of
 * this thread, the best of a few times (of more where that is beyond the goal), and of all
 * occupancies and sizes the slowest. Ends with status 1 when a promise is broken or a plan takes
 * more than 50 us.
 *
 *     bench_cpuset [sizes] [OCCUPANCIES]        sizes: nothing is timed
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device-plugin/cpu/cpuinfo.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/topology.h"
#include "scheduler/accounts/cpu_accounts.h"
#include "test/bench/result.h"

enum { GOAL_NS = 50000, ROUNDS = 3, ROUNDS_MAX = 30, SIZES_TIMED = 24 };
static const struct {
    const char *name, *source;
} made_up[] = {{"made-up", "synthetic:pack:2 [numa] l3:12 core:8 pu:2"}, /* 2 x EPYC 9654 */
               {"made-up-7763", "synthetic:pack:2 [numa] l3:8 core:8 pu:2"},
               {"made-up-6230", "synthetic:pack:2 [numa] l3:1 core:20 pu:2"},
               {"made-up-nps4", "synthetic:pack:2 die:4 [numa] l3:2 core:4 pu:2"}};
static bool timed = true;

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint64_t seed = 42;

static uint64_t below(uint64_t n)
{
    uint64_t z = (seed += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

struct tally {
    int64_t choices, broken, slowest_ns;
    int64_t split,
        odd; /* on several NUMA nodes since none has enough; with a part of a core, likewise */
};

struct bench {
    const char *name;
    struct cpu_accounts book;
    struct container container;
    struct pod pod;
    uint32_t cpus;
    struct cpu_request request;
    struct arena arena;
    struct tally tally;
};

static uint32_t count_in(const struct cpuset *s, const struct cpuset *within)
{
    struct cpuset both = *s;
    cpuset_intersect(&both, within);
    return cpuset_count(&both);
}

/* CPUs in whole cores that are free in one NUMA node. */
static uint32_t in_whole_cores(const struct cpus_layout *l, const struct cpuset *open, size_t numa)
{
    uint32_t n = 0;
    for (size_t i = 0; i < l->cores_len; i++)
        if (cpuset_is_subset(&l->cores[i], &l->numa[numa]) && cpuset_is_subset(&l->cores[i], open))
            n += cpuset_count(&l->cores[i]);
    return n;
}

/* NUMA nodes that so many of these need at least. */
static uint32_t fewest_nodes(const struct cpus_layout *l, const struct cpuset *open, uint32_t cpus)
{
    struct cpuset left = *open;
    uint32_t nodes = 0;
    for (uint32_t have = 0; have < cpus; nodes++) {
        size_t most = 0;
        for (size_t i = 1; i < l->numa_len; i++)
            if (count_in(&left, &l->numa[i]) > count_in(&left, &l->numa[most]))
                most = i;
        have += count_in(&left, &l->numa[most]);
        cpuset_subtract(&left, &l->numa[most]);
    }
    return nodes;
}

/* NULL: all is well. */
static const char *broken_promise(struct bench *b, const struct cpuset *open,
                                  const struct cpu_grant *c)
{
    const struct cpus_layout *l = &b->book.shape->layout;
    struct cpuset got;
    cpu_grant_of(c, 0, &got);
    if (cpuset_count(&got) != b->cpus || !cpuset_is_subset(&got, open))
        return "not what was asked for";
    bool whole = false;
    uint32_t halves = 0, threads = 1;
    for (size_t i = 0; i < l->numa_len; i++)
        whole |= in_whole_cores(l, open, i) >= b->cpus;
    for (size_t i = 0; i < l->cores_len; i++) {
        uint32_t n = count_in(&got, &l->cores[i]), size = cpuset_count(&l->cores[i]);
        halves += n > 0 && n < size;
        threads = size > threads ? size : threads;
    }
    b->tally.split += c->len > 1;
    b->tally.odd += halves > 0;
    if (c->len > fewest_nodes(l, open, b->cpus))
        return "more NUMA nodes than need be";
    return whole && halves > (b->cpus % threads != 0) ? "half a core, and whole ones are free"
                                                      : NULL;
}

static bool choose(struct bench *b, struct cpu_grant *out)
{
    arena_reset(&b->arena);
    return cpu_accounts_choose(&b->book, &b->pod, &b->request, NULL, &b->arena, out);
}

static void check(struct bench *b, const struct cpuset *open)
{
    struct cpu_grant got;
    b->request.cpus = b->cpus;
    const char *problem =
        choose(b, &got) ? broken_promise(b, open, &got) : "nothing, and there is room";
    b->tally.choices++;
    if (problem == NULL)
        return;
    b->tally.broken++;
    AUTO_STRBUF text = {0};
    cpuset_print(open, &text);
    fprintf(stderr, "%s: %u of %s: %s\n", b->name, (unsigned)b->cpus, strbuf_str(&text), problem);
}

static void measure(struct bench *b)
{
    struct cpu_grant got;
    int64_t best = INT64_MAX;
    /* What else the machine does only ever adds to it: a time that is too long is taken again
     * before it is believed. */
    for (int r = 0; r < ROUNDS || (best > GOAL_NS && r < ROUNDS_MAX); r++) {
        int64_t began = cpu_ns();
        (void)choose(b, &got);
        best = num_min(best, cpu_ns() - began);
    }
    b->tally.slowest_ns = num_max(b->tally.slowest_ns, best);
}

static void occupy(struct bench *b, int64_t number)
{
    struct cpu_accounts *book = &b->book;
    const struct cpu_shape *shape = book->shape;
    uint64_t fill = number == 0 ? 0 : below(100);
    bool by_core = below(2) == 0;
    cpu_accounts_set_shape(book, shape);
    for (size_t i = 0; i < shape->layout.cores_len; i++) {
        bool core = below(100) < fill;
        for (int cpu = -1; (cpu = cpuset_next(&shape->layout.cores[i], cpu)) >= 0;)
            if (by_core ? core : below(100) < fill) {
                book->owners[cpu] = 1;
                cpuset_add(&book->owned, (unsigned)cpu);
            }
    }
}

static void run(struct bench *b, int64_t occupancies)
{
    for (int64_t i = 0; i < occupancies; i++) {
        occupy(b, i);
        struct cpuset open = b->book.shape->layout.usable;
        cpuset_subtract(&open, &b->book.owned);
        uint32_t most = cpuset_count(&open), step = most / SIZES_TIMED + 1;
        for (b->cpus = 1; b->cpus <= most; b->cpus++) {
            check(b, &open);
            if (timed && (b->cpus + (uint64_t)i) % step == 0)
                measure(b);
        }
    }
}

static int run_machine(const char *source, const char *name, int64_t occupancies,
                       struct tally *total)
{
    struct cpu_shapes shapes;
    struct cpu_topology t;
    struct error err = ERROR_INIT;
    AUTO_STRBUF text = {0};
    struct bench b = {.name = name, .container = {.name = "c"}};
    arena_init(&b.arena, 64 * 1024);
    cpu_shapes_init(&shapes);
    if (cpuinfo_read(source, "/sys", &b.arena, &t, &err) == 0)
        cpu_topology_encode(&t, &text);
    b.book.shape = cpu_shapes_take(&shapes, strbuf_str(&text));
    bool ok = b.book.shape != NULL && b.book.shape->problem == NULL;
    if (ok) {
        b.pod = (struct pod){.containers = &b.container, .containers_len = 1};
        b.request = (struct cpu_request){.each = &b.cpus, .each_len = 1};
        run(&b, occupancies);
        const struct cpus_layout *l = &b.book.shape->layout;
        uint32_t cpus = cpuset_count(&l->usable);
        printf(
            "%s: %zu NUMA node%s, %zu L3 group%s, %zu cores, %u CPUs: %lld occupancies, sizes from 1 to all that "
            "is free: %lld choices, %lld on several NUMA nodes and %lld with a part of a core where it had to be; "
            "%lld broken\n",
            name, l->numa_len, l->numa_len == 1 ? "" : "s", l->l3_len, l->l3_len == 1 ? "" : "s",
            l->cores_len, (unsigned)cpus, (long long)occupancies, (long long)b.tally.choices,
            (long long)b.tally.split, (long long)b.tally.odd, (long long)b.tally.broken);
        char label[64];
        (void)str_format(label, sizeof label, "cpuset-%s-%u", name, (unsigned)cpus);
        if (timed)
            print_result(label, b.tally.slowest_ns, "ns", 0, -GOAL_NS);
        total->choices += b.tally.choices;
        total->broken += b.tally.broken;
        total->slowest_ns = num_max(total->slowest_ns, b.tally.slowest_ns);
    } else {
        fprintf(stderr, "bench_cpuset: %s: %s\n", source,
                b.book.shape != NULL ? b.book.shape->problem : err.text);
    }
    cpu_accounts_deinit(&b.book);
    cpu_shapes_deinit(&shapes);
    arena_deinit(&b.arena);
    return ok ? 0 : -1;
}

/* ---- small machines: every subset ---- */

enum { SMALL_MAX = 12 };

static struct cpus_cost best_of_all(const struct cpus_layout *l, const struct cpuset *open,
                                    uint32_t n)
{
    unsigned cpus[SMALL_MAX];
    size_t len = 0;
    for (int cpu = -1; (cpu = cpuset_next(open, cpu)) >= 0;)
        cpus[len++] = (unsigned)cpu;
    struct cpus_cost least = {.numa_nodes = UINT32_MAX};
    for (uint32_t bits = 0; bits < (1U << len); bits++) {
        struct cpuset s;
        if ((uint32_t)__builtin_popcount(bits) != n)
            continue;
        cpuset_clear(&s);
        for (size_t i = 0; i < len; i++)
            if ((bits & (1U << i)) != 0)
                cpuset_add(&s, cpus[i]);
        struct cpus_cost cost = cpus_cost_of(l, open, &s);
        if (cpus_cost_compare(&cost, &least) < 0)
            least = cost;
    }
    return least;
}

static void try_all_subsets(const char *name, const struct cpus_layout *l, int64_t occupancies,
                            struct tally *t)
{
    for (int64_t i = 0; i < occupancies; i++) {
        struct cpuset open = l->usable, got;
        uint64_t fill = i == 0 ? 0 : below(80);
        for (int cpu = -1; (cpu = cpuset_next(&l->usable, cpu)) >= 0;)
            if (below(100) < fill)
                cpuset_remove(&open, (unsigned)cpu);
        for (uint32_t n = 1; n <= cpuset_count(&open); n++) {
            struct cpus_cost best = best_of_all(l, &open, n);
            t->choices++;
            if (cpus_choose(l, &open, n, &got)) {
                struct cpus_cost cost = cpus_cost_of(l, &open, &got);
                if (cpus_cost_compare(&cost, &best) == 0)
                    continue;
            }
            AUTO_STRBUF text = {0};
            cpuset_print(&open, &text);
            fprintf(stderr, "%s: %u of %s: another choice is better\n", name, (unsigned)n,
                    strbuf_str(&text));
            t->broken++;
        }
    }
}

static int run_small(int64_t occupancies, struct tally *total)
{
    static const char *const small[] = {
        "pack:1 [numa] l3:1 core:4 pu:2",
        "pack:1 [numa] l3:3 core:2 pu:2",
        "pack:2 [numa] l3:1 core:3 pu:2",
        "pack:2 [numa] l3:3 core:2 pu:1",
        "pack:3 [numa] l3:1 core:2 pu:2",
        "pack:3 [numa] l3:2 core:2 pu:1",
        "pack:2 [numa] l3:2 core:3 pu:1",
        "pack:1 [numa] l3:4 core:3 pu:1",
        "pack:1 [numa] l3:5 core:1 pu:2",
        "pack:2 [numa] l3:2 core:1 pu:2",
        "pack:4 [numa] l3:1 core:3 pu:1",
        "pack:2 [numa] l3:1 core:2 pu:2",
        "pack:6 [numa] l3:1 core:2 pu:1",
        "pack:6 [numa] l3:1 core:1 pu:2",
        "pack:4 [numa] l3:3 core:1 pu:1",
        "pack:1 l3:2 numa:2 core:3 pu:1", /* NUMA nodes share a cache */
        "pack:1 l3:3 numa:2 core:1 pu:2"};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        struct cpus_layout l;
        struct cpu_topology t;
        struct tally tally = {0};
        struct error err = ERROR_INIT;
        struct arena a;
        AUTO_STRBUF source = {0};
        strbuf_addf(&source, "synthetic:%s", small[i]);
        arena_init(&a, 0);
        bool ok = cpuinfo_read(strbuf_str(&source), "/sys", &a, &t, &err) == 0 &&
                  cpus_layout_init(&l, &t, &a, &err) == 0;
        if (ok) {
            try_all_subsets(small[i], &l, occupancies, &tally);
            printf(
                "%s: %lld occupancies, sizes from 1 to all that is free: %lld choices, each against all subsets; "
                "%lld broken\n",
                small[i], (long long)occupancies, (long long)tally.choices,
                (long long)tally.broken);
        } else {
            fprintf(stderr, "bench_cpuset: %s: %s\n", small[i], err.text);
        }
        arena_deinit(&a);
        if (!ok)
            return -1;
        total->choices += tally.choices;
        total->broken += tally.broken;
    }
    return 0;
}

static int is_machine(const struct dirent *d)
{
    return str_ends(d->d_name, ".xml");
}

int main(int argc, char **argv)
{
    const char *dir = getenv("COSCHED_CPU_TOPOLOGY");
    struct dirent **files;
    struct tally total = {0};
    int64_t occupancies = 500;
    struct error err = ERROR_INIT;
    if (dir == NULL)
        dir = "../shared/data/cpu-topology";
    if (argc > 1 && str_eq(argv[1], "sizes")) {
        timed = false;
        argc--;
        argv++;
    }
    if (argc > 1 && num_parse_range(argv[1], 1, 1000000, &occupancies, &err) < 0) {
        fprintf(stderr, "bench_cpuset: %s\n", err.text);
        return 2;
    }
    bool read = true;
    for (size_t i = 0; i < sizeof made_up / sizeof *made_up; i++)
        read &= run_machine(made_up[i].source, made_up[i].name, occupancies, &total) == 0;
    int n = scandir(dir, &files, is_machine, alphasort);
    if (n <= 0) {
        fprintf(stderr, "bench_cpuset: no machines (*.xml) in %s\n", dir);
        return 1;
    }
    for (int i = 0; i < n; i++) {
        AUTO_STRBUF source = {0};
        strbuf_addf(&source, "xml:%s/%s", dir, files[i]->d_name);
        files[i]->d_name[strcspn(files[i]->d_name, ".")] = '\0';
        read &= run_machine(strbuf_str(&source), files[i]->d_name, occupancies, &total) == 0;
        free(files[i]);
    }
    free(files);
    read &= run_small(timed ? occupancies / 10 : occupancies, &total) == 0;
    print_result("cpuset-promises", total.choices - total.broken, "choices", total.choices,
                 total.choices);
    return read && total.broken == 0 && total.slowest_ns <= GOAL_NS ? 0 : 1;
}

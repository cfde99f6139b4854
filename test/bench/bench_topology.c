// SPDX-License-Identifier: Apache-2.0
/*
 * bench_topology - the choice of cards by their links, on the machines in
 * ../shared/data/gpu-topology (or what COSCHED_GPU_TOPOLOGY names).
 *
 * For every machine, every request size and 500 random occupancies: the set that links_choose gives
 * is the optimum that trying every set gives, and no choice takes more than 20 us. What is timed
 * begins with the matrix as text, as the scheduler has it; it is CPU time of this thread, the best
 * of ten times. Ends with status 1 when a choice differs or takes longer.
 *
 *     bench_topology [OCCUPANCIES]
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/file.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/links.h"
#include "test/bench/result.h"
#include "test/unit/lib/model/links_kit.h"

enum { GOAL_NS = 20000, ROUNDS = 10, FILE_MAX = 1 << 20, CARDS_MAX = LINKS_EXACT };

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct tally {
    int64_t choices, wrong, slowest_ns;
};

static uint64_t choose(const struct gpu_inventory *inv, const struct links_ask *ask)
{
    struct links l;
    links_of(inv, &l);
    return links_choose(&l, ask);
}

static void check(const char *name, const struct gpu_inventory *inv, const struct links_ask *asks,
                  size_t n, struct tally *t)
{
    struct links l;
    links_of(inv, &l);
    for (size_t i = 0; i < n; i++) {
        uint64_t expected = links_kit_brute(&l, &asks[i]), got = choose(inv, &asks[i]);
        t->choices++;
        if (expected == got)
            continue;
        t->wrong++;
        fprintf(stderr, "%s: %zu of cards %#" PRIx64 ": %#" PRIx64 " and not %#" PRIx64 "\n", name,
                asks[i].count, asks[i].free, got, expected);
    }
}

/* The slowest single choice; of each the best of a few times, so that what interrupts us does not
 * count. */
static void measure(const struct gpu_inventory *inv, const struct links_ask *asks, size_t n,
                    struct tally *t)
{
    uint64_t chosen = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t best = INT64_MAX;
        for (int r = 0; r < ROUNDS; r++) {
            int64_t began = cpu_ns();
            chosen |= choose(inv, &asks[i]);
            best = num_min(best, cpu_ns() - began);
        }
        t->slowest_ns = num_max(t->slowest_ns, best);
    }
    if (chosen == 0)
        fprintf(stderr, "no choice at all\n");
}

static int run(const char *dir, const char *file, size_t occupancies, struct tally *total)
{
    struct arena a;
    AUTO_STRBUF path = {0};
    AUTO_STRBUF text = {0};
    struct gpu_inventory inv;
    struct error err = ERROR_INIT;
    struct tally t = {0};
    uint64_t seed = 42;
    arena_init(&a, 0);
    strbuf_addf(&path, "%s/%s", dir, file);
    if (file_read(strbuf_str(&path), FILE_MAX, &text, &err) < 0 ||
        links_kit_parse(strbuf_str(&text), &a, &inv, &err) < 0 || inv.cards_len > CARDS_MAX) {
        fprintf(stderr, "%s: %s\n", strbuf_str(&path), err.text);
        arena_deinit(&a);
        return -1;
    }
    struct links_ask *asks = arena_new(&a, struct links_ask, occupancies);
    for (size_t count = 1; count <= inv.cards_len; count++) {
        for (size_t i = 0; i < occupancies;) {
            asks[i] = (struct links_ask){.free = links_kit_random(&seed) &
                                                 ((UINT64_C(1) << inv.cards_len) - 1),
                                         .count = count};
            if (i == 0 || count == inv.cards_len)
                asks[i].free = (UINT64_C(1) << inv.cards_len) - 1;
            i += __builtin_popcountll(asks[i].free) >= (int)count;
        }
        check(file, &inv, asks, occupancies, &t);
        measure(&inv, asks, occupancies, &t);
    }
    char name[128];
    (void)str_format(name, sizeof name, "topology-%.*s", (int)strcspn(file, "."), file);
    print_result(name, t.slowest_ns, "ns", 0, -GOAL_NS);
    total->choices += t.choices;
    total->wrong += t.wrong;
    arena_deinit(&a);
    return 0;
}

static int is_machine(const struct dirent *d)
{
    return str_ends(d->d_name, ".txt");
}

int main(int argc, char **argv)
{
    const char *dir = getenv("COSCHED_GPU_TOPOLOGY");
    struct dirent **files;
    struct tally total = {0};
    int64_t occupancies = 500;
    struct error err = ERROR_INIT;
    if (dir == NULL)
        dir = "../shared/data/gpu-topology";
    if (argc > 1 && num_parse_range(argv[1], 1, 1000000, &occupancies, &err) < 0) {
        fprintf(stderr, "bench_topology: %s\n", err.text);
        return 2;
    }
    int n = scandir(dir, &files, is_machine, alphasort);
    if (n <= 0) {
        fprintf(stderr, "bench_topology: no machines (*.txt) in %s\n", dir);
        return 1;
    }
    bool read = true;
    for (int i = 0; i < n; i++) {
        read &= run(dir, files[i]->d_name, (size_t)occupancies, &total) == 0;
        free(files[i]);
    }
    free(files);
    print_result("topology-optimum", total.choices - total.wrong, "choices", total.choices,
                 total.choices);
    return read ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Device time by percent, in a world of its own: a simulated card, containers that launch as fast
 * as they may, and a clock that the test moves. Nothing here depends on how busy the machine is.
 */
#include "device-plugin/isolation/budget.h"

#include <stdio.h>

#include "test/unit/device-plugin/isolation/measure.h"
#include "test/unit/lib/base/expect.h"

#include "test/fake/cuda/card.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define SECOND (1000 * MS)

enum { CONTAINERS = 3 };

struct container {
    uint32_t percent;
    uint64_t kernel_ns, kernel2_ns; /* every second kernel is of the second kind, 0: none is */
    uint64_t nodes;                 /* kernels of one graph, 0: no graphs */
    struct region_card card;
    uint64_t ready_ns; /* when it may ask again */
    uint64_t window_ns, count;
    uint64_t seen_ns, told_ns; /* what was measured last, and what the plugin has made of it */
};

struct world {
    uint64_t now, measured, measure_ns;
    bool whole_percents; /* as NVML tells it: of each period, in percent */
    struct card_world card;
};

/* The container launches once, or learns how long it must wait. */
static void act(struct world *w, struct container *c, int group)
{
    struct card_group *g = &w->card.groups[group];
    uint64_t n = c->nodes > 0 ? c->nodes : 1;
    (void)card_advance(&w->card, 0, w->now);
    if (g->backlog_ns[0] > CARD_AHEAD_NS) {
        c->ready_ns = w->now + g->backlog_ns[0] - CARD_AHEAD_NS + US;
        return;
    }
    uint64_t wait = budget_charge(&c->card, c->percent, n, w->now);
    if (wait == 0)
        g->backlog_ns[0] +=
            n * (c->kernel2_ns > 0 && c->count++ % 2 ? c->kernel2_ns : c->kernel_ns);
    c->ready_ns = w->now + (wait > 0 ? wait : 2 * US);
}

static void measure(struct world *w, struct container *c, size_t len)
{
    (void)card_advance(&w->card, 0, w->now);
    if (w->now < w->measured + w->measure_ns)
        return;
    uint64_t period = w->now - w->measured;
    bool first = w->measured == 0;
    w->measured = w->now;
    for (size_t i = 0; i < len; i++) {
        uint64_t busy = w->card.groups[i].busy_ns[0];
        uint64_t percent = first ? 0 : ((busy - c[i].seen_ns) * 100 + period / 2) / period;
        c[i].told_ns =
            w->whole_percents ? c[i].told_ns + (first ? 0 : period / 100 * percent) : busy;
        c[i].seen_ns = busy;
        measure_card(&c[i].card, c[i].told_ns, w->now);
    }
}

static int64_t magnitude(int64_t n)
{
    return n < 0 ? -n : n;
}

/* Returns the largest distance, in tenths of a point, of a share from its percentage in any window
 * of 5 s; where a measurement takes a second, after the first, in which the cost of a launch is
 * learned. */
static int64_t worst(struct world *w, struct container *c, size_t len)
{
    const uint64_t window = 5 * SECOND, begin = 1000 * SECOND;
    int64_t off = 0;
    w->now = w->card.now_ns[0] = begin;
    for (size_t i = 0; i < len; i++)
        c[i].ready_ns = w->now;
    for (uint64_t edge = begin + window; w->now < begin + 20 * SECOND;) {
        size_t next = 0;
        for (size_t i = 1; i < len; i++)
            if (c[i].ready_ns < c[next].ready_ns)
                next = i;
        if (c[next].ready_ns > w->now)
            w->now = c[next].ready_ns;
        act(w, &c[next], (int)next);
        measure(w, c, len);
        if (w->now < edge)
            continue;
        for (size_t i = 0; i < len; i++) {
            uint64_t busy = w->card.groups[i].busy_ns[0];
            int64_t distance =
                (int64_t)((busy - c[i].window_ns) * 1000 / window) - (int64_t)c[i].percent * 10;
            if ((edge > begin + window || w->measure_ns < SECOND) &&
                magnitude(distance) > magnitude(off))
                off = distance;
            c[i].window_ns = busy;
        }
        edge += window;
    }
    return off;
}

#define K(share, ns)                          \
    {                                         \
        .percent = (share), .kernel_ns = (ns) \
    }
#define MIX(share, ns, other)                                        \
    {                                                                \
        .percent = (share), .kernel_ns = (ns), .kernel2_ns = (other) \
    }
#define G(share, ns, n)                                     \
    {                                                       \
        .percent = (share), .kernel_ns = (ns), .nodes = (n) \
    }

static void shares_table(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        struct container c[CONTAINERS];
        size_t len;
    } rows[] = {
        {"kernels of 10 us", {K(20, 10 * US), K(30, 10 * US), K(50, 10 * US)}, 3},
        {"of 1 ms", {K(20, MS), K(30, MS), K(50, MS)}, 3},
        {"of 50 ms", {K(20, 50 * MS), K(30, 50 * MS), K(50, 50 * MS)}, 3},
        {"short, middle and long ones beside each other",
         {K(20, 10 * US), K(30, MS), K(50, 50 * MS)},
         3},
        {"the other way round", {K(20, 50 * MS), K(30, MS), K(50, 10 * US)}, 3},
        {"short and long by turns",
         {MIX(20, 10 * US, 10 * MS), MIX(30, 100 * US, 2 * MS), K(50, MS)},
         3},
        {"graphs", {G(20, 100 * US, 20), K(30, MS), G(50, 10 * US, 64)}, 3},
        {"20 % alone", {K(20, 300 * US)}, 1},
        {"50 % alone, long kernels", {K(50, 50 * MS)}, 1},
        {"5 % alone", {K(5, 20 * US)}, 1},
    };
    /* Measured exactly, and as NVML does: in whole percents of periods that differ between
     * cards. */
    static const struct {
        const char *how;
        uint64_t every_ns;
        bool whole_percents;
    } ways[] = {{"exactly", 200 * MS, false},
                {"in percent of 250 ms", 250 * MS, true},
                {"in percent of a second", 1000 * MS, true}};
    enum { ROWS = sizeof rows / sizeof rows[0], WAYS = sizeof ways / sizeof ways[0] };
    for (size_t n = 0; n < ROWS * WAYS; n++) {
        size_t i = n / WAYS, way = n % WAYS;
        struct world w = {.measure_ns = ways[way].every_ns,
                          .whole_percents = ways[way].whole_percents};
        struct container c[CONTAINERS];
        memcpy(c, rows[i].c, sizeof c);
        int64_t off = worst(&w, c, rows[i].len);
        print_message("%-48s %-24s worst %lld.%lld points\n", rows[i].row, ways[way].how,
                      (long long)off / 10, (long long)(off < 0 ? -off : off) % 10);
        if (off > 50 || off < -50) {
            print_error("%s\n  expected: within 5 points\n  got:      %lld tenths\n", rows[i].row,
                        (long long)off);
            expect_failures++;
        }
        for (size_t k = 0; k < rows[i].len; k++)
            expect_int("measured", 0, (int64_t)(c[k].card.flags & REGION_UNMEASURED));
    }
    expect_done();
}

static void unmeasured(void **state)
{
    (void)state;
    struct region_card c = {0};
    uint64_t now = 7 * SECOND, launched = 0;
    for (; now < 17 * SECOND;) {
        uint64_t wait = budget_charge(&c, 30, 1, now);
        launched += wait == 0;
        now += wait > 0 ? wait : 10 * US;
    }
    expect_true("it is said", (c.flags & REGION_UNMEASURED) != 0);
    /* 30 % of ten seconds, at 100 us each. */
    expect_true("launches are counted instead", launched > 29000 && launched < 31500);
    expect_int("all of them", (int64_t)launched, (int64_t)c.launches);
    measure_card(&c, 0, now);
    (void)budget_charge(&c, 30, 1, now);
    expect_true("a measurement ends it", (c.flags & REGION_UNMEASURED) == 0);
    (void)budget_charge(&c, 30, 1, now + 2 * SECOND);
    expect_true("one of two seconds ago is still good", (c.flags & REGION_UNMEASURED) == 0);
    (void)budget_charge(&c, 30, 1, now + 2 * SECOND + 1);
    expect_true("an older one is none", (c.flags & REGION_UNMEASURED) != 0);
    expect_done();
}

/* The plugin writes into the file while launches read it: what does not belong together is not
 * believed. */
static void half_written(void **state)
{
    (void)state;
    struct region_card c = {0};
    measure_card(&c, 0, 5 * SECOND);
    (void)budget_charge(&c, 50, 1, 5 * SECOND);
    int64_t before = c.tokens_ns;
    c.measured_ns = 100 * MS; /* the stamp is still the old one */
    (void)budget_charge(&c, 50, 0, 5 * SECOND);
    c.measured_at_ns = 5 * SECOND + 200 * MS; /* and now the check is */
    (void)budget_charge(&c, 50, 0, 5 * SECOND);
    expect_int("not counted", before, c.tokens_ns);
    expect_true("nor missed, for a moment", (c.flags & REGION_UNMEASURED) == 0);
    uint64_t charged = c.charged_ns;
    c.measured_check = budget_check(100 * MS, 5 * SECOND + 200 * MS);
    (void)budget_charge(&c, 50, 0, 5 * SECOND);
    expect_int("then it is", before - (int64_t)(100 * MS) + (int64_t)charged, c.tokens_ns);
    c.measured_check++;
    (void)budget_charge(&c, 50, 0, 8 * SECOND);
    expect_true("one that stays half is none", (c.flags & REGION_UNMEASURED) != 0);
    int64_t tokens = c.tokens_ns;
    measure_card(&c, 7 * SECOND, 20 * SECOND);
    c.refilled_ns = 20 * SECOND;
    (void)budget_charge(&c, 50, 0, 20 * SECOND);
    expect_int("after a while without, counting begins anew", tokens, c.tokens_ns);
    expect_done();
}

/* What a container may write into its own region: it hurts itself, and nothing overflows. */
static void scribbled(void **state)
{
    (void)state;
    static const uint64_t values[] = {
        0, 1, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX / 2 + 77};
    enum { N = sizeof values / sizeof values[0] };
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            for (int m = 0; m < N; m++) {
                struct region_card c = {0};
                c.tokens_ns = (int64_t)values[i];
                c.refilled_ns = values[k];
                c.cost_ns = values[m];
                c.charged_ns = values[i];
                c.settled_ns = values[k];
                c.settling_ns = values[m];
                measure_card(&c, values[k], 5 * SECOND);
                uint64_t wait = budget_charge(&c, 1 + (uint32_t)(i * 19), values[m], 5 * SECOND);
                assert_true(wait <= BUDGET_WAIT_MAX_MS * MS);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_table),
        cmocka_unit_test(unmeasured),
        cmocka_unit_test(half_written),
        cmocka_unit_test(scribbled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

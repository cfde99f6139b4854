// SPDX-License-Identifier: Apache-2.0
/*
 * Which NUMA nodes n CPUs are taken from if no single one has enough.
 *
 * There are 70 ways to take four of eight, and choosing the CPUs in each takes microseconds. But
 * adding counts nearly gives the cost of a set of NUMA nodes: the partial cores, the CPUs left
 * over, and a lower bound of L3 groups. So sets are evaluated in that order, until the next one
 * cannot beat the best so far. Equal sets come in the order of their numbers.
 */
#include <string.h>

#include "scheduler/accounts/cpus_internal.h"

enum {
    NODES_MAX = 64, /* with more NUMA nodes sets are not compared */
    SETS_MAX = 128,
    VISITS_MAX =
        1 << 16, /* all sets of 16; with more NUMA nodes there may be too many small sets */
    GROUPS_MAX = TOPOLOGY_GROUPS_MAX,
    CELLS_MAX = 2048,
    WORK_MAX = 1300 /* small machines evaluate all sets, large ones some */
};

struct span_set {
    uint64_t nodes;
    uint32_t partial, broken, l3_least, left; /* as in cpus_cost; l3_least is a lower bound */
};

struct span_group {
    uint16_t cpus, numa;
};

struct spans {
    const struct cpus_layout *layout;
    uint32_t n;
    uint32_t visits;
    struct supply supply[NODES_MAX];
    uint32_t from_here[NODES_MAX + 1]; /* CPUs of it and of all after it */
    /* CPUs by NUMA node and L3 group, because NUMA nodes may share a cache */
    uint16_t cells[CELLS_MAX];
    struct span_group groups[GROUPS_MAX]; /* the largest first */
    size_t groups_len;
    bool shared;  /* a group spans two NUMA nodes: the list is unusable */
    bool unknown; /* too many cells: no data about L3 groups */
    struct span_set sets[SETS_MAX];
    size_t len;
};

static void count(struct spans *s, const struct cpuset *open)
{
    const struct cpus_layout *l = s->layout;
    uint8_t cores[CPUSET_MAX];
    memset(cores, 0, l->cores_len);
    memset(s->supply, 0, l->numa_len * sizeof s->supply[0]);
    s->unknown = l->numa_len * l->l3_len > CELLS_MAX;
    if (!s->unknown)
        memset(s->cells, 0, l->numa_len * l->l3_len * sizeof s->cells[0]);
    for (int cpu = -1; (cpu = cpuset_next(open, cpu)) >= 0;)
        cores[l->core_of[cpu]]++;
    for (size_t i = 0; i < l->cores_len; i++) {
        if (cores[i] == 0)
            continue;
        struct supply *to = &s->supply[l->core_numa[i]];
        if (cores[i] == l->core_size[i])
            to->whole[cores[i]]++;
        else
            to->part[cores[i]]++;
        to->cpus += cores[i];
        if (!s->unknown) {
            uint16_t *cell = &s->cells[l->core_numa[i] * l->l3_len + l->core_l3[i]];
            *cell = (uint16_t)(*cell + cores[i]);
        }
    }
    s->from_here[l->numa_len] = 0;
    for (size_t i = l->numa_len; i-- > 0;)
        s->from_here[i] = s->from_here[i + 1] + s->supply[i].cpus;
}

static void sort_groups(struct spans *s)
{
    const struct cpus_layout *l = s->layout;
    s->shared = false;
    s->groups_len = 0;
    for (size_t id = 0; id < l->l3_len && !s->unknown; id++) {
        struct span_group g = {.cpus = 0};
        for (size_t i = 0; i < l->numa_len; i++) {
            uint16_t here = s->cells[i * l->l3_len + id];
            s->shared |= g.cpus > 0 && here > 0;
            g.numa = here > 0 ? (uint16_t)i : g.numa;
            g.cpus = (uint16_t)(g.cpus + here);
        }
        size_t k = s->groups_len++;
        for (; k > 0 && s->groups[k - 1].cpus < g.cpus; k--)
            s->groups[k] = s->groups[k - 1];
        s->groups[k] = g;
    }
}

/* The fewest L3 groups of these NUMA nodes that can hold n: the largest ones. */
static uint32_t least_groups(const struct spans *s, uint64_t nodes)
{
    size_t len = s->layout->l3_len;
    uint16_t cpus[GROUPS_MAX];
    uint32_t groups = 0;
    if (s->unknown)
        return 1;
    if (!s->shared) {
        for (uint32_t i = 0, have = 0; have < s->n; i++)
            if ((nodes >> s->groups[i].numa & 1) != 0) {
                have += s->groups[i].cpus;
                groups++;
            }
        return groups;
    }
    memset(cpus, 0, len * sizeof cpus[0]);
    for (uint64_t left = nodes; left != 0; left &= left - 1) {
        const uint16_t *cells = &s->cells[(size_t)__builtin_ctzll(left) * len];
        for (size_t i = 0; i < len; i++)
            cpus[i] = (uint16_t)(cpus[i] + cells[i]);
    }
    for (uint32_t have = 0; have < s->n; groups++) {
        size_t best = 0;
        for (size_t i = 1; i < len; i++)
            best = cpus[i] > cpus[best] ? i : best;
        have += cpus[best];
        cpus[best] = 0;
    }
    return groups;
}

static void note(struct spans *s, uint64_t nodes, const struct supply *sum)
{
    struct fill f;
    cpus_fill_from(sum, s->n, s->layout->threads, &f);
    s->sets[s->len++] = (struct span_set){.nodes = nodes,
                                          .partial = f.partial,
                                          .broken = f.broken,
                                          .l3_least = least_groups(s, nodes),
                                          .left = sum->cpus - s->n};
}

/* Lists all sets of `more` NUMA nodes from `from` on, added to those so far, that hold n. false:
 * too many. */
static bool list(struct spans *s, size_t from, uint32_t more, uint64_t nodes,
                 const struct supply *so_far)
{
    if (s->visits++ == VISITS_MAX)
        return false;
    if (more == 0) {
        if (so_far->cpus < s->n)
            return true;
        if (s->len == SETS_MAX)
            return false;
        note(s, nodes, so_far);
        return true;
    }
    for (size_t i = from; i + more <= s->layout->numa_len; i++) {
        if (so_far->cpus + s->from_here[i] < s->n)
            break;
        struct supply sum = *so_far;
        cpus_supply_add(&sum, &s->supply[i], s->layout->threads);
        if (!list(s, i + 1, more - 1, nodes | UINT64_C(1) << i, &sum))
            return false;
    }
    return true;
}

static int compare(const struct span_set *x, const struct span_set *y)
{
    const uint32_t xs[] = {x->partial, x->broken, x->l3_least, x->left};
    const uint32_t ys[] = {y->partial, y->broken, y->l3_least, y->left};
    for (size_t i = 0; i < sizeof xs / sizeof xs[0]; i++)
        if (xs[i] != ys[i])
            return xs[i] < ys[i] ? -1 : 1;
    return 0;
}

/* Removes the most promising remaining set. false: none. */
static bool take_next(struct spans *s, struct span_set *out)
{
    size_t best = 0;
    if (s->len == 0)
        return false;
    for (size_t i = 1; i < s->len; i++)
        if (compare(&s->sets[i], &s->sets[best]) < 0)
            best = i;
    *out = s->sets[best];
    memmove(&s->sets[best], &s->sets[best + 1], (--s->len - best) * sizeof s->sets[0]);
    return true;
}

static bool work_out(struct spans *s, const struct cpuset *open, struct cpuset *out)
{
    const struct cpus_layout *l = s->layout;
    struct span_set set;
    struct cpus_cost cost = {0};
    bool found = false;
    for (uint32_t work = 0; work < WORK_MAX && take_next(s, &set);) {
        struct span_set best = {.partial = cost.partial_cores,
                                .broken = cost.broken_cores,
                                .l3_least = cost.l3_groups,
                                .left = cost.numa_left};
        struct cpuset part;
        if (found && compare(&set, &best) > 0)
            break;
        cpuset_clear(&part);
        for (uint64_t left = set.nodes; left != 0; left &= left - 1)
            cpuset_union(&part, &l->numa[__builtin_ctzll(left)]);
        work += cpus_consider(l, open, &part, s->n, &found, &cost, out);
    }
    return found;
}

struct most {
    uint32_t nodes;     /* the fewest that hold n */
    struct cpuset part; /* an example: those with the most CPUs */
};

/* open has at least n CPUs. */
static void find_fewest(const struct cpus_layout *l, const struct cpuset *open, uint32_t n,
                        struct most *out)
{
    uint32_t left[GROUPS_MAX];
    left[0] = 0;
    for (size_t i = 0; i < l->numa_len; i++)
        left[i] = cpuset_count_in(open, &l->numa[i]);
    out->nodes = 0;
    cpuset_clear(&out->part);
    for (uint32_t have = 0; have < n && out->nodes < l->numa_len; out->nodes++) {
        size_t best = 0;
        for (size_t i = 1; i < l->numa_len; i++)
            best = left[i] > left[best] ? i : best;
        have += left[best];
        left[best] = 0;
        cpuset_union(&out->part, &l->numa[best]);
    }
}

bool cpus_choose(const struct cpus_layout *l, const struct cpuset *open, uint32_t n,
                 struct cpuset *out)
{
    struct most fewest;
    struct spans s;
    struct supply none = {.cpus = 0};
    struct cpus_cost cost;
    bool found = false;
    cpuset_clear(out);
    if (n == 0 || cpuset_count(open) < n)
        return n == 0;
    find_fewest(l, open, n, &fewest);
    if (fewest.nodes == 1)
        return cpus_choose_in_numa(l, open, n, -1, out);
    s.layout = l;
    s.n = n;
    s.visits = 0;
    s.len = 0;
    if (l->numa_len <= NODES_MAX) {
        count(&s, open);
        sort_groups(&s);
        if (list(&s, 0, fewest.nodes, 0, &none))
            return work_out(&s, open, out);
    }
    (void)cpus_consider(l, open, &fewest.part, n, &found, &cost, out); /* too many to compare */
    return found;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Open CPUs are counted by L3 group, as whole cores (by size) and partial cores (by their open
 * threads). These counts determine how n CPUs divide into whole and partial cores (fill), so sets
 * of L3 groups are compared by adding counts, and only the winner is turned into CPU numbers:
 *
 *      region (one NUMA node, or the fewest that hold n: cpus_spans.c)
 *        └─ supply of each L3 group ──► the tightest of the smallest sets of groups that fill n
 *                                       with no more partial and broken cores than the whole region
 *                                       needs (pick_groups)
 *                                         └─ whole cores, then parts, by number (take)
 *
 * Sets are tried one by one, smallest first, largest groups first, skipping those that cannot hold
 * n or be tighter than the best so far; at most TRIES_MAX steps. Beyond that the tightest set so
 * far is used, or else the largest groups, with the tightest that suffices as the last. So the
 * search is exact with few groups, where the choice matters, and bounded elsewhere.
 *
 * Everything is counted in one pass over the CPUs: set operations per core were ten times slower.
 */
#include "scheduler/accounts/cpus_internal.h"

#include <string.h>

enum {
    THREADS_MAX = TOPOLOGY_THREADS_MAX,
    GROUPS_MAX = TOPOLOGY_GROUPS_MAX,
    TRIES_MAX = 250,
    WORK = 200 /* fixed cost of a choice */
};

static int add_groups(const struct cpuset *from, size_t n, const struct cpuset *usable,
                      const char *level, struct arena *a, struct cpuset **sets, size_t *len,
                      uint16_t **of, struct error *err)
{
    struct cpuset seen;
    cpuset_clear(&seen);
    *sets = arena_new(a, struct cpuset, n);
    *of = arena_new(a, uint16_t, CPUSET_MAX);
    *len = 0;
    for (size_t i = 0; i < n; i++) {
        struct cpuset part = from[i];
        cpuset_intersect(&part, usable);
        if (cpuset_is_empty(&part))
            continue;
        for (int cpu = -1; (cpu = cpuset_next(&part, cpu)) >= 0;) {
            if (cpuset_has(&seen, (unsigned)cpu))
                return error_set(err, ERROR_INVALID, "%s: CPU %d is in two of them", level, cpu);
            (*of)[cpu] = (uint16_t)*len;
        }
        cpuset_union(&seen, &part);
        (*sets)[(*len)++] = part;
    }
    struct cpuset missing = *usable;
    cpuset_subtract(&missing, &seen);
    if (!cpuset_is_empty(&missing))
        return error_set(err, ERROR_INVALID, "%s: CPU %d is in none of them", level,
                         cpuset_next(&missing, -1));
    return 0;
}

int cpus_layout_init(struct cpus_layout *l, const struct cpu_topology *t, struct arena *a,
                     struct error *err)
{
    *l = (struct cpus_layout){0};
    if (t->l3_len > GROUPS_MAX)
        return error_set(err, ERROR_INVALID, "l3: more than %d groups", GROUPS_MAX);
    uint32_t most = t->numbering == TOPOLOGY_LISTED ? 1 : t->threads; /* listed cores may differ */
    if (t->threads == 0 || t->threads > THREADS_MAX || t->cores == 0 ||
        t->cores > CPUSET_MAX / most)
        return error_set(err, ERROR_INVALID, "cores: %lu of %lu threads are not possible",
                         (unsigned long)t->cores, (unsigned long)t->threads);
    struct cpuset *cores = cpu_topology_cores(t, a);
    /* Many virtual machines publish no shared caches. */
    const struct cpuset *l3 = t->l3_len > 0 ? t->l3 : t->numa;
    size_t l3_len = t->l3_len > 0 ? t->l3_len : t->numa_len;
    for (size_t i = 0; i < t->numa_len; i++)
        cpuset_union(&l->usable, &t->numa[i]);
    cpuset_subtract(&l->usable, &t->offline);
    cpuset_subtract(&l->usable, &t->reserved);
    if (add_groups(t->numa, t->numa_len, &l->usable, "numa", a, &l->numa, &l->numa_len, &l->numa_of,
                   err) < 0 ||
        add_groups(l3, l3_len, &l->usable, "l3", a, &l->l3, &l->l3_len, &l->l3_of, err) < 0 ||
        add_groups(cores, t->cores, &l->usable, "cores", a, &l->cores, &l->cores_len, &l->core_of,
                   err) < 0)
        return -1;
    l->core_size = arena_new(a, uint8_t, l->cores_len);
    l->core_l3 = arena_new(a, uint16_t, l->cores_len);
    l->core_numa = arena_new(a, uint16_t, l->cores_len);
    for (int cpu = -1; (cpu = cpuset_next(&l->usable, cpu)) >= 0;) {
        uint16_t core = l->core_of[cpu];
        int first = cpuset_next(&l->cores[core], -1);
        if (l->l3_of[first] != l->l3_of[cpu] || l->numa_of[first] != l->numa_of[cpu])
            return error_set(err, ERROR_INVALID,
                             "cores: CPUs %d and %d of one core are in two L3 groups or NUMA nodes",
                             first, cpu);
        l->core_size[core]++;
        l->core_l3[core] = l->l3_of[cpu];
        l->core_numa[core] = l->numa_of[cpu];
        l->threads = l->core_size[core] > l->threads ? l->core_size[core] : l->threads;
    }
    l->numa_id = arena_new(a, uint16_t, l->numa_len);
    for (size_t i = 0, n = 0; i < t->numa_len && n < l->numa_len; i++) {
        struct cpuset part = t->numa[i];
        cpuset_intersect(&part, &l->usable);
        if (!cpuset_is_empty(&part))
            l->numa_id[n++] = (uint16_t)i;
    }
    return 0;
}

static int compare(uint32_t x, uint32_t y)
{
    return x < y ? -1 : x > y;
}

int cpus_cost_compare(const struct cpus_cost *x, const struct cpus_cost *y)
{
    const uint32_t xs[] = {x->numa_nodes, x->partial_cores, x->broken_cores,
                           x->l3_groups,  x->numa_left,     x->l3_left};
    const uint32_t ys[] = {y->numa_nodes, y->partial_cores, y->broken_cores,
                           y->l3_groups,  y->numa_left,     y->l3_left};
    for (size_t i = 0; i < sizeof xs / sizeof xs[0]; i++)
        if (xs[i] != ys[i])
            return compare(xs[i], ys[i]);
    return 0;
}

/* One pass over the CPUs, since most words of a set are empty. */
struct cpus_cost cpus_cost_of(const struct cpus_layout *l, const struct cpuset *open,
                              const struct cpuset *chosen)
{
    struct cpus_cost cost = {0};
    struct {
        uint16_t open, chosen;
    } numa[GROUPS_MAX], l3[GROUPS_MAX], cores[CPUSET_MAX];
    memset(numa, 0, l->numa_len * sizeof numa[0]);
    memset(l3, 0, l->l3_len * sizeof l3[0]);
    memset(cores, 0, l->cores_len * sizeof cores[0]);
    for (int cpu = -1; (cpu = cpuset_next(open, cpu)) >= 0;) {
        uint16_t is = cpuset_has(chosen, (unsigned)cpu);
        numa[l->numa_of[cpu]].open++;
        l3[l->l3_of[cpu]].open++;
        cores[l->core_of[cpu]].open++;
        numa[l->numa_of[cpu]].chosen = (uint16_t)(numa[l->numa_of[cpu]].chosen + is);
        l3[l->l3_of[cpu]].chosen = (uint16_t)(l3[l->l3_of[cpu]].chosen + is);
        cores[l->core_of[cpu]].chosen = (uint16_t)(cores[l->core_of[cpu]].chosen + is);
    }
    for (size_t i = 0; i < l->numa_len; i++) {
        cost.numa_nodes += numa[i].chosen > 0;
        cost.numa_left += numa[i].chosen > 0 ? (uint32_t)(numa[i].open - numa[i].chosen) : 0;
    }
    for (size_t i = 0; i < l->l3_len; i++) {
        cost.l3_groups += l3[i].chosen > 0;
        cost.l3_left += l3[i].chosen > 0 ? (uint32_t)(l3[i].open - l3[i].chosen) : 0;
    }
    for (size_t i = 0; i < l->cores_len; i++) {
        bool partial = cores[i].chosen > 0 && cores[i].chosen < l->core_size[i];
        cost.partial_cores += partial;
        cost.broken_cores += partial && cores[i].open == l->core_size[i];
    }
    return cost;
}

void cpus_supply_add(struct supply *to, const struct supply *s, uint32_t threads)
{
    for (uint32_t i = 1; i <= threads; i++)
        to->whole[i] += s->whole[i];
    for (uint32_t i = 1; i < threads; i++)
        to->part[i] += s->part[i];
    to->cpus += s->cpus;
}

void cpus_fill_from(const struct supply *s, uint32_t n, uint32_t threads, struct fill *f)
{
    *f = (struct fill){0};
    for (uint32_t size = threads; size > 0; size--) {
        uint32_t cores = n / size < s->whole[size] ? n / size : s->whole[size];
        f->whole[size] = cores;
        n -= cores * size;
    }
    if (n == 0)
        return;
    for (uint32_t size = n; size < threads && f->some == 0; size++)
        if (s->part[size] > 0) {
            f->some = n;
            f->some_part = size;
            f->partial = 1;
        }
    for (uint32_t size = n + 1; size <= threads && f->some == 0; size++)
        if (s->whole[size] > f->whole[size]) {
            f->some = n;
            f->some_whole = size;
            f->partial = f->broken = 1;
        }
    if (f->some > 0)
        return;
    for (uint32_t size = threads - 1; size > 0; size--) {
        uint32_t cores = n / size < s->part[size] ? n / size : s->part[size];
        f->part[size] = cores;
        f->partial += cores;
        n -= cores * size;
    }
    /* Fewer than any remaining core has open: take from the smallest. */
    for (uint32_t size = 1; size < threads && n > 0; size++)
        if (s->part[size] > f->part[size]) {
            f->some = n;
            f->some_part = size;
            f->partial++;
            return;
        }
}

struct region {
    const struct cpus_layout *layout;
    struct cpuset open; /* in this region */
    uint32_t n;
    struct fill goal;                 /* the whole region's fill: no set of its groups is better */
    struct supply groups[GROUPS_MAX]; /* largest first, of equal ones the first */
    uint32_t before[GROUPS_MAX + 1];  /* CPUs of all groups before it */
    uint16_t ids[GROUPS_MAX];         /* their indexes in the layout */
    size_t groups_len;
    uint32_t tries;
    uint16_t picked[GROUPS_MAX]; /* the set being tried */
    uint16_t best[GROUPS_MAX];
    size_t best_len;
    uint32_t best_cpus;
};

static void sort_groups(struct region *r)
{
    for (size_t i = 1; i < r->groups_len; i++) {
        struct supply s = r->groups[i];
        uint16_t id = r->ids[i];
        size_t k = i;
        for (; k > 0 && r->groups[k - 1].cpus < s.cpus; k--) {
            r->groups[k] = r->groups[k - 1];
            r->ids[k] = r->ids[k - 1];
        }
        r->groups[k] = s;
        r->ids[k] = id;
    }
    for (size_t i = 0; i < r->groups_len; i++)
        r->before[i + 1] = r->before[i] + r->groups[i].cpus;
}

static void count_groups(struct region *r, struct supply *total)
{
    const struct cpus_layout *l = r->layout;
    uint16_t index[GROUPS_MAX];
    uint8_t open[CPUSET_MAX]; /* threads of each core */
    memset(index, 0xff, l->l3_len * sizeof index[0]);
    memset(open, 0, l->cores_len);
    *total = (struct supply){0};
    for (int cpu = -1; (cpu = cpuset_next(&r->open, cpu)) >= 0;) {
        uint16_t id = l->l3_of[cpu];
        open[l->core_of[cpu]]++;
        if (index[id] == UINT16_MAX) {
            index[id] = (uint16_t)r->groups_len;
            r->ids[r->groups_len] = id;
            r->groups[r->groups_len++] = (struct supply){0};
        }
    }
    for (size_t core = 0; core < l->cores_len; core++) {
        uint32_t n = open[core];
        if (n == 0)
            continue;
        struct supply *s = &r->groups[index[l->core_l3[core]]];
        if (n == l->core_size[core])
            s->whole[n]++;
        else
            s->part[n]++;
        s->cpus += n;
    }
    for (size_t i = 0; i < r->groups_len; i++)
        cpus_supply_add(total, &r->groups[i], l->threads);
    sort_groups(r);
}

static bool is_good(const struct region *r, const struct supply *s)
{
    struct fill f;
    if (s->cpus < r->n)
        return false;
    cpus_fill_from(s, r->n, r->layout->threads, &f);
    return f.partial == r->goal.partial && f.broken == r->goal.broken;
}

/* Tries all sets of `left` more groups from `from` on that can hold n and be tighter than the best
 * so far. false: too many. */
static bool try_sets(struct region *r, size_t from, size_t left, size_t depth,
                     const struct supply *so_far)
{
    if (left == 0) {
        if ((r->best_len == 0 || so_far->cpus < r->best_cpus) && is_good(r, so_far)) {
            memcpy(r->best, r->picked, depth * sizeof r->best[0]);
            r->best_len = depth;
            r->best_cpus = so_far->cpus;
        }
        return true;
    }
    uint32_t least = so_far->cpus + r->before[r->groups_len] - r->before[r->groups_len - left];
    for (size_t i = from; i + left <= r->groups_len; i++) {
        uint32_t most = so_far->cpus + r->before[i + left] - r->before[i];
        if (most < r->n || (r->best_len > 0 && least >= r->best_cpus))
            break;
        if (r->tries++ >= TRIES_MAX)
            return false;
        struct supply sum = *so_far;
        cpus_supply_add(&sum, &r->groups[i], r->layout->threads);
        r->picked[depth] = (uint16_t)i;
        if (!try_sets(r, i + 1, left - 1, depth + 1, &sum))
            return false;
    }
    return true;
}

/* The largest group not picked yet; with `enough`, the smallest that completes the set, or
 * groups_len: none. */
static size_t next_group(const struct region *r, const bool *picked, const struct supply *so_far,
                         bool enough)
{
    size_t best = r->groups_len;
    for (size_t i = 0; i < r->groups_len; i++) {
        if (picked[i] || (enough && so_far->cpus + r->groups[i].cpus < r->n))
            continue;
        struct supply sum = *so_far;
        cpus_supply_add(&sum, &r->groups[i], r->layout->threads);
        if (enough && !is_good(r, &sum))
            continue;
        uint32_t cpus = r->groups[i].cpus;
        bool better = best == r->groups_len ||
                      (enough ? cpus < r->groups[best].cpus : cpus > r->groups[best].cpus);
        best = better ? i : best;
    }
    return best;
}

static void pick_greedily(struct region *r)
{
    bool picked[GROUPS_MAX] = {false};
    struct supply sum = {0};
    r->best_len = 0;
    for (bool done = false; !done;) {
        size_t last = next_group(r, picked, &sum, true);
        done = last < r->groups_len;
        size_t i = done ? last : next_group(r, picked, &sum, false);
        cpus_supply_add(&sum, &r->groups[i], r->layout->threads);
        picked[i] = true;
        r->best[r->best_len++] = (uint16_t)i;
    }
}

static void pick_groups(struct region *r)
{
    struct supply none = {0};
    for (size_t size = 1; size <= r->groups_len && r->best_len == 0; size++)
        if (!try_sets(r, 0, size, 0, &none)) {
            if (r->best_len == 0)
                pick_greedily(r);
            return;
        }
}

/* Takes n CPUs of the picked groups; a core's first thread decides for the whole core. */
static void take(const struct region *r, struct cpuset *out)
{
    enum { UNSEEN, NONE, SOME, ALL };
    const struct cpus_layout *l = r->layout;
    struct supply sum = {0};
    struct fill f;
    bool picked[GROUPS_MAX] = {false};
    uint8_t open[CPUSET_MAX], fate[CPUSET_MAX];
    memset(open, 0, l->cores_len);
    memset(fate, UNSEEN, l->cores_len);
    cpuset_clear(out);
    for (size_t i = 0; i < r->best_len; i++) {
        picked[r->ids[r->best[i]]] = true;
        cpus_supply_add(&sum, &r->groups[r->best[i]], l->threads);
    }
    cpus_fill_from(&sum, r->n, l->threads, &f);
    for (int cpu = -1; (cpu = cpuset_next(&r->open, cpu)) >= 0;)
        open[l->core_of[cpu]]++;
    uint32_t some = f.some;
    for (int cpu = -1; (cpu = cpuset_next(&r->open, cpu)) >= 0;) {
        uint16_t core = l->core_of[cpu];
        if (!picked[l->l3_of[cpu]])
            continue;
        if (fate[core] == UNSEEN) {
            uint32_t n = open[core];
            bool whole = n == l->core_size[core];
            uint32_t *left = whole ? &f.whole[n] : &f.part[n];
            fate[core] = NONE;
            if (*left > 0) {
                (*left)--;
                fate[core] = ALL;
            } else if (f.some > 0 && n == (whole ? f.some_whole : f.some_part)) {
                f.some = 0;
                fate[core] = SOME;
            }
        }
        if (fate[core] == ALL || (fate[core] == SOME && some > 0)) {
            cpuset_add(out, (unsigned)cpu);
            some -= fate[core] == SOME;
        }
    }
}

/* The best n of `open`, which has at least n, ignoring NUMA nodes. Returns the work done: CPUs
 * counted, and sets of groups tried. */
static uint32_t choose_in(const struct cpus_layout *l, const struct cpuset *open, uint32_t n,
                          struct cpuset *out)
{
    struct region r; /* not cleared: most of it is unused except on very large machines */
    struct supply total;
    r.layout = l;
    r.open = *open;
    r.n = n;
    r.groups_len = r.best_len = 0;
    r.tries = r.best_cpus = r.before[0] = 0;
    count_groups(&r, &total);
    cpus_fill_from(&total, n, l->threads, &r.goal);
    pick_groups(&r);
    take(&r, out);
    return WORK + 2 * total.cpus + r.tries;
}

uint32_t cpus_consider(const struct cpus_layout *l, const struct cpuset *open,
                       const struct cpuset *part, uint32_t n, bool *found, struct cpus_cost *cost,
                       struct cpuset *out)
{
    struct cpuset region = *open, chosen;
    cpuset_intersect(&region, part);
    if (cpuset_count(&region) < n)
        return 0;
    uint32_t work = choose_in(l, &region, n, &chosen);
    struct cpus_cost its = cpus_cost_of(l, open, &chosen);
    if (*found && cpus_cost_compare(&its, cost) >= 0)
        return work;
    *found = true;
    *cost = its;
    *out = chosen;
    return work;
}

bool cpus_choose_in_numa(const struct cpus_layout *l, const struct cpuset *open, uint32_t n,
                         int numa, struct cpuset *out)
{
    bool found = n == 0;
    struct cpus_cost cost = {0};
    cpuset_clear(out);
    for (size_t i = 0; i < l->numa_len && n > 0; i++)
        if (numa < 0 || i == (size_t)numa)
            (void)cpus_consider(l, open, &l->numa[i], n, &found, &cost, out);
    return found;
}

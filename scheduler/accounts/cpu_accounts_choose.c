// SPDX-License-Identifier: Apache-2.0
/*
 * Filter and score only count, so they are cheap on every node; cpus.h chooses the CPUs on the
 * selected node. Both call numa_fit on the same set, so they cannot disagree.
 *
 * The pod's CPUs are chosen as one set and then divided, larger containers first, so that a pod of
 * several containers is on one NUMA node if a single container of that size would be. Ordinary init
 * containers share the same set.
 *
 *      free ──► near the pod's cards, if that is enough
 *        │  └─► static-burst: within unused L3 groups, if that is enough
 *        ├────► anywhere
 *        └────► cosched.io/cpuset-shared: all free ones, then those with the fewest pods, all of
 *               which share too
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/num.h"
#include "scheduler/accounts/cpu_accounts.h"

static uint32_t most_in_one(const struct cpus_layout *l, const struct cpuset *from)
{
    uint32_t most = 0;
    for (size_t i = 0; i < l->numa_len; i++)
        most = (uint32_t)num_max(most, cpuset_count_in(from, &l->numa[i]));
    return most;
}

/* The fewest NUMA nodes that hold n CPUs of `from`; UINT32_MAX: too few CPUs. */
static uint32_t fewest_nodes(const struct cpus_layout *l, const struct cpuset *from, uint32_t n)
{
    uint32_t left[TOPOLOGY_GROUPS_MAX];
    for (size_t i = 0; i < l->numa_len; i++)
        left[i] = cpuset_count_in(from, &l->numa[i]);
    for (uint32_t nodes = 1, have = 0; nodes <= l->numa_len; nodes++) {
        size_t best = 0;
        for (size_t i = 1; i < l->numa_len; i++)
            best = left[i] > left[best] ? i : best;
        have += left[best];
        if (have >= n)
            return nodes;
        left[best] = 0;
    }
    return n == 0 ? 0 : UINT32_MAX;
}

/* The number of NUMA nodes that the pod may use. */
static uint32_t nodes_allowed(const struct cpus_layout *l, const struct cpu_request *r)
{
    switch (r->numa) {
    case CPU_REQUEST_SINGLE:
        return 1;
    case CPU_REQUEST_RESTRICTED:
        return fewest_nodes(l, &l->usable, r->cpus);
    case CPU_REQUEST_BEST_EFFORT:
        break;
    }
    return UINT32_MAX - 1;
}

/* Excludes NUMA nodes used by pods of the other kind, if the pod requires that. */
static struct cpuset without(const struct cpu_accounts *b, const struct cpu_request *r,
                             const struct cpuset *from, const uint16_t *others)
{
    struct cpuset out = *from;
    for (size_t i = 0; r->apart == CPU_REQUEST_APART && i < b->shape->layout.numa_len; i++)
        if (others[i] > 0)
            cpuset_subtract(&out, &b->shape->layout.numa[i]);
    return out;
}

enum fit_kind { FIT_NONE, FIT_SINGLE, FIT_SEVERAL };

/* How the pod fits into these CPUs: on one NUMA node, or several; *in: the CPUs to choose from. */
static enum fit_kind numa_fit(const struct cpu_accounts *b, const struct cpu_request *r,
                              const struct cpuset *from, struct cpuset *in)
{
    const struct cpus_layout *l = &b->shape->layout;
    *in = without(b, r, from, b->several);
    if (most_in_one(l, in) >= r->cpus)
        return FIT_SINGLE;
    *in = without(b, r, from, b->single);
    uint32_t nodes = fewest_nodes(l, in, r->cpus);
    /* one node was tried before, without those of pods on several nodes */
    if (nodes == UINT32_MAX || nodes > nodes_allowed(l, r) ||
        (r->apart == CPU_REQUEST_APART && nodes == 1))
        return FIT_NONE;
    return FIT_SEVERAL;
}

static struct cpuset free_cpus(const struct cpu_accounts *b)
{
    struct cpuset out = b->shape->layout.usable;
    cpuset_subtract(&out, &b->owned);
    cpuset_subtract(&out, &b->lent);
    return out;
}

/* For a pod that shares. */
static struct cpuset shared_cpus(const struct cpu_accounts *b)
{
    struct cpuset out = b->shape->layout.usable;
    cpuset_subtract(&out, &b->kept);
    return out;
}

static void explain(const struct cpu_accounts *b, const struct cpu_request *r,
                    const struct cpuset *from, struct cpu_accounts_why *why)
{
    const struct cpus_layout *l = &b->shape->layout;
    *why = (struct cpu_accounts_why){
        .no = CPU_ACCOUNTS_TOO_FEW, .want = r->cpus, .free = cpuset_count(from)};
    if (why->free < why->want)
        return;
    if (r->numa == CPU_REQUEST_SINGLE) {
        struct cpuset in = without(b, r, from, b->several);
        *why = (struct cpu_accounts_why){
            .no = CPU_ACCOUNTS_NO_NUMA, .want = r->cpus, .free = most_in_one(l, &in)};
        return;
    }
    struct cpuset in = without(b, r, from, b->single);
    uint32_t nodes = fewest_nodes(l, &in, r->cpus);
    *why = (struct cpu_accounts_why){
        .no = CPU_ACCOUNTS_TOO_MANY_NUMA, .want = nodes_allowed(l, r), .free = nodes};
    if (nodes == UINT32_MAX) /* the other pods' NUMA nodes are closed to it */
        *why = (struct cpu_accounts_why){
            .no = CPU_ACCOUNTS_TOO_FEW, .want = r->cpus, .free = cpuset_count(&in)};
}

static bool no_capacity(const struct cpu_accounts *b, const struct cpu_request *r,
                        const struct cpuset *open, struct cpu_accounts_why *why)
{
    struct cpuset in, recalled = b->shape->layout.usable;
    if (why == NULL)
        return false;
    explain(b, r, open, why);
    cpuset_subtract(&recalled, &b->owned);
    if (!cpuset_is_empty(&b->lent) && numa_fit(b, r, &recalled, &in) != FIT_NONE)
        *why = (struct cpu_accounts_why){
            .no = CPU_ACCOUNTS_LENT, .want = r->cpus, .free = cpuset_count(open)};
    return false;
}

/* The layout is known, and containers are pinned. */
static bool is_open(const struct cpu_accounts *b)
{
    return b->shape != NULL && b->shape->problem == NULL && b->shape->closed == NULL;
}

bool cpu_accounts_has_capacity(const struct cpu_accounts *b, const struct cpu_request *r,
                               struct cpu_accounts_why *why)
{
    struct cpuset in;
    if (!is_open(b)) {
        bool closed = b->shape != NULL && b->shape->closed != NULL;
        if (why != NULL)
            *why = (struct cpu_accounts_why){.no = closed ? CPU_ACCOUNTS_CLOSED
                                                          : CPU_ACCOUNTS_NO_TOPOLOGY};
        return false;
    }
    struct cpuset open = free_cpus(b), shared = shared_cpus(b);
    if (numa_fit(b, r, &open, &in) != FIT_NONE ||
        (r->shared && numa_fit(b, r, &shared, &in) != FIT_NONE))
        return true;
    return no_capacity(b, r, &open, why);
}

bool cpu_accounts_fits_on(const struct cpu_accounts *b, const struct cpu_request *r, size_t numa)
{
    struct cpuset open = free_cpus(b);
    return cpuset_count_in(&open, &b->shape->layout.numa[numa]) >= r->cpus;
}

enum { PART = 20 }; /* of 100 points: 2 parts for one NUMA node, 2 for one L3 group */

/* Points for the tightest group that holds n; 0: none does. */
static int64_t tightest(const struct cpuset *groups, size_t len, const struct cpuset *open,
                        uint32_t n, bool untouched)
{
    int64_t best = 0;
    for (size_t i = 0; i < len; i++) {
        int64_t size = cpuset_count(&groups[i]), here = cpuset_count_in(open, &groups[i]);
        if (here >= n && (!untouched || here == size))
            best = num_max(best, 2 * PART - (here - n) * PART / size);
    }
    return best;
}

static int64_t score_of(const struct cpu_accounts *b, const struct cpu_request *r)
{
    struct cpuset in;
    const struct cpus_layout *l = &b->shape->layout;
    struct cpuset open = free_cpus(b);
    enum fit_kind where = numa_fit(b, r, &open, &in);
    if (where == FIT_NONE)
        return 0;
    if (where == FIT_SEVERAL)
        return PART / num_max(fewest_nodes(l, &in, r->cpus), 1);
    return PART + tightest(l->numa, l->numa_len, &in, r->cpus, false) +
           tightest(l->l3, l->l3_len, &in, r->cpus, r->burst);
}

/* The preference as a requirement, without sharing. */
static struct cpu_request insisting(const struct cpu_request *r)
{
    struct cpu_request out = *r;
    out.apart = CPU_REQUEST_APART;
    out.shared = false;
    return out;
}

int64_t cpu_accounts_score(const struct cpu_accounts *b, const struct cpu_request *r)
{
    if (!is_open(b))
        return 0;
    if (r->apart != CPU_REQUEST_APART_PREFERRED)
        return score_of(b, r);
    struct cpu_request strict = insisting(r);
    int64_t score = score_of(b, &strict);
    return score > 0 ? score : score_of(b, r) / 2;
}

static struct cpuset near_cards(const struct cpus_layout *l, const struct cpuset *from,
                                const struct cpu_accounts_near *near)
{
    struct cpuset out;
    cpuset_clear(&out);
    for (size_t i = 0; near != NULL && i < near->len; i++)
        for (size_t k = 0; k < l->numa_len; k++)
            if (near->numa[i] == (int32_t)l->numa_id[k])
                cpuset_union(&out, &l->numa[k]);
    cpuset_intersect(&out, from);
    return out;
}

static struct cpuset untouched(const struct cpus_layout *l, const struct cpuset *from)
{
    struct cpuset out;
    cpuset_clear(&out);
    for (size_t i = 0; i < l->l3_len; i++)
        if (cpuset_is_subset(&l->l3[i], from))
            cpuset_union(&out, &l->l3[i]);
    return out;
}

static bool choose_from(const struct cpu_accounts *b, const struct cpu_request *r,
                        const struct cpuset *from, struct cpuset *out)
{
    const struct cpus_layout *l = &b->shape->layout;
    struct cpuset in;
    switch (numa_fit(b, r, from, &in)) {
    case FIT_NONE:
        break;
    case FIT_SINGLE:
        return cpus_choose_in_numa(l, &in, r->cpus, -1, out);
    case FIT_SEVERAL:
        return cpus_choose(l, &in, r->cpus, out);
    }
    return false;
}

static uint32_t pods_on(const struct cpu_accounts *b, int cpu)
{
    return (uint32_t)b->owners[cpu] + b->borrowers[cpu];
}

/* The CPUs with the fewest pods; of the last level needed, the best connected. *level: the number
 * of pods on these. */
static bool choose_least_bound(const struct cpu_accounts *b, const struct cpuset *from, uint32_t n,
                               struct cpuset *out, uint32_t *level)
{
    struct cpuset left = *from, rest;
    cpuset_clear(out);
    for (*level = 0; !cpuset_is_empty(&left); ++*level) {
        struct cpuset these, some;
        cpuset_clear(&these);
        for (int cpu = -1; (cpu = cpuset_next(&left, cpu)) >= 0;)
            if (pods_on(b, cpu) == *level)
                cpuset_add(&these, (unsigned)cpu);
        uint32_t need = n - cpuset_count(out);
        if (cpuset_count(&these) >= need) {
            bool found = cpus_choose(&b->shape->layout, &these, need, &some);
            cpuset_union(out, &some);
            return found;
        }
        cpuset_union(out, &these);
        rest = left;
        cpuset_subtract(&rest, &these);
        left = rest;
    }
    return n == 0;
}

static bool choose_shared(const struct cpu_accounts *b, const struct cpu_request *r,
                          struct cpuset *out)
{
    const struct cpus_layout *l = &b->shape->layout;
    struct cpuset in, shared = shared_cpus(b);
    enum fit_kind where = numa_fit(b, r, &shared, &in);
    uint32_t level, best = UINT32_MAX;
    if (where == FIT_NONE)
        return false;
    if (choose_least_bound(b, &in, r->cpus, out, &level) &&
        fewest_nodes(l, out, r->cpus) <= nodes_allowed(l, r))
        return true;
    if (where == FIT_SEVERAL)
        return cpus_choose(l, &in, r->cpus, out);
    for (size_t i = 0; i < l->numa_len; i++) {
        struct cpuset here = in, some;
        cpuset_intersect(&here, &l->numa[i]);
        if (cpuset_count(&here) >= r->cpus &&
            choose_least_bound(b, &here, r->cpus, &some, &level) && level < best) {
            best = level;
            *out = some;
        }
    }
    return best < UINT32_MAX;
}

/* In this order: near the pod's cards, untouched L3 groups, anywhere, shared. */
static bool choose_own(const struct cpu_accounts *b, const struct cpu_request *r,
                       const struct cpu_accounts_near *near, const struct cpuset *open,
                       struct cpuset *out)
{
    const struct cpus_layout *l = &b->shape->layout;
    struct cpuset groups;
    if (near != NULL && near->len > 0) {
        struct cpuset close = near_cards(l, open, near);
        if (r->burst)
            groups = untouched(l, &close);
        if ((r->burst && choose_from(b, r, &groups, out)) || choose_from(b, r, &close, out))
            return true;
    }
    if (r->burst)
        groups = untouched(l, open);
    return (r->burst && choose_from(b, r, &groups, out)) || choose_from(b, r, open, out) ||
           (r->shared && choose_shared(b, r, out));
}

static bool choose_all(const struct cpu_accounts *b, const struct cpu_request *r,
                       const struct cpu_accounts_near *near, const struct cpuset *open,
                       struct cpuset *out)
{
    struct cpu_request strict = insisting(r);
    return (r->apart == CPU_REQUEST_APART_PREFERRED && choose_own(b, &strict, near, open, out)) ||
           choose_own(b, r, near, open, out);
}

struct division {
    const struct cpus_layout *layout;
    const struct pod *pod;
    const struct cpu_request *request;
    struct cpuset *sets; /* per container */
};

/* The largest of the concurrent containers not yet served; of equal ones the first. each_len:
 * none. */
static size_t next_container(const struct division *d, const bool *done)
{
    size_t best = d->request->each_len;
    for (size_t i = 0; i < d->request->each_len; i++)
        if (!done[i] && d->request->each[i] > 0 && !pod_container_is_init(d->pod, i) &&
            (best == d->request->each_len || d->request->each[i] > d->request->each[best]))
            best = i;
    return best;
}

static void divide(struct division *d, const struct cpuset *all, struct arena *a)
{
    const struct cpu_request *r = d->request;
    bool *done = arena_new(a, bool, r->each_len);
    struct cpuset left = *all;
    for (size_t i; (i = next_container(d, done)) < r->each_len; done[i] = true) {
        if (r->each[i] == r->cpus)
            d->sets[i] = *all; /* usually there is only one */
        else
            (void)cpus_choose(d->layout, &left, r->each[i], &d->sets[i]);
        cpuset_subtract(&left, &d->sets[i]);
    }
    struct cpuset before = *all; /* without the sidecars started so far */
    for (size_t i = d->pod->containers_len; i < r->each_len; i++) {
        if (!pod_container_is_init(d->pod, i))
            cpuset_subtract(&before, &d->sets[i]);
        else
            (void)cpus_choose(d->layout, &before, r->each[i], &d->sets[i]);
    }
}

/* Lends the other free CPUs of a container's L3 groups to it; to the first container if several
 * share a group. */
static void lend(struct division *d, const struct cpuset *open, const struct cpuset *own)
{
    struct cpuset left = *open;
    cpuset_subtract(&left, own);
    for (size_t i = 0; i < d->request->each_len; i++) {
        struct cpuset loan;
        cpuset_clear(&loan);
        if (pod_container_is_init(d->pod, i))
            continue;
        for (int cpu = -1; (cpu = cpuset_next(&d->sets[i], cpu)) >= 0;)
            cpuset_union(&loan, &d->layout->l3[d->layout->l3_of[cpu]]);
        cpuset_intersect(&loan, &left);
        cpuset_subtract(&left, &loan);
        cpuset_union(&d->sets[i], &loan);
    }
}

static void write_parts(const struct division *d, struct arena *a, struct cpu_grant *out)
{
    const struct cpus_layout *l = d->layout;
    *out = (struct cpu_grant){
        .parts = arena_new(a, struct cpu_grant_part, d->request->each_len * l->numa_len)};
    for (size_t i = 0; i < d->request->each_len; i++)
        for (size_t k = 0; k < l->numa_len; k++) {
            struct cpuset here = d->sets[i];
            cpuset_intersect(&here, &l->numa[k]);
            if (!cpuset_is_empty(&here))
                out->parts[out->len++] = (struct cpu_grant_part){
                    .container = (uint32_t)i, .numa = l->numa_id[k], .cpus = here};
        }
}

bool cpu_accounts_choose(const struct cpu_accounts *b, const struct pod *p,
                         const struct cpu_request *r, const struct cpu_accounts_near *near,
                         struct arena *a, struct cpu_grant *out)
{
    struct cpuset all;
    *out = (struct cpu_grant){0};
    if (!is_open(b))
        return false;
    struct cpuset open = free_cpus(b);
    if (!choose_all(b, r, near, &open, &all))
        return false;
    struct division d = {.layout = &b->shape->layout,
                         .pod = p,
                         .request = r,
                         .sets = arena_new(a, struct cpuset, r->each_len)};
    divide(&d, &all, a);
    write_parts(&d, a, out);
    return true;
}

void cpu_accounts_lend(const struct cpu_accounts *b, const struct pod *p,
                       const struct cpu_request *r, struct arena *a, struct cpu_grant *c)
{
    if (!r->burst || c->len == 0)
        return;
    struct cpuset open = free_cpus(b), own;
    struct division d = {.layout = &b->shape->layout,
                         .pod = p,
                         .request = r,
                         .sets = arena_new(a, struct cpuset, r->each_len)};
    cpuset_clear(&own);
    for (size_t i = 0; i < r->each_len; i++) {
        cpu_grant_of(c, (uint32_t)i, &d.sets[i]);
        cpuset_union(&own, &d.sets[i]);
    }
    lend(&d, &open, &own);
    write_parts(&d, a, c);
}

/* A pod that waits for lent CPUs also needs the free ones, or the reclaimed ones would not
 * suffice. */
void cpu_accounts_expect(struct cpu_accounts *b, const struct pod *p, const struct cpu_request *r,
                         struct arena *a, struct cpu_grant *out)
{
    struct cpu_accounts recalled = *b;
    cpuset_clear(&recalled.lent);
    if (cpu_accounts_choose(b, p, r, NULL, a, out) ||
        cpu_accounts_choose(&recalled, p, r, NULL, a, out))
        cpu_accounts_account(b, out, r, 1);
}

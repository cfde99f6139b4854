// SPDX-License-Identifier: Apache-2.0
/*
 * Which of a container's CPUs are borrowed is not stored: its own are the limits.cpu CPUs that
 * cpus_choose takes first, so every reader of the annotation agrees, also after a restart.
 *
 * A container that has CPUs and requests none (its limit was resized to less than one) keeps them:
 * if all were borrowed they could all be reclaimed, and the container would be unpinned.
 *
 * A grant that names CPUs beyond the node's, or fewer than requested, is accounted as written; CPUs
 * that do not exist are ignored. Only what the node agent would pin matters, and it rejects errors.
 */
#include "scheduler/accounts/cpu_accounts.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

static size_t numa_len(const struct cpu_accounts *b)
{
    return b->shape != NULL ? b->shape->layout.numa_len : 0;
}

static size_t cpus_len(const struct cpu_accounts *b)
{
    return b->shape != NULL ? b->shape->cpus : 0;
}

static size_t counts_len(const struct cpu_accounts *b)
{
    return 3 * cpus_len(b) + 2 * numa_len(b);
}

static void lay_out(struct cpu_accounts *b, uint16_t *counts)
{
    b->owners = counts;
    b->borrowers = counts + cpus_len(b);
    b->keepers = b->borrowers + cpus_len(b);
    b->single = b->keepers + cpus_len(b);
    b->several = b->single + numa_len(b);
}

void cpu_accounts_deinit(struct cpu_accounts *b)
{
    free(b->owners);
    *b = (struct cpu_accounts){0};
}

void cpu_accounts_set_shape(struct cpu_accounts *b, const struct cpu_shape *shape)
{
    cpu_accounts_deinit(b);
    b->shape = shape;
    if (counts_len(b) > 0)
        lay_out(b, mem_new(uint16_t, counts_len(b)));
}

void cpu_accounts_try_on(const struct cpu_accounts *b, struct arena *a, struct cpu_accounts *out)
{
    *out = *b;
    size_t n = counts_len(b);
    if (n == 0)
        return;
    uint16_t *counts = arena_new(a, uint16_t, n);
    memcpy(counts, b->owners, n * sizeof *counts);
    lay_out(out, counts);
}

void cpu_accounts_split(const struct cpu_shape *shape, const struct cpu_grant *c,
                        const struct cpu_request *r, struct cpuset *owned, struct cpuset *lent)
{
    cpuset_clear(owned);
    cpuset_clear(lent);
    for (size_t i = 0; i < c->len; i++)
        cpuset_union(lent, &c->parts[i].cpus);
    for (size_t i = 0; i < c->len; i++) {
        struct cpuset all, usable, own;
        uint32_t container = c->parts[i].container;
        if (i > 0 && c->parts[i - 1].container == container)
            continue;
        cpu_grant_of(c, container, &all);
        usable = all;
        cpuset_intersect(&usable, &shape->layout.usable);
        uint32_t n = container < r->each_len ? r->each[container] : 0;
        if (r->burst && n > 0 && n < cpuset_count(&usable) &&
            cpus_choose(&shape->layout, &usable, n, &own))
            cpuset_union(owned, &own);
        else
            cpuset_union(owned, &all);
    }
    cpuset_subtract(lent, owned);
}

/* Adds or removes one pod on each of its CPUs. */
static void count(uint16_t *counts, size_t len, const struct cpuset *cpus, int sign)
{
    for (int cpu = -1; (cpu = cpuset_next(cpus, cpu)) >= 0 && (size_t)cpu < len;)
        counts[cpu] = (uint16_t)(counts[cpu] + sign);
}

static void count_numa(struct cpu_accounts *b, const struct cpuset *cpus, int sign)
{
    const struct cpus_layout *l = &b->shape->layout;
    size_t nodes = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < l->numa_len; i++) {
            struct cpuset here = l->numa[i];
            cpuset_intersect(&here, cpus);
            if (cpuset_is_empty(&here))
                continue;
            if (pass == 0) {
                nodes++;
                continue;
            }
            uint16_t *counts = nodes == 1 ? b->single : b->several;
            counts[i] = (uint16_t)(counts[i] + sign);
        }
}

static void refresh(struct cpu_accounts *b, const struct cpuset *cpus)
{
    for (int cpu = -1; (cpu = cpuset_next(cpus, cpu)) >= 0 && (size_t)cpu < cpus_len(b);) {
        cpuset_remove(&b->owned, (unsigned)cpu);
        cpuset_remove(&b->lent, (unsigned)cpu);
        cpuset_remove(&b->kept, (unsigned)cpu);
        if (b->owners[cpu] > 0)
            cpuset_add(&b->owned, (unsigned)cpu);
        else if (b->borrowers[cpu] > 0)
            cpuset_add(&b->lent, (unsigned)cpu);
        if (b->keepers[cpu] > 0)
            cpuset_add(&b->kept, (unsigned)cpu);
    }
}

void cpu_accounts_account(struct cpu_accounts *b, const struct cpu_grant *c,
                          const struct cpu_request *r, int sign)
{
    if (r == NULL || c->len == 0 || counts_len(b) == 0)
        return;
    struct cpuset owned, lent;
    cpu_accounts_split(b->shape, c, r, &owned, &lent);
    count(b->owners, cpus_len(b), &owned, sign);
    count(b->borrowers, cpus_len(b), &lent, sign);
    cpuset_union(&owned, &lent);
    if (!r->shared)
        count(b->keepers, cpus_len(b), &owned, sign);
    refresh(b, &owned);
    count_numa(b, &owned, sign);
}

uint64_t cpu_accounts_digest(const struct cpu_accounts *b)
{
    size_t n = counts_len(b);
    return n > 0 ? str_hash((const char *)b->owners, n * sizeof *b->owners) : 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The grant of a pod in the model: cards and CPUs, assumed by us or read from its annotations.
 *
 * A grant is read once, when a pod is first seen bound. After that only the node's own programs can
 * change it: the device plugin to another card, the node agent to fewer CPUs. Other edits are
 * ignored.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cache/cluster_internal.h"

void cluster_grant_clear(struct cluster_pod *cp)
{
    arena_reset(&cp->grant_arena);
    cp->grant = (struct grant){0};
    cp->grant_trusted = false;
}

static void *copy_of(struct arena *a, const void *from, size_t bytes)
{
    return bytes > 0 ? memcpy(arena_alloc(a, bytes), from, bytes) : NULL;
}

void cluster_grant_copy(struct cluster_pod *cp, const struct grant *from)
{
    cluster_grant_clear(cp);
    struct arena *a = &cp->grant_arena;
    struct grant *to = &cp->grant;
    *to = *from;
    to->shares = copy_of(a, from->shares, from->shares_len * sizeof *to->shares);
    to->group = copy_of(a, from->group, from->group_len * sizeof *to->group);
    to->visible = copy_of(a, from->visible, from->visible_len * sizeof *to->visible);
    cpu_grant_copy(&to->cpus, &from->cpus, a);
    cp->grant_trusted = cp->gpu.any;
}

/* A grant that does not add up to the request is not trusted. Only the GPU accounts check which
 * cards exist, because the inventory may arrive later than the pod. */
static void grant_read_cards(struct cluster_pod *cp)
{
    struct error err = ERROR_INIT;
    if (!cp->gpu.any)
        return;
    cp->grant_trusted = grant_decode(cp->pod, &cp->grant_arena, &cp->grant, &err) == 0 &&
                        grant_adds_up(&cp->grant, cp->pod, &cp->gpu, &err) == 0;
    if (!cp->grant_trusted)
        cluster_grant_clear(cp);
}

/* CPUs are taken as written: the node agent pins to nothing else. If the annotation differs from
 * what the node agent confirmed, it has either shrunk, and the confirmed CPUs count until the next
 * confirmation; or it was edited to other CPUs, removed or made unreadable: then the container
 * still runs on the confirmed CPUs, and both sets count as used. */
void cluster_grant_cpus(const struct pod *p, struct arena *a, struct cpu_grant *out)
{
    struct cpu_grant applied;
    (void)cpu_grant_decode(labels_get(&p->annotations, NAME_ANN_CPUSET), p, a, out, NULL);
    (void)cpu_grant_decode(labels_get(&p->annotations, NAME_ANN_CPUSET_APPLIED), p, a, &applied,
                           NULL);
    if (cpu_grant_is_within(out, &applied))
        *out = applied;
    else
        cpu_grant_union(out, &applied, a);
}

static void forget_giving(struct cluster_pod *cp)
{
    free(cp->giving);
    cp->giving = NULL;
    cp->giving_again = 0;
}

static void grant_read_cpus(struct cluster_pod *cp)
{
    forget_giving(cp);
    if (cp->cpu != NULL)
        cluster_grant_cpus(cp->pod, &cp->grant_arena, &cp->grant.cpus);
}

/* A grant only shrinks: reclaimed CPUs are free when the node agent confirms, and all of them when
 * the annotation is removed and the node agent has unpinned the pod. */
static void grant_follow_cpus(struct cluster_pod *cp)
{
    struct cpu_grant now, applied;
    struct arena a;
    if (cp->cpu == NULL || cp->grant.cpus.len == 0)
        return;
    arena_init(&a, 0);
    cluster_grant_cpus(cp->pod, &a, &now);
    bool answered = cpu_grant_decode(labels_get(&cp->pod->annotations, NAME_ANN_CPUSET_APPLIED),
                                     cp->pod, &a, &applied, NULL) == 0 &&
                    cpu_grant_equal(&now, &applied);
    const char *said = labels_get(&cp->pod->annotations, NAME_ANN_CPUSET);
    bool unbound = now.len == 0 && *str_or_empty(said) == '\0';
    if (answered && (unbound || (cp->cpu->burst && now.len > 0)) &&
        cpu_grant_is_within(&now, &cp->grant.cpus) && !cpu_grant_equal(&now, &cp->grant.cpus)) {
        cpu_grant_copy(&cp->grant.cpus, &now, &cp->grant_arena);
        forget_giving(cp);
    }
    arena_deinit(&a);
}

void cluster_grant_widen(struct cluster *c, struct cluster_pod *cp, const struct cpu_grant *cpus)
{
    cpu_accounts_account(&cp->on->cpus, &cp->grant.cpus, cp->cpu, -1);
    cpu_grant_copy(&cp->grant.cpus, cpus, &cp->grant_arena);
    cpu_accounts_account(&cp->on->cpus, &cp->grant.cpus, cp->cpu, 1);
    node_table_touch(c->table, cp->on, false);
}

void cluster_grant_set_lent(struct cluster *c, struct cluster_node *cn, const struct cpuset *cpus,
                            bool lent)
{
    if (lent)
        cpuset_union(&cn->cpus.lent, cpus);
    else
        cpuset_subtract(&cn->cpus.lent, cpus);
    node_table_touch(c->table, cn, false);
}

void cluster_grant_reclaim(struct cluster_pod *cp, const struct cpuset *cpus)
{
    if (cp->giving == NULL)
        cp->giving = mem_new(struct cpuset, 1);
    cp->giving_again += cpuset_is_subset(cpus, cp->giving);
    cpuset_union(cp->giving, cpus);
}

/* Only pods with cards say when they were placed; of the others it is known until the kubelet says
 * when they began. */
void cluster_grant_read(struct cluster_pod *cp)
{
    int64_t assumed_ns = cp->grant.assume_time_ns;
    cluster_grant_clear(cp);
    grant_read_cards(cp);
    grant_read_cpus(cp);
    if (cp->grant.assume_time_ns == 0)
        cp->grant.assume_time_ns = assumed_ns;
}

/* Whether the node's device plugin made or corrected this grant: for a pod bound by other means, or
 * on a card other than the chosen one. Edits by any other client do not count. */
static bool is_confirmed(const struct pod *p)
{
    const char *grant = labels_get(&p->annotations, NAME_ANN_ALLOCATION);
    return grant != NULL && grant[0] != '\0' &&
           str_eq(labels_get(&p->annotations, NAME_ANN_GPU_CONFIRMED), grant);
}

void cluster_grant_follow(struct cluster_pod *cp)
{
    struct arena a;
    struct cpu_grant cpus;
    if (is_confirmed(cp->pod)) {
        arena_init(&a, 0);
        cpu_grant_copy(&cpus, &cp->grant.cpus, &a);
        cluster_grant_clear(cp);
        grant_read_cards(cp);
        cpu_grant_copy(&cp->grant.cpus, &cpus, &cp->grant_arena);
        arena_deinit(&a);
    }
    grant_follow_cpus(cp);
}

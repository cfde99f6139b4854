// SPDX-License-Identifier: Apache-2.0
/*
 * cluster_claim - what a pod in the model was given: cards and CPUs, as assumed by us or as its annotations say.
 *
 * A claim is read once, when a pod is first seen bound. After that it follows the pod only where the node's own program answers for it: the device plugin with another card, the node agent with
 * fewer CPUs. Nobody else's edit counts.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cache/cluster_inside.h"

void cluster_claim_clear(struct cluster_pod *cp)
{
    arena_reset(&cp->claim_arena);
    cp->claim = (struct claim){0};
    cp->claim_trusted = false;
}

static void *copy_of(struct arena *a, const void *from, size_t bytes)
{
    return bytes > 0 ? memcpy(arena_alloc(a, bytes), from, bytes) : NULL;
}

void cluster_claim_copy(struct cluster_pod *cp, const struct claim *from)
{
    cluster_claim_clear(cp);
    struct arena *a = &cp->claim_arena;
    struct claim *to = &cp->claim;
    *to = *from;
    to->shares = copy_of(a, from->shares, from->shares_len * sizeof *to->shares);
    to->group = copy_of(a, from->group, from->group_len * sizeof *to->group);
    to->visible = copy_of(a, from->visible, from->visible_len * sizeof *to->visible);
    cpuclaim_copy(&to->cpus, &from->cpus, a);
    cp->claim_trusted = cp->gpu.any;
}

/* What the pod's annotations say it was given. A claim that does not add up to the request is not believed (contract, section 2). Which cards exist is the
 * ledger's business: the inventory may arrive later than the pod. */
static void claim_read_cards(struct cluster_pod *cp)
{
    struct error err = ERROR_INIT;
    if (!cp->gpu.any)
        return;
    cp->claim_trusted = claim_decode(cp->pod, &cp->claim_arena, &cp->claim, &err) == 0 &&
                        ledger_request_is_met(&cp->gpu, &cp->claim, &cp->claim_arena);
    if (!cp->claim_trusted)
        cluster_claim_clear(cp);
}

/* CPUs are believed as they are written: the node agent binds to nothing else. Where the annotation is not what the node agent has confirmed, it was made smaller, and what was confirmed counts
 * until it is confirmed again; or somebody has edited it since, so that it names others, none, or cannot be read: then the container is where it was, and the CPUs of both are nobody else's. */
void cluster_claim_cpus(const struct pod *p, struct arena *a, struct cpuclaim *out)
{
    struct cpuclaim applied;
    (void)cpuclaim_decode(labels_get(&p->annotations, NAME_ANN_CPUSET), p, a, out, NULL);
    (void)cpuclaim_decode(labels_get(&p->annotations, NAME_ANN_CPUSET_APPLIED), p, a, &applied,
                          NULL);
    if (cpuclaim_is_within(out, &applied))
        *out = applied;
    else
        cpuclaim_union(out, &applied, a);
}

static void forget_giving(struct cluster_pod *cp)
{
    free(cp->giving);
    cp->giving = NULL;
    cp->giving_again = 0;
}

static void claim_read_cpus(struct cluster_pod *cp)
{
    forget_giving(cp);
    if (cp->cpu != NULL)
        cluster_claim_cpus(cp->pod, &cp->claim_arena, &cp->claim.cpus);
}

/* A loan that was called back is given back when the node agent says so, and everything when the annotation was taken away and the node agent has let go: a claim only ever gets smaller. */
static void claim_follow_cpus(struct cluster_pod *cp)
{
    struct cpuclaim now, applied;
    struct arena a;
    if (cp->cpu == NULL || cp->claim.cpus.len == 0)
        return;
    arena_init(&a, 0);
    cluster_claim_cpus(cp->pod, &a, &now);
    bool answered = cpuclaim_decode(labels_get(&cp->pod->annotations, NAME_ANN_CPUSET_APPLIED),
                                    cp->pod, &a, &applied, NULL) == 0 &&
                    cpuclaim_equal(&now, &applied);
    const char *said = labels_get(&cp->pod->annotations, NAME_ANN_CPUSET);
    bool unbound = now.len == 0 && *str_or_empty(said) == '\0';
    if (answered && (unbound || (cp->cpu->burst && now.len > 0)) &&
        cpuclaim_is_within(&now, &cp->claim.cpus) && !cpuclaim_equal(&now, &cp->claim.cpus)) {
        cpuclaim_copy(&cp->claim.cpus, &now, &cp->claim_arena);
        forget_giving(cp);
    }
    arena_deinit(&a);
}

void cluster_claim_widen(struct cluster *c, struct cluster_pod *cp, const struct cpuclaim *cpus)
{
    cpu_book_account(&cp->on->cpus, &cp->claim.cpus, cp->cpu, -1);
    cpuclaim_copy(&cp->claim.cpus, cpus, &cp->claim_arena);
    cpu_book_account(&cp->on->cpus, &cp->claim.cpus, cp->cpu, 1);
    table_touch(c->table, cp->on, false);
}

void cluster_claim_call_back(struct cluster_pod *cp, const struct cpuset *cpus)
{
    if (cp->giving == NULL)
        cp->giving = mem_new(struct cpuset, 1);
    cp->giving_again += cpuset_is_subset(cpus, cp->giving);
    cpuset_union(cp->giving, cpus);
}

void cluster_claim_read(struct cluster_pod *cp)
{
    cluster_claim_clear(cp);
    claim_read_cards(cp);
    claim_read_cpus(cp);
}

/* Did the node's device plugin make or correct this very claim? (A pod that came by another way, a card other than the one that was chosen.) Nobody else's
 * edit of a bound pod's claim counts. */
static bool is_confirmed(const struct pod *p)
{
    const char *claim = labels_get(&p->annotations, NAME_ANN_ALLOCATION);
    return claim != NULL && claim[0] != '\0' &&
           str_eq(labels_get(&p->annotations, NAME_ANN_GPU_CONFIRMED), claim);
}

/* A newer version of a pod that is bound where it was. */
void cluster_claim_follow(struct cluster_pod *cp)
{
    struct arena a;
    struct cpuclaim cpus;
    if (is_confirmed(cp->pod)) {
        arena_init(&a, 0);
        cpuclaim_copy(&cpus, &cp->claim.cpus, &a);
        cluster_claim_clear(cp);
        claim_read_cards(cp);
        cpuclaim_copy(&cp->claim.cpus, &cpus, &cp->claim_arena);
        arena_deinit(&a);
    }
    claim_follow_cpus(cp);
}

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/plugins/reservation_capacity.h"

#include "lib/base/num.h"
#include "scheduler/accounts/gpu_accounts.h"
#include "scheduler/cache/expected_end.h"

static bool is_for(const struct cluster *c, const struct reservation *r,
                   const struct cluster_pod *cp)
{
    return cp->gang != NULL && reservations_of(c, cp->gang)->kept == r;
}

/* Without a start it is placed now. INT64_MAX: nobody knows. */
static int64_t ends_if_placed_at(const struct cluster *c, const struct cluster_pod *cp,
                                 int64_t start_ms)
{
    return num_add_sat(start_ms > 0 ? start_ms : c->reservations->clock_ms,
                       expected_end_runtime(c, cp));
}

/* Of pods that came after the first plan an age says nothing yet: they end in time only if it is
 * said or learned. */
static bool outlasts(const struct cluster *c, const struct reservation *r,
                     const struct cluster_pod *cp)
{
    int64_t start_ms = expected_end_start(cp);
    if (is_for(c, r, cp))
        return true;
    if (start_ms == 0 || start_ms >= r->made_ms)
        return ends_if_placed_at(c, cp, start_ms) > r->start_ms;
    return expected_end_of(c, cp, r->planned_ms) > r->start_ms;
}

/* A member that still waits; NULL: it is gone or placed. */
static const struct cluster_pod *member(const struct cluster *c, const struct reservation_node *at,
                                        size_t i)
{
    const struct cluster_pod *cp = cluster_find_pod(c, at->members.items[i]);
    return cp != NULL && cp->state == CLUSTER_PENDING ? cp : NULL;
}

/* Whether the node has enough for all pods that are there at the start, including the members. */
static bool amounts_beside(const struct cluster *c, const struct reservation *r,
                           const struct reservation_node *at, const struct cluster_pod *pod,
                           const struct cluster_node *node)
{
    struct resource_vector held = {0};
    const struct cluster_pod *cp;
    for (size_t i = 0; i < node->pods.len; i++)
        if (outlasts(c, r, node->pods.items[i]))
            resource_vector_account_offered(&held, &node->pods.items[i]->request,
                                            &node->allocatable, 1);
    for (size_t i = 0; i < at->members.len; i++)
        if ((cp = member(c, at, i)) != NULL)
            resource_vector_account_offered(&held, &cp->request, &node->allocatable, 1);
    bool fits = resource_vector_fits(&pod->request, &node->allocatable, &held, NULL);
    resource_vector_deinit(&held);
    return fits;
}

/* The same for cards. It does not decide which card the pod gets: if cards differ or are shared,
 * the pod may take one that the members would prefer. */
static bool cards_beside(const struct cluster *c, const struct reservation *r,
                         const struct reservation_node *at, const struct cluster_pod *pod,
                         const struct cluster_node *node)
{
    struct gpu_accounts trial;
    struct gpu_accounts_why no;
    struct arena a;
    const struct cluster_pod *cp;
    if (!pod->gpu.any)
        return true;
    arena_init(&a, 0);
    gpu_accounts_try_on(&node->gpu_accounts, &a, &trial);
    for (size_t i = 0; i < node->pods.len; i++) {
        cp = node->pods.items[i];
        if (!outlasts(c, r, cp))
            gpu_accounts_account(&trial, &cp->grant, cp->grant_trusted, &cp->gpu, -1);
    }
    for (size_t i = 0; i < at->members.len; i++) {
        struct grant grant = {0};
        if ((cp = member(c, at, i)) == NULL || !cp->gpu.any)
            continue;
        bool known = gpu_accounts_choose(&trial, &cp->gpu, &a, &grant, &no);
        gpu_accounts_account(&trial, &grant, known, &cp->gpu, 1);
    }
    bool fits = gpu_accounts_choose(&trial, &pod->gpu, &a, NULL, &no);
    arena_deinit(&a);
    return fits;
}

static bool cpus_beside(const struct cluster *c, const struct reservation *r,
                        const struct reservation_node *at, const struct cluster_pod *pod,
                        const struct cluster_node *node)
{
    struct cpu_accounts trial;
    struct arena a;
    const struct cluster_pod *cp;
    struct cpu_grant grant;
    if (pod->cpu == NULL)
        return true;
    arena_init(&a, 0);
    cpu_accounts_try_on(&node->cpus, &a, &trial);
    for (size_t i = 0; i < node->pods.len; i++) {
        cp = node->pods.items[i];
        if (!outlasts(c, r, cp))
            cpu_accounts_account(&trial, &cp->grant.cpus, cp->cpu, -1);
    }
    for (size_t i = 0; i < at->members.len; i++)
        if ((cp = member(c, at, i)) != NULL && cp->cpu != NULL)
            cpu_accounts_expect(&trial, cp->pod, cp->cpu, &a, &grant);
    bool fits = cpu_accounts_has_capacity(&trial, pod->cpu, NULL);
    arena_deinit(&a);
    return fits;
}

bool reservation_capacity_allows(const struct cluster *c, const struct cluster_pod *pod,
                                 const struct cluster_node *node, struct reason *why)
{
    for (size_t i = 0; node->reserved > 0 && i < c->reservations->items.len; i++) {
        const struct reservation *r = c->reservations->items.items[i];
        const struct reservation_node *at = map_get(&r->nodes, node->name);
        if (at == NULL || pod->pod->priority > r->priority || is_for(c, r, pod))
            continue;
        int64_t end_ms = ends_if_placed_at(c, pod, 0);
        if (end_ms <= r->start_ms ||
            (amounts_beside(c, r, at, pod, node) && cards_beside(c, r, at, pod, node) &&
             cpus_beside(c, r, at, pod, node)))
            continue;
        if (why != NULL)
            *why = (struct reason){.kind = REASON_RESERVED, .what = r->what};
        return false;
    }
    return true;
}

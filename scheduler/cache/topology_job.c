// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cache/topology_job.h"

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/cache/gangs.h"

bool topology_job_are(const struct cluster_pod *x, const struct cluster_pod *y)
{
    if (x->gang == NULL || x->gang != y->gang || gangs_is_lone(x->gang))
        return false;
    const char *job = labels_get(&x->pod->labels, NAME_LABEL_TOPOLOGY_JOB);
    return job != NULL && str_eq(job, labels_get(&y->pod->labels, NAME_LABEL_TOPOLOGY_JOB));
}

/* One bit per position in the inventory. */
static uint64_t cards_of(const struct cluster_pod *cp)
{
    uint64_t set = 0;
    for (size_t i = 0; cp->grant_trusted && i < cp->grant.group_len; i++) {
        int32_t at = gpu_accounts_find_card(&cp->on->gpu_accounts, cp->grant.group[i]);
        if (at >= 0)
            set |= UINT64_C(1) << at;
    }
    return set;
}

void topology_job_of(const struct cluster_pod *cp, const struct cluster_node *node,
                     struct gpu_accounts_peers *out)
{
    *out = (struct gpu_accounts_peers){0};
    if (cp->gpu.total[GPU_REQUEST_CARDS] == 0 || !topology_job_are(cp, cp))
        return;
    for (size_t i = 0; i < cp->gang->members.len; i++) {
        const struct cluster_pod *other = cp->gang->members.items[i];
        if (other == cp || !topology_job_are(cp, other))
            continue;
        if (other->on == node)
            out->beside |= cards_of(other);
        else if (other->on == NULL && cluster_pod_is_schedulable(other))
            out->to_come = num_add_sat(out->to_come, other->gpu.total[GPU_REQUEST_CARDS]);
    }
}

void topology_job_show(struct cluster_pod *cp)
{
    struct gpu_accounts_peers topology_job;
    const struct gpu_accounts *l = &cp->on->gpu_accounts;
    topology_job_of(cp, cp->on, &topology_job);
    uint64_t seen = topology_job.beside | cards_of(cp);
    size_t n = (size_t)__builtin_popcountll(seen);
    if (topology_job.beside == 0 || n == cp->grant.visible_len)
        return;
    int32_t *visible = arena_new(&cp->grant_arena, int32_t, n);
    size_t len = 0;
    for (; seen != 0; seen &= seen - 1) {
        int32_t card = l->inventory.cards[__builtin_ctzll(seen)].index;
        size_t j = len++;
        for (; j > 0 && visible[j - 1] > card; j--)
            visible[j] = visible[j - 1];
        visible[j] = card;
    }
    cp->grant.visible = visible;
    cp->grant.visible_len = n;
}

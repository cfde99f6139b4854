// SPDX-License-Identifier: Apache-2.0
/* cpu - exclusive CPUs for pods with the annotation cpuset-scheduler, counted and chosen by the
 * node's CPU accounts (cpu_accounts.h). It runs after gpu, because CPUs are chosen on the NUMA node
 * of the pod's cards. If that has too few, a pod with a NUMA policy gets cards of a NUMA node that
 * has enough; other pods change only to an equivalent card, and otherwise keep the cards that fit
 * the cluster best. */
#include "lib/base/str.h"
#include "scheduler/accounts/cpu_accounts.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/model/nominations.h"
#include "scheduler/cache/topology_job.h"
#include "scheduler/plugins/all.h"
#include "scheduler/framework/class_key.h"

/* The node's CPU accounts; if pods are nominated here before this one, a copy in *trial that
 * includes them. */
static const struct cpu_accounts *accounts_for(const struct plugin_ask *ask,
                                               const struct cluster_node *node, struct arena *a,
                                               struct cpu_accounts *trial)
{
    const struct cluster_pod *other;
    const struct cpu_accounts *b = &node->cpus;
    for (size_t i = 0; (other = nominations_next(ask->pod, node, &i)) != NULL;) {
        struct cpu_grant grant;
        if (other->cpu == NULL)
            continue;
        if (b != trial)
            cpu_accounts_try_on(b, a, trial);
        b = trial;
        cpu_accounts_expect(trial, other->pod, other->cpu, a, &grant);
    }
    return b;
}

static void explain(const struct cpu_accounts *b, const struct cpu_accounts_why *no,
                    struct reason *why)
{
    switch (no->no) {
    case CPU_ACCOUNTS_FITS:
    case CPU_ACCOUNTS_NO_TOPOLOGY:
        *why = (struct reason){.kind = REASON_NO_TOPOLOGY,
                               .what = b->shape != NULL ? b->shape->problem : "none published"};
        break;
    case CPU_ACCOUNTS_CLOSED:
        *why = (struct reason){.kind = REASON_CPUS_CLOSED, .what = b->shape->closed};
        break;
    case CPU_ACCOUNTS_TOO_FEW:
        *why = (struct reason){.kind = REASON_CPUS, .want = no->want, .free = no->free};
        break;
    case CPU_ACCOUNTS_NO_NUMA:
        *why = (struct reason){.kind = REASON_CPUS_NUMA, .want = no->want, .free = no->free};
        break;
    case CPU_ACCOUNTS_TOO_MANY_NUMA:
        *why = (struct reason){.kind = REASON_CPUS_SPLIT, .want = no->want, .free = -no->free};
        break;
    case CPU_ACCOUNTS_LENT:
        *why = (struct reason){.kind = REASON_CPUS_LENT, .want = no->want, .free = no->free};
        break;
    }
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    struct cpu_accounts trial;
    struct cpu_accounts_why no;
    if (ask->pod->cpu == NULL)
        return true;
    const struct cpu_accounts *b = accounts_for(ask, node, a, &trial);
    if (cpu_accounts_has_capacity(b, ask->pod->cpu, why != NULL ? &no : NULL))
        return true;
    if (why != NULL)
        explain(b, &no, why);
    return false;
}

/* Whether one NUMA node has both the CPUs and the cards. */
static bool has_both(const struct plugin_ask *ask, const struct cluster_node *node)
{
    const struct cpus_layout *l = &node->cpus.shape->layout;
    struct arena a;
    bool found = false;
    arena_init(&a, 0);
    for (size_t i = 0; i < l->numa_len && !found; i++) {
        struct grant grant = {0};
        found = cpu_accounts_fits_on(&node->cpus, ask->pod->cpu, i) &&
                plugin_gpu_choose_on(ask, node, l->numa_id[i], &a, &grant);
    }
    arena_deinit(&a);
    return found;
}

static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    if (ask->pod->cpu == NULL)
        return 0;
    int64_t points = cpu_accounts_score(&node->cpus, ask->pod->cpu);
    return points > 0 && ask->pod->gpu.any && !has_both(ask, node) ? (points + 1) / 2 : points;
}

static struct cpu_accounts_near near_cards(const struct cluster_node *node,
                                           const struct grant *grant, struct arena *a)
{
    size_t len = 0;
    int32_t *numa = arena_new(a, int32_t, grant->shares_len + grant->group_len);
    for (size_t i = 0; i < grant->shares_len + grant->group_len; i++) {
        int32_t card =
            i < grant->shares_len ? grant->shares[i].card : grant->group[i - grant->shares_len];
        int32_t at = gpu_accounts_find_card(&node->gpu_accounts, card);
        if (at >= 0 && node->gpu_accounts.inventory.cards[at].numa >= 0)
            numa[len++] = node->gpu_accounts.inventory.cards[at].numa;
    }
    return (struct cpu_accounts_near){.numa = numa, .len = len};
}

/* Whether all CPUs are near the cards; and if the pod must be on one NUMA node, the cards too. */
static bool is_near(const struct cpu_grant *cpus, const struct cpu_accounts_near *near,
                    const struct cpu_request *r)
{
    for (size_t i = 1; r->numa == CPU_REQUEST_SINGLE && i < near->len; i++)
        if (near->numa[i] != near->numa[0])
            return false;
    for (size_t i = 0; i < cpus->len; i++) {
        bool found = false;
        for (size_t k = 0; k < near->len && !found; k++)
            found = near->numa[k] == cpus->parts[i].numa;
        if (!found)
            return false;
    }
    return true;
}

/* The only card of a grant; -1: several. */
static int32_t only_card(const struct grant *c)
{
    int32_t card = c->shares_len > 0 ? c->shares[0].card : c->group_len == 1 ? c->group[0] : -1;
    for (size_t i = 1; i < c->shares_len; i++)
        if (c->shares[i].card != card)
            return -1;
    return card;
}

/* Whether exchanging the cards makes no difference to other pods. */
static bool are_alike(const struct gpu_accounts *l, int32_t x, int32_t y)
{
    int32_t a = gpu_accounts_find_card(l, x), b = gpu_accounts_find_card(l, y);
    if (a < 0 || b < 0)
        return false;
    const struct gpu_accounts_card *p = &l->cards[a], *q = &l->cards[b];
    return p->used_gib == q->used_gib && p->used_percent == q->used_percent &&
           p->whole_holders == q->whole_holders &&
           gpu_card_gib(&l->inventory.cards[a]) == gpu_card_gib(&l->inventory.cards[b]) &&
           str_eq(l->inventory.cards[a].model, l->inventory.cards[b].model);
}

static bool may_move(const struct plugin_ask *ask, const struct cluster_node *node,
                     const struct grant *from, const struct grant *to)
{
    return ask->pod->cpu->insists ||
           (!topology_job_are(ask->pod, ask->pod) &&
            are_alike(&node->gpu_accounts, only_card(from), only_card(to)));
}

/* Moves the grant to cards of a NUMA node that has the CPUs, if there is one. */
static void move_cards(const struct plugin_ask *ask, const struct cluster_node *node,
                       const struct cpu_accounts *b, struct arena *a, struct grant *grant)
{
    const struct cpus_layout *l = &b->shape->layout;
    const struct cpu_request *r = ask->pod->cpu;
    for (size_t i = 0; i < l->numa_len; i++) {
        int32_t numa = l->numa_id[i];
        struct cpu_accounts_near near = {.numa = &numa, .len = 1};
        struct grant other = *grant;
        if (plugin_gpu_choose_on(ask, node, numa, a, &other) &&
            may_move(ask, node, grant, &other) &&
            cpu_accounts_choose(b, ask->pod->pod, r, &near, a, &other.cpus) &&
            is_near(&other.cpus, &near, r)) {
            *grant = other;
            return;
        }
    }
}

static bool reserve(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                    struct grant *grant)
{
    struct cpu_accounts trial;
    const struct cpu_request *r = ask->pod->cpu;
    if (r == NULL)
        return true;
    const struct cpu_accounts *b = accounts_for(ask, node, a, &trial);
    struct cpu_accounts_near near = near_cards(node, grant, a);
    if (!cpu_accounts_choose(b, ask->pod->pod, r, &near, a, &grant->cpus))
        return false;
    if (near.len > 0 && !is_near(&grant->cpus, &near, r))
        move_cards(ask, node, b, a, grant);
    /* cpu_lending_lend does it for gangs */
    if (ask->pod->gang == NULL || gangs_is_lone(ask->pod->gang))
        cpu_accounts_lend(b, ask->pod->pod, r, a, &grant->cpus);
    return true;
}

static void lend(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                 struct cpu_grant *c)
{
    struct cpu_accounts trial;
    cpu_accounts_lend(accounts_for(ask, node, a, &trial), ask->pod->pod, ask->pod->cpu, a, c);
}

static bool applies(const struct cluster_pod *pod)
{
    return pod->cpu != NULL;
}

static void key(const struct plugin_ask *ask, struct strbuf *out)
{
    const struct cpu_request *r = ask->pod->cpu;
    if (r == NULL)
        return;
    strbuf_addc(out, 'U');
    class_key_number(out, r->cpus);
    class_key_number(out, r->numa);
    class_key_number(out, r->apart);
    class_key_number(out, r->insists);
    class_key_number(out, r->burst);
    class_key_number(out, r->shared);
}

static const char *illegal(const struct cluster_pod *pod)
{
    return pod->cpu != NULL ? pod->cpu->illegal : NULL;
}

const struct plugin plugin_cpu = {.name = "cpu",
                                  .illegal = illegal,
                                  .key = key,
                                  PLUGIN_READS(FACET_CPUS | FACET_HELD | FACET_NOMINATED),
                                  .score_depends = PLUGIN_HELD,
                                  .applies = applies,
                                  .filter = filter,
                                  .score = score,
                                  .weight = 4,
                                  .reserve = reserve,
                                  .lend = lend};

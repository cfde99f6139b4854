// SPDX-License-Identifier: Apache-2.0
/*
 * What must hold when a cycle preempts: the victims are allowed, and evicting them suffices for all
 * nominations.
 */
#include "test/unit/scheduler/world_internal.h"

#include "lib/base/str.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cache/replacement_hold.h"
#include "scheduler/cycle/cpu_lending.h"
#include "scheduler/framework/pipeline.h"
#include "scheduler/cycle/plan.h"
#include "scheduler/cycle/node_victims.h"
#include "scheduler/cycle/preempt.h"

/* Each is placed, none is leaving, all are less important than every pod that was promised room,
 * each is named once. */
void world_check_victims(const struct world *w, const struct gang *g, const struct cycle_result *r)
{
    MUST(w, r->victims_len == 0 || (r->awaits && r->nominations_len > 0), "%s", g->key);
    for (size_t i = 0; i < r->victims_len; i++) {
        const struct cluster_pod *v = r->victims[i].pod;
        MUST(w, v->on != NULL && !node_victims_is_leaving(v), "%s: %s", g->key, v->pod->key);
        for (size_t k = 0; k < r->nominations_len; k++)
            MUST(w,
                 r->nominations[k].node == NULL ||
                     v->pod->priority < r->nominations[k].pod->pod->priority,
                 "%s: %s", g->key, v->pod->key);
        for (size_t k = 0; k < i; k++)
            MUST(w, r->victims[k].pod != v, "%s: %s twice", g->key, v->pod->key);
    }
}

static size_t count_promised(const struct cycle_result *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->nominations_len; i++)
        n += r->nominations[i].node != NULL;
    return n;
}

static bool is_promised(const struct cycle_result *r, const struct cluster_node *n)
{
    for (size_t i = 0; i < r->nominations_len; i++)
        if (r->nominations[i].node == n)
            return true;
    return false;
}

/* Terminating pods: all, or those on nominated nodes. */
static void evict_leaving(const struct cycle_result *r, bool all, struct plan *plan)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&plan->cluster->pods, &i, &key, &value);) {
        struct cluster_pod *cp = value;
        if (cp->on != NULL && cp->on->node != NULL && node_victims_is_leaving(cp) &&
            (all || is_promised(r, cp->on)))
            (void)plan_evict(plan, cp);
    }
}

/* How many of the gang fit on their nominated nodes; -1: not all nominated ones do. */
static int32_t place_promised(struct world *w, const struct gang *g, const struct cycle_result *r,
                              struct plan *plan)
{
    int32_t n = 0;
    for (size_t i = 0; i < r->nominations_len; i++) {
        const struct cycle_nomination *to = &r->nominations[i];
        struct pipeline_choice choice;
        if (to->node == NULL)
            continue;
        if (!pipeline_try(&w->pipeline, to->pod, to->node, &w->arena, &choice))
            return -1;
        plan_place(plan, to->pod, to->node, &choice.grant);
        n += to->pod->gang == g;
    }
    return n;
}

void world_lend(const struct gang *g, struct plan *lent)
{
    struct replacement_hold_offer offer;
    for (size_t i = 0; replacement_hold_next(lent->cluster, g, &i, &offer);) {
        plan_nominate(lent, offer.lost, NULL);
        plan_nominate(lent, offer.member, offer.node);
    }
}

enum without { WITHOUT_NOBODY, WITHOUT_LEAVING_THERE, WITHOUT_LEAVING };

static int32_t place_without(struct world *w, const struct gang *g, const struct cycle_result *r,
                             enum without without)
{
    struct plan plan;
    plan_begin(&plan, &w->cluster);
    world_lend(g, &plan);
    if (without != WITHOUT_NOBODY)
        evict_leaving(r, without == WITHOUT_LEAVING, &plan);
    int32_t promised = place_promised(w, g, r, &plan);
    plan_end(&plan);
    return promised;
}

/* false: more may have to be reclaimed later. Other pods nominated to the same node may take the
 * CPUs that become free. A pod that must be apart may be blocked by a borrower that counts as
 * another sort once its CPUs are reclaimed. A pod that shares CPUs may take some that were freed
 * for another member; and of several members the first may take others than on trial, when more
 * were free, so that no NUMA node is left for the next. */
static bool is_firm(const struct cycle_result *r)
{
    for (size_t i = 0; i < r->nominations_len; i++)
        if (r->nominations[i].node != NULL &&
            (r->nominations[i].node->nominated != NULL ||
             (r->nominations[i].pod->cpu != NULL &&
              (r->nominations[i].pod->cpu->apart == CPU_REQUEST_APART ||
               (count_promised(r) > 1 &&
                (r->nominations[i].pod->cpu->shared ||
                 r->nominations[i].pod->cpu->numa >= CPU_REQUEST_RESTRICTED))))))
            return false;
    return true;
}

/* Only lent CPUs are reclaimed. The smaller annotation alone changes nothing; the CPUs are free
 * when the node agent confirms it. */
static void check_recalls(struct world *w, const struct cycle_result *r)
{
    for (size_t i = 0; i < r->recalls_len; i++) {
        struct cluster_pod *cp = r->recalls[i].pod;
        struct cpuset owned, lent;
        struct cpu_grant left;
        AUTO_STRBUF text = {0};
        cpu_accounts_split(cp->on->cpus.shape, &cp->grant.cpus, cp->cpu, &owned, &lent);
        MUST(w, cpuset_is_subset(&r->recalls[i].cpus, &lent), "%s", cp->pod->key);
        MUST(w, cp->giving != NULL && cpuset_is_subset(&r->recalls[i].cpus, cp->giving), "%s",
             cp->pod->key);
        cpu_lending_left(cp, &w->arena, &left);
        MUST(w, cpu_grant_is_within(&left, &cp->grant.cpus), "%s", cp->pod->key);
        cpu_grant_encode(&left, cp->pod, &text);
        uint64_t before = cpu_accounts_digest(&cp->on->cpus);
        world_give_back(w, cp, strbuf_str(&text), false);
        MUST(w, cpu_accounts_digest(&cp->on->cpus) == before, "%s", cp->pod->key);
        world_give_back(w, cp, strbuf_str(&text), true);
        MUST(w, cpu_grant_equal(&left, &cp->grant.cpus), "%s", cp->pod->key);
        MUST(w, cp->giving == NULL, "%s", cp->pod->key);
        w->recalled++;
    }
}

/* A gang is nominated for the time when all terminating pods are gone; a lone pod for when they are
 * gone from its node, as in kube-scheduler: a pod terminating elsewhere may be the one that its
 * affinity needs. */
void world_check_preempt(struct world *w, const struct gang *g, const struct cycle_result *r)
{
    world_check_victims(w, g, r);
    w->firm = is_firm(r);
    if (r->recalls_len > 0) {
        MUST(w, r->victims_len == 0 && count_promised(r) > 0, "%s", g->key);
        return;
    }
    uint64_t before = cluster_digest(&w->cluster);
    for (size_t i = 0; i < r->victims_len; i++)
        cluster_set_evicting(&w->cluster, r->victims[i].pod, true);
    int32_t promised = place_without(w, g, r, WITHOUT_LEAVING);
    if (promised < 0 && count_promised(r) == 1)
        promised = place_without(w, g, r, WITHOUT_LEAVING_THERE);
    for (size_t i = 0; i < r->victims_len; i++)
        cluster_set_evicting(&w->cluster, r->victims[i].pod, false);
    MUST(w, promised >= 0, "%s: %s on %s", g->key, r->nominations[0].pod->pod->key,
         r->nominations[0].node != NULL ? r->nominations[0].node->name : "no node");
    MUST(w, promised >= gangs_count_missing(g), "%s", g->key);
    MUST(w, cluster_digest(&w->cluster) == before, "%s", g->key);
    w->preempted++;
    w->preempted_for_gangs += promised > 1;
}

/* The eviction failed, or the pod leaves; some take their time. */
static void evict(struct world *w, const struct cycle_result *r, const struct cycle_victim *v)
{
    if (world_chance(w, 20))
        return;
    for (size_t i = 0; i < WORLD_PODS; i++)
        if (str_eq(w->slots[i].name, v->pod->pod->name) && world_chance(w, 60)) {
            world_remove_pod(w, &w->slots[i]);
            return;
        }
    cluster_set_evicting(&w->cluster, v->pod, false);
    for (size_t i = 0; i < r->nominations_len; i++)
        attempt_nominate(&w->attempt, r->nominations[i].pod, NULL, w->now_ms);
    queue_retry(&w->queue, v->for_pod->gang, w->now_ms);
}

void world_carry_out(struct world *w, const struct gang *g, const struct cycle_result *r)
{
    for (size_t i = 0; !w->attempt.all_stay && i < r->victims_len; i++)
        evict(w, r, &r->victims[i]);
    if (r->recalls_len == 0)
        return;
    check_recalls(w, r);
    int32_t placed = w->firm ? place_without(w, g, r, WITHOUT_NOBODY) : 0;
    MUST(w, !w->firm || (placed > 0 && placed >= gangs_count_missing(g)), "%s: %d", g->key,
         (int)placed);
    w->recalled_for_gangs += count_promised(r) > 1;
}

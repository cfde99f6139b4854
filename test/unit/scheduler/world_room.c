// SPDX-License-Identifier: Apache-2.0
/*
 * What must hold when a cycle says who has to go: the victims are allowed, and they are enough for
 * all that was promised.
 */
#include "test/unit/scheduler/world_internal.h"

#include "scheduler/cache/gangs.h"
#include "scheduler/cycle/cpu_lending.h"
#include "scheduler/framework/pipeline.h"
#include "scheduler/cycle/plan.h"
#include "scheduler/cycle/node_victims.h"
#include "scheduler/cycle/preempt.h"

/* Each is placed, none is leaving, all are less important than every pod that was promised room,
 * each is named once. */
static void check_victims(const struct world *w, const struct gang *g, const struct cycle_result *r)
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

/* Those that are leaving: all, or from the nodes where room was promised. */
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

/* How many of the gang fit where they were promised room; -1: not all that were promised some
 * do. */
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

enum without { WITHOUT_NOBODY, WITHOUT_LEAVING_THERE, WITHOUT_LEAVING };

static int32_t place_without(struct world *w, const struct gang *g, const struct cycle_result *r,
                             enum without without)
{
    struct plan plan;
    plan_begin(&plan, &w->cluster);
    if (without != WITHOUT_NOBODY)
        evict_leaving(r, without == WITHOUT_LEAVING, &plan);
    int32_t promised = place_promised(w, g, r, &plan);
    plan_end(&plan);
    return promised;
}

/* Who waits on the same node has a right to what comes free, as far as it goes; and who wants to be
 * apart from pods of the other sort may find that a borrower is of another sort without its loan.
 * Who may share CPUs where none is free takes some that came free for another member. They call
 * back more, later. */
static bool is_firm(const struct cycle_result *r)
{
    for (size_t i = 0; i < r->nominations_len; i++)
        if (r->nominations[i].node != NULL &&
            (r->nominations[i].node->nominated > 0 ||
             (r->nominations[i].pod->cpu != NULL &&
              (r->nominations[i].pod->cpu->apart == CPU_REQUEST_APART ||
               (r->nominations[i].pod->cpu->shared && count_promised(r) > 1)))))
            return false;
    return true;
}

/* Only CPUs on loan are called back, and the node agent does as it is told: first the annotation
 * gets smaller, which changes nothing; then it is confirmed, and they are free. */
static void check_recalls(struct world *w, const struct cycle_result *r)
{
    for (size_t i = 0; i < r->recalls_len; i++) {
        struct cluster_pod *cp = r->recalls[i].pod;
        struct cpuset owned, lent;
        struct cpu_grant left;
        AUTO_STRBUF text = {0};
        cpu_accounts_split(cp->on->cpus.shape, &cp->grant.cpus, cp->cpu, &owned, &lent);
        MUST(w, cpuset_is_subset(&r->recalls[i].cpus, &lent), "%s", cp->pod->key);
        cluster_grant_call_back(cp, &r->recalls[i].cpus);
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

/* A gang is promised its places for when all that are leaving are gone; a lone pod for when they
 * are gone from its node, as kube-scheduler does it: who is leaving elsewhere may still be the one
 * that it has to be near. */
void world_check_room(struct world *w, const struct gang *g, const struct cycle_result *r)
{
    check_victims(w, g, r);
    if (r->recalls_len > 0) {
        MUST(w, r->awaits && r->victims_len == 0 && count_promised(r) > 0, "%s", g->key);
        bool firm = is_firm(r);
        check_recalls(w, r);
        int32_t placed = firm ? place_without(w, g, r, WITHOUT_NOBODY) : 0;
        MUST(w, !firm || (placed > 0 && placed >= gangs_count_missing(g)), "%s: %d", g->key,
             (int)placed);
        w->recalled_for_gangs += count_promised(r) > 1;
        return;
    }
    if (!r->awaits || r->nominations_len == 0)
        return;
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
    w->made_room++;
    w->made_room_for_gangs += promised > 1;
}

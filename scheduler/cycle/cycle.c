// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cycle/cycle.h"

#include <string.h>

#include "lib/base/str.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/model/gpu_prices.h"
#include "scheduler/cycle/cpu_lending.h"
#include "scheduler/cache/topology_job.h"
#include "scheduler/cycle/placing.h"
#include "scheduler/cycle/placing_domains.h"
#include "scheduler/cycle/virtual_explain.h"
#include "scheduler/cycle/gang_preempt.h"

/* A problem of the pod itself, which no node and no event can solve. */
static const char *own_problem(const struct cluster_pod *cp)
{
    if (cp->pod->unplaceable != NULL)
        return cp->pod->unplaceable;
    if (cp->gpu.illegal != NULL)
        return cp->gpu.illegal;
    if (cp->cpu != NULL && cp->cpu->illegal != NULL)
        return cp->cpu->illegal;
    if (cp->pod->resource_claims)
        return "spec.resourceClaims (dynamic resource allocation) is not supported by this scheduler";
    return NULL;
}

static const char *for_member(const struct gang *g, const struct cluster_pod *member,
                              const char *why, struct arena *a)
{
    return gangs_is_lone(g) ? why
                            : arena_printf(a, "%s: pod %s: %s", g->key, member->pod->name, why);
}

/* A new count of existing pods is worth reporting; for a large gang only in steps, or n members
 * would get n updates each. */
static uint64_t waiting_class(const struct gang *g, const char *sentence)
{
    enum { STEPS = 32 };
    int64_t existing = gangs_count_existing(g);
    if (g->min_available <= STEPS || existing >= g->min_available)
        return str_hash(sentence, strlen(sentence));
    return 1 + (uint64_t)(existing * STEPS / g->min_available); /* 0 means "not reported yet" */
}

static void refuse(struct cycle_result *out, enum cycle_verdict verdict, const char *sentence,
                   uint64_t class, uint32_t wakes)
{
    *out = (struct cycle_result){
        .verdict = verdict, .sentence = sentence, .class = class, .wakes = wakes};
}

/* The first member by name that no node can help, or NULL. */
static const struct cluster_pod *find_problem(const struct gang *g, const char **why)
{
    const struct cluster_pod *first = NULL;
    for (size_t i = 0; i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        if (!cluster_pod_is_schedulable(cp) ||
            (first != NULL && strcmp(cp->pod->key, first->pod->key) > 0))
            continue;
        const char *problem = own_problem(cp);
        if (problem != NULL) {
            first = cp;
            *why = problem;
        }
    }
    return first;
}

static bool is_ready(const struct cluster *c, const struct gang *g, struct arena *a,
                     struct cycle_result *out)
{
    const char *why = NULL;
    if (!gangs_has_quorum(c, g, a, &why)) {
        refuse(out, CYCLE_WAITING, why, waiting_class(g, why), 0); /* its own change wakes it */
        return false;
    }
    const struct cluster_pod *member = find_problem(g, &why);
    if (member == NULL)
        return true;
    refuse(out, CYCLE_NO_CAPACITY, for_member(g, member, why, a), str_hash(why, strlen(why)), 0);
    return false;
}

/* Reports what another gang of the bundle lacks for g too. */
static bool are_others_ready(const struct cluster *c, const struct gang *g,
                             struct gang *const *bundle, size_t len, struct arena *a,
                             struct cycle_result *out)
{
    for (size_t i = 0; i < len; i++)
        if (bundle[i] != g && !is_ready(c, bundle[i], a, out)) {
            out->sentence =
                arena_printf(a, "%s waits for the gangs of its group: %s", g->key, out->sentence);
            return false;
        }
    return true;
}

/* A gang without its quorum holds nothing, nominations included. */
static void withdraw_all(struct gang *const *bundle, size_t len, struct arena *a,
                         struct cycle_result *out)
{
    size_t most = 0;
    for (size_t i = 0; i < len; i++)
        most += bundle[i]->members.len;
    out->nominations = arena_new(a, struct cycle_nomination, most);
    for (size_t i = 0; i < len; i++)
        for (size_t k = 0; k < bundle[i]->members.len; k++) {
            struct cluster_pod *cp = bundle[i]->members.items[k];
            if (cp->nominated != NULL && cluster_pod_is_schedulable(cp))
                out->nominations[out->nominations_len++] = (struct cycle_nomination){.pod = cp};
        }
}

static const char *explain(const struct placing *p, const struct gang *g, bool quorum)
{
    const struct placing_gang *stuck = p->stuck->gang;
    const char *why = reasons_sentence(p->why, p->arena);
    if (gangs_is_lone(stuck->gang) || quorum)
        why = for_member(stuck->gang, p->stuck->pod, why, p->arena);
    else
        why = arena_printf(p->arena, "%s: room for %d of %d pods; pod %s: %s", stuck->gang->key,
                           stuck->gang->min_available - stuck->missing + stuck->reported,
                           stuck->gang->min_available, p->stuck->pod->pod->name, why);
    return stuck->gang == g
               ? why
               : arena_printf(p->arena, "%s waits for the gangs of its group: %s", g->key, why);
}

/* Judges the real nodes with all members placed: they have no more free capacity than the first
 * bursting member saw. */
static void note_virtuals(const struct placing *p, struct cycle_result *out)
{
    const struct plan *plan = p->plan;
    if (p->cluster->virtual_nodes == 0)
        return;
    out->virtuals = arena_new(p->arena, struct cycle_virtual, plan->steps.len);
    for (size_t i = 0; i < plan->steps.len; i++) {
        struct cluster_pod *cp = plan->steps.items[i].pod;
        const char *why = virtual_explain(&p->ask, cp, plan->steps.items[i].node, p->arena);
        if (why != NULL)
            out->virtuals[out->virtuals_len++] = (struct cycle_virtual){.pod = cp, .sentence = why};
    }
}

/* placed: what is in the plan is kept. */
static void note_need(const struct placing *p, bool placed, struct cycle_result *out)
{
    for (size_t i = 0; i < p->members_len; i++)
        if (!placed || !p->members[i].placed)
            queue_need_add(&out->need, p->members[i].pod);
}

static void take_quorum(struct placing *p, struct gang *g, struct cycle_result *out)
{
    bool partly = gangs_has_waiting(g);
    out->verdict = CYCLE_PLACED;
    if (partly)
        refuse(out, CYCLE_PARTLY, explain(p, g, true), reasons_class(p->why), p->wakes);
    note_need(p, true, out);
    gang_preempt_withdraw(p, out);
    out->others = arena_new(p->arena, struct gang *, p->gangs_len);
    for (size_t i = 0; i < p->gangs_len; i++)
        if (p->gangs[i].gang != g)
            out->others[out->others_len++] = p->gangs[i].gang;
    note_virtuals(p, out);
    for (size_t i = 0; i < p->plan->steps.len; i++)
        topology_job_show(p->plan->steps.items[i].pod);
    cpu_lending_lend(&p->ask, p->plan, p->arena);
    plan_commit(p->plan);
}

/* false: try again with further units of the policies. */
static bool try_bundle(const struct pipeline *ask, struct gang *g, struct gang *const *bundle,
                       size_t len, bool last, struct plan *plan, struct arena *a,
                       struct cycle_result *out)
{
    struct placing p;
    bool done = true;
    placing_init(&p, ask, plan, a, bundle, len);
    bool quorum = placing_run(&p, !gang_preempt_is_awaited(&p));
    if (quorum && plan->steps.len > 0 && gangs_has_waiting(g) && !last) {
        plan_rollback(plan, 0); /* members beyond the quorum may use the next units */
        done = false;
    } else if (quorum && plan->steps.len > 0) {
        take_quorum(&p, g, out);
    } else {
        uint32_t again = !p.exact && placing_domains_could_fit(&p) ? EVENT_POD_PLACED : 0;
        if (!p.exact) /* a member that has a node may move out of the way of one that has none */
            again |= placing_wakes(&p);
        refuse(out, CYCLE_NO_CAPACITY, explain(&p, g, quorum), reasons_class(p.why),
               p.wakes | again);
        note_need(&p, false, out);
        p.ask.pool = p.pool; /* preempt in the pool it must stay in */
        gang_preempt_make(&p, out);
        done = last || out->awaits;
        if (!last) /* later units may be usable by then */
            out->wakes = EVENT_ALL;
    }
    out->cost = p.cost;
    placing_deinit(&p);
    return done;
}

/* Members whose policy says preemptPolicy: BeforeNextUnit first try their first unit alone, with
 * preemption there; then two units; and so on. All others are tried once. */
static void try_step_by_step(const struct pipeline *ask, struct gang *g, struct gang *const *bundle,
                             size_t len, struct plan *plan, struct arena *a,
                             struct cycle_result *out)
{
    struct pipeline limited = *ask;
    size_t steps = policies_steps(bundle, len);
    int64_t cost = 0;
    bool done = false;
    for (size_t step = 1; !done; step++) {
        bool last = step >= steps;
        *out = (struct cycle_result){.verdict = CYCLE_NOTHING};
        limited.units = last ? 0 : step;
        done = try_bundle(&limited, g, bundle, len, last, plan, a, out);
        cost += out->cost;
    }
    out->cost = cost;
}

void cycle_run(const struct pipeline *ask, struct gang *g, struct plan *plan, struct arena *a,
               struct cycle_result *out)
{
    struct cluster *c = ask->cluster;
    *out = (struct cycle_result){.verdict = CYCLE_NOTHING};
    if (!gangs_has_waiting(g))
        return;
    struct gang **bundle = &g;
    size_t len = 1;
    bool ready = is_ready(c, g, a, out);
    if (ready) {
        len = gangs_bundle(c, g, a, &bundle);
        ready = are_others_ready(c, g, bundle, len, a, out);
    }
    if (!ready) {
        withdraw_all(bundle, len, a, out);
        return;
    }
    gpu_prices_refresh(c);
    try_step_by_step(ask, g, bundle, len, plan, a, out);
}

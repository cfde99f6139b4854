// SPDX-License-Identifier: Apache-2.0
/*
 * Which units of its policy a pod may use now.
 *
 * Units are checked in order. A full one accepts no pod; whenTryNextUnits decides whether those
 * after it may be used:
 *
 *     LackResourceOrExceedMax        always: nodes of an earlier unit score above all others, so
 *                                    the next one is used only where no node of the earlier fits
 *     ExceedMax                      when it is full; a unit without a limit is skipped freely
 *     TimeoutOrExceedMax             the same, or when the pod has waited long enough: one timeout
 *                                    for each unit that is worth waiting for
 *     LackResourceAndNoTerminating   while none of the policy's pods in it is terminating, in any
 *                                    group: a rolling update changes the group
 *
 * Pods also wait for a unit without a limit if an autoscaler fills it (elastic, or podLabels for
 * it). The timeout runs from the creation of the pod or the policy, whichever is later: both are in
 * the API, so it survives restarts and is the same for every scheduler.
 *
 * The result is one bit per unit. Besides the node it is all that a plugin needs, so it is part of
 * the class text, and cached verdicts about nodes stay right while units fill and time passes.
 */
#include "scheduler/cache/policies.h"

#include <string.h>

#include "lib/base/num.h"
#include "scheduler/model/model.h"
#include "scheduler/cache/gangs.h"

enum { NS_PER_MS = 1000000 };

static int64_t used_of(int64_t live, int64_t leaving, bool ignore_leaving)
{
    return num_add_sat(live, ignore_leaving ? 0 : leaving);
}

static bool exceeds(int64_t want, int64_t used, int64_t most)
{
    return want > 0 && num_add_sat(used, want) > most;
}

/* Whether the pod would exceed the unit's resource limits. */
static bool lacks_resources(const struct policies_group *g, size_t unit,
                            const struct cluster_pod *cp)
{
    const struct policies_entry *e = g->of;
    const struct policy_unit *u = &e->policy->units[unit];
    const struct resource_vector *most = &e->limits[unit], *live = &g->counts[unit].live.used,
                                 *leaving = &g->counts[unit].leaving.used, *want = &cp->request;
    bool ignore = e->policy->ignore_terminating;
    const struct {
        uint8_t has;
        int64_t want, live, leaving, most;
    } plain[] = {
        {RESOURCES_HAS_CPU, want->cpu_milli, live->cpu_milli, leaving->cpu_milli, most->cpu_milli},
        {RESOURCES_HAS_MEMORY, want->memory_bytes, live->memory_bytes, leaving->memory_bytes,
         most->memory_bytes},
        {RESOURCES_HAS_EPHEMERAL, want->ephemeral_bytes, live->ephemeral_bytes,
         leaving->ephemeral_bytes, most->ephemeral_bytes},
        {RESOURCES_HAS_PODS, want->pods, live->pods, leaving->pods, most->pods}};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if ((u->max_resources.has & plain[i].has) &&
            exceeds(plain[i].want, used_of(plain[i].live, plain[i].leaving, ignore), plain[i].most))
            return true;
    for (uint32_t i = 0; i < most->extra_len; i++) {
        int64_t has = 0, goes = 0, asked = 0;
        (void)resource_vector_get(live, most->extra[i].id, &has);
        (void)resource_vector_get(leaving, most->extra[i].id, &goes);
        (void)resource_vector_get(want, most->extra[i].id, &asked);
        if (exceeds(asked, used_of(has, goes, ignore), most->extra[i].value))
            return true;
    }
    return false;
}

static int64_t count_pods(const struct policies_group *g, size_t unit)
{
    const struct policies_count *n = &g->counts[unit];
    return used_of(n->live.pods, n->leaving.pods, g->of->policy->ignore_terminating);
}

static bool is_at_max(const struct policies_group *g, size_t unit)
{
    int64_t max = g->of->policy->units[unit].max;
    return max >= 0 && count_pods(g, unit) >= max;
}

static bool is_full(const struct policies_group *g, size_t unit, const struct cluster_pod *cp)
{
    return is_at_max(g, unit) ||
           (g->of->policy->units[unit].has_max_resources && lacks_resources(g, unit, cp));
}

static int64_t since_ns(const struct policy *p, const struct cluster_pod *cp)
{
    return num_max(p->created_ns, cp->pod->created_ns);
}

/* When the pod stops waiting for the n-th unit that is worth waiting for. */
static int64_t due_ns(const struct policy *p, const struct cluster_pod *cp, int64_t n)
{
    int64_t ms = 0, ns = 0;
    if (!num_mul(p->timeout_ms, n, &ms) || !num_mul(ms, NS_PER_MS, &ns))
        return INT64_MAX;
    return num_add_sat(since_ns(p, cp), ns);
}

struct walk {
    const struct policies_group *group;
    const struct cluster_pod *pod;
    int64_t now_ns;
    int64_t waited; /* units so far that are worth waiting for */
    int64_t due_ns; /* timeout of the unit that stopped the walk; 0: no timeout did */
};

/* Whether the units after this one may be used. */
static bool passes(struct walk *w, size_t unit, bool full)
{
    const struct policy *p = w->group->of->policy;
    const struct policy_unit *u = &p->units[unit];
    bool waits = !full && (u->max >= 0 || u->has_max_resources || u->awaited);
    switch (p->when) {
    case POLICY_LACK_OR_MAX:
        return true;
    case POLICY_MAX:
        return !waits;
    case POLICY_LACK_AND_NO_TERMINATING:
        return w->group->of->leaving[unit] == 0;
    case POLICY_TIMEOUT_OR_MAX:
        break;
    }
    if (!waits)
        return true;
    int64_t due = due_ns(p, w->pod, ++w->waited);
    if (w->now_ns >= due)
        return true;
    w->due_ns = due;
    return false;
}

static struct walk begin(const struct cluster *c, const struct cluster_pod *cp)
{
    return (struct walk){.group = cp->membership.group, .pod = cp, .now_ns = c->policies->now_ns};
}

static bool preempts_before_next(const struct policy *p)
{
    return p->preempt_before_next && p->units_len > 1;
}

struct policies_view policies_view_of(const struct cluster *c, const struct cluster_pod *cp,
                                      size_t units)
{
    const struct policy_membership *s = &cp->membership;
    struct policies_view v = {.open = UINT64_MAX, .stop = UINT8_MAX};
    if (s->group == NULL)
        return v;
    v.first = preempts_before_next(s->group->of->policy) ? (uint8_t)units : 0;
    v.open = 0;
    if (s->lacks != NULL)
        return v;
    struct walk w = begin(c, cp);
    size_t all = s->group->of->policy->units_len;
    size_t len = v.first > 0 && v.first < all ? v.first : all;
    for (size_t i = 0; i < len; i++) {
        bool full = is_full(s->group, i, cp);
        v.open |= full ? 0 : (uint64_t)1 << i;
        v.at_max |= is_at_max(s->group, i) ? (uint64_t)1 << i : 0;
        if (i + 1 < all && (!passes(&w, i, full) || i + 1 == len)) {
            v.stop = (uint8_t)i;
            break;
        }
    }
    return v;
}

int32_t policies_unit_on(const struct cluster_pod *cp, uint64_t open,
                         const struct cluster_node *node)
{
    const struct policy *p = cp->membership.group->of->policy;
    for (size_t i = 0; node->node != NULL && i < p->units_len; i++)
        if (((open >> i) & 1) != 0 &&
            policy_unit_has_node(&p->units[i], &node->node->labels, node->is_virtual))
            return (int32_t)i;
    return POLICIES_NO_UNIT;
}

void policies_set_now(struct cluster *c, int64_t now_ns)
{
    c->policies->now_ns = now_ns;
}

static int64_t pod_due_ns(const struct cluster *c, const struct cluster_pod *cp)
{
    const struct policy_membership *s = &cp->membership;
    if (s->group == NULL || s->group->of->policy->when != POLICY_TIMEOUT_OR_MAX)
        return 0;
    struct walk w = begin(c, cp);
    for (size_t i = 0; i + 1 < s->group->of->policy->units_len; i++)
        if (!passes(&w, i, is_full(s->group, i, cp)))
            break;
    return w.due_ns;
}

int64_t policies_due_ns(const struct cluster *c, const struct gang *g)
{
    int64_t first = 0;
    for (size_t i = 0; map_count(&c->policies->entries) > 0 && i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        int64_t due = cluster_pod_is_schedulable(cp) ? pod_due_ns(c, cp) : 0;
        if (due > 0 && (first == 0 || due < first))
            first = due;
    }
    return first;
}

size_t policies_steps(struct gang *const *gangs, size_t len)
{
    size_t steps = 1;
    for (size_t i = 0; i < len; i++)
        for (size_t k = 0; k < gangs[i]->members.len; k++) {
            const struct cluster_pod *cp = gangs[i]->members.items[k];
            const struct policy *p = policies_of(cp);
            if (p != NULL && preempts_before_next(p) && p->units_len > steps &&
                cluster_pod_is_schedulable(cp))
                steps = p->units_len;
        }
    return steps;
}

/* "is at its max of 2 pods" */
static const char *why_full(const struct policy_unit *u, bool at_max, struct arena *a)
{
    AUTO_STRBUF limits = {0};
    if (at_max)
        return arena_printf(a, "is at its max of %lld pods", (long long)u->max);
    resources_print(&u->max_resources, &limits);
    return arena_printf(a, "has too little left of its maxResources (%s)", strbuf_str(&limits));
}

/* Why the units after this one are not used. */
static const char *why_stop(const struct policy *p, size_t unit, bool narrowed, struct arena *a)
{
    if (narrowed)
        return arena_printf(a, "room is made in units[%zu] first", unit);
    switch (p->when) {
    case POLICY_LACK_AND_NO_TERMINATING:
        return arena_printf(a, "pods are terminating in units[%zu]", unit);
    case POLICY_TIMEOUT_OR_MAX:
        return arena_printf(a, "units[%zu] is waited for, at most %lld s", unit,
                            (long long)(p->timeout_ms + 999) / 1000);
    case POLICY_MAX:
    case POLICY_LACK_OR_MAX:
        break;
    }
    return arena_printf(a, "units[%zu] is not full", unit);
}

const char *policies_why_not(const struct cluster_pod *cp, const struct policies_view *v,
                             const struct cluster_node *node, struct arena *a)
{
    const struct policy *p = cp->membership.group->of->policy;
    int32_t unit = policies_unit_on(cp, UINT64_MAX, node);
    if (unit == POLICIES_NO_UNIT)
        return arena_printf(a, "in no unit of ResourcePolicy %s", p->object.name);
    const char *why;
    if (unit > (int32_t)v->stop)
        why = arena_printf(a, "is closed: %s", why_stop(p, v->stop, v->first == v->stop + 1, a));
    else
        why = why_full(&p->units[unit], (v->at_max >> unit) & 1, a);
    return arena_printf(a, "in units[%d] of ResourcePolicy %s, which %s", (int)unit, p->object.name,
                        why);
}

const char *policies_why_shut(const struct cluster *c, const struct cluster_pod *cp, size_t unit,
                              struct arena *a)
{
    const struct policy *p = cp->membership.group->of->policy;
    struct policies_view v = policies_view_of(c, cp, 0);
    if (cp->membership.lacks != NULL)
        return arena_printf(a, "is closed: pods have no label %s", cp->membership.lacks);
    if (unit > v.stop)
        return arena_printf(a, "is closed: %s", why_stop(p, v.stop, false, a));
    return ((v.open >> unit) & 1) == 0 ? why_full(&p->units[unit], (v.at_max >> unit) & 1, a)
                                       : NULL;
}

// SPDX-License-Identifier: Apache-2.0
/* Nothing is recorded when a pod skips a unit. The reason is computed from the current state for a
 * sample pod, so it is the same after a restart and disappears when it no longer holds. The sample
 * is the first waiting pod, or else the newest pod that the policy placed in a later unit. It is
 * tried on the nodes of the unit as if it were not placed yet. */
#include "scheduler/cycle/policies_lines.h"

#include <string.h>

#include "scheduler/cache/cluster.h"
#include "scheduler/cache/policies.h"
#include "scheduler/cycle/plan.h"
#include "scheduler/framework/pipeline.h"

struct witnesses {
    struct cluster_pod *waiting;                  /* NULL: no pod waits */
    struct cluster_pod *newest[POLICY_UNITS_MAX]; /* placed by the policy, by unit; or NULL */
};

/* By group and name. */
static bool comes_first(const struct cluster_pod *a, const struct cluster_pod *b)
{
    if (b == NULL)
        return true;
    int order = strcmp(a->membership.group->key, b->membership.group->key);
    return order < 0 || (order == 0 && strcmp(a->pod->key, b->pod->key) < 0);
}

static bool is_newer(const struct cluster_pod *a, const struct cluster_pod *b)
{
    if (b == NULL || a->pod->created_ns != b->pod->created_ns)
        return b == NULL || a->pod->created_ns > b->pod->created_ns;
    return strcmp(a->pod->key, b->pod->key) > 0;
}

/* A pod that no node can help says nothing about units. */
static bool can_tell(const struct cluster_pod *cp)
{
    return plugin_own_problem(cp) == NULL;
}

static void find_witnesses(const struct policies_entry *e, struct witnesses *w)
{
    for (size_t i = 0; i < e->members.len; i++) {
        struct cluster_pod *cp = e->members.items[i];
        const struct policy_membership *s = &cp->membership;
        if (cluster_pod_is_schedulable(cp)) {
            if (can_tell(cp) && comes_first(cp, w->waiting))
                w->waiting = cp;
        } else if (s->held && !s->previous && !s->leaving && can_tell(cp) &&
                   is_newer(cp, w->newest[s->unit])) {
            w->newest[s->unit] = cp;
        }
    }
}

static struct cluster_pod *witness_of(const struct witnesses *w, size_t unit, size_t units)
{
    struct cluster_pod *newest = NULL;
    if (w->waiting != NULL)
        return w->waiting;
    for (size_t i = unit + 1; i < units; i++)
        if (w->newest[i] != NULL && is_newer(w->newest[i], newest))
            newest = w->newest[i];
    return newest;
}

/* "0/2 of its nodes fit: ..."; NULL: one does. */
static const char *tally(const struct pipeline *p, struct cluster_pod *cp,
                         const struct policy_unit *u, struct arena *a)
{
    const struct cluster *c = p->cluster;
    struct plugin_ask ask = pipeline_ask(p, cp);
    struct reasons *why = arena_new(a, struct reasons, 1);
    reasons_init(why);
    why->of = "of its nodes";
    for (uint32_t i = 0; i < c->table->len; i++) {
        const struct cluster_node *node = c->table->rows[i].node;
        struct reason no = {0};
        if (node->node == NULL || !policy_unit_has_node(u, &node->node->labels, node->is_virtual))
            continue;
        if (plugin_refusing(&ask, node, a, &no) == NULL)
            return NULL;
        reasons_add(why, &no, node->name);
    }
    return why->nodes > 0 ? reasons_sentence(why, a) : "has no node";
}

static const char *why_lacking(const struct pipeline *ask, struct cluster_pod *cp, size_t unit,
                               struct arena *a)
{
    struct plan trial;
    plan_begin(&trial, ask->cluster);
    if (cp->on != NULL) /* or it might obstruct itself */
        (void)plan_evict(&trial, cp);
    const char *why = tally(ask, cp, &cp->membership.group->of->policy->units[unit], a);
    plan_end(&trial);
    return why;
}

static const struct policies_entry *entry_of(const struct cluster *c, const struct policy *p)
{
    return p->invalid == NULL ? map_get(&c->policies->entries, p->object.key) : NULL;
}

struct policies_look policies_lines_look(const struct pipeline *ask, const struct policy *p,
                                         size_t unit, struct arena *a)
{
    struct cluster *c = ask->cluster;
    const struct policies_entry *e = entry_of(c, p);
    struct policies_look look = {0};
    struct witnesses w = {0};
    if (e == NULL)
        return look;
    look.looks = e->members.len;
    find_witnesses(e, &w);
    struct cluster_pod *cp = witness_of(&w, unit, p->units_len);
    if (cp == NULL)
        return look;
    look.skipped = policies_why_shut(c, cp, unit, a);
    if (look.skipped != NULL)
        return look;
    look.looks += c->table->len;
    look.skipped = why_lacking(ask, cp, unit, a);
    return look;
}

size_t policies_lines_of(const struct cluster *c, const struct policy *p,
                         const char *const *skipped, struct arena *a, struct policies_line **out,
                         int64_t *waiting)
{
    const struct policies_entry *e = entry_of(c, p);
    *waiting = 0;
    for (size_t i = 0; e != NULL && i < e->members.len; i++)
        *waiting += cluster_pod_is_schedulable(e->members.items[i]);
    *out = arena_new(a, struct policies_line, p->units_len);
    for (size_t i = 0; i < p->units_len; i++)
        (*out)[i] = (struct policies_line){.unit = (int32_t)i,
                                           .resource = policy_resource_name(p->units[i].resource),
                                           .pods = e != NULL ? e->placed[i] : 0,
                                           .terminating = e != NULL ? e->leaving[i] : 0,
                                           .max = p->units[i].max,
                                           .skipped = skipped[i]};
    return p->units_len;
}

size_t policies_lines(const struct pipeline *ask, const struct policy *p, struct arena *a,
                      struct policies_line **out, int64_t *waiting)
{
    const char **skipped = arena_new(a, const char *, p->units_len);
    for (size_t i = 0; i < p->units_len; i++)
        skipped[i] = policies_lines_look(ask, p, i, a).skipped;
    return policies_lines_of(ask->cluster, p, skipped, a, out, waiting);
}

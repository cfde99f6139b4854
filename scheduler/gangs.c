// SPDX-License-Identifier: Apache-2.0
/*
 * A gang comes into being with its first member and goes with its last. The size rule comes from the members (label and koordinator forms) or from the
 * PodGroup object; a PodGroup without members is only remembered.
 */
#include "scheduler/gangs.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

bool gangs_is_lone(const struct gang *g)
{
    return g->form == GANG_NONE;
}

static void key_of(const struct pod *p, const struct gang_ref *ref, struct strbuf *out)
{
    if (ref->form == GANG_NONE)
        strbuf_addf(out, "pod %s", p->key);
    else
        strbuf_addf(out, "gang %s/%s", p->ns, ref->name);
}

/* A gang form that is not legal makes the pod a lone one that waits with the reason: see gangs_has_quorum. */
static void ref_of(const struct pod *p, struct gang_ref *ref)
{
    struct error err = ERROR_INIT;
    if (gang_of_pod(p, ref, &err) < 0)
        *ref = (struct gang_ref){.form = GANG_NONE};
}

static const char *name_in_key(const struct gang *g)
{
    return g->key + strlen("gang ");
}

const struct pod_group *gangs_group_of(const struct cluster *c, const struct gang *g)
{
    const struct cluster_groups *both =
        gangs_is_lone(g) ? NULL : map_get(&c->pod_groups, name_in_key(g));
    return both == NULL ? NULL : both->sigs != NULL ? both->sigs : both->x;
}

static bool is_leaving(const struct cluster_pod *cp)
{
    return cp->pod->terminating || cp->state == CLUSTER_FINISHED;
}

/* The size rule, priority and age, from the members and the PodGroup as they are now. A member's own number comes before a PodGroup of the same name, as in the
 * contract's order; members that are leaving have no say. Where numbers differ the result does not depend on who came first: the largest, and the smallest
 * as the conflict. */
static void refresh(struct cluster *c, struct gang *g)
{
    const struct pod_group *group = gangs_group_of(c, g);
    int32_t least = 0, most = 0;
    g->priority = INT32_MIN;
    g->since_ns = INT64_MAX;
    for (size_t i = 0; i < g->members.len; i++) {
        const struct pod *p = g->members.items[i]->pod;
        struct gang_ref ref;
        ref_of(p, &ref);
        int32_t min = ref.min_available > 0 ? ref.min_available
                      : group != NULL       ? (group->min_member > 0 ? group->min_member : 1)
                                            : 0;
        if (min > 0 && !is_leaving(g->members.items[i])) {
            least = least == 0 || min < least ? min : least;
            most = min > most ? min : most;
        }
        if (p->priority > g->priority)
            g->priority = p->priority;
        if (p->created_ns < g->since_ns)
            g->since_ns = p->created_ns;
    }
    g->min_available = gangs_is_lone(g) ? 1 : most;
    g->min_conflict = least != most ? least : 0;
}

static uint32_t changed(struct cluster *c, struct gang *g, const struct cluster_hooks *hooks)
{
    refresh(c, g);
    bool waiting = false;
    for (size_t i = 0; i < g->members.len && !waiting; i++)
        waiting = cluster_pod_is_schedulable(g->members.items[i]);
    if (hooks != NULL && waiting)
        hooks->gang_changed(hooks->arg, g);
    return waiting ? EVENT_GANG : 0;
}

uint32_t gangs_refresh(struct cluster *c, struct gang *g, const struct cluster_hooks *hooks)
{
    return changed(c, g, hooks);
}

uint32_t gangs_join(struct cluster *c, struct cluster_pod *cp, const struct cluster_hooks *hooks)
{
    struct gang_ref ref;
    ref_of(cp->pod, &ref);
    AUTO_STRBUF key = {0};
    key_of(cp->pod, &ref, &key);
    struct gang *g = map_get(&c->gangs, strbuf_str(&key));
    if (g == NULL) {
        g = mem_new(struct gang, 1);
        g->form = ref.form;
        g->key = strbuf_take(&key);
        map_put(&c->gangs, g->key, g);
    }
    cp->gang = g;
    vec_push(&g->members, cp);
    return changed(c, g, hooks);
}

static void gang_free(struct gang *g)
{
    vec_deinit(&g->members);
    free(g->why.sentence);
    free(g->key);
    free(g);
}

uint32_t gangs_leave(struct cluster *c, struct cluster_pod *cp, const struct cluster_hooks *hooks)
{
    struct gang *g = cp->gang;
    cp->gang = NULL;
    for (size_t i = 0; i < g->members.len; i++)
        if (g->members.items[i] == cp) {
            vec_remove_swap(&g->members, i);
            break;
        }
    if (g->members.len > 0)
        return changed(c, g, hooks);
    if (hooks != NULL)
        hooks->gang_vanishing(hooks->arg, g);
    map_remove(&c->gangs, g->key);
    gang_free(g);
    return 0;
}

static bool same_gang_fields(const struct pod *a, const struct pod *b)
{
    struct gang_ref x, y;
    ref_of(a, &x);
    ref_of(b, &y);
    return x.form == y.form && x.min_available == y.min_available && str_eq(x.name, y.name);
}

static bool tolerations_equal(const struct pod *a, const struct pod *b)
{
    if (a->tolerations_len != b->tolerations_len)
        return false;
    for (size_t i = 0; i < a->tolerations_len; i++) {
        const struct toleration *x = &a->tolerations[i], *y = &b->tolerations[i];
        if (x->op != y->op || x->effect != y->effect || !str_eq(x->key, y->key) ||
            !str_eq(x->value, y->value))
            return false;
    }
    return true;
}

/* Whether a try could end otherwise than the last one. A condition of a waiting pod is often our own write coming back: nothing to try again for. What cannot
 * change without a gate (selectors, affinity) need not be looked at. */
static bool matters(const struct pod *old, const struct pod *now)
{
    return old->gated != now->gated || old->terminating != now->terminating ||
           old->priority != now->priority || old->phase != now->phase ||
           !str_eq(old->node, now->node) || !resources_equal(&old->request, &now->request) ||
           !cluster_labels_equal(&old->labels, &now->labels) ||
           !cluster_labels_equal(&old->annotations, &now->annotations) ||
           !tolerations_equal(old, now);
}

uint32_t gangs_member_changed(struct cluster *c, struct cluster_pod *cp, const struct pod *old,
                              const struct cluster_hooks *hooks)
{
    bool ours = str_eq(cp->pod->scheduler, c->scheduler_name);
    uint32_t events = 0;
    if (cp->gang != NULL && (!ours || !same_gang_fields(old, cp->pod)))
        events = gangs_leave(c, cp, hooks);
    if (!ours)
        return events;
    if (cp->gang == NULL)
        return events | gangs_join(c, cp, hooks);
    return matters(old, cp->pod) ? changed(c, cp->gang, hooks) : 0;
}

struct gang *gangs_find(const struct cluster *c, const char *key)
{
    AUTO_STRBUF gang_key = {0};
    strbuf_addf(&gang_key, "gang %s", key);
    return map_get(&c->gangs, strbuf_str(&gang_key));
}

static uint32_t group_changed(struct cluster *c, const char *key, const struct cluster_hooks *hooks)
{
    struct gang *g = gangs_find(c, key);
    return g != NULL ? changed(c, g, hooks) : 0;
}

static struct pod_group **half(struct cluster_groups *both, bool x_group)
{
    return x_group ? &both->x : &both->sigs;
}

static void groups_free(struct cluster_groups *both)
{
    pod_group_free(both->sigs);
    pod_group_free(both->x);
    free(both->key);
    free(both);
}

/* Whether a gang may end otherwise. A status is often our own write coming back: nothing to try again for. */
static bool group_matters(const struct pod_group *old, const struct pod_group *now)
{
    return old == NULL || !str_eq(old->uid, now->uid) || old->min_member != now->min_member ||
           old->schedule_timeout_s != now->schedule_timeout_s;
}

uint32_t cluster_put_pod_group(struct cluster *c, struct pod_group *g,
                               const struct cluster_hooks *hooks)
{
    struct cluster_groups *both = map_get(&c->pod_groups, g->key);
    if (both == NULL) {
        both = mem_new(struct cluster_groups, 1);
        both->key = mem_strdup(g->key);
        map_put(&c->pod_groups, both->key, both);
    }
    struct pod_group **place = half(both, g->x_group);
    bool matters_now = group_matters(*place, g);
    pod_group_free(*place);
    *place = g;
    return matters_now ? group_changed(c, both->key, hooks) : 0;
}

uint32_t cluster_remove_pod_group(struct cluster *c, const char *key, bool x_group,
                                  const struct cluster_hooks *hooks)
{
    struct cluster_groups *both = map_get(&c->pod_groups, key);
    if (both == NULL || *half(both, x_group) == NULL)
        return 0;
    pod_group_free(*half(both, x_group));
    *half(both, x_group) = NULL;
    uint32_t events = group_changed(c, both->key, hooks);
    if (both->sigs == NULL && both->x == NULL) {
        map_remove(&c->pod_groups, both->key);
        groups_free(both);
    }
    return events;
}

void gangs_deinit(struct cluster *c)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&c->gangs, &i, &key, &value);)
        gang_free(value);
    for (size_t i = 0; map_next(&c->pod_groups, &i, &key, &value);)
        groups_free(value);
    map_deinit(&c->gangs);
    map_deinit(&c->pod_groups);
}

int32_t gangs_count_existing(const struct gang *g)
{
    int32_t n = 0;
    for (size_t i = 0; i < g->members.len; i++)
        n += !g->members.items[i]->pod->gated && !g->members.items[i]->pod->terminating;
    return n;
}

int32_t gangs_count_placed(const struct gang *g)
{
    int32_t n = 0;
    for (size_t i = 0; i < g->members.len; i++)
        n += (g->members.items[i]->on != NULL || g->members.items[i]->state == CLUSTER_FINISHED) &&
             !g->members.items[i]->pod->terminating;
    return n;
}

int32_t gangs_count_missing(const struct gang *g)
{
    int32_t placed = gangs_count_placed(g);
    return placed < g->min_available ? g->min_available - placed : 0;
}

bool gangs_has_quorum(const struct cluster *c, const struct gang *g, struct arena *a,
                      const char **why)
{
    (void)c;
    if (gangs_is_lone(g)) {
        struct gang_ref ref;
        struct error err = ERROR_INIT;
        if (gang_of_pod(g->members.items[0]->pod, &ref, &err) == 0)
            return true;
        *why = arena_strdup(a, err.text);
        return false;
    }
    if (g->min_available == 0) {
        *why = arena_printf(a, "PodGroup %s does not exist", name_in_key(g));
        return false;
    }
    if (g->min_conflict != 0) {
        *why = arena_printf(a, "members of gang %s disagree on its size: %d and %d", name_in_key(g),
                            g->min_available, g->min_conflict);
        return false;
    }
    int32_t existing = gangs_count_existing(g);
    if (existing >= g->min_available)
        return true;
    *why = arena_printf(a, "gang %s: %d of %d pods %s", name_in_key(g), existing, g->min_available,
                        existing == 1 ? "exists" : "exist");
    return false;
}

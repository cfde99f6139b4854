// SPDX-License-Identifier: Apache-2.0
/*
 * Groups of pods, and the counts. policies_index.c finds pods and policies, policies_change.c
 * changes policies, policies_units.c decides which units are open; policies_writes.c has what is
 * written and reported.
 *
 * The counts follow the cluster's hold and release (cluster.c). Each pod records what it was
 * counted as, so the same is subtracted, whatever changed meanwhile.
 */
#include "scheduler/cache/policies_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/model/names.h"
#include "scheduler/model/model.h"
#include "scheduler/model/api_objects.h"

void policies_init(struct policies *ps)
{
    *ps = (struct policies){0};
    map_init(&ps->entries);
    map_init(&ps->groups);
    map_init(&ps->spaces_by_name);
    map_init(&ps->deferred);
}

static void tally_deinit(struct policies_tally *t)
{
    resource_vector_deinit(&t->used);
}

static void group_free(struct policies_group *g)
{
    for (size_t i = 0; i < g->of->policy->units_len; i++) {
        tally_deinit(&g->counts[i].live);
        tally_deinit(&g->counts[i].leaving);
    }
    free(g->counts);
    free(g->key);
    free(g->lacks);
    free(g);
}

void policies_entry_free(struct policies_entry *e)
{
    assert(e->groups == 0 && e->members.len == 0);
    vec_deinit(&e->members);
    free(e->limits);
    free(e->placed);
    free(e->leaving);
    free(e->pairs);
    free(e->key);
    free(e);
}

/* Must run before the objects are freed: groups read their number of units from their policy. */
void policies_deinit(struct policies *ps)
{
    const char *key;
    void *value;
    policies_change_deinit(ps);
    for (size_t i = 0; map_next(&ps->groups, &i, &key, &value);)
        group_free(value);
    map_deinit(&ps->groups);
    for (size_t i = 0; map_next(&ps->entries, &i, &key, &value);) {
        struct policies_entry *e = value;
        e->groups = e->members.len = 0; /* the pods are gone */
        policies_entry_free(e);
    }
    map_deinit(&ps->entries);
    policies_index_deinit(ps);
}

const char *policies_others(const struct cluster *c, const struct cluster_pod *cp, struct arena *a)
{
    enum { NAMED = 8 };
    struct policies_entry *all[NAMED + 2]; /* its own too, and one that is not named */
    const struct policy *holds = policies_of(cp);
    bool several = holds != NULL && cp->membership.space->entries > 1;
    size_t len = several ? policies_index_all(c->policies, cp, NAMED + 2, all) : 0;
    size_t named = 0;
    AUTO_STRBUF names = {0};
    for (size_t i = 0; i < len; i++) {
        const struct policy *p = all[i]->policy;
        if (p == holds)
            continue;
        if (named++ < NAMED)
            strbuf_addf(&names, "%s%s", names.len > 0 ? ", " : "", p->object.name);
    }
    if (named > NAMED)
        strbuf_adds(&names, " and more");
    return names.len > 0 ? arena_strndup(a, names.ptr, names.len) : NULL;
}

static struct policies_group *group_for(struct policies *ps, struct policies_entry *e,
                                        const struct pod *pod)
{
    const struct policy *p = e->policy;
    const char *lacks = NULL;
    AUTO_STRBUF key = {0};
    strbuf_adds(&key, p->object.key);
    for (size_t i = 0; i < p->match_keys_len; i++) {
        const char *value = labels_get(&pod->labels, p->match_keys[i]);
        if (value == NULL && lacks == NULL)
            lacks = p->match_keys[i];
        strbuf_addf(&key, "\n%s%s", value != NULL ? "=" : "-", str_or_empty(value));
    }
    struct policies_group *g = map_get(&ps->groups, strbuf_str(&key));
    if (g != NULL)
        return g;
    g = mem_new(struct policies_group, 1);
    g->key = mem_strdup(strbuf_str(&key));
    g->lacks = lacks != NULL ? mem_strdup(lacks) : NULL;
    g->of = e;
    g->counts = mem_new(struct policies_count, p->units_len);
    map_put(&ps->groups, g->key, g);
    e->groups++;
    return g;
}

static void leave_group(struct cluster *c, struct cluster_pod *cp)
{
    struct policies_group *g = cp->membership.group;
    size_t at = cp->membership.place;
    if (g == NULL)
        return;
    assert(!cp->membership.held);
    struct policies_entry *e = g->of;
    cp->membership.group = NULL;
    vec_remove_swap(&e->members, at);
    if (at < e->members.len)
        e->members.items[at]->membership.place = at;
    if (--g->pods > 0)
        return;
    (void)map_remove(&c->policies->groups, g->key);
    e->groups--;
    group_free(g);
}

static void freshen(struct cluster_pod *cp)
{
    struct policies_space *space = cp->membership.space;
    size_t at = cp->membership.place;
    vec_remove_swap(&space->stale, at);
    if (at < space->stale.len)
        space->stale.items[at]->membership.place = at;
    cp->membership.stale = false;
}

void policies_set_stale(struct cluster *c, struct cluster_pod *cp)
{
    struct policy_membership *s = &cp->membership;
    c->policies->moves += s->held;
    policies_release(c, cp);
    leave_group(c, cp);
    cp->version++;
    s->lacks = NULL;
    s->stale = true;
    s->place = s->space->stale.len;
    vec_push(&s->space->stale, cp);
}

void policies_leave(struct cluster *c, struct cluster_pod *cp)
{
    if (cp->membership.stale)
        freshen(cp);
    leave_group(c, cp);
    policies_index_leave(c->policies, cp);
}

static void join_entry(struct cluster *c, struct cluster_pod *cp, struct policies_entry *e)
{
    struct policy_membership *s = &cp->membership;
    struct policies_group *g = e != NULL ? group_for(c->policies, e, cp->pod) : NULL;
    s->lacks = g != NULL ? g->lacks : NULL;
    if (g == s->group)
        return;
    cp->version++;
    if (g != NULL)
        g->pods++;
    leave_group(c, cp);
    s->group = g;
    if (g == NULL)
        return;
    s->place = e->members.len;
    vec_push(&e->members, cp);
}

/* A placed pod's unit may now belong to another policy: see policies_read. */
void policies_join(struct cluster *c, struct cluster_pod *cp)
{
    if (cp->membership.space == NULL)
        policies_index_enter(c->policies, cp);
    else
        policies_index_follow(cp);
    if (!cp->membership.stale)
        join_entry(c, cp, policies_index_entry(c->policies, cp));
}

static bool unit_has(const struct policy *p, int32_t unit, const struct cluster_node *on)
{
    return policy_unit_has_node(&p->units[unit], &on->node->labels, on->is_virtual);
}

/* "policy/unit/uid"; false: malformed. */
static bool read_unit(const char *text, uint64_t *by, int64_t *unit)
{
    struct error err = ERROR_INIT;
    const char *slash = text != NULL ? strchr(text, '/') : NULL;
    const char *end = slash != NULL ? strchr(slash + 1, '/') : NULL;
    if (end == NULL || num_parse(slash + 1, (size_t)(end - slash - 1), unit, &err) < 0)
        return false;
    *by = str_hash(end + 1, strlen(end + 1));
    return *unit >= 0 && *unit < POLICY_UNITS_MAX;
}

static int32_t first_unit_on(const struct policy *p, const struct cluster_pod *cp,
                             const struct cluster_node *on, bool previous)
{
    for (size_t i = 0; on->node != NULL && i < p->units_len; i++)
        if (unit_has(p, (int32_t)i, on) && (!previous || policy_unit_is_on(&p->units[i], cp->pod)))
            return (int32_t)i;
    return POLICIES_NO_UNIT;
}

/* The unit that policy `by` assigned stays while it exists and selects the node. */
static void join_policy(struct cluster_pod *cp, uint64_t by, int64_t unit,
                        const struct cluster_node *on)
{
    struct policy_membership *s = &cp->membership;
    const struct policy *p = s->group->of->policy;
    s->previous = by != str_hash(p->object.uid, strlen(p->object.uid));
    bool holds = !s->previous && unit >= 0 && (size_t)unit < p->units_len &&
                 (on->node == NULL || unit_has(p, (int32_t)unit, on));
    s->unit = holds ? (int32_t)unit : first_unit_on(p, cp, on, s->previous);
}

void policies_read(struct cluster_pod *cp, const struct cluster_node *on)
{
    struct policy_membership *s = &cp->membership;
    int64_t unit = s->unit;
    if (s->stale) /* read when it joins: an assumed pod's unit is nowhere else */
        return;
    if (s->group == NULL) {
        policies_forget(cp);
        return;
    }
    bool written = cp->state != CLUSTER_ASSUMED; /* an assumed pod has no annotation yet */
    if (written)
        s->by = 0;
    if (written && !read_unit(labels_get(&cp->pod->annotations, NAME_ANN_UNIT), &s->by, &unit))
        unit = POLICIES_NO_UNIT;
    join_policy(cp, s->by, unit, on);
}

void policies_assume(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on)
{
    struct policy_membership *s = &cp->membership;
    s->unit = POLICIES_NO_UNIT;
    if (s->group == NULL)
        return;
    const char *uid = s->group->of->policy->object.uid;
    s->by = str_hash(uid, strlen(uid));
    s->previous = false;
    s->unit = policies_unit_on(cp, policies_view_of(c, cp, 0).open, on);
}

void policies_forget(struct cluster_pod *cp)
{
    cp->membership.unit = POLICIES_NO_UNIT;
    cp->membership.by = 0;
}

static struct policies_tally *tally_of(const struct policy_membership *s)
{
    struct policies_count *count = &s->group->counts[s->unit];
    return s->leaving ? &count->leaving : &count->live;
}

static bool is_limited(const struct policy_unit *u)
{
    return u->max >= 0 || u->has_max_resources;
}

/* Pods may wait for a unit to become full, to use the next one; and a terminating pod may leave the
 * count before it frees capacity. */
static void note_events(struct cluster *c, const struct policy_membership *s)
{
    const struct policy *p = s->group->of->policy;
    bool opens = p->when == POLICY_MAX || p->when == POLICY_TIMEOUT_OR_MAX;
    if ((opens && is_limited(&p->units[s->unit])) || s->leaving)
        c->policies->events |= EVENT_UNIT;
}

/* The pod is older than the policy. A younger one without a unit was placed by another scheduler,
 * or by us before we knew the policy. Times are whole seconds, so equal age counts as older. */
static bool is_ignored(const struct policy *p, const struct cluster_pod *cp)
{
    return p->ignore_previous && cp->membership.previous && cp->pod->created_ns <= p->created_ns;
}

void policies_hold(struct cluster *c, struct cluster_pod *cp)
{
    struct policy_membership *s = &cp->membership;
    if (s->group == NULL || s->unit == POLICIES_NO_UNIT)
        return;
    struct policies_entry *e = s->group->of;
    s->held = true;
    s->leaving = cp->pod->terminating;
    s->counted = !is_ignored(e->policy, cp);
    e->placed[s->unit]++;
    e->leaving[s->unit] += s->leaving;
    note_events(c, s);
    if (!s->counted)
        return;
    tally_of(s)->pods++;
    if (e->policy->units[s->unit].has_max_resources)
        resource_vector_account_offered(&tally_of(s)->used, &cp->request, &e->limits[s->unit], 1);
}

/* A saturated sum cannot be corrected by subtraction. */
static void recount(struct cluster *c, const struct policy_membership *like)
{
    const struct policies_entry *e = like->group->of;
    struct resource_vector *used = &tally_of(like)->used;
    resource_vector_deinit(used);
    c->policies->looked += e->members.len;
    for (size_t i = 0; i < e->members.len; i++) {
        const struct cluster_pod *cp = e->members.items[i];
        const struct policy_membership *s = &cp->membership;
        if (s != like && s->group == like->group && s->held && s->counted &&
            s->unit == like->unit && s->leaving == like->leaving)
            resource_vector_account_offered(used, &cp->request, &e->limits[like->unit], 1);
    }
}

void policies_release(struct cluster *c, struct cluster_pod *cp)
{
    struct policy_membership *s = &cp->membership;
    if (!s->held)
        return;
    struct policies_entry *e = s->group->of;
    struct policies_tally *t = tally_of(s);
    s->held = false;
    e->placed[s->unit]--;
    e->leaving[s->unit] -= s->leaving;
    if (!s->counted)
        return;
    t->pods--;
    if (!e->policy->units[s->unit].has_max_resources)
        return;
    if (t->used.saturated)
        recount(c, s);
    else
        resource_vector_account_offered(&t->used, &cp->request, &e->limits[s->unit], -1);
}

uint32_t policies_take_events(struct cluster *c)
{
    uint32_t events = c->policies->events;
    c->policies->events = 0;
    return events;
}

void policies_restore(struct cluster *c, struct cluster_pod *cp)
{
    struct policy_membership *s = &cp->membership;
    int64_t unit = POLICIES_NO_UNIT;
    if (s->group == NULL || cp->on == NULL)
        return;
    policies_release(c, cp);
    s->by = 0;
    if (!read_unit(labels_get(&cp->pod->annotations, NAME_ANN_UNIT), &s->by, &unit))
        unit = POLICIES_NO_UNIT;
    join_policy(cp, s->by, unit, cp->on);
    policies_hold(c, cp);
}

void policies_note_moved(struct cluster *c, const struct cluster_pod *cp, uint64_t was)
{
    if (was == policies_digest(cp))
        return;
    c->policies->moves++;
    if (was != 0)
        c->policies->events |= EVENT_UNIT;
}

static void sit_down(struct cluster *c, struct cluster_pod *cp)
{
    if (cp->on == NULL || cp->membership.group == NULL)
        return;
    policies_read(cp, cp->on);
    policies_hold(c, cp);
}

void policies_node_changed(struct cluster *c, struct cluster_node *cn)
{
    for (size_t i = 0; map_count(&c->policies->entries) > 0 && i < cn->pods.len; i++) {
        uint64_t was = policies_digest(cn->pods.items[i]);
        policies_release(c, cn->pods.items[i]);
        sit_down(c, cn->pods.items[i]);
        policies_note_moved(c, cn->pods.items[i], was);
    }
}

void policies_rejoin(struct cluster *c, struct cluster_pod *cp, struct policies_entry *e)
{
    uint64_t was = policies_digest(cp);
    if (cp->membership.stale)
        freshen(cp);
    policies_release(c, cp);
    join_entry(c, cp, e);
    sit_down(c, cp);
    policies_note_moved(c, cp, was);
}

uint64_t policies_digest(const struct cluster_pod *cp)
{
    const struct policy_membership *s = &cp->membership;
    if (!s->held)
        return 0;
    uint64_t h = str_hash(s->group->key, strlen(s->group->key));
    return h * 31 + (uint64_t)s->unit * 8 + s->counted * 4u + s->leaving * 2u + 1;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Valid policies, groups of pods, and the counts. policies_units.c decides which units are open;
 * policies_writes.c has what is written and reported.
 *
 * The counts follow the cluster's hold and release (cluster.c). Each pod records what it was
 * counted as, so the same is subtracted, whatever changed meanwhile. When a policy changes, all
 * pods of its namespace leave and join their groups again: policies are edited by hand, so this
 * walk is rare.
 */
#include "scheduler/cache/policies.h"

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
    map_init(&ps->groups);
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

static void entry_free(struct policies_entry *e)
{
    free(e->limits);
    free(e->placed);
    free(e->leaving);
    free(e);
}

/* Must run before the objects are freed: groups read their number of units from their policy. */
void policies_deinit(struct policies *ps)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&ps->groups, &i, &key, &value);) {
        map_remove(&ps->groups, key);
        group_free(value);
    }
    map_deinit(&ps->groups);
    for (size_t i = 0; i < ps->entries.len; i++)
        entry_free(ps->entries.items[i]);
    vec_deinit(&ps->entries);
}

static int entry_order(const struct policy *a, const struct policy *b)
{
    int by_ns = strcmp(a->object.ns, b->object.ns);
    return by_ns != 0 ? by_ns : policy_order(a, b);
}

/* Index of the namespace's first policy, or where it would be inserted. */
static size_t first_of(const struct policies *ps, const char *ns)
{
    size_t from = 0, to = ps->entries.len;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (strcmp(ps->entries.items[mid]->policy->object.ns, ns) < 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

static void set_policy(struct cluster *c, struct policies_entry *e, struct policy *p)
{
    e->policy = p;
    for (size_t i = 0; i < p->units_len; i++)
        resource_vector_of(&e->limits[i], &p->units[i].max_resources, &c->names, &p->object.arena);
}

static void add_entry(struct cluster *c, struct policy *p)
{
    struct policies *ps = c->policies;
    struct policies_entry *e = mem_new(struct policies_entry, 1);
    e->limits = mem_new(struct resource_vector, p->units_len);
    e->placed = mem_new(int64_t, p->units_len);
    e->leaving = mem_new(int64_t, p->units_len);
    e->serial = ++ps->serials;
    set_policy(c, e, p);
    size_t at = first_of(ps, p->object.ns);
    while (at < ps->entries.len && entry_order(ps->entries.items[at]->policy, p) < 0)
        at++;
    vec_push(&ps->entries, e);
    memmove(&ps->entries.items[at + 1], &ps->entries.items[at],
            (ps->entries.len - 1 - at) * sizeof ps->entries.items[0]);
    ps->entries.items[at] = e;
}

static size_t find_entry(const struct policies *ps, const struct policy *p)
{
    size_t i = first_of(ps, p->object.ns);
    while (i < ps->entries.len && ps->entries.items[i]->policy != p)
        i++;
    return i;
}

static void drop_entry(struct policies *ps, const struct policy *p)
{
    size_t at = find_entry(ps, p);
    if (at == ps->entries.len)
        return;
    assert(ps->entries.items[at]->groups == 0);
    entry_free(ps->entries.items[at]);
    memmove(&ps->entries.items[at], &ps->entries.items[at + 1],
            (--ps->entries.len - at) * sizeof ps->entries.items[0]);
}

static struct policies_entry *entry_for(const struct policies *ps, const struct pod *pod)
{
    for (size_t i = first_of(ps, pod->ns); i < ps->entries.len; i++) {
        struct policies_entry *e = ps->entries.items[i];
        if (!str_eq(e->policy->object.ns, pod->ns))
            return NULL;
        if (policy_selects(e->policy, pod))
            return e;
    }
    return NULL;
}

const char *policies_others(const struct cluster *c, const struct cluster_pod *cp, struct arena *a)
{
    const struct policies *ps = c->policies;
    const struct policy *holds = policies_of(cp);
    AUTO_STRBUF names = {0};
    for (size_t i = holds != NULL ? first_of(ps, cp->pod->ns) : ps->entries.len;
         i < ps->entries.len && str_eq(ps->entries.items[i]->policy->object.ns, cp->pod->ns); i++) {
        const struct policy *p = ps->entries.items[i]->policy;
        if (p != holds && policy_selects(p, cp->pod))
            strbuf_addf(&names, "%s%s", names.len > 0 ? ", " : "", p->object.name);
    }
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

void policies_leave(struct cluster *c, struct cluster_pod *cp)
{
    struct policies_group *g = cp->membership.group;
    if (g == NULL)
        return;
    assert(!cp->membership.held);
    cp->membership.group = NULL;
    if (--g->pods > 0)
        return;
    map_remove(&c->policies->groups, g->key);
    g->of->groups--;
    group_free(g);
}

/* A placed pod's unit may now belong to another policy: see policies_read. */
void policies_join(struct cluster *c, struct cluster_pod *cp)
{
    struct policy_membership *s = &cp->membership;
    struct policies_entry *e =
        c->policies->entries.len > 0 ? entry_for(c->policies, cp->pod) : NULL;
    struct policies_group *g = e != NULL ? group_for(c->policies, e, cp->pod) : NULL;
    s->lacks = g != NULL ? g->lacks : NULL;
    if (g == s->group)
        return;
    cp->version++;
    if (g != NULL)
        g->pods++;
    policies_leave(c, cp);
    s->group = g;
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
    const char *key;
    void *value;
    struct resource_vector *used = &tally_of(like)->used;
    resource_vector_deinit(used);
    for (size_t i = 0; map_next(&c->pods, &i, &key, &value);) {
        const struct cluster_pod *cp = value;
        const struct policy_membership *s = &cp->membership;
        if (s != like && s->group == like->group && s->held && s->counted &&
            s->unit == like->unit && s->leaving == like->leaving)
            resource_vector_account_offered(used, &cp->request,
                                            &like->group->of->limits[like->unit], 1);
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
    for (size_t i = 0; c->policies->entries.len > 0 && i < cn->pods.len; i++) {
        uint64_t was = policies_digest(cn->pods.items[i]);
        policies_release(c, cn->pods.items[i]);
        sit_down(c, cn->pods.items[i]);
        policies_note_moved(c, cn->pods.items[i], was);
    }
}

static void stand_up_all(struct cluster *c, const char *ns)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&c->pods, &i, &key, &value);) {
        struct cluster_pod *cp = value;
        if (cp->membership.group == NULL || !str_eq(cp->pod->ns, ns))
            continue;
        policies_release(c, cp);
        policies_leave(c, cp);
        cp->version++;
    }
}

static void sit_down_all(struct cluster *c, const char *ns)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&c->pods, &i, &key, &value);) {
        struct cluster_pod *cp = value;
        if (!str_eq(cp->pod->ns, ns))
            continue;
        policies_join(c, cp);
        sit_down(c, cp);
    }
}

static const struct policy *find(const struct cluster *c, const char *key)
{
    return (const struct policy *)api_objects_find(c->objects, API_OBJECTS_POLICIES, key);
}

uint32_t policies_put(struct cluster *c, struct policy *p)
{
    struct policies *ps = c->policies;
    const struct policy *old = find(c, p->object.key);
    if (old != NULL && policy_equal(old, p)) {
        size_t at = find_entry(ps, old);
        if (at < ps->entries.len)
            set_policy(c, ps->entries.items[at], p);
        (void)api_objects_put(c->objects, API_OBJECTS_POLICIES, &p->object);
        return 0;
    }
    stand_up_all(c, p->object.ns);
    if (old != NULL)
        drop_entry(ps, old);
    if (p->invalid == NULL)
        add_entry(c, p);
    (void)api_objects_put(c->objects, API_OBJECTS_POLICIES, &p->object);
    sit_down_all(c, p->object.ns);
    return EVENT_POLICY;
}

uint32_t policies_remove(struct cluster *c, const char *key, const char *uid)
{
    const struct policy *old = find(c, key);
    if (old == NULL || (uid != NULL && uid[0] != '\0' && !str_eq(old->object.uid, uid)))
        return 0;
    AUTO_STRBUF ns = {0};
    strbuf_adds(&ns, old->object.ns);
    stand_up_all(c, strbuf_str(&ns));
    drop_entry(c->policies, old);
    (void)api_objects_remove(c->objects, API_OBJECTS_POLICIES, key, uid);
    sit_down_all(c, strbuf_str(&ns));
    return EVENT_POLICY;
}

uint64_t policies_digest(const struct cluster_pod *cp)
{
    const struct policy_membership *s = &cp->membership;
    if (!s->held)
        return 0;
    uint64_t h = str_hash(s->group->key, strlen(s->group->key));
    return h * 31 + (uint64_t)s->unit * 8 + s->counted * 4u + s->leaving * 2u + 1;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Policies that are made, edited or removed: policies.h has the stages of a change.
 *
 * The old version's policy object stays in cluster.objects until all its pods have left, so nothing
 * of the model refers to a freed one. Pods that come, go or change their labels meanwhile join the
 * policy that the index gives at that moment: during OUT the old version, if the new one selects
 * the same pods, otherwise none or another; they leave again, or the walk of IN finds them.
 */
#include "scheduler/cache/policies_internal.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/model/api_objects.h"
#include "scheduler/model/model.h"

static struct policy *stored(const struct cluster *c, const char *key)
{
    return map_get(&c->objects->by_key[API_OBJECTS_POLICIES], key);
}

static void change_free(struct policies_change *change)
{
    free(change->key);
    free(change);
}

void policies_change_deinit(struct policies *ps)
{
    const char *key;
    void *value;
    for (size_t i = 0; i < ps->busy.len; i++) {
        struct policies_space *space = ps->busy.items[i];
        for (size_t k = 0; map_next(&space->queued, &k, &key, &value);) {
            struct policies_change *change = value;
            if (change->policy != NULL)
                object_free(&change->policy->object);
            change_free(change);
        }
        if (space->change != NULL) {
            if (space->change->policy != NULL && space->stage != POLICIES_IN)
                object_free(&space->change->policy->object);
            change_free(space->change);
        }
    }
    vec_deinit(&ps->busy);
    for (size_t i = 0; map_next(&ps->deferred, &i, &key, &value);)
        free(value);
    map_deinit(&ps->deferred);
}

static void set_policy(struct cluster *c, struct policies_entry *e, struct policy *p)
{
    e->policy = p;
    for (size_t i = 0; i < p->units_len; i++)
        resource_vector_of(&e->limits[i], &p->units[i].max_resources, &c->names, &p->object.arena);
}

static struct policies_entry *add_entry(struct cluster *c, struct policies_space *space,
                                        struct policy *p)
{
    struct policies *ps = c->policies;
    struct policies_entry *e = mem_new(struct policies_entry, 1);
    e->key = mem_strdup(p->object.key);
    e->limits = mem_new(struct resource_vector, p->units_len);
    e->placed = mem_new(int64_t, p->units_len);
    e->leaving = mem_new(int64_t, p->units_len);
    e->serial = ++ps->serials;
    set_policy(c, e, p);
    (void)map_put(&ps->entries, e->key, e);
    policies_index_add(space, e);
    return e;
}

static void drop_entry(struct policies *ps, struct policies_entry *e)
{
    policies_index_withdraw(e);
    (void)map_remove(&ps->entries, e->key);
    policies_entry_free(e);
}

/* Only its status differs: the object is replaced, nothing else. */
static void renew(struct cluster *c, struct policy *p)
{
    struct policies_entry *e = map_get(&c->policies->entries, p->object.key);
    if (e != NULL)
        set_policy(c, e, p);
    (void)api_objects_put(c->objects, API_OBJECTS_POLICIES, &p->object);
}

/* ---- the queue ---- */

static void enqueue(struct policies *ps, struct policies_space *space, const char *key,
                    struct policy *p)
{
    struct policies_change *change = map_get(&space->queued, key);
    if (change != NULL) {
        if (change->policy != NULL)
            object_free(&change->policy->object);
        change->policy = p;
        return;
    }
    change = mem_new(struct policies_change, 1);
    *change = (struct policies_change){.key = mem_strdup(key), .policy = p};
    (void)map_put(&space->queued, change->key, change);
    vec_push(&space->changes, change);
    if (space->is_busy)
        return;
    space->is_busy = true;
    vec_push(&ps->busy, space);
}

static struct policies_change *dequeue(struct policies_space *space)
{
    struct policies_change *change = space->changes.items[space->done++];
    (void)map_remove(&space->queued, change->key);
    if (space->done == space->changes.len)
        space->done = space->changes.len = 0;
    return change;
}

static bool is_under_way(const struct policies_space *space, const char *key)
{
    return space->change != NULL && strcmp(space->change->key, key) == 0;
}

bool policies_submit(struct cluster *c, struct policy *p)
{
    struct policies_space *space = policies_index_space(c->policies, str_or_empty(p->object.ns));
    const char *key = p->object.key;
    const struct policy *old = stored(c, key);
    if (map_get(&space->queued, key) == NULL && !is_under_way(space, key) && old != NULL &&
        policy_equal(old, p)) {
        renew(c, p);
        policies_index_drop_if_unused(c->policies, space);
        return false;
    }
    enqueue(c->policies, space, key, p);
    return true;
}

/* As it will be when all changes are made; NULL: there is none. */
static const struct policy *newest(const struct cluster *c, const struct policies_space *space,
                                   const char *key)
{
    const struct policies_change *change = space != NULL ? map_get(&space->queued, key) : NULL;
    if (change == NULL && space != NULL && is_under_way(space, key))
        change = space->change;
    return change != NULL ? change->policy : stored(c, key);
}

bool policies_submit_removal(struct cluster *c, const char *key, const char *uid)
{
    const char *slash = strchr(key, '/');
    AUTO_STRBUF ns = {0};
    strbuf_addf(&ns, "%.*s", slash != NULL ? (int)(slash - key) : 0, key);
    struct policies_space *space = policies_index_find(c->policies, strbuf_str(&ns));
    const struct policy *p = newest(c, space, key);
    if (p == NULL || (uid != NULL && uid[0] != '\0' && !str_eq(p->object.uid, uid)))
        return false;
    if (space == NULL) /* an invalid policy, and no pods */
        space = policies_index_space(c->policies, strbuf_str(&ns));
    AUTO_STRBUF own = {0}; /* the key may lie in the version that is replaced */
    strbuf_adds(&own, key);
    enqueue(c->policies, space, strbuf_str(&own), NULL);
    return true;
}

/* ---- the stages ---- */

static void touch(const struct cluster_hooks *hooks, const struct cluster_pod *cp)
{
    if (hooks != NULL && cp->gang != NULL && cluster_pod_is_schedulable(cp))
        hooks->gang_changed(hooks->arg, cp->gang);
}

/* Whether both versions select the same pods, with the same precedence. */
static bool select_the_same(const struct policies_entry *old, const struct policy *p)
{
    return p != NULL && p->invalid == NULL && policy_selects_like(old->policy, p);
}

static void begin_out(struct policies_space *space)
{
    space->stage = POLICIES_OUT;
    if (space->entry != NULL && !space->same_pods)
        policies_index_withdraw(space->entry);
}

/* false: there is nothing to do. */
static bool begin(struct cluster *c, struct policies_space *space)
{
    struct policies_change *change = dequeue(space);
    struct policy *p = change->policy, *old = stored(c, change->key);
    if ((p == NULL && old == NULL) || (p != NULL && old != NULL && policy_equal(old, p))) {
        if (p != NULL)
            renew(c, p);
        change_free(change);
        return false;
    }
    space->change = change;
    space->began = c->policies->calls;
    space->entry = map_get(&c->policies->entries, change->key);
    space->same_pods = space->entry != NULL && select_the_same(space->entry, p);
    if (p == NULL || p->invalid != NULL || space->is_indexed) {
        begin_out(space);
        return true;
    }
    space->is_indexed = true;
    space->stage = POLICIES_MARK;
    space->cursor = space->pods.len;
    return true;
}

static void mark(struct policies_space *space)
{
    if (space->cursor > space->pods.len)
        space->cursor = space->pods.len;
    if (space->cursor == 0)
        begin_out(space);
    else
        policies_index_mark(space, space->pods.items[--space->cursor]);
}

/* The new version comes into force. */
static void switch_over(struct cluster *c, struct policies_space *space)
{
    struct policy *p = space->change->policy;
    if (space->entry != NULL)
        drop_entry(c->policies, space->entry);
    space->entry = NULL;
    if (p == NULL) {
        (void)api_objects_remove(c->objects, API_OBJECTS_POLICIES, space->change->key, NULL);
    } else {
        if (p->invalid == NULL)
            space->entry = add_entry(c, space, p);
        (void)api_objects_put(c->objects, API_OBJECTS_POLICIES, &p->object);
    }
    space->stage = POLICIES_IN;
    space->walked = space->entry != NULL ? policies_index_rarest(space->entry) : NULL;
    space->cursor = space->entry == NULL || space->same_pods ? 0
                    : space->walked != NULL                  ? space->walked->pods.len
                                                             : space->pods.len;
}

static void leave(struct cluster *c, struct policies_space *space)
{
    struct policies_entry *e = space->entry;
    if (e == NULL || e->members.len == 0)
        switch_over(c, space);
    else
        policies_set_stale(c, e->members.items[e->members.len - 1]);
}

static void finish(struct cluster *c, struct policies_space *space)
{
    struct policies *ps = c->policies;
    change_free(space->change);
    space->change = NULL;
    space->entry = NULL;
    space->finished = ps->calls;
    space->rested = space->began != ps->calls ? ps->calls : 0;
    ps->moves++; /* the writers skipped it */
}

/* The next pod that may join the new version; NULL: all were tried. */
static struct cluster_pod *next_walked(struct policies_space *space)
{
    size_t len = space->walked != NULL ? space->walked->pods.len : space->pods.len;
    space->cursor = space->cursor < len ? space->cursor : len;
    if (space->cursor == 0)
        return NULL;
    space->cursor--;
    return space->walked != NULL ? space->walked->pods.items[space->cursor].pod
                                 : space->pods.items[space->cursor];
}

static void join(struct cluster *c, struct policies_space *space, const struct cluster_hooks *hooks)
{
    struct policies_entry *e = space->entry;
    struct cluster_pod *cp;
    if (space->stale.len > 0) {
        cp = space->stale.items[space->stale.len - 1];
        policies_rejoin(c, cp, policies_index_entry(c->policies, cp));
        touch(hooks, cp);
        return;
    }
    if ((cp = next_walked(space)) == NULL) {
        finish(c, space);
        return;
    }
    const struct policy *holds = policies_of(cp);
    if ((holds != NULL && policy_order(holds, e->policy) <= 0) ||
        !policy_selects(e->policy, cp->pod))
        return;
    policies_rejoin(c, cp, e);
    touch(hooks, cp);
}

/* ---- turns ---- */

static void run(struct cluster *c, struct policies_space *space, const struct cluster_hooks *hooks,
                size_t *budget)
{
    (*budget)--;
    if (space->change == NULL && !begin(c, space))
        return;
    for (; space->change != NULL && *budget > 0; (*budget)--) {
        c->policies->looked++;
        if (space->stage == POLICIES_MARK)
            mark(space);
        else if (space->stage == POLICIES_OUT)
            leave(c, space);
        else
            join(c, space, hooks);
    }
}

static bool has_changes(const struct policies_space *space)
{
    return space->change != NULL || space->changes.len > 0;
}

static bool is_resting(const struct policies *ps, const struct policies_space *space)
{
    bool relieved = !ps->is_working && ps->relieved == ps->calls && space->finished == ps->calls;
    return space->change == NULL && ps->calls > 0 && (space->rested == ps->calls || relieved);
}

/* Index of the next namespace in turn; busy.len: none. */
static size_t next_space(const struct policies *ps)
{
    size_t i = 0;
    while (i < ps->busy.len && is_resting(ps, ps->busy.items[i]))
        i++;
    return i;
}

/* To the end, or out, if nothing is left to do. */
static void take_turn(struct policies *ps, size_t at)
{
    struct policies_space *space = ps->busy.items[at];
    ps->busy.len--;
    memmove(&ps->busy.items[at], &ps->busy.items[at + 1],
            (ps->busy.len - at) * sizeof ps->busy.items[0]);
    if (has_changes(space)) {
        vec_push(&ps->busy, space);
        return;
    }
    space->is_busy = false;
    policies_index_drop_if_unused(ps, space);
}

/* They are deferred again if it is another namespace that they wait for. */
static void wake_deferred(struct cluster *c, const struct cluster_hooks *hooks)
{
    struct map woken = c->policies->deferred;
    const char *key;
    void *value;
    map_init(&c->policies->deferred);
    for (size_t i = 0; map_next(&woken, &i, &key, &value);) {
        struct gang *g = map_get(&c->gangs, key);
        if (g != NULL && hooks != NULL)
            hooks->gang_changed(hooks->arg, g);
        free(value);
    }
    map_deinit(&woken);
}

enum policies_progress policies_work(struct cluster *c, const struct cluster_hooks *hooks,
                                     size_t budget)
{
    struct policies *ps = c->policies;
    bool some_done = false;
    size_t at = 0;
    ps->calls++;
    ps->is_working = true;
    while (budget > 0 && (at = next_space(ps)) < ps->busy.len) {
        struct policies_space *space = ps->busy.items[at];
        run(c, space, hooks, &budget);
        some_done |= space->change == NULL;
        take_turn(ps, at);
    }
    ps->is_working = false;
    if (some_done && map_count(&ps->deferred) > 0) {
        ps->relieved = ps->calls;
        wake_deferred(c, hooks);
    }
    if (ps->busy.len == 0)
        return POLICIES_DONE;
    return next_space(ps) < ps->busy.len ? POLICIES_GO_ON : POLICIES_REST;
}

void policies_settle(struct cluster *c, const struct cluster_hooks *hooks)
{
    while (c->policies->busy.len > 0)
        (void)policies_work(c, hooks, SIZE_MAX);
}

uint32_t policies_put(struct cluster *c, struct policy *p)
{
    bool news = policies_submit(c, p);
    policies_settle(c, NULL);
    return news ? EVENT_POLICY : 0;
}

uint32_t policies_remove(struct cluster *c, const char *key, const char *uid)
{
    bool news = policies_submit_removal(c, key, uid);
    policies_settle(c, NULL);
    return news ? EVENT_POLICY : 0;
}

static bool is_changing(const struct policies *ps, const struct policies_space *space)
{
    return space != NULL && space->is_busy && !is_resting(ps, space);
}

bool policies_is_changing(const struct cluster *c, const char *ns)
{
    return c->policies->busy.len > 0 &&
           is_changing(c->policies, policies_index_find(c->policies, ns));
}

static bool has_changing(const struct policies *ps, const struct gang *g)
{
    return g != NULL && g->members.len > 0 &&
           is_changing(ps, g->members.items[0]->membership.space);
}

bool policies_defer(struct cluster *c, const struct gang *g)
{
    struct policies *ps = c->policies;
    if (ps->busy.len == 0)
        return false;
    bool changing = has_changing(ps, g);
    for (size_t i = 0; i < g->list.len && !changing; i++) /* placed with it */
        changing = has_changing(ps, gangs_find(c, g->list.names[i]));
    if (changing && map_get(&ps->deferred, g->key) == NULL) {
        char *key = mem_strdup(g->key);
        (void)map_put(&ps->deferred, key, key);
    }
    return changing;
}

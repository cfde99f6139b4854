// SPDX-License-Identifier: Apache-2.0
/*
 * gc - objects go when their last owner is gone.
 *
 *   owner deleted (background)              its children are looked at: no owner left ──► deleted
 *   owner waits, finalizer foregroundDeletion  children are deleted first; when none of those that
 *                                           block is left, the finalizer goes and with it the owner
 *   owner waits, finalizer orphan           children lose their reference, then the finalizer goes
 *
 * A child that is created after its owner is gone is collected as well.
 */
#include "test/local/controllers/controllers_internal.h"

#include <string.h>

#include "lib/base/clock.h"

#define FOREGROUND "foregroundDeletion"
#define ORPHAN "orphan"

enum owner_state { ABSENT, SOLID, WAITING, UNKNOWN };

static bool has_finalizer(json *meta, const char *name)
{
    for (struct json_iter it = json_iter(json_get(meta, "finalizers")); json_next(&it);)
        if (str_eq(json_str(it.value), name))
            return true;
    return false;
}

/* An object that is being deleted and holds that finalizer. */
static bool waits(const struct object *o, const char *finalizer)
{
    if (!controllers_mentions(o, "\"deletionTimestamp\"") || !controllers_mentions(o, finalizer))
        return false;
    AUTO_JSON *doc = NULL;
    if (json_parse(&doc, o->text, o->text_len, NULL) < 0)
        return false;
    json *meta = json_get(json_root(doc), "metadata");
    return json_get_str(meta, "deletionTimestamp") && has_finalizer(meta, finalizer);
}

static bool owner_waits(const struct object *o)
{
    return controllers_mentions(o, "\"deletionTimestamp\"") &&
           (waits(o, FOREGROUND) || waits(o, ORPHAN));
}

static enum owner_state state_of(const struct controllers *c, const struct controllers_edge *e)
{
    if (!e->kind)
        return UNKNOWN; /* a kind that is not stored here: unknown */
    const struct object *o = store_get(c->store, e->kind, e->child->ns, e->name);
    if (!o || !str_eq(o->uid, e->owner->uid))
        return ABSENT;
    return waits(o, FOREGROUND) ? WAITING : SOLID;
}

static void look_at(struct controllers *c, const struct controllers_child *ch)
{
    controllers_add(c, gc_sync, ch->kind, ch->ns, ch->name, 0);
}

void gc_changed(struct controllers *c, const struct store_event *e,
                const struct controllers_child *child)
{
    const struct object *o = e->object;
    const struct controllers_owner *owner = controllers_index_owner(&c->index, o->uid);
    if (e->change == STORE_DELETED) {
        for (const struct controllers_edge *i = owner ? owner->first : NULL; i; i = i->next)
            look_at(c, i->child);
        /* Whether an owner waits for its deletion. */
        for (size_t i = 0; child && i < child->edges_len; i++) {
            const struct controllers_edge *edge = &child->edges[i];
            if (edge->kind && state_of(c, edge) == WAITING)
                controllers_add(c, gc_sync, edge->kind, edge->kind->namespaced ? child->ns : "",
                                edge->name, 0);
        }
        return;
    }
    for (size_t i = 0; child && i < child->edges_len; i++)
        if (state_of(c, &child->edges[i]) == ABSENT) {
            look_at(c, child);
            break;
        }
    if (owner_waits(o))
        controllers_add(c, gc_sync, o->kind, o->ns, o->name, 0);
}

/* ---- references ---- */

struct uids VEC(const char *);

static bool drop_references(void *arg, struct jsontree *t, struct jsonnode *object)
{
    (void)t;
    const struct uids *uids = arg;
    struct jsonnode *meta = jsonnode_get(object, "metadata"),
                    *refs = jsonnode_get(meta, "ownerReferences");
    bool changed = false;
    for (size_t i = 0; i < jsonnode_len(refs);) {
        const char *uid = jsonnode_get_str(jsonnode_at(refs, i), "uid");
        bool drop = false;
        for (size_t k = 0; k < uids->len; k++)
            drop |= str_eq(uid, uids->items[k]);
        if (!drop) {
            i++;
            continue;
        }
        jsonnode_remove_at(refs, i);
        changed = true;
    }
    if (changed && jsonnode_len(refs) == 0)
        jsonnode_remove(meta, "ownerReferences");
    return changed;
}

static int is_fine(const struct error *e, struct error *err)
{
    if (e->code == ERROR_NOT_FOUND || e->code == ERROR_CONFLICT)
        return 0; /* gone, or another of that name: nothing of ours */
    if (err)
        *err = *e;
    return -1;
}

/* ---- owners that wait ---- */

/* Children of the owner, as kind, namespace and name. */
struct ref {
    const struct kind *kind;
    const char *ns, *name;
};
struct refs VEC(struct ref);

static void children_of(const struct controllers *c, const char *uid, bool blocking,
                        struct arena *a, struct refs *out)
{
    const struct controllers_owner *owner = controllers_index_owner(&c->index, uid);
    for (const struct controllers_edge *e = owner ? owner->first : NULL; e; e = e->next) {
        struct ref r = {e->child->kind, arena_strdup(a, e->child->ns),
                        arena_strdup(a, e->child->name)};
        if (!blocking || e->blocks)
            vec_push(out, r);
    }
}

static int orphan_children(struct controllers *c, const struct object *o, struct error *err)
{
    struct arena a;
    arena_init(&a, 0);
    struct refs list = {0};
    struct uids uids = {0};
    vec_push(&uids, o->uid);
    children_of(c, o->uid, false, &a, &list);
    int rc = 0;
    for (size_t i = 0; i < list.len && rc == 0; i++) {
        struct error e = ERROR_INIT;
        if (api_modify(c->api, list.items[i].kind, list.items[i].ns, list.items[i].name, NULL,
                       drop_references, &uids, &e) < 0)
            rc = is_fine(&e, err);
    }
    vec_deinit(&list);
    vec_deinit(&uids);
    arena_deinit(&a);
    if (rc < 0)
        return rc;
    return controllers_remove_finalizer(c, o->kind, o->ns, o->name, ORPHAN, err);
}

static int wait_for_children(struct controllers *c, const struct object *o, struct error *err)
{
    struct arena a;
    arena_init(&a, 0);
    struct refs list = {0};
    children_of(c, o->uid, true, &a, &list);
    size_t blocking = list.len;
    list.len = 0;
    children_of(c, o->uid, false, &a, &list);
    for (size_t i = 0; i < list.len; i++)
        controllers_add(c, gc_sync, list.items[i].kind, list.items[i].ns, list.items[i].name, 0);
    vec_deinit(&list);
    arena_deinit(&a);
    if (blocking > 0)
        return 0;
    return controllers_remove_finalizer(c, o->kind, o->ns, o->name, FOREGROUND, err);
}

/* ---- one object ---- */

static int collect(struct controllers *c, const struct object *o,
                   const struct controllers_child *child, struct error *err)
{
    struct uids gone = {0};
    size_t solid = 0, waiting = 0;
    bool blocks = false;
    for (size_t i = 0; i < child->edges_len; i++) {
        const struct controllers_edge *e = &child->edges[i];
        enum owner_state s = state_of(c, e);
        solid += s == SOLID || s == UNKNOWN;
        waiting += s == WAITING;
        blocks |= s == WAITING && e->blocks;
        if (s == ABSENT || s == WAITING)
            vec_push(&gone, e->owner->uid);
    }
    struct error e = ERROR_INIT;
    int rc = 0;
    if (solid > 0 && gone.len > 0)
        rc = api_modify(c->api, o->kind, o->ns, o->name, NULL, drop_references, &gone, &e);
    else if (solid == 0 && !child->deleting) {
        const struct controllers_owner *owned = controllers_index_owner(&c->index, o->uid);
        bool parents = owned && owned->first;
        enum api_propagation how =
            waiting > 0 && blocks && parents ? API_FOREGROUND : API_BACKGROUND;
        rc = api_delete(c->api, o->kind, o->ns, o->name, o->uid, -1, how, &e);
    }
    vec_deinit(&gone);
    return rc < 0 ? is_fine(&e, err) : 0;
}

int gc_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
            struct error *err)
{
    (void)again_ms;
    struct object *o = store_get(c->store, w->kind, w->ns, w->name);
    if (!o)
        return 0;
    object_ref(o);
    int rc = 0;
    const struct controllers_child *child = map_get(&c->index.children, o->uid);
    if (child)
        rc = collect(c, o, child, err);
    if (rc == 0 && waits(o, ORPHAN))
        rc = orphan_children(c, o, err);
    else if (rc == 0 && waits(o, FOREGROUND))
        rc = wait_for_children(c, o, err);
    object_unref(o);
    return rc;
}

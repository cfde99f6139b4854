// SPDX-License-Identifier: Apache-2.0
/*
 * patch_apply - server-side apply for simple cases.
 *
 * What a manager applied is remembered in metadata.managedFields, in the form the API server uses
 * (FieldsV1):
 *
 *     {"f:spec": {"f:replicas": {}, "f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:image":
 *     {}}}}}
 *
 * Here such a set is a tree of jsonnodes. An apply is then four walks over trees of the same form:
 *
 *     fields_of      the set of what the patch names
 *     find_conflicts what it names and another manager has applied with another value: 409, or with
 *     force that manager's set loses it
 *     merge          the patch into the object; lists by their keys
 *     prune          what this manager's last set has, the new one has not, and no other manager
 *                    has: removed
 *
 * Only appliers are remembered: an update or another patch leaves the sets alone, so it neither
 * takes a field over nor conflicts.
 */
#include "test/local/patch/patch.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "test/local/patch/patch_index.h"
#include "test/local/patch/patch_keys.h"

enum { MAX_CONFLICTS_SHOWN = 8 };

struct applying {
    struct jsontree *t;
    const char *kind;
    bool force;
    struct error *err;
    struct strbuf conflicts; /* lines */
    size_t conflicts_len;
    struct VEC(struct jsonnode *) others; /* sets of the other managers */
};

static int too_deep(struct applying *a)
{
    return patch_fail(a->err, 400, "patch is nested deeper than %d levels", JSON_MAX_DEPTH);
}

/* The name of an element in a set: k:{"name":"c"} or v:"value". */
static void element_name(struct applying *a, const struct patch_type *type, struct jsonnode *e,
                         struct strbuf *out)
{
    strbuf_reset(out);
    if (type->list == PATCH_SET) {
        strbuf_adds(out, "v:");
        jsonnode_print(e, out);
        return;
    }
    struct jsonnode *keys = jsonnode_object(a->t);
    for (size_t i = 0; i < 2 && type->keys[i]; i++) {
        struct jsonnode *v = jsonnode_get(e, type->keys[i]);
        if (v)
            jsonnode_set(a->t, keys, type->keys[i], jsonnode_clone(a->t, v));
        else if (type->missing)
            jsonnode_set_str(a->t, keys, type->keys[i], type->missing);
    }
    strbuf_adds(out, "k:");
    jsonnode_print(keys, out);
}

static int fields_of(struct applying *a, struct jsonnode *value, const char *parent,
                     const char *field, struct jsonnode *set, int depth)
{
    AUTO_STRBUF name;
    strbuf_init(&name);
    if (depth > JSON_MAX_DEPTH)
        return too_deep(a);
    if (jsonnode_is_object(value)) {
        for (struct jsonnode_iter it = jsonnode_iter(value); jsonnode_next(&it);) {
            strbuf_reset(&name);
            strbuf_addf(&name, "f:%s", it.key);
            struct jsonnode *inner = jsonnode_need_object(a->t, set, strbuf_str(&name));
            if (fields_of(a, it.value, field, it.key, inner, depth + 1) < 0)
                return -1;
        }
        return 0;
    }
    const struct patch_type *type = patch_type_of(a->kind, parent, field, PATCH_APPLY);
    if (!jsonnode_is_array(value) || type->list == PATCH_ATOMIC)
        return 0;
    for (struct jsonnode_iter it = jsonnode_iter(value); jsonnode_next(&it);) {
        if (type->list == PATCH_MAP && !jsonnode_get(it.value, type->keys[0]))
            return patch_fail(a->err, 422, "%s: element without its key \"%s\"", field,
                              type->keys[0]);
        element_name(a, type, it.value, &name);
        if (jsonnode_get(set, strbuf_str(&name)))
            return patch_fail(a->err, 500,
                              "failed to create typed patch object: %s: duplicate entries for key "
                              "%s",
                              field, strbuf_str(&name) + 2);
        struct jsonnode *inner = jsonnode_need_object(a->t, set, strbuf_str(&name));
        if (type->list != PATCH_MAP)
            continue;
        (void)jsonnode_need_object(a->t, inner, ".");
        if (fields_of(a, it.value, parent, field, inner, depth + 1) < 0)
            return -1;
    }
    return 0;
}

/* What a member of a set stands for, in a value of the object. list and type say how elements are
 * found. */
static struct jsonnode *resolve(struct jsonnode *value, const char *name,
                                const struct patch_type *type, size_t *at)
{
    if (str_starts(name, "f:"))
        return jsonnode_get(value, name + 2);
    struct jsontree *key = NULL;
    if (strlen(name) < 2 || jsontree_parse(&key, name + 2, strlen(name + 2), NULL) < 0)
        return NULL;
    struct jsonnode *found = patch_find(value, type, PATCH_APPLY, jsontree_root(key), at);
    jsontree_free(key);
    return found;
}

/* The field that a step leads to, for patch_type_of: elements keep the name of their list. */
struct step {
    const char *parent, *field;
};

static struct step step_into(struct step from, const char *name)
{
    if (str_starts(name, "f:"))
        return (struct step){from.field, name + 2};
    return from;
}

static void add_conflict(struct applying *a, const char *manager, const struct strbuf *path)
{
    a->conflicts_len++;
    if (a->conflicts_len > MAX_CONFLICTS_SHOWN)
        return;
    /* The API server puts each path on a line of its own; an error is one line here. */
    strbuf_addf(&a->conflicts, "%sconflict with \"%s\": %s", a->conflicts_len > 1 ? ", " : "",
                manager, strbuf_str(path));
}

static void path_add(struct strbuf *path, const char *name)
{
    if (str_starts(name, "f:")) {
        strbuf_addf(path, ".%s", name + 2);
        return;
    }
    strbuf_addc(path, '[');
    if (str_starts(name, "k:{")) { /* [name="c"] */
        AUTO_JSONTREE *key = NULL;
        bool comma = false;
        if (jsontree_parse(&key, name + 2, strlen(name + 2), NULL) == 0)
            for (struct jsonnode_iter it = jsonnode_iter(jsontree_root(key)); jsonnode_next(&it);) {
                strbuf_addf(path, "%s%s=", comma ? "," : "", it.key);
                jsonnode_print(it.value, path);
                comma = true;
            }
    } else {
        strbuf_addf(path, "=%s", name + 2);
    }
    strbuf_addc(path, ']');
}

/* An empty object beside one with members says nothing about them. */
static bool same_or_empty(struct jsonnode *live, struct jsonnode *patch)
{
    return jsonnode_equal(live, patch) || (jsonnode_is_object(live) && jsonnode_is_object(patch));
}

static void find_conflicts(struct applying *a, const char *manager, struct jsonnode *mine,
                           struct jsonnode *theirs, struct jsonnode *live, struct jsonnode *patch,
                           struct step at, struct strbuf *path)
{
    const struct patch_type *type = patch_type_of(a->kind, at.parent, at.field, PATCH_APPLY);
    struct VEC(const char *) lost = {0};
    for (struct jsonnode_iter it = jsonnode_iter(mine); jsonnode_next(&it);) {
        struct jsonnode *other = jsonnode_get(theirs, it.key);
        if (!other || str_eq(it.key, "."))
            continue;
        struct jsonnode *live_value = resolve(live, it.key, type, NULL);
        struct jsonnode *patch_value = resolve(patch, it.key, type, NULL);
        size_t length = path->len;
        path_add(path, it.key);
        bool leaf = jsonnode_len(it.value) == 0 || jsonnode_len(other) == 0;
        if (!leaf) {
            find_conflicts(a, manager, it.value, other, live_value, patch_value,
                           step_into(at, it.key), path);
            if (jsonnode_len(other) == 0) /* all of it was taken */
                vec_push(&lost, it.key);
        } else if (!str_starts(it.key, "v:") && !same_or_empty(live_value, patch_value)) {
            if (a->force)
                vec_push(&lost, it.key);
            else
                add_conflict(a, manager, path);
        }
        path->len = length;
        path->ptr[length] = '\0';
    }
    for (size_t i = 0; i < lost.len; i++)
        (void)jsonnode_remove(theirs, lost.items[i]);
    vec_deinit(&lost);
}

static void merge(struct applying *a, struct jsonnode *live, struct jsonnode *patch,
                  const char *field);

static void merge_list(struct applying *a, struct jsonnode *live, struct jsonnode *patch,
                       const struct patch_type *type, const char *field)
{
    struct patch_index there;
    patch_index_init(&there, type, PATCH_APPLY, live);
    for (struct jsonnode_iter it = jsonnode_iter(patch); jsonnode_next(&it);) {
        struct jsonnode *same = patch_index_get(&there, it.value, NULL);
        if (same && type->list == PATCH_MAP)
            merge(a, same, it.value, field);
        if (same)
            continue;
        struct jsonnode *fresh = jsonnode_clone(a->t, it.value);
        jsonnode_append(live, fresh);
        patch_index_add(&there, fresh);
    }
    patch_index_deinit(&there);
}

static void merge(struct applying *a, struct jsonnode *live, struct jsonnode *patch,
                  const char *field)
{
    for (struct jsonnode_iter it = jsonnode_iter(patch); jsonnode_next(&it);) {
        struct jsonnode *there = jsonnode_get(live, it.key);
        const struct patch_type *type = patch_type_of(a->kind, field, it.key, PATCH_APPLY);
        if (jsonnode_is_object(it.value) && jsonnode_is_object(there))
            merge(a, there, it.value, it.key);
        else if (jsonnode_is_array(it.value) && jsonnode_is_array(there) &&
                 type->list != PATCH_ATOMIC)
            merge_list(a, there, it.value, type, it.key);
        else
            jsonnode_set(a->t, live, it.key, jsonnode_clone(a->t, it.value));
    }
}

/* Removes what `old` has and `fresh` and the others have not. others: the other managers' sets at
 * this place. */
static void prune(struct applying *a, struct jsonnode *old, struct jsonnode *fresh,
                  struct jsonnode *const *others, size_t n, struct jsonnode *live, struct step at,
                  int depth)
{
    if (depth > JSON_MAX_DEPTH) /* an entry that someone wrote by hand */
        return;
    const struct patch_type *type = patch_type_of(a->kind, at.parent, at.field, PATCH_APPLY);
    struct VEC(struct jsonnode *) inner = {0};
    for (struct jsonnode_iter it = jsonnode_iter(old); jsonnode_next(&it);) {
        size_t place = 0;
        struct jsonnode *value = resolve(live, it.key, type, &place);
        if (!value)
            continue;
        struct jsonnode *again = jsonnode_get(fresh, it.key);
        inner.len = 0;
        for (size_t i = 0; i < n; i++)
            if (jsonnode_get(others[i], it.key))
                vec_push(&inner, jsonnode_get(others[i], it.key));
        bool element = !str_starts(it.key, "f:");
        bool wanted = again || inner.len > 0;
        if (wanted || (!element && jsonnode_len(it.value) > 0)) {
            bool had = jsonnode_len(value) > 0;
            prune(a, it.value, again, inner.items, inner.len, value, step_into(at, it.key),
                  depth + 1);
            if (wanted || !had || jsonnode_len(value) > 0)
                continue;
        }
        if (element)
            (void)jsonnode_remove_at(live, place);
        else
            (void)jsonnode_remove(live, it.key + 2);
    }
    vec_deinit(&inner);
}

/* No manager owns the parts of a patch that identify the object. */
static void drop_identity(struct jsonnode *patch)
{
    static const char *const names[] = {
        "name",       "namespace",         "uid",     "resourceVersion",
        "generation", "creationTimestamp", "selfLink"};
    struct jsonnode *meta = jsonnode_get(patch, "metadata");
    (void)jsonnode_remove(patch, "apiVersion");
    (void)jsonnode_remove(patch, "kind");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)jsonnode_remove(meta, names[i]);
    if (meta && jsonnode_len(meta) == 0)
        (void)jsonnode_remove(patch, "metadata");
}

static int drop_nulls(struct applying *a, struct jsonnode *n, int depth)
{
    struct VEC(const char *) gone = {0};
    int rc = depth > JSON_MAX_DEPTH ? too_deep(a) : 0;
    for (struct jsonnode_iter it = jsonnode_iter(n); rc == 0 && jsonnode_next(&it);) {
        if (it.key && jsonnode_is_null(it.value))
            vec_push(&gone, it.key);
        else
            rc = drop_nulls(a, it.value, depth + 1);
    }
    for (size_t i = 0; i < gone.len; i++)
        (void)jsonnode_remove(n, gone.items[i]);
    vec_deinit(&gone);
    return rc;
}

static bool is_own(struct jsonnode *entry, const char *manager)
{
    return str_eq(jsonnode_get_str(entry, "manager"), manager) &&
           str_eq(jsonnode_get_str(entry, "operation"), "Apply") &&
           !jsonnode_get(entry, "subresource");
}

static int check_conflicts(struct applying *a, struct jsonnode *entries, const char *manager,
                           struct jsonnode *fresh, struct jsonnode *patch)
{
    AUTO_STRBUF path;
    strbuf_init(&path);
    for (struct jsonnode_iter it = jsonnode_iter(entries); jsonnode_next(&it);)
        if (!is_own(it.value, manager))
            find_conflicts(a, str_or_empty(jsonnode_get_str(it.value, "manager")), fresh,
                           jsonnode_get(it.value, "fieldsV1"), jsontree_root(a->t), patch,
                           (struct step){"", ""}, &path);
    for (size_t i = jsonnode_len(entries); a->force && i-- > 0;) {
        struct jsonnode *entry = jsonnode_at(entries, i);
        if (!is_own(entry, manager) && jsonnode_len(jsonnode_get(entry, "fieldsV1")) == 0)
            (void)jsonnode_remove_at(entries, i); /* it owns nothing any more */
    }
    if (a->conflicts_len == 0)
        return 0;
    return patch_fail(a->err, 409, "Apply failed with %zu conflict%s: %s", a->conflicts_len,
                      a->conflicts_len > 1 ? "s" : "", strbuf_str(&a->conflicts));
}

static void remember(struct applying *a, struct jsonnode *entries, struct jsonnode *own,
                     const char *manager, const char *api_version, struct jsonnode *fresh)
{
    if (own && jsonnode_equal(jsonnode_get(own, "fieldsV1"), fresh))
        return;
    if (!own) {
        own = jsonnode_object(a->t);
        jsonnode_append(entries, own);
    }
    jsonnode_set_str(a->t, own, "manager", manager);
    jsonnode_set_str(a->t, own, "operation", "Apply");
    jsonnode_set_str(a->t, own, "apiVersion", api_version);
    (void)jsonnode_remove(own, "time"); /* the caller, which has a clock, sets it */
    jsonnode_set_str(a->t, own, "fieldsType", "FieldsV1");
    jsonnode_set(a->t, own, "fieldsV1", fresh);
}

static int apply(struct applying *a, struct jsonnode *patch, const char *manager)
{
    struct jsonnode *root = jsontree_root(a->t);
    const char *api_version = jsonnode_get_str(patch, "apiVersion");
    struct jsonnode *meta = jsonnode_need_object(a->t, root, "metadata");
    struct jsonnode *entries = jsonnode_get(meta, "managedFields");
    struct jsonnode *fresh = jsonnode_object(a->t);
    struct jsonnode *own = NULL;
    if (jsonnode_path(patch, "metadata", "managedFields", NULL))
        return patch_fail(a->err, 400, "metadata.managedFields must be nil");
    /* No manager owns the identifying fields, but they are compared. */
    static const char *const identity[] = {"namespace", "uid", "resourceVersion"};
    struct jsonnode *asked[sizeof identity / sizeof *identity];
    for (size_t i = 0; i < sizeof identity / sizeof *identity; i++)
        asked[i] = jsonnode_path(patch, "metadata", identity[i], NULL);
    drop_identity(patch);
    if (drop_nulls(a, patch, 0) < 0 || fields_of(a, patch, "", "", fresh, 0) < 0 ||
        check_conflicts(a, entries, manager, fresh, patch) < 0)
        return -1;
    if (!jsonnode_is_array(entries)) {
        entries = jsonnode_array(a->t);
        jsonnode_set(a->t, meta, "managedFields", entries);
    }
    for (struct jsonnode_iter it = jsonnode_iter(entries); jsonnode_next(&it);) {
        if (is_own(it.value, manager))
            own = it.value;
        else
            vec_push(&a->others, jsonnode_get(it.value, "fieldsV1"));
    }
    merge(a, root, patch, "");
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        if (asked[i])
            jsonnode_set(a->t, meta, identity[i], asked[i]);
    if (own)
        prune(a, jsonnode_get(own, "fieldsV1"), fresh, a->others.items, a->others.len, root,
              (struct step){"", ""}, 0);
    remember(a, entries, own, manager, api_version, fresh);
    return 0;
}

int patch_apply(struct jsontree *t, const char *kind, json *patch, const char *manager, bool force,
                struct error *err)
{
    struct applying a = {.t = t, .kind = kind, .force = force, .err = err};
    if (!json_is_object(patch))
        return patch_fail(err, 400, "error decoding YAML: the document is not an object");
    if (!jsonnode_is_object(jsontree_root(t)))
        jsontree_set_root(t, jsonnode_object(t));
    strbuf_init(&a.conflicts);
    int rc = apply(&a, jsonnode_copy(t, patch), manager);
    vec_deinit(&a.others);
    strbuf_deinit(&a.conflicts);
    return rc;
}

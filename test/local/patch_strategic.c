// SPDX-License-Identifier: Apache-2.0
/*
 * patch_strategic - Kubernetes' own merge: like RFC 7386 for objects, but lists of objects merge element by element by a key, and directives
 * in the patch say what a merge cannot:
 *
 *     "$patch": "delete"                       of a list's element: it goes; of an object: it becomes empty
 *     "$patch": "replace"                      of an object: the rest of the patch takes its place; as an element of a list: the other
 *                                              elements take the list's place
 *     "$deleteFromPrimitiveList/finalizers"    values that go
 *     "$setElementOrder/containers"            the order of the list afterwards
 *     "$retainKeys"                            the only keys that stay (a union: one volume source, one strategy)
 *
 * The patch is copied into the tree first; its nodes then move to where they belong. Recursion follows the patch, whose depth is bounded.
 */
#include "test/local/patch.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "test/local/patch_keys.h"

static const char ORDER[] = "$setElementOrder/";
static const char DELETE[] = "$deleteFromPrimitiveList/";

struct merging {
    struct jsontree *t;
    const char *kind;
    struct error *err;
};
struct nodes VEC(struct jsonnode *);

static int merge_object(struct merging *m, struct jsonnode *live, struct jsonnode *patch,
                        const char *field, int depth);

static bool is_directive(const char *key)
{
    return str_eq(key, "$patch") || str_eq(key, "$retainKeys") || str_starts(key, ORDER) ||
           str_starts(key, DELETE);
}

/* What is put where nothing was carries no directives and no nulls. */
static int strip(struct merging *m, struct jsonnode *n, int depth)
{
    if (depth > JSON_MAX_DEPTH)
        return patch_fail(m->err, 400, "patch is nested deeper than %d levels", JSON_MAX_DEPTH);
    struct VEC(const char *) gone = {0};
    bool object = jsonnode_is_object(n);
    int rc = 0;
    for (struct jsonnode_iter it = jsonnode_iter(n); rc == 0 && jsonnode_next(&it);) {
        if (object && (is_directive(it.key) || jsonnode_is_null(it.value)))
            vec_push(&gone, it.key);
        else
            rc = strip(m, it.value, depth + 1);
    }
    for (size_t i = 0; i < gone.len; i++)
        (void)jsonnode_remove(n, gone.items[i]);
    vec_deinit(&gone);
    return rc;
}

static void clear(struct jsonnode *list)
{
    while (jsonnode_len(list) > 0)
        (void)jsonnode_remove_at(list, 0);
}

static void clear_object(struct jsonnode *object)
{
    for (;;) {
        struct jsonnode_iter it = jsonnode_iter(object);
        if (!jsonnode_next(&it))
            return;
        (void)jsonnode_remove(object, it.key);
    }
}

/* Place of an element among others, or -1. */
static int64_t place_in(struct jsonnode *order, const struct patch_type *type,
                        const struct jsonnode *element)
{
    size_t at = 0;
    return patch_find(order, type, PATCH_STRATEGIC, element, &at) ? (int64_t)at : -1;
}

/*
 * What the order names comes in that order; what only the live list had keeps its place relative to those: each such element goes
 * before the first named one that it was before.
 */
static void set_order(struct merging *m, struct jsonnode *list, struct jsonnode *before,
                      const struct patch_type *type, struct jsonnode *order)
{
    struct nodes named = {0};
    struct nodes others = {0};
    for (struct jsonnode_iter it = jsonnode_iter(order); jsonnode_next(&it);) {
        struct jsonnode *n = patch_find(list, type, PATCH_STRATEGIC, it.value, NULL);
        bool twice = false;
        for (size_t i = 0; i < named.len; i++)
            twice = twice || named.items[i] == n;
        if (n && !twice)
            vec_push(&named, n);
    }
    for (struct jsonnode_iter it = jsonnode_iter(list); jsonnode_next(&it);)
        if (place_in(order, type, it.value) < 0)
            vec_push(&others, it.value);
    struct jsonnode *sorted = jsonnode_array(m->t);
    clear(list);
    size_t i = 0;
    size_t j = 0;
    while (i < others.len || j < named.len) {
        bool other = j == named.len;
        if (!other && i < others.len) {
            int64_t mine = place_in(before, type, others.items[i]);
            int64_t its = place_in(before, type, named.items[j]);
            other = mine >= 0 && its >= 0 && mine < its;
        }
        jsonnode_append(sorted, other ? others.items[i++] : named.items[j++]);
    }
    while (jsonnode_len(sorted) > 0)
        jsonnode_append(list, jsonnode_remove_at(sorted, 0));
    vec_deinit(&named);
    vec_deinit(&others);
}

/* As the API server prints it: map[a:1 b:2], in the order of the keys. */
static void print_map(struct jsonnode *object, struct strbuf *out)
{
    const char *last = NULL;
    strbuf_adds(out, "map[");
    for (size_t n = 0; n < jsonnode_len(object); n++) {
        const char *next = NULL;
        for (struct jsonnode_iter it = jsonnode_iter(object); jsonnode_next(&it);)
            if ((!last || strcmp(it.key, last) > 0) && (!next || strcmp(it.key, next) < 0))
                next = it.key;
        if (!next)
            break;
        struct jsonnode *value = jsonnode_get(object, next);
        strbuf_addf(out, "%s%s:", n > 0 ? " " : "", next);
        if (jsonnode_is_string(value))
            strbuf_adds(out, jsonnode_str(value));
        else
            jsonnode_print(value, out);
        last = next;
    }
    strbuf_addc(out, ']');
}

static int no_key(struct merging *m, struct jsonnode *element, const char *key)
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    if (jsonnode_is_object(element))
        print_map(element, &text);
    else
        jsonnode_print(element, &text);
    return patch_fail(m->err, 500, "map: %s does not contain declared merge key: %s",
                      strbuf_str(&text), key);
}

static int merge_element(struct merging *m, struct jsonnode *live, struct jsonnode *element,
                         const struct patch_type *type, const char *field, int depth)
{
    const char *what = jsonnode_get_str(element, "$patch");
    size_t at = 0;
    if (!jsonnode_is_object(element) || !jsonnode_get(element, type->keys[0]))
        return str_eq(what, "merge") ? 0 : no_key(m, element, type->keys[0]);
    if (str_eq(what, "delete")) {
        while (patch_find(live, type, PATCH_STRATEGIC, element, &at))
            (void)jsonnode_remove_at(live, at);
        return 0;
    }
    struct jsonnode *there = patch_find(live, type, PATCH_STRATEGIC, element, NULL);
    if (there)
        return merge_object(m, there, element, field, depth + 1);
    if (strip(m, element, depth) < 0)
        return -1;
    jsonnode_append(live, element);
    return 0;
}

/* The patch's elements, taken out of it: they go elsewhere one by one. */
static struct nodes take_all(struct jsonnode *list)
{
    struct nodes out = {0};
    for (struct jsonnode_iter it = jsonnode_iter(list); jsonnode_next(&it);)
        vec_push(&out, it.value);
    clear(list);
    return out;
}

static bool replaces(const struct nodes *elements)
{
    for (size_t i = 0; i < elements->len; i++)
        if (str_eq(jsonnode_get_str(elements->items[i], "$patch"), "replace"))
            return true;
    return false;
}

static int merge_list(struct merging *m, struct jsonnode *live, struct jsonnode *patch,
                      const struct patch_type *type, const char *field, int depth)
{
    struct nodes elements = take_all(patch);
    bool whole = type->list == PATCH_ATOMIC || replaces(&elements);
    int rc = 0;
    if (whole)
        clear(live);
    for (size_t i = 0; i < elements.len && rc == 0; i++) {
        struct jsonnode *e = elements.items[i];
        if (whole) {
            if (jsonnode_get(e, "$patch") && type->list != PATCH_ATOMIC)
                continue;
            rc = strip(m, e, depth);
            jsonnode_append(live, e);
        } else if (type->list == PATCH_SET) {
            if (!patch_find(live, type, PATCH_STRATEGIC, e, NULL))
                jsonnode_append(live, e);
        } else {
            rc = merge_element(m, live, e, type, field, depth);
        }
    }
    vec_deinit(&elements);
    return rc;
}

/* One member of the patch, with the directives that belong to it; patch NULL: only those. */
static int merge_member(struct merging *m, struct jsonnode *live, const char *parent,
                        const char *key, struct jsonnode *patch, struct jsonnode *order,
                        struct jsonnode *deleted, int depth)
{
    const struct patch_type *type = patch_type_of(m->kind, parent, key, PATCH_STRATEGIC);
    struct jsonnode *there = jsonnode_get(live, key);
    /* Without an order of its own the patch's elements come in their order, new ones before what only the live list has. */
    if (!order && jsonnode_is_array(patch) && type->list != PATCH_ATOMIC)
        order = jsonnode_clone(m->t, patch);
    struct jsonnode *before =
        order && jsonnode_is_array(there) ? jsonnode_clone(m->t, there) : NULL;
    size_t at = 0;
    for (struct jsonnode_iter it = jsonnode_iter(deleted); jsonnode_next(&it);)
        while (patch_find(there, type, PATCH_STRATEGIC, it.value, &at))
            (void)jsonnode_remove_at(there, at);
    if (jsonnode_is_null(patch)) {
        (void)jsonnode_remove(live, key);
        return 0;
    }
    if (patch && jsonnode_is_object(patch) && jsonnode_is_object(there)) {
        if (merge_object(m, there, patch, key, depth + 1) < 0)
            return -1;
    } else if (patch && jsonnode_is_array(patch)) {
        if (!jsonnode_is_array(there)) {
            there = jsonnode_array(m->t);
            jsonnode_set(m->t, live, key, there);
        }
        if (merge_list(m, there, patch, type, key, depth + 1) < 0)
            return -1;
    } else if (patch) {
        if (strip(m, patch, depth) < 0)
            return -1;
        jsonnode_set(m->t, live, key, patch);
    }
    if (order && type->list != PATCH_ATOMIC && jsonnode_is_array(jsonnode_get(live, key)))
        set_order(m, jsonnode_get(live, key), before ? before : jsonnode_array(m->t), type, order);
    return 0;
}

static int retain(struct merging *m, struct jsonnode *live, struct jsonnode *keys)
{
    static const struct patch_type values = {.list = PATCH_SET};
    struct VEC(const char *) gone = {0};
    for (struct jsonnode_iter it = jsonnode_iter(live); jsonnode_next(&it);)
        if (!patch_find(keys, &values, PATCH_STRATEGIC, jsonnode_string(m->t, it.key), NULL))
            vec_push(&gone, it.key);
    for (size_t i = 0; i < gone.len; i++)
        (void)jsonnode_remove(live, gone.items[i]);
    vec_deinit(&gone);
    return 0;
}

struct member {
    const char *key;
    struct jsonnode *patch, *order, *deleted;
};
struct members VEC(struct member);

static struct member *member_of(struct members *list, const char *key)
{
    for (size_t i = 0; i < list->len; i++)
        if (str_eq(list->items[i].key, key))
            return &list->items[i];
    vec_push(list, ((struct member){.key = key}));
    return &list->items[list->len - 1];
}

/* A patch's members, each with its directives. */
static struct members members_of(struct jsonnode *patch)
{
    struct members list = {0};
    for (struct jsonnode_iter it = jsonnode_iter(patch); jsonnode_next(&it);) {
        if (str_starts(it.key, ORDER))
            member_of(&list, it.key + strlen(ORDER))->order = it.value;
        else if (str_starts(it.key, DELETE))
            member_of(&list, it.key + strlen(DELETE))->deleted = it.value;
        else if (!is_directive(it.key))
            member_of(&list, it.key)->patch = it.value;
    }
    return list;
}

static int merge_object(struct merging *m, struct jsonnode *live, struct jsonnode *patch,
                        const char *field, int depth)
{
    if (depth > JSON_MAX_DEPTH)
        return patch_fail(m->err, 400, "patch is nested deeper than %d levels", JSON_MAX_DEPTH);
    struct jsonnode *directive = jsonnode_get(patch, "$patch");
    const char *what = jsonnode_str(directive);
    if (directive && !str_eq(what, "merge")) {
        if (!str_eq(what, "replace") && !str_eq(what, "delete"))
            return patch_fail(m->err, 500, "unknown patch type: %s in map: map[$patch:%s]",
                              str_or_empty(what), str_or_empty(what));
        clear_object(live);
        if (str_eq(what, "delete"))
            return 0;
        (void)jsonnode_remove(patch, "$patch");
    }
    struct jsonnode *keys = jsonnode_get(patch, "$retainKeys");
    if (keys && retain(m, live, keys) < 0)
        return -1;
    struct members list = members_of(patch);
    int rc = 0;
    for (size_t i = 0; i < list.len && rc == 0; i++) {
        struct member *it = &list.items[i];
        rc = merge_member(m, live, field, it->key, it->patch, it->order, it->deleted, depth);
    }
    vec_deinit(&list);
    return rc;
}

int patch_strategic(struct jsontree *t, const char *kind, json *patch, struct error *err)
{
    struct merging m = {t, kind, err};
    if (!json_is_object(patch))
        return patch_fail(err, 400,
                          "json: cannot unmarshal %s into Go value of type map[string]interface {}",
                          json_kind_name(patch));
    if (!jsonnode_is_object(jsontree_root(t)))
        jsontree_set_root(t, jsonnode_object(t));
    return merge_object(&m, jsontree_root(t), jsonnode_copy(t, patch), "", 0);
}

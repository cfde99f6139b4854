// SPDX-License-Identifier: Apache-2.0
/*
 * patch_strategic - Kubernetes' own merge: like RFC 7386 for objects, but lists of objects merge
 * element by element by a key, and directives in the patch say what a merge cannot:
 *
 *     "$patch": "delete"                       of a list's element: it goes; of an object: it
 *                                              becomes empty
 *     "$patch": "replace"                      of an object: the rest of the patch takes its place;
 *                                              as an element of a list: the other elements take the
 *                                              list's place
 *     "$deleteFromPrimitiveList/finalizers"    values that go
 *     "$setElementOrder/containers"            the order of the list afterwards; the patch's own
 *                                              elements are in it, in that order
 *     "$retainKeys"                            the only keys that stay (a union: one volume source,
 *                                              one strategy)
 *
 * An object with "$patch" where nothing was becomes an empty one, and a list where none was is
 * taken as it is (tried).
 *
 * The patch is copied into the tree first; its nodes then move to where they belong. Recursion
 * follows the patch, whose depth is bounded. Elements are found by the text of their key, in a map:
 * lists may be long, and each with each would take minutes.
 */
#include "test/local/patch/patch.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "test/local/patch/patch_index.h"
#include "test/local/patch/patch_keys.h"

static const char ORDER[] = "$setElementOrder/";
static const char DELETE[] = "$deleteFromPrimitiveList/";

struct merging {
    struct jsontree *t;
    const char *kind;
    struct error *err;
};

static int merge_object(struct merging *m, struct jsonnode *live, struct jsonnode *patch,
                        const char *field, int depth);

static bool is_directive(const char *key)
{
    return str_eq(key, "$patch") || str_eq(key, "$retainKeys") || str_starts(key, ORDER) ||
           str_starts(key, DELETE);
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

/* What is put where nothing was carries no directives and no nulls; what has "$patch" is empty, or
 * as an element no element. */
static int strip(struct merging *m, struct jsonnode *n, int depth)
{
    if (depth > JSON_MAX_DEPTH)
        return patch_fail(m->err, 400, "patch is nested deeper than %d levels", JSON_MAX_DEPTH);
    struct VEC(const char *) gone = {0};
    struct patch_nodes kept = {0};
    bool object = jsonnode_is_object(n);
    int rc = 0;
    if (object && jsonnode_get(n, "$patch"))
        clear_object(n);
    for (struct jsonnode_iter it = jsonnode_iter(n); rc == 0 && jsonnode_next(&it);) {
        if (object && (is_directive(it.key) || jsonnode_is_null(it.value)))
            vec_push(&gone, it.key);
        else if (object || !jsonnode_get(it.value, "$patch"))
            rc = strip(m, it.value, depth + 1);
        if (!object && !jsonnode_get(it.value, "$patch"))
            vec_push(&kept, it.value);
    }
    for (size_t i = 0; i < gone.len; i++)
        (void)jsonnode_remove(n, gone.items[i]);
    if (jsonnode_is_array(n) && kept.len < jsonnode_len(n))
        patch_index_fill(n, &kept);
    vec_deinit(&gone);
    vec_deinit(&kept);
    return rc;
}

/*
 * What the order names comes in that order; what only the live list had keeps its place relative to
 * those: each such element goes before the first named one that it was before.
 */
static void set_order(struct jsonnode *list, struct jsonnode *before, const struct patch_type *type,
                      struct jsonnode *order)
{
    struct patch_index now, was, wanted;
    struct patch_nodes named = {0}, others = {0}, sorted = {0};
    patch_index_init(&now, type, PATCH_STRATEGIC, list);
    patch_index_init(&was, type, PATCH_STRATEGIC, before);
    patch_index_init(&wanted, type, PATCH_STRATEGIC, order);
    size_t place = 0;
    for (size_t i = 0; i < wanted.elements.len; i++) {
        struct jsonnode *n = patch_index_get(&now, wanted.elements.items[i], NULL);
        (void)patch_index_get(&wanted, wanted.elements.items[i], &place);
        if (n && place == i) /* once, though it were named twice */
            vec_push(&named, n);
    }
    for (size_t i = 0; i < now.elements.len; i++)
        if (!patch_index_get(&wanted, now.elements.items[i], NULL))
            vec_push(&others, now.elements.items[i]);
    size_t i = 0;
    size_t j = 0;
    while (i < others.len || j < named.len) {
        bool other = j == named.len;
        if (!other && i < others.len) {
            size_t mine = SIZE_MAX;
            size_t its = SIZE_MAX;
            (void)patch_index_get(&was, others.items[i], &mine);
            (void)patch_index_get(&was, named.items[j], &its);
            other = mine != SIZE_MAX && its != SIZE_MAX && mine < its;
        }
        vec_push(&sorted, other ? others.items[i++] : named.items[j++]);
    }
    patch_index_fill(list, &sorted);
    vec_deinit(&named);
    vec_deinit(&others);
    vec_deinit(&sorted);
    patch_index_deinit(&now);
    patch_index_deinit(&was);
    patch_index_deinit(&wanted);
}

/* ---- sentences ---- */

/* As the API server prints it: map[a:1 b:2], in the order of the keys. */
static void print_map(struct jsonnode *object, struct strbuf *out)
{
    const char *last = NULL;
    strbuf_adds(out, "map[");
    for (size_t n = 0; n < jsonnode_len(object) && out->len < ERROR_TEXT_SIZE; n++) {
        const char *next = NULL;
        for (struct jsonnode_iter it = jsonnode_iter(object); jsonnode_next(&it);)
            if ((!last || strcmp(it.key, last) > 0) && (!next || strcmp(it.key, next) < 0))
                next = it.key;
        if (!next)
            break;
        struct jsonnode *value = jsonnode_get(object, next);
        strbuf_addf(out, "%s%s:", n > 0 ? " " : "", next);
        if (jsonnode_is_string(value))
            strbuf_adds(out, str_or_empty(jsonnode_str(value)));
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

/* Go's %v of a list. */
static void print_list(struct jsonnode *list, struct strbuf *out)
{
    bool blank = false;
    strbuf_addc(out, '[');
    for (struct jsonnode_iter it = jsonnode_iter(list);
         out->len < ERROR_TEXT_SIZE && jsonnode_next(&it); blank = true) {
        strbuf_adds(out, blank ? " " : "");
        if (jsonnode_is_object(it.value))
            print_map(it.value, out);
        else if (jsonnode_is_string(it.value))
            strbuf_adds(out, str_or_empty(jsonnode_str(it.value)));
        else
            jsonnode_print(it.value, out);
    }
    strbuf_addc(out, ']');
}

static int unknown_directive(struct merging *m, struct jsonnode *patch)
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    print_map(patch, &text);
    return patch_fail(m->err, 500, "unknown patch type: %s in map: %s",
                      str_or_empty(jsonnode_get_str(patch, "$patch")), strbuf_str(&text));
}

/* The patch's elements are all named by the order, and follow each other as they do there. */
static int check_order(struct merging *m, const struct patch_type *type, struct jsonnode *patch,
                       struct jsonnode *order)
{
    struct patch_index wanted;
    size_t last = 0;
    bool fits = true;
    if (!jsonnode_is_array(order))
        return patch_fail(m->err, 500, "expected a []interface {}, but received a %s",
                          jsonnode_is_string(order)   ? "string"
                          : jsonnode_is_object(order) ? "map[string]interface {}"
                          : jsonnode_is_bool(order)   ? "bool"
                                                      : "int64");
    patch_index_init(&wanted, type, PATCH_STRATEGIC, order);
    for (struct jsonnode_iter it = jsonnode_iter(patch); fits && jsonnode_next(&it);) {
        size_t place = SIZE_MAX;
        if (jsonnode_get(it.value, "$patch"))
            continue;
        (void)patch_index_get(&wanted, it.value, &place);
        fits = place != SIZE_MAX && place >= last;
        last = place;
    }
    patch_index_deinit(&wanted);
    if (fits)
        return 0;
    AUTO_STRBUF text;
    strbuf_init(&text);
    strbuf_adds(&text, "The order in patch list:\n");
    print_list(patch, &text);
    strbuf_adds(&text, "\n doesn't match $setElementOrder list:\n");
    print_list(order, &text);
    return patch_fail(m->err, 500, "%s\n", strbuf_str(&text));
}

/* ---- merging ---- */

static int merge_element(struct merging *m, struct patch_index *live, struct jsonnode *element,
                         const struct patch_type *type, const char *field, int depth)
{
    const char *what = jsonnode_get_str(element, "$patch");
    if (type->list == PATCH_SET) {
        if (!patch_index_get(live, element, NULL))
            patch_index_add(live, element);
        return 0;
    }
    if (!jsonnode_is_object(element) || !jsonnode_get(element, type->keys[0]))
        return str_eq(what, "merge") ? 0 : no_key(m, element, type->keys[0]);
    if (str_eq(what, "delete")) {
        patch_index_drop(live, element);
        return 0;
    }
    struct jsonnode *there = patch_index_get(live, element, NULL);
    if (!there || str_eq(what, "merge"))
        (void)jsonnode_remove(element, "$patch");
    if (there)
        return merge_object(m, there, element, field, depth + 1);
    if (strip(m, element, depth) < 0)
        return -1;
    patch_index_add(live, element);
    return 0;
}

static bool replaces(struct jsonnode *list)
{
    for (struct jsonnode_iter it = jsonnode_iter(list); jsonnode_next(&it);)
        if (str_eq(jsonnode_get_str(it.value, "$patch"), "replace"))
            return true;
    return false;
}

/* A list that replaces another. */
static int replace_list(struct merging *m, struct jsonnode *live, struct jsonnode *patch,
                        const struct patch_type *type, int depth)
{
    struct patch_nodes kept = {0};
    int rc = 0;
    for (struct jsonnode_iter it = jsonnode_iter(patch); jsonnode_next(&it);)
        if (type->list == PATCH_ATOMIC || !jsonnode_get(it.value, "$patch"))
            vec_push(&kept, it.value);
    for (size_t i = 0; i < kept.len && rc == 0; i++)
        rc = strip(m, kept.items[i], depth);
    patch_index_fill(live, &kept);
    vec_deinit(&kept);
    return rc;
}

static int merge_list(struct merging *m, struct jsonnode *live, struct jsonnode *patch,
                      const struct patch_type *type, const char *field, int depth)
{
    struct patch_index there;
    struct patch_nodes elements = {0};
    int rc = 0;
    if (type->list == PATCH_ATOMIC || replaces(patch))
        return replace_list(m, live, patch, type, depth);
    for (struct jsonnode_iter it = jsonnode_iter(patch); jsonnode_next(&it);)
        vec_push(&elements, it.value); /* they go elsewhere one by one */
    patch_index_init(&there, type, PATCH_STRATEGIC, live);
    for (size_t i = 0; i < elements.len && rc == 0; i++)
        rc = merge_element(m, &there, elements.items[i], type, field, depth);
    patch_index_fill(live, &there.elements);
    patch_index_deinit(&there);
    vec_deinit(&elements);
    return rc;
}

static void drop_values(struct jsonnode *list, const struct patch_type *type,
                        struct jsonnode *values)
{
    struct patch_index there;
    if (jsonnode_len(values) == 0 || !jsonnode_is_array(list))
        return;
    patch_index_init(&there, type, PATCH_STRATEGIC, list);
    for (struct jsonnode_iter it = jsonnode_iter(values); jsonnode_next(&it);)
        patch_index_drop(&there, it.value);
    patch_index_fill(list, &there.elements);
    patch_index_deinit(&there);
}

/* What the patch has where nothing was. */
static int put_new(struct merging *m, struct jsonnode *live, const char *key,
                   struct jsonnode *patch, int depth)
{
    if (strip(m, patch, depth) < 0)
        return -1;
    jsonnode_set(m->t, live, key, patch);
    return 0;
}

/* One member of the patch, with the directives that belong to it; patch NULL: only those. */
static int merge_member(struct merging *m, struct jsonnode *live, const char *parent,
                        const char *key, struct jsonnode *patch, struct jsonnode *order,
                        struct jsonnode *deleted, int depth)
{
    const struct patch_type *type = patch_type_of(m->kind, parent, key, PATCH_STRATEGIC);
    struct jsonnode *there = jsonnode_get(live, key);
    bool merges = type->list != PATCH_ATOMIC;
    if (order && merges && check_order(m, type, patch, order) < 0)
        return -1;
    /* Without an order of its own the patch's elements come in their order, new ones before what
     * only the live list has. */
    if (!order && jsonnode_is_array(patch) && merges)
        order = jsonnode_clone(m->t, patch);
    struct jsonnode *before =
        order && jsonnode_is_array(there) ? jsonnode_clone(m->t, there) : NULL;
    drop_values(there, type, deleted);
    if (jsonnode_is_null(patch)) {
        (void)jsonnode_remove(live, key);
        return 0;
    }
    if (!patch && !there)
        return 0;
    if (patch && jsonnode_is_object(patch) && jsonnode_is_object(there))
        return merge_object(m, there, patch, key, depth + 1);
    if (patch && jsonnode_is_array(patch) && jsonnode_is_array(there)) {
        if (merge_list(m, there, patch, type, key, depth + 1) < 0)
            return -1;
    } else if (patch) {
        return put_new(m, live, key, patch, depth);
    }
    if (order && merges && before)
        set_order(jsonnode_get(live, key), before, type, order);
    return 0;
}

static void retain(struct merging *m, struct jsonnode *live, struct jsonnode *keys)
{
    static const struct patch_type values = {.list = PATCH_SET};
    struct VEC(const char *) gone = {0};
    struct patch_index wanted;
    patch_index_init(&wanted, &values, PATCH_STRATEGIC, keys);
    for (struct jsonnode_iter it = jsonnode_iter(live); jsonnode_next(&it);)
        if (!patch_index_get(&wanted, jsonnode_string(m->t, it.key), NULL))
            vec_push(&gone, it.key);
    for (size_t i = 0; i < gone.len; i++)
        (void)jsonnode_remove(live, gone.items[i]);
    patch_index_deinit(&wanted);
    vec_deinit(&gone);
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
    if (directive) {
        if (!str_eq(what, "replace") && !str_eq(what, "delete"))
            return unknown_directive(m, patch);
        clear_object(live);
        if (str_eq(what, "delete"))
            return 0;
        (void)jsonnode_remove(patch, "$patch");
    }
    struct jsonnode *keys = jsonnode_get(patch, "$retainKeys");
    if (keys)
        retain(m, live, keys);
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

// SPDX-License-Identifier: Apache-2.0
/*
 * A tree owns the document that it was parsed from, and its nodes point at strings and digits
 * there. Parsing is one pass and copies no string, since most objects are read, changed slightly
 * and printed.
 */
#include "test/local/patch/jsonnode.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/jsontree_internal.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"

/* The immutable document is an array of values in text order, and so is the mutable copy: node i of
 * one is node i of the other, and only links must be set. `open` is the stack of containers. */
struct frame {
    yyjson_mut_val *container;
    yyjson_mut_val *last; /* last key or element; NULL: none yet */
    size_t left;          /* values, including keys */
};
struct frames VEC(struct frame);

static void link_value(struct frame *f, yyjson_mut_val *v, bool is_key)
{
    bool object = unsafe_yyjson_is_obj(f->container);
    if (object && !is_key) {
        f->last->next = v; /* last is its key */
    } else {
        if (f->last) {
            yyjson_mut_val *tail = object ? f->last->next : f->last;
            tail->next = v;
        } else {
            f->container->uni.ptr = v; /* the first, until the ring is closed */
        }
        f->last = v;
    }
    f->left--;
}

static void close_ring(struct frame *f)
{
    if (!f->last)
        return;
    yyjson_mut_val *first = f->container->uni.ptr;
    yyjson_mut_val *tail = unsafe_yyjson_is_obj(f->container) ? f->last->next : f->last;
    tail->next = first;
    f->container->uni.ptr = f->last;
}

static yyjson_mut_val *borrow(yyjson_mut_doc *doc, yyjson_val *root, size_t n)
{
    yyjson_mut_val *nodes = jsontree_must(unsafe_yyjson_mut_val(doc, n));
    struct frames open = {0};
    for (size_t i = 0; i < n; i++) {
        yyjson_val *from = root + i;
        yyjson_mut_val *to = nodes + i;
        to->tag = from->tag;
        to->uni = from->uni;
        to->next = NULL;
        if (open.len > 0) {
            struct frame *f = &open.items[open.len - 1];
            link_value(f, to, unsafe_yyjson_is_obj(f->container) && f->left % 2 == 0);
        }
        if (unsafe_yyjson_is_ctn(from)) {
            size_t members = unsafe_yyjson_get_len(from);
            to->uni.ptr = NULL;
            vec_push(&open, ((struct frame){to, NULL,
                                            unsafe_yyjson_is_obj(from) ? 2 * members : members}));
        }
        while (open.len > 0 && open.items[open.len - 1].left == 0)
            close_ring(&open.items[--open.len]);
    }
    vec_deinit(&open);
    return nodes;
}

int jsontree_parse(struct jsontree **out, const char *text, size_t n, struct error *err)
{
    *out = NULL;
    struct json_doc *doc = NULL;
    if (json_parse(&doc, text, n, err) < 0)
        return -1;
    struct jsontree *t = jsontree_new();
    t->parsed = (yyjson_doc *)(void *)doc; /* as in json.c */
    t->doc->root =
        borrow(t->doc, yyjson_doc_get_root(t->parsed), yyjson_doc_get_val_count(t->parsed));
    *out = t;
    return 0;
}

struct jsonnode *jsontree_root(struct jsontree *t)
{
    return jsontree_node(t->doc->root);
}

void jsontree_set_root(struct jsontree *t, struct jsonnode *n)
{
    t->doc->root = jsontree_val(n);
}

void jsontree_print(struct jsontree *t, struct strbuf *out)
{
    jsonnode_print(jsontree_root(t), out);
}

void jsonnode_print(struct jsonnode *n, struct strbuf *out)
{
    if (!n) {
        strbuf_adds(out, "null");
        return;
    }
    size_t len = 0;
    /* Strings in a tree are valid UTF-8: parsed, or cleaned when created. */
    char *text = jsontree_must(yyjson_mut_val_write(jsontree_val(n), YYJSON_WRITE_NOFLAG, &len));
    strbuf_add(out, text, len);
    free(text);
}

struct jsonnode *jsonnode_integer(struct jsontree *t, int64_t n)
{
    char text[24];
    (void)str_format(text, sizeof text, "%lld", (long long)n);
    return jsontree_must(jsontree_node(yyjson_mut_rawcpy(t->doc, text)));
}

struct jsonnode *jsonnode_boolean(struct jsontree *t, bool b)
{
    return jsontree_must(jsontree_node(yyjson_mut_bool(t->doc, b)));
}

static yyjson_mut_val *clone_one(yyjson_mut_doc *doc, yyjson_mut_val *from)
{
    size_t n = unsafe_yyjson_get_len(from);
    switch (unsafe_yyjson_get_type(from)) {
    case YYJSON_TYPE_OBJ:
        return jsontree_must(yyjson_mut_obj(doc));
    case YYJSON_TYPE_ARR:
        return jsontree_must(yyjson_mut_arr(doc));
    case YYJSON_TYPE_STR:
        return jsontree_must(yyjson_mut_strncpy(doc, unsafe_yyjson_get_str(from), n));
    case YYJSON_TYPE_RAW:
        return jsontree_must(yyjson_mut_rawncpy(doc, unsafe_yyjson_get_raw(from), n));
    case YYJSON_TYPE_BOOL:
        return jsontree_must(yyjson_mut_bool(doc, unsafe_yyjson_get_bool(from)));
    default:
        return jsontree_must(yyjson_mut_null(doc));
    }
}

struct pair {
    yyjson_mut_val *a, *b;
};
struct pairs VEC(struct pair);

struct jsonnode *jsonnode_clone(struct jsontree *t, const struct jsonnode *n)
{
    if (!n)
        return NULL;
    struct pairs todo = {0};
    yyjson_mut_val *root = clone_one(t->doc, jsontree_val(n));
    vec_push(&todo, ((struct pair){jsontree_val(n), root}));
    while (todo.len > 0) {
        struct pair p = todo.items[--todo.len];
        if (!unsafe_yyjson_is_ctn(p.a))
            continue;
        size_t left = unsafe_yyjson_get_len(p.a);
        bool object = unsafe_yyjson_is_obj(p.a);
        yyjson_mut_val *at = p.a->uni.ptr; /* the last; the first follows it */
        for (; left > 0; left--) {
            at = object ? at->next->next : at->next;
            yyjson_mut_val *from = object ? at->next : at;
            yyjson_mut_val *to = clone_one(t->doc, from);
            if (object)
                (void)yyjson_mut_obj_add(p.b, clone_one(t->doc, at), to);
            else
                (void)yyjson_mut_arr_append(p.b, to);
            vec_push(&todo, ((struct pair){from, to}));
        }
    }
    vec_deinit(&todo);
    return jsontree_node(root);
}

bool jsonnode_is_string(const struct jsonnode *n)
{
    return yyjson_mut_is_str(jsontree_val(n));
}

bool jsonnode_is_number(const struct jsonnode *n)
{
    return yyjson_mut_is_raw(jsontree_val(n));
}

bool jsonnode_is_bool(const struct jsonnode *n)
{
    return yyjson_mut_is_bool(jsontree_val(n));
}

bool jsonnode_is_null(const struct jsonnode *n)
{
    return yyjson_mut_is_null(jsontree_val(n));
}

const char *jsonnode_number_text(const struct jsonnode *n)
{
    return yyjson_mut_get_raw(jsontree_val(n));
}

bool jsonnode_int(const struct jsonnode *n, int64_t *out)
{
    const char *text = jsonnode_number_text(n);
    return text && num_parse(text, unsafe_yyjson_get_len(jsontree_val(n)), out, NULL) == 0;
}

bool jsonnode_bool(const struct jsonnode *n, bool fallback)
{
    return jsonnode_is_bool(n) ? yyjson_mut_get_bool(jsontree_val(n)) : fallback;
}

static bool same_bytes(yyjson_mut_val *a, yyjson_mut_val *b)
{
    size_t n = unsafe_yyjson_get_len(a);
    return n == unsafe_yyjson_get_len(b) &&
           memcmp(unsafe_yyjson_get_raw(a), unsafe_yyjson_get_raw(b), n) == 0;
}

/* By key, then by address, so the order is total. */
static int compare_keys(const void *a, const void *b)
{
    yyjson_mut_val *const *ka = a;
    yyjson_mut_val *const *kb = b;
    size_t na = unsafe_yyjson_get_len(*ka);
    size_t nb = unsafe_yyjson_get_len(*kb);
    int c = memcmp(unsafe_yyjson_get_str(*ka), unsafe_yyjson_get_str(*kb), na < nb ? na : nb);
    if (c == 0)
        c = (na > nb) - (na < nb);
    return c != 0 ? c : (*ka > *kb) - (*ka < *kb);
}

static yyjson_mut_val **sorted_keys(yyjson_mut_val *key, size_t n)
{
    yyjson_mut_val **keys = mem_new(yyjson_mut_val *, n);
    for (size_t i = 0; i < n; i++, key = key->next->next)
        keys[i] = key;
    qsort(keys, n, sizeof *keys, compare_keys);
    return keys;
}

/* As in json.c: sorts from the first key that differs. */
static bool pair_members(struct pairs *todo, yyjson_mut_val *a, yyjson_mut_val *b)
{
    size_t left = unsafe_yyjson_get_len(a);
    if (left == 0)
        return true;
    yyjson_mut_val *ka = ((yyjson_mut_val *)a->uni.ptr)->next->next;
    yyjson_mut_val *kb = ((yyjson_mut_val *)b->uni.ptr)->next->next;
    for (; left > 0 && same_bytes(ka, kb); left--) {
        vec_push(todo, ((struct pair){ka->next, kb->next}));
        ka = ka->next->next;
        kb = kb->next->next;
    }
    if (left == 0)
        return true;
    yyjson_mut_val **as = sorted_keys(ka, left);
    yyjson_mut_val **bs = sorted_keys(kb, left);
    bool same = true;
    for (size_t i = 0; i < left && same; i++) {
        same = same_bytes(as[i], bs[i]);
        vec_push(todo, ((struct pair){as[i]->next, bs[i]->next}));
    }
    free(as);
    free(bs);
    return same;
}

static void pair_elements(struct pairs *todo, yyjson_mut_val *a, yyjson_mut_val *b)
{
    yyjson_mut_val *ea = a->uni.ptr;
    yyjson_mut_val *eb = b->uni.ptr;
    for (size_t left = unsafe_yyjson_get_len(a); left > 0; left--) {
        ea = ea->next;
        eb = eb->next;
        vec_push(todo, ((struct pair){ea, eb}));
    }
}

static bool same_so_far(struct pairs *todo, yyjson_mut_val *a, yyjson_mut_val *b)
{
    if (unsafe_yyjson_get_type(a) != unsafe_yyjson_get_type(b))
        return false;
    switch (unsafe_yyjson_get_type(a)) {
    case YYJSON_TYPE_OBJ:
        return unsafe_yyjson_get_len(a) == unsafe_yyjson_get_len(b) && pair_members(todo, a, b);
    case YYJSON_TYPE_ARR:
        if (unsafe_yyjson_get_len(a) != unsafe_yyjson_get_len(b))
            return false;
        pair_elements(todo, a, b);
        return true;
    case YYJSON_TYPE_STR:
    case YYJSON_TYPE_RAW:
        return same_bytes(a, b);
    case YYJSON_TYPE_BOOL:
        return unsafe_yyjson_get_bool(a) == unsafe_yyjson_get_bool(b);
    default:
        return true;
    }
}

bool jsonnode_equal(const struct jsonnode *a, const struct jsonnode *b)
{
    if (!a || !b)
        return a == b;
    struct pairs todo = {0};
    bool same = true;
    vec_push(&todo, ((struct pair){jsontree_val(a), jsontree_val(b)}));
    while (same && todo.len > 0) {
        struct pair next = todo.items[--todo.len];
        same = same_so_far(&todo, next.a, next.b);
    }
    vec_deinit(&todo);
    return same;
}

size_t jsonnode_len(const struct jsonnode *n)
{
    return yyjson_mut_is_ctn(jsontree_val(n)) ? unsafe_yyjson_get_len(jsontree_val(n)) : 0;
}

void jsonnode_set_int(struct jsontree *t, struct jsonnode *obj, const char *key, int64_t n)
{
    jsonnode_set(t, obj, key, jsonnode_integer(t, n));
}

struct jsonnode *jsonnode_need_path(struct jsontree *t, struct jsonnode *obj, ...)
{
    va_list ap;
    va_start(ap, obj);
    for (const char *key; (key = va_arg(ap, const char *)) != NULL;)
        obj = jsonnode_need_object(t, obj, key);
    va_end(ap);
    return obj;
}

struct jsonnode *jsonnode_path(const struct jsonnode *obj, ...)
{
    va_list ap;
    va_start(ap, obj);
    struct jsonnode *at = jsontree_node(jsontree_val(obj));
    for (const char *key; at && (key = va_arg(ap, const char *)) != NULL;)
        at = jsonnode_get(at, key);
    va_end(ap);
    return at;
}

struct jsonnode *jsonnode_remove(struct jsonnode *obj, const char *key)
{
    return jsontree_node(yyjson_mut_obj_remove_keyn(jsontree_val(obj), key, strlen(key)));
}

struct jsonnode_iter jsonnode_iter(struct jsonnode *n)
{
    yyjson_mut_val *v = jsontree_val(n);
    if (!yyjson_mut_is_ctn(v))
        return (struct jsonnode_iter){0};
    return (struct jsonnode_iter){
        .at_ = v->uni.ptr,
        .left_ = unsafe_yyjson_get_len(v),
        .object_ = unsafe_yyjson_is_obj(v),
    };
}

bool jsonnode_next(struct jsonnode_iter *it)
{
    if (it->left_ == 0)
        return false;
    it->left_--;
    yyjson_mut_val *at = it->at_;
    at = it->object_ ? at->next->next : at->next;
    it->at_ = at;
    it->key = it->object_ ? unsafe_yyjson_get_str(at) : NULL;
    it->value = jsontree_node(it->object_ ? at->next : at);
    return true;
}

struct jsonnode *jsonnode_at(const struct jsonnode *arr, size_t i)
{
    return jsontree_node(yyjson_mut_arr_get(jsontree_val(arr), i));
}

bool jsonnode_insert(struct jsonnode *arr, size_t i, struct jsonnode *value)
{
    return yyjson_mut_arr_insert(jsontree_val(arr), jsontree_val(value), i);
}

bool jsonnode_replace_at(struct jsonnode *arr, size_t i, struct jsonnode *value)
{
    return value && yyjson_mut_arr_replace(jsontree_val(arr), i, jsontree_val(value)) != NULL;
}

struct jsonnode *jsonnode_remove_at(struct jsonnode *arr, size_t i)
{
    return jsontree_node(yyjson_mut_arr_remove(jsontree_val(arr), i));
}

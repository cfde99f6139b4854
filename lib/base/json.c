// SPDX-License-Identifier: Apache-2.0
/*
 * Reading with yyjson. struct json_value is a yyjson_val and struct json_doc a yyjson_doc, which
 * keeps yyjson out of other files. yyjson stores a document as an array of 16-byte values in text
 * order. A container knows where it ends, so accessors only move a pointer and allocate nothing:
 *
 *     {"a": [1, 2], "b": true}   →   {2 | "a" | [2 | 1 | 2 | "b" | true
 *
 * Numbers are read as text (YYJSON_READ_NUMBER_AS_RAW): the value points at the digits in yyjson's
 * copy of the input, which yyjson NUL-terminates in both parsing modes. Nothing recurses, since a
 * hostile document may nest a million levels: json_equal and json_put_value use the heap.
 */
#include "lib/base/json.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "lib/base/num.h"
#include "lib/base/vec.h"

_Static_assert((int)JSON_PADDING >= YYJSON_PADDING_SIZE,
               "yyjson reads past the end of what it parses in place");

/* yyjson's readers take non-const pointers but change nothing. */
static yyjson_val *val_of(json *v)
{
    return (yyjson_val *)(uintptr_t)v;
}

static json *json_of(const yyjson_val *v)
{
    return (json *)(const void *)v;
}

#ifdef ARENA_DEBUG
static const bool keeps_memory = !ARENA_DEBUG; /* so that sanitizers see use after free */
#else
static const bool keeps_memory = true;
#endif

static void *take_block(void *ctx, size_t size)
{
    struct json_memory *m = ctx;
    if (m->lent)
        return malloc(size);
    if (size > m->size) {
        free(m->block);
        m->block = malloc(size);
        m->size = m->block ? size : 0;
    }
    m->lent = m->block != NULL;
    return m->block;
}

static void *resize_block(void *ctx, void *block, size_t old_size, size_t size)
{
    struct json_memory *m = ctx;
    (void)old_size;
    if (block == NULL || block != m->block)
        return realloc(block, size);
    if (size <= m->size)
        return block;
    void *larger = realloc(block, size);
    if (larger) {
        m->block = larger;
        m->size = size;
    }
    return larger;
}

static void drop_block(struct json_memory *m)
{
    free(m->block);
    m->block = NULL;
    m->size = 0;
}

static void give_block(void *ctx, void *block)
{
    struct json_memory *m = ctx;
    if (block != m->block) {
        free(block);
        return;
    }
    m->lent = false;
    if (m->size > m->keep || !keeps_memory)
        drop_block(m);
}

void json_memory_deinit(struct json_memory *m)
{
    drop_block(m);
}

static int parse(struct json_doc **out, char *text, size_t n, yyjson_read_flag flags,
                 const yyjson_alc *memory, struct error *err)
{
    yyjson_read_err why = {0};
    *out = NULL;
    yyjson_doc *doc = NULL;
    if (n == 0)
        why.code = YYJSON_READ_ERROR_EMPTY_CONTENT; /* text may be NULL */
    else
        doc = yyjson_read_opts(text, n, YYJSON_READ_NUMBER_AS_RAW | flags, memory, &why);
    if (!doc) {
        if (why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
            abort();
        if (why.code == YYJSON_READ_ERROR_EMPTY_CONTENT)
            return error_set(err, ERROR_INVALID, "not JSON: it is empty");
        return error_set(err, ERROR_INVALID, "not JSON: byte %zu: %s", why.pos, why.msg);
    }
    *out = (struct json_doc *)(void *)doc;
    return 0;
}

int json_parse(struct json_doc **out, const char *text, size_t n, struct error *err)
{
    return parse(out, (char *)(uintptr_t)text, n, 0, NULL, err); /* not written without INSITU */
}

int json_parse_insitu(struct json_doc **out, char *buf, size_t n, struct error *err)
{
    memset(buf + n, 0, YYJSON_PADDING_SIZE);
    return parse(out, buf, n, YYJSON_READ_INSITU, NULL, err);
}

int json_parse_within(struct json_doc **out, char *buf, size_t n, struct json_memory *m,
                      struct error *err)
{
    const yyjson_alc memory = {take_block, resize_block, give_block, m};
    memset(buf + n, 0, YYJSON_PADDING_SIZE);
    return parse(out, buf, n, YYJSON_READ_INSITU, &memory, err);
}

void json_free(struct json_doc *doc)
{
    yyjson_doc_free((yyjson_doc *)(void *)doc);
}

json *json_root(const struct json_doc *doc)
{
    return json_of(yyjson_doc_get_root((yyjson_doc *)(uintptr_t)doc));
}

bool json_is_object(json *v)
{
    return yyjson_is_obj(val_of(v));
}

bool json_is_array(json *v)
{
    return yyjson_is_arr(val_of(v));
}

bool json_is_string(json *v)
{
    return yyjson_is_str(val_of(v));
}

bool json_is_number(json *v)
{
    return yyjson_is_raw(val_of(v));
}

bool json_is_bool(json *v)
{
    return yyjson_is_bool(val_of(v));
}

bool json_is_null(json *v)
{
    return yyjson_is_null(val_of(v));
}

const char *json_kind_name(json *v)
{
    switch (yyjson_get_type(val_of(v))) {
    case YYJSON_TYPE_OBJ:
        return "object";
    case YYJSON_TYPE_ARR:
        return "array";
    case YYJSON_TYPE_STR:
        return "string";
    case YYJSON_TYPE_RAW:
        return "number";
    case YYJSON_TYPE_BOOL:
        return "boolean";
    case YYJSON_TYPE_NULL:
        return "null";
    default:
        return "nothing";
    }
}

json *json_get(json *obj, const char *key)
{
    return json_of(yyjson_obj_getn(val_of(obj), key, strlen(key)));
}

json *json_path(json *obj, const char *const *keys)
{
    for (; *keys && obj; keys++)
        obj = json_get(obj, *keys);
    return obj;
}

json *json_at(json *arr, size_t i)
{
    return json_of(yyjson_arr_get(val_of(arr), i));
}

size_t json_len(json *v)
{
    return yyjson_is_ctn(val_of(v)) ? unsafe_yyjson_get_len(val_of(v)) : 0;
}

/* yyjson marks strings without escapes; a NUL needs an escape. */
static bool has_no_nul(yyjson_val *s)
{
    if (unsafe_yyjson_get_subtype(s) == YYJSON_SUBTYPE_NOESC)
        return true;
    return !memchr(unsafe_yyjson_get_str(s), '\0', unsafe_yyjson_get_len(s));
}

const char *json_str(json *v)
{
    yyjson_val *s = val_of(v);
    return s && unsafe_yyjson_is_str(s) && has_no_nul(s) ? unsafe_yyjson_get_str(s) : NULL;
}

size_t json_str_len(json *v)
{
    return json_str(v) ? unsafe_yyjson_get_len(val_of(v)) : 0;
}

const char *json_get_str(json *obj, const char *key)
{
    return json_str(json_get(obj, key));
}

const char *json_number_text(json *v)
{
    return yyjson_get_raw(val_of(v));
}

bool json_int(json *v, int64_t *out)
{
    const char *text = json_number_text(v);
    return text && num_parse(text, unsafe_yyjson_get_len(val_of(v)), out, NULL) == 0;
}

bool json_get_int(json *obj, const char *key, int64_t *out)
{
    return json_int(json_get(obj, key), out);
}

bool json_bool(json *v, bool fallback)
{
    return json_is_bool(v) ? yyjson_get_bool(val_of(v)) : fallback;
}

bool json_get_bool(json *obj, const char *key, bool fallback)
{
    return json_bool(json_get(obj, key), fallback);
}

struct json_iter json_iter(json *v)
{
    yyjson_val *val = val_of(v);
    if (!yyjson_is_ctn(val))
        return (struct json_iter){0};
    return (struct json_iter){
        .at_ = unsafe_yyjson_get_first(val),
        .left_ = unsafe_yyjson_get_len(val),
        .object_ = unsafe_yyjson_is_obj(val),
    };
}

bool json_next(struct json_iter *it)
{
    if (it->left_ == 0)
        return false;
    yyjson_val *v = it->at_;
    it->left_--;
    if (it->object_) {
        it->key = unsafe_yyjson_get_str(v);
        it->key_len = unsafe_yyjson_get_len(v);
        v++;
    }
    it->value = json_of(v);
    it->at_ = unsafe_yyjson_get_next(v);
    return true;
}

/* Equality. `todo` has the pairs still to compare. Members usually have the same order; from the
 * first key that differs the rest of both is sorted, so a hostile pair costs n log n, not n². */
struct pair {
    yyjson_val *a;
    yyjson_val *b;
};
struct pairs VEC(struct pair);

static int compare_bytes(yyjson_val *a, yyjson_val *b)
{
    size_t na = unsafe_yyjson_get_len(a);
    size_t nb = unsafe_yyjson_get_len(b);
    int c = memcmp(unsafe_yyjson_get_raw(a), unsafe_yyjson_get_raw(b), na < nb ? na : nb);
    if (c != 0)
        return c;
    return (na > nb) - (na < nb);
}

/* By key, then by position, so the order is total. */
static int compare_keys(const void *a, const void *b)
{
    yyjson_val *const *ka = a;
    yyjson_val *const *kb = b;
    int c = compare_bytes(*ka, *kb);
    return c != 0 ? c : (*ka > *kb) - (*ka < *kb);
}

static yyjson_val **sorted_keys(yyjson_val *key, size_t n)
{
    if (n > SIZE_MAX / sizeof key)
        abort();
    yyjson_val **keys = malloc(n * sizeof *keys);
    if (!keys)
        abort();
    for (size_t i = 0; i < n; i++, key = unsafe_yyjson_get_next(key + 1))
        keys[i] = key;
    qsort(keys, n, sizeof *keys, compare_keys);
    return keys;
}

static bool pair_members(struct pairs *todo, yyjson_val *a, yyjson_val *b)
{
    size_t left = unsafe_yyjson_get_len(a);
    yyjson_val *ka = unsafe_yyjson_get_first(a);
    yyjson_val *kb = unsafe_yyjson_get_first(b);
    while (left > 0 && compare_bytes(ka, kb) == 0) {
        vec_push(todo, ((struct pair){ka + 1, kb + 1}));
        ka = unsafe_yyjson_get_next(ka + 1);
        kb = unsafe_yyjson_get_next(kb + 1);
        left--;
    }
    if (left == 0)
        return true;
    yyjson_val **as = sorted_keys(ka, left);
    yyjson_val **bs = sorted_keys(kb, left);
    bool same = true;
    for (size_t i = 0; i < left && same; i++) {
        same = compare_bytes(as[i], bs[i]) == 0;
        vec_push(todo, ((struct pair){as[i] + 1, bs[i] + 1}));
    }
    free(as);
    free(bs);
    return same;
}

static void pair_elements(struct pairs *todo, yyjson_val *a, yyjson_val *b)
{
    size_t n = unsafe_yyjson_get_len(a);
    yyjson_val *ea = unsafe_yyjson_get_first(a);
    yyjson_val *eb = unsafe_yyjson_get_first(b);
    for (size_t i = 0; i < n; i++) {
        vec_push(todo, ((struct pair){ea, eb}));
        ea = unsafe_yyjson_get_next(ea);
        eb = unsafe_yyjson_get_next(eb);
    }
}

/* Compares two values without their children, which go to todo. */
static bool same_so_far(struct pairs *todo, yyjson_val *a, yyjson_val *b)
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
        return compare_bytes(a, b) == 0;
    default: /* true, false, null */
        return unsafe_yyjson_get_tag(a) == unsafe_yyjson_get_tag(b);
    }
}

bool json_equal(json *a, json *b)
{
    if (!a || !b)
        return a == b;
    struct pairs todo = {0};
    bool same = true;
    vec_push(&todo, ((struct pair){val_of(a), val_of(b)}));
    while (same && todo.len > 0) {
        struct pair next = todo.items[--todo.len];
        same = same_so_far(&todo, next.a, next.b);
    }
    vec_deinit(&todo);
    return same;
}

/* An open container of json_put_value and the number of values left in it. */
struct level {
    size_t left;
    bool object;
};

void json_put_value(struct json_writer *w, json *v)
{
    if (!v) {
        json_put_null(w);
        return;
    }
    struct VEC(struct level) open = {0};
    struct strbuf *out = w->out;
    yyjson_val *at = val_of(v);
    json_put_raw(w, "", 0); /* writes a comma if due */
    for (;;) {
        bool opened = false;
        switch (unsafe_yyjson_get_type(at)) {
        case YYJSON_TYPE_OBJ:
        case YYJSON_TYPE_ARR: {
            bool object = unsafe_yyjson_is_obj(at);
            strbuf_addc(out, object ? '{' : '[');
            vec_push(&open, ((struct level){unsafe_yyjson_get_len(at), object}));
            opened = true;
            break;
        }
        case YYJSON_TYPE_STR:
            json_escape(out, unsafe_yyjson_get_str(at), unsafe_yyjson_get_len(at));
            break;
        case YYJSON_TYPE_RAW:
            strbuf_add(out, unsafe_yyjson_get_raw(at), unsafe_yyjson_get_len(at));
            break;
        case YYJSON_TYPE_BOOL:
            strbuf_adds(out, unsafe_yyjson_get_bool(at) ? "true" : "false");
            break;
        default:
            strbuf_adds(out, "null");
            break;
        }
        /* In memory, values follow in the order of the text. */
        at++;
        while (open.len > 0 && open.items[open.len - 1].left == 0) {
            strbuf_addc(out, open.items[open.len - 1].object ? '}' : ']');
            open.len--;
            opened = false;
        }
        if (open.len == 0)
            break;
        struct level *in = &open.items[open.len - 1];
        in->left--;
        if (!opened)
            strbuf_addc(out, ',');
        if (in->object) {
            json_escape(out, unsafe_yyjson_get_str(at), unsafe_yyjson_get_len(at));
            strbuf_addc(out, ':');
            at++;
        }
    }
    vec_deinit(&open);
}

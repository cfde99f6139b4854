// SPDX-License-Identifier: Apache-2.0
#include "lib/base/jsontree.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/jsontree_internal.h"
#include "lib/base/mem.h"

struct jsontree *jsontree_new(void)
{
    struct jsontree *t = mem_new(struct jsontree, 1);
    t->doc = jsontree_must(yyjson_mut_doc_new(NULL));
    return t;
}

void jsontree_free(struct jsontree *t)
{
    if (!t)
        return;
    yyjson_mut_doc_free(t->doc);
    yyjson_doc_free(t->parsed);
    vec_deinit(&t->view);
    free(t);
}

/* Values in text order, strings in place, as yyjson lays out a parsed document. A container's size
 * covers its content. */
json *jsonnode_view(struct jsontree *t, const struct jsonnode *n)
{
    struct VEC(struct viewed {
        size_t at;            /* the container's index in the view */
        yyjson_mut_val *next; /* next member; in an object a key, then its value */
        size_t left;
    }) open = {0};
    yyjson_mut_val *v = jsontree_val(n);
    t->view.len = 0;
    while (v) {
        vec_push(&t->view, ((yyjson_val){.tag = v->tag, .uni = v->uni}));
        if (unsafe_yyjson_is_ctn(v)) {
            bool object = unsafe_yyjson_is_obj(v);
            size_t members = unsafe_yyjson_get_len(v);
            yyjson_mut_val *last = members > 0 ? v->uni.ptr : NULL;
            vec_push(&open, ((struct viewed){t->view.len - 1,
                                             !last    ? NULL
                                             : object ? last->next->next
                                                      : last->next,
                                             object ? 2 * members : members}));
        }
        for (v = NULL; !v && open.len > 0;) {
            struct viewed *in = &open.items[open.len - 1];
            if (in->left-- > 0) {
                v = in->next;
                in->next = v->next;
            } else {
                t->view.items[in->at].uni.ofs = (t->view.len - in->at) * sizeof(yyjson_val);
                open.len--;
            }
        }
    }
    vec_deinit(&open);
    return n ? (json *)(void *)t->view.items : NULL;
}

struct jsonnode *jsonnode_object(struct jsontree *t)
{
    return jsontree_must(jsontree_node(yyjson_mut_obj(t->doc)));
}

struct jsonnode *jsonnode_array(struct jsontree *t)
{
    return jsontree_must(jsontree_node(yyjson_mut_arr(t->doc)));
}

static bool is_utf8(const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t len = (unsigned char)s[i] < 0x80 ? 1 : str_utf8_len(s + i, n - i);
        if (len == 0)
            return false;
        i += len;
    }
    return true;
}

/* Copies s; invalid UTF-8 becomes U+FFFD, as in json_put_str. */
static yyjson_mut_val *new_string(struct jsontree *t, const char *s, size_t n)
{
    if (is_utf8(s, n))
        return jsontree_must(yyjson_mut_strncpy(t->doc, s, n));
    AUTO_STRBUF clean = {0};
    for (size_t i = 0; i < n;) {
        size_t len = str_utf8_len(s + i, n - i);
        if (len > 0)
            strbuf_add(&clean, s + i, len);
        else
            strbuf_adds(&clean, "\xef\xbf\xbd");
        i += len > 0 ? len : 1;
    }
    return jsontree_must(yyjson_mut_strncpy(t->doc, strbuf_str(&clean), clean.len));
}

struct jsonnode *jsonnode_string(struct jsontree *t, const char *s)
{
    return s ? jsontree_node(new_string(t, s, strlen(s))) : jsonnode_null(t);
}

struct jsonnode *jsonnode_null(struct jsontree *t)
{
    return jsontree_must(jsontree_node(yyjson_mut_null(t->doc)));
}

struct jsonnode *jsonnode_copy(struct jsontree *t, json *v)
{
    if (!v)
        return NULL;
    return jsontree_must(jsontree_node(yyjson_val_mut_copy(t->doc, (yyjson_val *)(uintptr_t)v)));
}

bool jsonnode_is_object(const struct jsonnode *n)
{
    return yyjson_mut_is_obj(jsontree_val(n));
}

bool jsonnode_is_array(const struct jsonnode *n)
{
    return yyjson_mut_is_arr(jsontree_val(n));
}

const char *jsonnode_str(const struct jsonnode *n)
{
    yyjson_mut_val *v = jsontree_val(n);
    if (!yyjson_mut_is_str(v) ||
        memchr(unsafe_yyjson_get_str(v), '\0', unsafe_yyjson_get_len(v)) != NULL)
        return NULL;
    return unsafe_yyjson_get_str(v);
}

struct jsonnode *jsonnode_get(const struct jsonnode *obj, const char *key)
{
    return jsontree_node(yyjson_mut_obj_getn(jsontree_val(obj), key, strlen(key)));
}

const char *jsonnode_get_str(const struct jsonnode *obj, const char *key)
{
    return jsonnode_str(jsonnode_get(obj, key));
}

void jsonnode_set(struct jsontree *t, struct jsonnode *obj, const char *key, struct jsonnode *value)
{
    yyjson_mut_val *o = jsontree_val(obj);
    yyjson_mut_val *v = jsontree_val(value);
    size_t n = strlen(key);
    if (!yyjson_mut_is_obj(o) || !v)
        return;
    yyjson_mut_val *at = o->uni.ptr;
    for (size_t left = unsafe_yyjson_get_len(o); left > 0; left--) {
        at = at->next->next;
        if (unsafe_yyjson_get_len(at) != n || memcmp(unsafe_yyjson_get_str(at), key, n) != 0)
            continue;
        if (at->next != v) {
            v->next = at->next->next;
            at->next = v;
        }
        return;
    }
    (void)yyjson_mut_obj_add(o, new_string(t, key, n), v);
}

void jsonnode_set_str(struct jsontree *t, struct jsonnode *obj, const char *key, const char *s)
{
    jsonnode_set(t, obj, key, jsonnode_string(t, s));
}

struct jsonnode *jsonnode_need_object(struct jsontree *t, struct jsonnode *obj, const char *key)
{
    struct jsonnode *there = jsonnode_get(obj, key);
    if (jsonnode_is_object(there))
        return there;
    struct jsonnode *fresh = jsonnode_object(t);
    jsonnode_set(t, obj, key, fresh);
    return fresh;
}

void jsonnode_append(struct jsonnode *arr, struct jsonnode *value)
{
    (void)yyjson_mut_arr_append(jsontree_val(arr), jsontree_val(value));
}

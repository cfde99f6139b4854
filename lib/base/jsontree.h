// SPDX-License-Identifier: Apache-2.0
/* jsontree - mutable JSON for patches and objects under construction. Nodes live as long as their
 * tree. A removed node stays valid and can be inserted elsewhere; a node has one parent at a time.
 * Readers accept NULL and the wrong kind, as in json.h. Numbers keep their text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/str.h"

struct jsontree; /* opaque */
struct jsonnode; /* opaque */

struct jsontree *jsontree_new(void); /* root is NULL */
/* A mutable copy. */
int jsontree_parse(struct jsontree **out, const char *text, size_t n, struct error *err);
void jsontree_free(struct jsontree *t); /* NULL is fine */
static inline void jsontree_freep(struct jsontree **t)
{
    jsontree_free(*t);
}
#define AUTO_JSONTREE __attribute__((cleanup(jsontree_freep))) struct jsontree
struct jsonnode *jsontree_root(struct jsontree *t);
void jsontree_set_root(struct jsontree *t, struct jsonnode *n);
/* Compact text, of a tree or a node. */
void jsontree_print(struct jsontree *t, struct strbuf *out);
void jsonnode_print(struct jsonnode *n, struct strbuf *out);
/* The node for readers of json.h, as if printed and parsed. Changes of the tree do not affect the
 * view, which is valid until the tree's next view or end. NULL gives NULL. */
json *jsonnode_view(struct jsontree *t, const struct jsonnode *n);

/* New nodes, without a parent. */
struct jsonnode *jsonnode_object(struct jsontree *t);
struct jsonnode *jsonnode_array(struct jsontree *t);
struct jsonnode *jsonnode_string(struct jsontree *t, const char *s); /* copied; NULL gives null */
struct jsonnode *jsonnode_integer(struct jsontree *t, int64_t n);
struct jsonnode *jsonnode_boolean(struct jsontree *t, bool b);
struct jsonnode *jsonnode_null(struct jsontree *t);
struct jsonnode *jsonnode_copy(struct jsontree *t, json *v); /* deep, from a document */
struct jsonnode *jsonnode_clone(struct jsontree *t,
                                const struct jsonnode *n); /* deep, from any tree */

bool jsonnode_is_object(const struct jsonnode *n);
bool jsonnode_is_array(const struct jsonnode *n);
bool jsonnode_is_string(const struct jsonnode *n);
bool jsonnode_is_number(const struct jsonnode *n);
bool jsonnode_is_bool(const struct jsonnode *n);
bool jsonnode_is_null(const struct jsonnode *n);
const char *
jsonnode_str(const struct jsonnode *n); /* or NULL; NULL too for a string with a NUL in it */
const char *jsonnode_number_text(const struct jsonnode *n); /* or NULL */
bool jsonnode_int(const struct jsonnode *n, int64_t *out);
bool jsonnode_bool(const struct jsonnode *n, bool fallback);
bool jsonnode_equal(const struct jsonnode *a,
                    const struct jsonnode *b); /* objects regardless of order */
size_t jsonnode_len(const struct jsonnode *n);

/* Objects. */
struct jsonnode *jsonnode_get(const struct jsonnode *obj, const char *key);
const char *jsonnode_get_str(const struct jsonnode *obj, const char *key);
/* jsonnode_path(root, "metadata", "labels", NULL): the node at the end, or NULL. */
struct jsonnode *jsonnode_path(const struct jsonnode *obj, ...) __attribute__((sentinel));
/* Replaces the value in its position, or appends. */
void jsonnode_set(struct jsontree *t, struct jsonnode *obj, const char *key,
                  struct jsonnode *value);
void jsonnode_set_str(struct jsontree *t, struct jsonnode *obj, const char *key, const char *s);
void jsonnode_set_int(struct jsontree *t, struct jsonnode *obj, const char *key, int64_t n);
/* The member if it is an object; otherwise a new empty object replaces it.
 * jsonnode_need_path(t, root, "metadata", "labels", NULL). */
struct jsonnode *jsonnode_need_object(struct jsontree *t, struct jsonnode *obj, const char *key);
struct jsonnode *jsonnode_need_path(struct jsontree *t, struct jsonnode *obj, ...)
    __attribute__((sentinel));
/* Returns the removed node, or NULL. */
struct jsonnode *jsonnode_remove(struct jsonnode *obj, const char *key);
/* for (struct jsonnode_iter it = jsonnode_iter(n); jsonnode_next(&it);) { it.key (NULL in arrays),
 * it.value }: do not change the tree meanwhile. */
struct jsonnode_iter {
    const char *key;
    struct jsonnode *value;
    void *at_;
    size_t left_;
    bool object_;
};
struct jsonnode_iter jsonnode_iter(struct jsonnode *n);
bool jsonnode_next(struct jsonnode_iter *it);

/* Arrays; i <= len for insert, else i < len (otherwise false or NULL). */
struct jsonnode *jsonnode_at(const struct jsonnode *arr, size_t i);
void jsonnode_append(struct jsonnode *arr, struct jsonnode *value);
bool jsonnode_insert(struct jsonnode *arr, size_t i, struct jsonnode *value);
bool jsonnode_replace_at(struct jsonnode *arr, size_t i, struct jsonnode *value);
struct jsonnode *jsonnode_remove_at(struct jsonnode *arr, size_t i);

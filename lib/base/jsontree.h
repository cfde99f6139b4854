// SPDX-License-Identifier: Apache-2.0
/*
 * jsontree - JSON that can be changed: for patches and for objects under construction. Like json.c it may know yyjson.
 *
 * Nodes belong to their tree and live as long as it does; a node that was removed stays valid (and can be put in again elsewhere), a node is in one place at a time. Every
 * reader accepts NULL and the wrong kind, as in json.h. Numbers keep their text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/str.h"

struct jsontree; /* opaque */
struct jsonnode; /* opaque */

struct jsontree *jsontree_new(void); /* root: NULL */
/* A changeable copy. */
int jsontree_parse(struct jsontree **out, const char *text, size_t n, struct error *err);
void jsontree_free(struct jsontree *t); /* NULL is fine */
static inline void jsontree_freep(struct jsontree **t)
{
    jsontree_free(*t);
}
#define AUTO_JSONTREE __attribute__((cleanup(jsontree_freep))) struct jsontree
struct jsonnode *jsontree_root(struct jsontree *t);
void jsontree_set_root(struct jsontree *t, struct jsonnode *n);
/* Compact text. A node may be printed on its own. */
void jsontree_print(struct jsontree *t, struct strbuf *out);
void jsonnode_print(struct jsonnode *n, struct strbuf *out);

/* New nodes, not yet in a place. */
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
/* Replaces the value in its place, or appends. */
void jsonnode_set(struct jsontree *t, struct jsonnode *obj, const char *key,
                  struct jsonnode *value);
void jsonnode_set_str(struct jsontree *t, struct jsonnode *obj, const char *key, const char *s);
void jsonnode_set_int(struct jsontree *t, struct jsonnode *obj, const char *key, int64_t n);
/* The member if it is an object, otherwise a new empty one in its place. jsonnode_need_path(t, root, "metadata", "labels", NULL). */
struct jsonnode *jsonnode_need_object(struct jsontree *t, struct jsonnode *obj, const char *key);
struct jsonnode *jsonnode_need_path(struct jsontree *t, struct jsonnode *obj, ...)
    __attribute__((sentinel));
/* The node that was there, or NULL. */
struct jsonnode *jsonnode_remove(struct jsonnode *obj, const char *key);
/* for (struct jsonnode_iter it = jsonnode_iter(n); jsonnode_next(&it);) { it.key (NULL in arrays), it.value }: the tree is not changed meanwhile. */
struct jsonnode_iter {
    const char *key;
    struct jsonnode *value;
    void *at_;
    size_t left_;
    bool object_;
};
struct jsonnode_iter jsonnode_iter(struct jsonnode *n);
bool jsonnode_next(struct jsonnode_iter *it);

/* Arrays; i <= len for insert, i < len otherwise (false when not). */
struct jsonnode *jsonnode_at(const struct jsonnode *arr, size_t i);
void jsonnode_append(struct jsonnode *arr, struct jsonnode *value);
bool jsonnode_insert(struct jsonnode *arr, size_t i, struct jsonnode *value);
bool jsonnode_replace_at(struct jsonnode *arr, size_t i, struct jsonnode *value);
struct jsonnode *jsonnode_remove_at(struct jsonnode *arr, size_t i);

// SPDX-License-Identifier: Apache-2.0
/* jsonnode - what the API server needs of mutable JSON beyond lib/base/jsontree.h: parse, print,
 * clone, compare, walk, change arrays. A removed node stays valid and can be inserted elsewhere. */
#pragma once

#include "lib/base/error.h"
#include "lib/base/jsontree.h"

/* A mutable copy. jsontree_new's root is NULL. */
int jsontree_parse(struct jsontree **out, const char *text, size_t n, struct error *err);
struct jsonnode *jsontree_root(struct jsontree *t);
void jsontree_set_root(struct jsontree *t, struct jsonnode *n);
/* Compact text, of a tree or a node. */
void jsontree_print(struct jsontree *t, struct strbuf *out);
void jsonnode_print(struct jsonnode *n, struct strbuf *out);

/* New nodes, without a parent. */
struct jsonnode *jsonnode_integer(struct jsontree *t, int64_t n);
struct jsonnode *jsonnode_boolean(struct jsontree *t, bool b);
/* Deep, from any tree. */
struct jsonnode *jsonnode_clone(struct jsontree *t, const struct jsonnode *n);

bool jsonnode_is_string(const struct jsonnode *n);
bool jsonnode_is_number(const struct jsonnode *n);
bool jsonnode_is_bool(const struct jsonnode *n);
bool jsonnode_is_null(const struct jsonnode *n);
const char *jsonnode_number_text(const struct jsonnode *n); /* or NULL */
bool jsonnode_int(const struct jsonnode *n, int64_t *out);
bool jsonnode_bool(const struct jsonnode *n, bool fallback);
/* Objects regardless of order. */
bool jsonnode_equal(const struct jsonnode *a, const struct jsonnode *b);
size_t jsonnode_len(const struct jsonnode *n);

/* Objects. */
/* jsonnode_path(root, "metadata", "labels", NULL): the node at the end, or NULL. */
struct jsonnode *jsonnode_path(const struct jsonnode *obj, ...) __attribute__((sentinel));
void jsonnode_set_int(struct jsontree *t, struct jsonnode *obj, const char *key, int64_t n);
/* jsonnode_need_path(t, root, "metadata", "labels", NULL): jsonnode_need_object at each step. */
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
bool jsonnode_insert(struct jsonnode *arr, size_t i, struct jsonnode *value);
bool jsonnode_replace_at(struct jsonnode *arr, size_t i, struct jsonnode *value);
struct jsonnode *jsonnode_remove_at(struct jsonnode *arr, size_t i);

// SPDX-License-Identifier: Apache-2.0
/* jsontree - mutable JSON: a document is copied, changed and viewed as another. Nodes live as long
 * as their tree; a node has one parent at a time. Readers accept NULL and the wrong kind, as in
 * json.h. Numbers keep their text. Parsing, printing, comparing and walking a tree is the embedded
 * cluster's, in test/local/patch/jsonnode.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/json.h"
#include "lib/base/str.h"

struct jsontree; /* opaque */
struct jsonnode; /* opaque */

struct jsontree *jsontree_new(void);
void jsontree_free(struct jsontree *t); /* NULL is fine */
static inline void jsontree_freep(struct jsontree **t)
{
    jsontree_free(*t);
}
#define AUTO_JSONTREE __attribute__((cleanup(jsontree_freep))) struct jsontree
/* The node for readers of json.h, as if printed and parsed. Changes of the tree do not affect the
 * view, which is valid until the tree's next view or end. NULL gives NULL. */
json *jsonnode_view(struct jsontree *t, const struct jsonnode *n);

/* New nodes, without a parent. */
struct jsonnode *jsonnode_object(struct jsontree *t);
struct jsonnode *jsonnode_array(struct jsontree *t);
struct jsonnode *jsonnode_string(struct jsontree *t, const char *s); /* copied; NULL gives null */
struct jsonnode *jsonnode_null(struct jsontree *t);
struct jsonnode *jsonnode_copy(struct jsontree *t, json *v); /* deep, from a document */

bool jsonnode_is_object(const struct jsonnode *n);
bool jsonnode_is_array(const struct jsonnode *n);
/* NULL if it is no string, or one with a NUL in it. */
const char *jsonnode_str(const struct jsonnode *n);

struct jsonnode *jsonnode_get(const struct jsonnode *obj, const char *key);
const char *jsonnode_get_str(const struct jsonnode *obj, const char *key);
/* Replaces the value in its position, or appends. */
void jsonnode_set(struct jsontree *t, struct jsonnode *obj, const char *key,
                  struct jsonnode *value);
void jsonnode_set_str(struct jsontree *t, struct jsonnode *obj, const char *key, const char *s);
/* The member if it is an object; otherwise a new empty object replaces it. */
struct jsonnode *jsonnode_need_object(struct jsontree *t, struct jsonnode *obj, const char *key);

void jsonnode_append(struct jsonnode *arr, struct jsonnode *value);

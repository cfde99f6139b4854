// SPDX-License-Identifier: Apache-2.0
/*
 * jsontree_internal - what a tree is made of, for jsontree.c and the embedded cluster's jsonnode.c.
 *
 * A struct jsonnode is a yyjson_mut_val. yyjson keeps a container's members in a ring and points to
 * the last one, so appending is O(1). In an object keys and values alternate:
 *
 *     {"a":1,"b":2}      obj ──► "b" ─► 2 ─► "a" ─► 1 ─┐
 *                                 ▲────────────────────┘
 *
 * Numbers, also new ones, are YYJSON_TYPE_RAW, their text. Nothing recurses: a JSON patch can build
 * a tree deeper than any accepted text.
 */
#pragma once

#include <stdlib.h>
#include <yyjson.h>

#include "lib/base/jsontree.h"
#include "lib/base/vec.h"

struct jsontree {
    yyjson_mut_doc *doc;
    yyjson_doc *parsed; /* nodes may point into it; NULL for a new tree */
    struct VEC(yyjson_val) view;
};

static inline yyjson_mut_val *jsontree_val(const struct jsonnode *n)
{
    return (yyjson_mut_val *)(uintptr_t)n;
}

static inline struct jsonnode *jsontree_node(yyjson_mut_val *v)
{
    return (struct jsonnode *)(void *)v;
}

static inline void *jsontree_must(void *p)
{
    if (!p)
        abort();
    return p;
}

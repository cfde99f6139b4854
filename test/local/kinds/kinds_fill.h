// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_fill - the small tools that defaults are written with: a member is set when it is absent or
 * null (or, for texts, empty), which is what Kubernetes' decoder takes for absent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/str.h"
#include "test/local/patch/jsonnode.h"

static inline bool kinds_fill_absent(const struct jsonnode *n)
{
    return !n || jsonnode_is_null(n);
}

static inline void kinds_fill_str(struct jsontree *t, struct jsonnode *o, const char *key,
                                  const char *s)
{
    struct jsonnode *n = jsonnode_get(o, key);
    if (kinds_fill_absent(n) || str_eq(jsonnode_str(n), ""))
        jsonnode_set_str(t, o, key, s);
}

static inline void kinds_fill_int(struct jsontree *t, struct jsonnode *o, const char *key,
                                  int64_t n)
{
    if (kinds_fill_absent(jsonnode_get(o, key)))
        jsonnode_set_int(t, o, key, n);
}

static inline void kinds_fill_bool(struct jsontree *t, struct jsonnode *o, const char *key, bool b)
{
    if (kinds_fill_absent(jsonnode_get(o, key)))
        jsonnode_set(t, o, key, jsonnode_boolean(t, b));
}

/* The object there; a new one when absent; NULL when something else is there. */
static inline struct jsonnode *kinds_fill_object(struct jsontree *t, struct jsonnode *o,
                                                 const char *key)
{
    struct jsonnode *n = jsonnode_get(o, key);
    if (kinds_fill_absent(n))
        return jsonnode_need_object(t, o, key);
    return jsonnode_is_object(n) ? n : NULL;
}

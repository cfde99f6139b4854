// SPDX-License-Identifier: Apache-2.0
/*
 * patch_keys - how lists of Kubernetes' own types merge: whole, as a set of values, or element by
 * element by keys.
 */
#pragma once

#include "lib/base/error.h"
#include "test/local/patch/jsonnode.h"

enum patch_list { PATCH_ATOMIC, PATCH_SET, PATCH_MAP };
enum patch_style { PATCH_STRATEGIC = 1, PATCH_APPLY = 2 };

struct patch_type {
    enum patch_list list;
    /* of a map; strategic merge knows the first only. The second may be absent from an element:
     * then it is `missing` */
    const char *keys[2];
    const char *missing;
};
/* parent: the field that holds the object or list of objects which has this field ("" at the top).
 * kind NULL: a custom kind, of which only the metadata is known. */
const struct patch_type *patch_type_of(const char *kind, const char *parent, const char *field,
                                       enum patch_style style);

/* Element of a list whose key has the same value as in `like`, or NULL; *at is its place. strategic
 * compares the first key only. */
struct jsonnode *patch_find(struct jsonnode *list, const struct patch_type *type,
                            enum patch_style style, const struct jsonnode *like, size_t *at);
/* error_set with an HTTP status. */
int patch_fail(struct error *err, int http_status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

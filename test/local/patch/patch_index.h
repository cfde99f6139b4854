// SPDX-License-Identifier: Apache-2.0
/*
 * patch_index - the elements of a list by the text of their keys: what a merge looks up once for
 * each of its own. Pure.
 */
#pragma once

#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/base/vec.h"
#include "test/local/patch/jsonnode.h"
#include "test/local/patch/patch_keys.h"

struct patch_nodes VEC(struct jsonnode *);

struct patch_index {
    const struct patch_type *type;
    enum patch_style style;
    struct patch_nodes elements; /* in the list's order; NULL: taken away */
    struct VEC(size_t) next;     /* the next element of the same key, or SIZE_MAX */
    struct map first;            /* text of the key -> its first element's place + 1 */
    struct arena arena;          /* the texts */
    struct strbuf text;          /* scratch */
};

/* list NULL: an empty one. The elements stay the tree's. */
void patch_index_init(struct patch_index *x, const struct patch_type *type, enum patch_style style,
                      struct jsonnode *list);
void patch_index_deinit(struct patch_index *x);
void patch_index_add(struct patch_index *x, struct jsonnode *element);
/* The first element with the same key as `like`, or NULL; *place (may be NULL) is its place,
 * SIZE_MAX if there is none. */
struct jsonnode *patch_index_get(struct patch_index *x, struct jsonnode *like, size_t *place);
/* Takes away every element of that key. */
void patch_index_drop(struct patch_index *x, struct jsonnode *like);
/* The list holds these afterwards and nothing else. */
void patch_index_fill(struct jsonnode *list, const struct patch_nodes *elements);

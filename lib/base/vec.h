// SPDX-License-Identifier: Apache-2.0
/*
 * vec - a typed dynamic array.
 *
 *     struct VEC(const char *) names = {0};      (a struct type of its own)
 *     vec_push(&names, "a");
 *     for (size_t i = 0; i < names.len; i++) use(names.items[i]);
 *     vec_deinit(&names);
 *
 * Allocation failure aborts.
 */
#pragma once

#include <stddef.h>

#define VEC(type)    \
    {                \
        type *items; \
        size_t len;  \
        size_t cap;  \
    }

/* Grows items to hold at least `need` elements of `size` bytes; updates *cap. */
void *vec_grow_(void *items, size_t *cap, size_t need, size_t size);

#define vec_reserve(v, n)                                                                 \
    ((n) > (v)->cap                                                                       \
         ? (void)((v)->items = vec_grow_((v)->items, &(v)->cap, (n), sizeof *(v)->items)) \
         : (void)0)
#define vec_push(v, value) \
    (vec_reserve((v), (v)->len + 1), (void)((v)->items[(v)->len++] = (value)))
/* Does not keep the order. */
#define vec_remove_swap(v, i) ((void)((v)->items[(i)] = (v)->items[--(v)->len]))
#define vec_deinit(v) \
    (vec_free_((v)->items), (void)((v)->items = NULL), (void)((v)->len = (v)->cap = 0))
void vec_free_(void *items);

// SPDX-License-Identifier: Apache-2.0
#include "lib/base/vec.h"

#include <stdint.h>
#include <stdlib.h>

void *vec_grow_(void *items, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap)
        return items;
    size_t grown = *cap < 4 ? 8 : *cap + *cap / 2;
    if (grown < need)
        grown = need;
    if (grown > SIZE_MAX / 2 / size)
        abort();
    void *moved = realloc(items, grown * size);
    if (!moved)
        abort();
    *cap = grown;
    return moved;
}

void vec_free_(void *items)
{
    free(items);
}

// SPDX-License-Identifier: Apache-2.0
#include "lib/model/object.h"

void object_free(struct object *o)
{
    if (!o)
        return;
    struct arena arena = o->arena; /* the object lies in it */
    arena_deinit(&arena);
}

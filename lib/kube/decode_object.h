// SPDX-License-Identifier: Apache-2.0
/* decode_object - decodes small objects: their own arena, their names, then the fields of the
 * kind. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/model/object.h"

struct decode_kind {
    const char *what; /* "persistentvolumeclaim", for messages */
    bool namespaced;
    size_t size;
    /* Fills the kind's fields, after the names; NULL: none. */
    int (*fill)(json *j, struct object *o, struct arena *a, struct error *err);
};

int decode_object(json *j, const struct decode_kind *k, struct object **out, struct error *err);

/* Defines decode_X(json *, struct X **, struct error *) for a struct that begins with an object. */
#define DECODE_KIND(function, type, what_, namespaced_, fill_)                              \
    int function(json *j, type **out, struct error *err)                                    \
    {                                                                                       \
        static const struct decode_kind kind = {                                            \
            .what = what_, .namespaced = namespaced_, .size = sizeof(type), .fill = fill_}; \
        struct object *o = NULL;                                                            \
        if (decode_object(j, &kind, &o, err) < 0)                                           \
            return -1;                                                                      \
        *out = (type *)o;                                                                   \
        return 0;                                                                           \
    }

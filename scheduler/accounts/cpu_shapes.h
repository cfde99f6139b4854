// SPDX-License-Identifier: Apache-2.0
/* cpu_shapes - the distinct CPU layouts of the cluster's nodes. Equal nodes publish the same text
 * and share one layout, which takes tens of kilobytes. Pure. */
#pragma once

#include <stddef.h>

#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "scheduler/accounts/cpus.h"

struct cpu_shape {
    struct arena arena;
    const char *text;
    const char *problem; /* why the layout is unknown: "unreadable: ..."; NULL: known */
    const char *closed;  /* why no container is pinned there, though known; NULL: pinned */
    struct cpus_layout layout;
    unsigned cpus; /* numbers are below this */
    size_t holders;
};

struct cpu_shapes {
    struct map by_text;
};

void cpu_shapes_init(struct cpu_shapes *s);
void cpu_shapes_deinit(struct cpu_shapes *s);
/* The shape for an annotation's text; NULL for NULL and "". Release it with cpu_shapes_give. */
const struct cpu_shape *cpu_shapes_take(struct cpu_shapes *s, const char *text);
/* NULL is allowed. */
void cpu_shapes_give(struct cpu_shapes *s, const struct cpu_shape *shape);

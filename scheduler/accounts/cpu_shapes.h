// SPDX-License-Identifier: Apache-2.0
/*
 * cpu_shapes - the CPU layouts of the cluster's nodes, each once: nodes of one sort publish the same text, and a layout takes tens of kilobytes. Pure.
 */
#pragma once

#include <stddef.h>

#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "scheduler/accounts/cpus.h"

struct cpu_shape {
    struct arena arena;
    const char *text;
    const char *problem; /* why the layout is not known: "unreadable: ..."; NULL: it is */
    const char *closed;  /* why nobody is pinned there, though it is known; NULL: they are */
    struct cpus_layout layout;
    unsigned cpus; /* numbers are below this */
    size_t holders;
};

struct cpu_shapes {
    struct map by_text;
};

void cpu_shapes_init(struct cpu_shapes *s);
void cpu_shapes_deinit(struct cpu_shapes *s);
/* Of the annotation; NULL for NULL and "". Given back by cpu_shapes_give. */
const struct cpu_shape *cpu_shapes_take(struct cpu_shapes *s, const char *text);
/* NULL is fine. */
void cpu_shapes_give(struct cpu_shapes *s, const struct cpu_shape *shape);

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/cpu_shapes.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/model/topology.h"

static void free_shape(struct cpu_shape *shape)
{
    arena_deinit(&shape->arena);
    free(shape);
}

void cpu_shapes_init(struct cpu_shapes *s)
{
    map_init(&s->by_text);
}

void cpu_shapes_deinit(struct cpu_shapes *s)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&s->by_text, &i, &key, &value);)
        free_shape(value);
    map_deinit(&s->by_text);
}

static void read_shape(struct cpu_shape *shape)
{
    struct arena scratch;
    struct error err = ERROR_INIT;
    struct cpu_topology t;
    arena_init(&scratch, 0);
    if (cpu_topology_decode(shape->text, strlen(shape->text), &scratch, &t, &err) < 0 ||
        cpus_layout_init(&shape->layout, &t, &shape->arena, &err) < 0) {
        shape->layout = (struct cpus_layout){0};
        shape->problem = arena_printf(&shape->arena, "unreadable: %s", err.text);
    }
    if (shape->problem == NULL && t.closed != NULL)
        shape->closed = arena_strdup(&shape->arena, t.closed);
    for (int cpu = -1; (cpu = cpuset_next(&shape->layout.usable, cpu)) >= 0;)
        shape->cpus = (unsigned)cpu + 1;
    arena_deinit(&scratch);
}

const struct cpu_shape *cpu_shapes_take(struct cpu_shapes *s, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return NULL;
    struct cpu_shape *shape = map_get(&s->by_text, text);
    if (shape == NULL) {
        shape = mem_new(struct cpu_shape, 1);
        arena_init(&shape->arena, 0);
        shape->text = arena_strdup(&shape->arena, text);
        read_shape(shape);
        map_put(&s->by_text, shape->text, shape);
    }
    shape->holders++;
    return shape;
}

void cpu_shapes_give(struct cpu_shapes *s, const struct cpu_shape *shape)
{
    struct cpu_shape *own = shape != NULL ? map_get(&s->by_text, shape->text) : NULL;
    if (own == NULL || --own->holders > 0)
        return;
    map_remove(&s->by_text, own->text);
    free_shape(own);
}

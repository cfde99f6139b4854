// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/topologies.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "scheduler/model/model.h"

void topologies_init(struct topologies *t)
{
    *t = (struct topologies){0};
    map_init(&t->by_key);
}

static void topology_free(struct topology *one)
{
    arena_deinit(&one->arena);
    free(one->key);
    free(one);
}

void topologies_deinit(struct topologies *t)
{
    void *value;
    for (size_t i = 0; map_next(&t->by_key, &i, NULL, &value);)
        topology_free(value);
    map_deinit(&t->by_key);
}

static void free_idle(struct topologies *t)
{
    void *value;
    for (size_t i = 0; map_next(&t->by_key, &i, NULL, &value);) {
        struct topology *one = value;
        if (one->users > 0)
            continue;
        map_remove(&t->by_key, one->key);
        topology_free(one);
    }
    t->idle = 0;
}

void topologies_use(struct topologies *t, struct topology *one)
{
    t->idle -= one->users++ == 0;
}

void topologies_drop(struct topologies *t, struct topology *one)
{
    t->idle += --one->users == 0;
}

static const char *value_at(const struct topology *t, const struct node_table *table,
                            uint32_t place)
{
    return labels_get(&table->rows[place].node->node->labels, t->key);
}

/* Domains are numbered in node order, so by the name of their first node. */
static void build(struct topology *t, const struct node_table *table)
{
    struct map seen; /* value -> number + 1 */
    uint32_t have = 0;
    map_init(&seen);
    arena_reset(&t->arena);
    t->domains = 0;
    t->domain_of = arena_new(&t->arena, int32_t, table->len);
    t->values = arena_new(&t->arena, const char *, table->len);
    for (uint32_t i = 0; i < table->len; i++) {
        const char *value = value_at(t, table, i);
        t->domain_of[i] = -1;
        if (value == NULL)
            continue;
        have++;
        void *number = map_get(&seen, value);
        if (number == NULL) {
            t->values[t->domains] = arena_strdup(&t->arena, value);
            number = (void *)(uintptr_t)(t->domains + 1);
            map_put(&seen, t->values[t->domains++], number);
        }
        t->domain_of[i] = (int32_t)((uintptr_t)number - 1);
    }
    t->local = t->domains == have;
    t->generation = table->generation;
    t->stale = false;
    map_deinit(&seen);
}

struct topology *topologies_get(struct topologies *t, const struct node_table *table,
                                const char *key)
{
    struct topology *one = map_get(&t->by_key, key);
    if (one == NULL) {
        if (t->idle >= TOPOLOGIES_IDLE_MAX)
            free_idle(t);
        t->idle++;
        one = mem_new(struct topology, 1);
        one->key = mem_strdup(key);
        one->stale = true;
        arena_init(&one->arena, 0);
        map_put(&t->by_key, one->key, one);
    }
    if (one->stale || one->generation != table->generation) {
        build(one, table);
        one->version = ++t->versions;
    }
    return one;
}

/* Those keys of a whose value in b is another. */
static void mark_stale(struct topologies *t, const struct labels *a, const struct labels *b)
{
    for (size_t i = 0; i < a->len; i++) {
        const char *key = a->items[i].key;
        struct topology *one = map_get(&t->by_key, key);
        if (one != NULL)
            one->stale |= !str_eq(labels_get(a, key), labels_get(b, key));
    }
}

void topologies_labels_changed(struct topologies *t, const struct labels *old,
                               const struct labels *now)
{
    mark_stale(t, old, now);
    mark_stale(t, now, old);
}

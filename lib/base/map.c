// SPDX-License-Identifier: Apache-2.0
/*
 * Two arrays: entries in insertion order, and a hash index of entry numbers with linear probing.
 *
 *     index    [ 0 | 3 | 0 | 1 | 2 | 0 | 0 | 0 ]        number + 1; 0 = empty
 *     entries  [ a | b(removed) | c ]
 *
 * A removed entry stays as a tombstone (key NULL). Removal moves nothing, so iteration may remove.
 * When the entries are full, rebuild() compacts them and grows the arrays only if most are live.
 * The index has at least twice as many slots as entries, so a probe always ends at an empty one.
 */
#include "lib/base/map.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"

enum { CAP_FIRST = 8 };

void map_init(struct map *m)
{
    *m = (struct map){0};
}

void map_deinit(struct map *m)
{
    free(m->entries);
    free(m->index);
    *m = (struct map){0};
}

static size_t slot_of(const struct map *m, uint64_t hash)
{
    return (size_t)(hash ^ (hash >> 32)) & (m->index_size - 1);
}

static struct map_entry *find(const struct map *m, const char *key, uint64_t hash)
{
    if (m->index_size == 0)
        return NULL;
    for (size_t i = slot_of(m, hash); m->index[i] != 0; i = (i + 1) & (m->index_size - 1)) {
        struct map_entry *e = &m->entries[m->index[i] - 1];
        if (e->key && e->hash == hash && strcmp(e->key, key) == 0)
            return e;
    }
    return NULL;
}

static void index_entry(struct map *m, size_t number)
{
    size_t i = slot_of(m, m->entries[number].hash);
    while (m->index[i] != 0)
        i = (i + 1) & (m->index_size - 1);
    m->index[i] = (uint32_t)(number + 1);
}

/* Makes space for at least one more entry. */
static void rebuild(struct map *m)
{
    size_t used = 0;
    for (size_t i = 0; i < m->used; i++)
        if (m->entries[i].key)
            m->entries[used++] = m->entries[i];
    m->used = used;
    if (m->cap == 0 || used > m->cap - m->cap / 4) {
        size_t cap = m->cap == 0 ? CAP_FIRST : m->cap * 2;
        if (cap > UINT32_MAX / 4)
            abort();
        struct map_entry *entries = realloc(m->entries, cap * sizeof *entries);
        if (!entries)
            abort();
        m->entries = entries;
        uint32_t *index = realloc(m->index, cap * 2 * sizeof *index);
        if (!index)
            abort();
        m->index = index;
        m->cap = cap;
        m->index_size = cap * 2;
    }
    memset(m->index, 0, m->index_size * sizeof *m->index);
    for (size_t i = 0; i < m->used; i++)
        index_entry(m, i);
}

void *map_get(const struct map *m, const char *key)
{
    if (!key || m->count == 0)
        return NULL;
    const struct map_entry *e = find(m, key, str_hash(key, strlen(key)));
    return e ? e->value : NULL;
}

void *map_put(struct map *m, const char *key, void *value)
{
    uint64_t hash = str_hash(key, strlen(key));
    struct map_entry *e = find(m, key, hash);
    if (e) {
        void *old = e->value;
        e->key = key;
        e->value = value;
        return old;
    }
    if (m->used == m->cap)
        rebuild(m);
    m->entries[m->used] = (struct map_entry){.key = key, .hash = hash, .value = value};
    index_entry(m, m->used);
    m->used++;
    m->count++;
    return NULL;
}

void *map_remove(struct map *m, const char *key)
{
    if (!key || m->count == 0)
        return NULL;
    struct map_entry *e = find(m, key, str_hash(key, strlen(key)));
    if (!e)
        return NULL;
    void *old = e->value;
    e->key = NULL;
    e->value = NULL;
    m->count--;
    return old;
}

size_t map_count(const struct map *m)
{
    return m->count;
}

bool map_next(const struct map *m, size_t *i, const char **key, void **value)
{
    while (*i < m->used) {
        const struct map_entry *e = &m->entries[(*i)++];
        if (!e->key)
            continue;
        if (key)
            *key = e->key;
        if (value)
            *value = e->value;
        return true;
    }
    return false;
}

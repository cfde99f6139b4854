// SPDX-License-Identifier: Apache-2.0
/* map - string to pointer. Iterates in insertion order, so results do not depend on a hash (I4).
 * Keys are borrowed and must live as long as their entry, usually inside the value. map_put on an
 * existing key replaces key and value and keeps the position. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_entry {
    const char *key; /* NULL: removed */
    uint64_t hash;
    void *value;
};

struct map {
    struct map_entry *entries; /* in insertion order, with holes */
    size_t used;               /* entries including holes */
    size_t cap;
    uint32_t *index; /* open addressing; entry number + 1, 0 = empty */
    size_t index_size;
    size_t count; /* live entries */
};

void map_init(struct map *m);
void map_deinit(struct map *m);
void *map_get(const struct map *m, const char *key);
/* Returns the previous value, or NULL. value must not be NULL. */
void *map_put(struct map *m, const char *key, void *value);
/* Returns the removed value, or NULL. */
void *map_remove(struct map *m, const char *key);
size_t map_count(const struct map *m);
/* for (size_t i = 0; map_next(m, &i, &key, &value);). May remove the current entry, not add any. */
bool map_next(const struct map *m, size_t *i, const char **key, void **value);

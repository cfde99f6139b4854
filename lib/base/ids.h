// SPDX-License-Identifier: Apache-2.0
/*
 * ids - small reusable numbers for objects, and tables of data kept outside the objects.
 *
 * The creator of objects takes an id for each from a pool (struct ids): a number, reused after the
 * object is gone, and a serial, never reused. A component that stores data about these objects
 * keeps a table (struct ids_table) instead of a field in the object.
 *
 * The table needs no notice of deletion: a slot records its object's serial, and a request for
 * another object with the same number finds the slot zeroed. Data of a deleted object stays until
 * then or until the table's end. Slots never move, so heaps and lists may point to them while their
 * object lives.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/vec.h"

enum { IDS_PAGE = 64 }; /* slots allocated together */

struct id {
    uint32_t number;
    uint64_t serial; /* from 1 */
};

/* Zero-initialised. */
struct ids {
    struct VEC(uint32_t) free;
    uint32_t numbers; /* highest used so far */
    uint64_t serials;
};

struct id ids_take(struct ids *s);
/* Call when the object is gone. */
void ids_give(struct ids *s, struct id id);
void ids_deinit(struct ids *s);

struct ids_slot {
    uint64_t serial; /* 0: unused */
    uint64_t memory[];
};

struct ids_table {
    size_t size; /* of a slot with its serial */
    void (*clear)(void *memory);
    struct VEC(unsigned char *) pages; /* NULL: not used yet */
};

/* size: data per object, aligned for pointers and 64-bit numbers. clear (may be NULL) frees what
 * the data refers to, before the slot is reused and at the table's end. */
void ids_table_init(struct ids_table *t, size_t size, void (*clear)(void *memory));
void ids_table_deinit(struct ids_table *t);

/* The object's data, or NULL. */
static inline void *ids_find(const struct ids_table *t, struct id id)
{
    size_t page = id.number / IDS_PAGE;
    assert(id.serial != 0);
    if (page >= t->pages.len || t->pages.items[page] == NULL)
        return NULL;
    void *at = t->pages.items[page] + id.number % IDS_PAGE * t->size;
    struct ids_slot *slot = at;
    return slot->serial == id.serial ? slot->memory : NULL;
}

void *ids_renew_(struct ids_table *t, struct id id);

/* The object's data, zeroed if there is none yet. */
static inline void *ids_at(struct ids_table *t, struct id id)
{
    void *memory = ids_find(t, id);
    return memory != NULL ? memory : ids_renew_(t, id);
}

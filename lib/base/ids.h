// SPDX-License-Identifier: Apache-2.0
/*
 * ids - small numbers for objects that come and go, and memory beside the objects.
 *
 * Whoever makes objects of a kind gives each an id from a pool (struct ids): a number, which is
 * small because that of an object that has gone is used again, and a serial, which never is.
 * Whoever has to remember something of these objects keeps a table of its own (struct ids_table)
 * instead of a field in the object.
 *
 * The owner of a table is not told when an object goes, so it cannot miss it: a slot knows the
 * serial of its object, and whoever asks for the slot of another object with the same number gets
 * it all zero. What an object that has gone left in its slot stays until then, or until the end of
 * the table.
 *
 * Slots never move: heaps and lists may hold pointers to them, as long as their object lives.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/vec.h"

enum { IDS_PAGE = 64 }; /* slots that are allocated together */

struct id {
    uint32_t number;
    uint64_t serial; /* from 1 */
};

/* All zero: none was given yet. */
struct ids {
    struct VEC(uint32_t) free;
    uint32_t numbers; /* used so far */
    uint64_t serials;
};

struct id ids_take(struct ids *s);
/* The object is gone. */
void ids_give(struct ids *s, struct id id);
void ids_deinit(struct ids *s);

struct ids_slot {
    uint64_t serial; /* 0: nobody's yet */
    uint64_t memory[];
};

struct ids_table {
    size_t size; /* of a slot, the serial included */
    void (*clear)(void *memory);
    struct VEC(unsigned char *) pages; /* NULL: no object with such a number was asked for */
};

/* size: of what is remembered of one object, aligned for pointers and 64-bit numbers. clear frees
 * what that refers to, before the slot becomes another object's and at the end of the table; NULL:
 * it refers to nothing. */
void ids_table_init(struct ids_table *t, size_t size, void (*clear)(void *memory));
void ids_table_deinit(struct ids_table *t);

/* What is remembered of the object; NULL: nothing. */
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

/* The same, all zero when nothing was remembered. */
static inline void *ids_at(struct ids_table *t, struct id id)
{
    void *memory = ids_find(t, id);
    return memory != NULL ? memory : ids_renew_(t, id);
}

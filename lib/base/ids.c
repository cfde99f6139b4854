// SPDX-License-Identifier: Apache-2.0
#include "lib/base/ids.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

struct id ids_take(struct ids *s)
{
    uint32_t number = s->free.len > 0 ? s->free.items[--s->free.len] : s->numbers++;
    return (struct id){.number = number, .serial = ++s->serials};
}

void ids_give(struct ids *s, struct id id)
{
    vec_push(&s->free, id.number);
}

void ids_deinit(struct ids *s)
{
    vec_deinit(&s->free);
}

void ids_table_init(struct ids_table *t, size_t size, void (*clear)(void *memory))
{
    size_t words = (size + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    *t = (struct ids_table){.size = sizeof(struct ids_slot) + words * sizeof(uint64_t),
                            .clear = clear};
}

static struct ids_slot *slot_at(const struct ids_table *t, size_t page, size_t i)
{
    void *at = t->pages.items[page] + i * t->size;
    return at;
}

void ids_table_deinit(struct ids_table *t)
{
    for (size_t page = 0; page < t->pages.len; page++) {
        for (size_t i = 0; t->clear != NULL && t->pages.items[page] != NULL && i < IDS_PAGE; i++)
            if (slot_at(t, page, i)->serial != 0)
                t->clear(slot_at(t, page, i)->memory);
        free(t->pages.items[page]);
    }
    vec_deinit(&t->pages);
}

void *ids_renew_(struct ids_table *t, struct id id)
{
    size_t page = id.number / IDS_PAGE;
    while (t->pages.len <= page)
        vec_push(&t->pages, NULL);
    if (t->pages.items[page] == NULL)
        t->pages.items[page] = mem_array_(IDS_PAGE, t->size);
    struct ids_slot *slot = slot_at(t, page, id.number % IDS_PAGE);
    if (slot->serial != 0 && t->clear != NULL)
        t->clear(slot->memory);
    memset(slot, 0, t->size);
    slot->serial = id.serial;
    return slot->memory;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * store_order - sorted leaves in a sorted array: a B-tree of two levels. An insert moves at most
 * one leaf's pointers (2 KiB), and every 128 inserts or so the array of leaves (6 KiB at 100,000
 * objects); a list walks memory in order. A tree of more levels would gain nothing below ten
 * million objects.
 */
#include "test/local/store/store_order.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

void store_order_deinit(struct store_order *o)
{
    for (size_t i = 0; i < o->leaves.len; i++)
        free(o->leaves.items[i]);
    vec_deinit(&o->leaves);
}

static const char *key_of(const struct store_leaf *l, size_t i)
{
    return l->slots[i]->now->key;
}

/* The last leaf whose first key is not behind `key` (0 if there is none such). */
static size_t find_leaf(const struct store_order *o, const char *key)
{
    size_t low = 0, high = o->leaves.len; /* leaves[low] is right or too early */
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(key_of(o->leaves.items[mid], 0), key) <= 0)
            low = mid;
        else
            high = mid;
    }
    return low;
}

static size_t find_slot(const struct store_leaf *l, const char *key)
{
    size_t low = 0, high = l->len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(key_of(l, mid), key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void insert_leaf(struct store_order *o, size_t at, struct store_leaf *leaf)
{
    vec_push(&o->leaves, leaf);
    struct store_leaf **items = o->leaves.items;
    memmove(items + at + 1, items + at, (o->leaves.len - 1 - at) * sizeof *items);
    items[at] = leaf;
}

void store_order_insert(struct store_order *o, struct store_slot *slot)
{
    const char *key = slot->now->key;
    if (o->leaves.len == 0)
        insert_leaf(o, 0, mem_new(struct store_leaf, 1));
    size_t i = find_leaf(o, key);
    struct store_leaf *leaf = o->leaves.items[i];
    size_t at = find_slot(leaf, key);
    if (leaf->len == STORE_LEAF) {
        /* At the very end nothing is moved: keys that come in order fill whole leaves. */
        bool last = i + 1 == o->leaves.len && at == leaf->len;
        size_t keep = last ? leaf->len : leaf->len / 2;
        struct store_leaf *right = mem_new(struct store_leaf, 1);
        right->len = leaf->len - keep;
        memcpy(right->slots, leaf->slots + keep, right->len * sizeof *right->slots);
        leaf->len = keep;
        insert_leaf(o, i + 1, right);
        if (at > keep || last) {
            leaf = right;
            at -= keep;
        }
    }
    memmove(leaf->slots + at + 1, leaf->slots + at, (leaf->len - at) * sizeof *leaf->slots);
    leaf->slots[at] = slot;
    leaf->len++;
}

void store_order_remove(struct store_order *o, const char *key)
{
    size_t i = find_leaf(o, key);
    struct store_leaf *leaf = o->leaves.items[i];
    size_t at = find_slot(leaf, key);
    leaf->len--;
    memmove(leaf->slots + at, leaf->slots + at + 1, (leaf->len - at) * sizeof *leaf->slots);
    if (leaf->len > 0)
        return;
    free(leaf);
    o->leaves.len--;
    memmove(o->leaves.items + i, o->leaves.items + i + 1,
            (o->leaves.len - i) * sizeof *o->leaves.items);
}

struct store_place store_order_seek(const struct store_order *o, const char *key)
{
    struct store_place p = {0};
    if (o->leaves.len == 0)
        return p;
    p.leaf = find_leaf(o, key);
    p.slot = find_slot(o->leaves.items[p.leaf], key);
    return p;
}

struct store_slot *store_order_next(const struct store_order *o, struct store_place *at)
{
    while (at->leaf < o->leaves.len) {
        const struct store_leaf *leaf = o->leaves.items[at->leaf];
        if (at->slot < leaf->len)
            return leaf->slots[at->slot++];
        at->leaf++;
        at->slot = 0;
    }
    return NULL;
}

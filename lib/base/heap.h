// SPDX-License-Identifier: Apache-2.0
/* heap - a binary min-heap of embedded nodes. Nodes know their position, so removal is O(log n). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct heap_node {
    size_t position; /* 1 + index; 0: not in a heap */
};

struct heap {
    struct heap_node **nodes;
    size_t len;
    size_t cap;
    /* whether a sorts before b; a strict order */
    bool (*before)(const struct heap_node *a, const struct heap_node *b);
};

void heap_init(struct heap *h, bool (*before)(const struct heap_node *, const struct heap_node *));
/* Does not touch the nodes, which may be freed. Zero a node before it enters another heap. */
void heap_deinit(struct heap *h);
void heap_push(struct heap *h, struct heap_node *n);
struct heap_node *heap_top(const struct heap *h); /* or NULL */
struct heap_node *heap_pop(struct heap *h);       /* or NULL */
/* Does nothing if n is in no heap. */
void heap_remove(struct heap *h, struct heap_node *n);
/* Call after the key of n changed. */
void heap_update(struct heap *h, struct heap_node *n);
static inline bool heap_has(const struct heap_node *n)
{
    return n->position != 0;
}

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define container_of_const(ptr, type, member) \
    ((const type *)(const void *)((const char *)(ptr)-offsetof(type, member)))

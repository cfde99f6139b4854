// SPDX-License-Identifier: Apache-2.0
#include "lib/base/heap.h"

#include <stdlib.h>

#include "lib/base/vec.h"

void heap_init(struct heap *h, bool (*before)(const struct heap_node *, const struct heap_node *))
{
    *h = (struct heap){.before = before};
}

void heap_deinit(struct heap *h)
{
    free(h->nodes);
    h->nodes = NULL;
    h->len = h->cap = 0;
}

static void put(struct heap *h, size_t i, struct heap_node *n)
{
    h->nodes[i] = n;
    n->position = i + 1;
}

/* Moves n up from the gap at i. */
static void sift_up(struct heap *h, size_t i, struct heap_node *n)
{
    while (i > 0) {
        size_t parent = (i - 1) / 2;
        if (!h->before(n, h->nodes[parent]))
            break;
        put(h, i, h->nodes[parent]);
        i = parent;
    }
    put(h, i, n);
}

static void sift_down(struct heap *h, size_t i, struct heap_node *n)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= h->len)
            break;
        if (child + 1 < h->len && h->before(h->nodes[child + 1], h->nodes[child]))
            child++;
        if (!h->before(h->nodes[child], n))
            break;
        put(h, i, h->nodes[child]);
        i = child;
    }
    put(h, i, n);
}

static void settle(struct heap *h, size_t i, struct heap_node *n)
{
    if (i > 0 && h->before(n, h->nodes[(i - 1) / 2]))
        sift_up(h, i, n);
    else
        sift_down(h, i, n);
}

void heap_push(struct heap *h, struct heap_node *n)
{
    h->nodes = vec_grow_(h->nodes, &h->cap, h->len + 1, sizeof *h->nodes);
    h->len++;
    sift_up(h, h->len - 1, n);
}

struct heap_node *heap_top(const struct heap *h)
{
    return h->len > 0 ? h->nodes[0] : NULL;
}

struct heap_node *heap_pop(struct heap *h)
{
    struct heap_node *top = heap_top(h);
    if (top)
        heap_remove(h, top);
    return top;
}

void heap_remove(struct heap *h, struct heap_node *n)
{
    if (n->position == 0)
        return;
    size_t i = n->position - 1;
    n->position = 0;
    struct heap_node *last = h->nodes[--h->len];
    if (last != n)
        settle(h, i, last);
}

void heap_update(struct heap *h, struct heap_node *n)
{
    if (n->position != 0)
        settle(h, n->position - 1, n);
}

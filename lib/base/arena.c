// SPDX-License-Identifier: Apache-2.0
/*
 * A list of blocks; small requests are cut from the first.
 *
 *     arena ──► block (in use) ──► block of its own (big request) ──► older block ──► NULL
 *
 * A request too big for a fresh block gets a block of its own behind the first, so that one big
 * annotation neither wastes the rest of a block nor makes later blocks big. Blocks double from
 * first_block_bytes to BLOCK_MAX. Aligned data is cut from the front of a block and strings from
 * the back, so no byte is lost to padding and arena_init_exact works in any order:
 *
 *     [ header | structs and arrays ──►      free      ◄── strings ]
 *
 * Memory is cleared at allocation, so blocks kept by arena_reset need no special case.
 */
#include "lib/base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGNMENT = 16,
    BLOCK_FIRST = 1024,
    BLOCK_MIN = 128,
    BLOCK_AFTER_EXACT = 256,
    BLOCK_MAX = 64 * 1024,
};

#ifdef ARENA_DEBUG
static const bool one_malloc_each = ARENA_DEBUG;
#else
static const bool one_malloc_each = false;
#endif

struct arena_block {
    struct arena_block *next;
    size_t size;   /* of the whole malloc */
    size_t used;   /* data, from the front */
    uint32_t back; /* strings, from the end; such a block is below 4 GiB */
    bool own;      /* for one request */
    bool lent;     /* caller's memory: never freed */
    alignas(ALIGNMENT) unsigned char data[];
};

static size_t space_left(const struct arena_block *b)
{
    return b->size - sizeof *b - b->used - b->back;
}

static struct arena_block *new_block(struct arena *a, size_t data_bytes)
{
    if (data_bytes > SIZE_MAX / 2)
        abort();
    struct arena_block *b = malloc(sizeof *b + data_bytes);
    if (!b)
        abort();
    *b = (struct arena_block){.size = sizeof *b + data_bytes};
    a->total_bytes += b->size;
    return b;
}

/* A block for this request alone. The block that small requests use stays first. */
static void *own_block(struct arena *a, size_t n)
{
    struct arena_block *b = new_block(a, n);
    b->own = true;
    b->used = n;
    if (a->blocks && !a->blocks->own) {
        b->next = a->blocks->next;
        a->blocks->next = b;
    } else {
        b->next = a->blocks;
        a->blocks = b;
    }
    return b->data;
}

/* Takes n bytes from the block, or returns NULL. align 1: from the back. */
static inline void *cut_from(struct arena_block *b, size_t n, size_t align)
{
    size_t pad = (0 - b->used) & (align - 1), left = space_left(b);
    if (pad > left || n > left - pad)
        return NULL;
    if (align == 1) {
        b->back += (uint32_t)n;
        return (unsigned char *)b + b->size - b->back;
    }
    b->used += pad + n;
    return b->data + b->used - n;
}

static void *cut_from_new(struct arena *a, size_t n, size_t align)
{
    if (one_malloc_each)
        return own_block(a, n);
    struct arena_block *b;
    if (a->next_block_bytes < BLOCK_MIN)
        a->next_block_bytes = a->next_block_bytes == 0 ? BLOCK_FIRST : BLOCK_MIN;
    if (n > a->next_block_bytes - sizeof *b)
        return own_block(a, n);
    b = new_block(a, a->next_block_bytes - sizeof *b);
    b->next = a->blocks;
    a->blocks = b;
    if (a->next_block_bytes < BLOCK_MAX)
        a->next_block_bytes =
            a->next_block_bytes > BLOCK_MAX / 2 ? BLOCK_MAX : a->next_block_bytes * 2;
    return cut_from(b, n, align);
}

/* Returns n bytes, not cleared. align is a power of two, at most ALIGNMENT. */
static inline void *cut(struct arena *a, size_t n, size_t align)
{
    struct arena_block *b = a->blocks;
    n += n == 0;
    void *p = b && !b->own && !one_malloc_each ? cut_from(b, n, align) : NULL;
    return p ? p : cut_from_new(a, n, align);
}

void arena_init(struct arena *a, size_t first_block_bytes)
{
    *a = (struct arena){.next_block_bytes = first_block_bytes};
}

void arena_init_exact(struct arena *a, size_t bytes)
{
    *a = (struct arena){.next_block_bytes = BLOCK_AFTER_EXACT};
    if (bytes > UINT32_MAX)
        abort();
    if (!one_malloc_each)
        a->blocks = new_block(a, bytes);
}

void arena_init_on(struct arena *a, void *memory, size_t bytes)
{
    struct arena_block *b = memory;
    *a = (struct arena){0};
    if (bytes > UINT32_MAX || bytes < 2 * sizeof *b)
        abort();
    if (one_malloc_each)
        return;
    *b = (struct arena_block){.size = bytes, .lent = true};
    a->blocks = b;
}

static void free_block(struct arena_block *b)
{
    if (!b->lent)
        free(b);
}

void arena_deinit(struct arena *a)
{
    struct arena_block *b = a->blocks;
    while (b) {
        struct arena_block *next = b->next;
        free_block(b);
        b = next;
    }
    a->blocks = NULL;
    a->total_bytes = 0;
}

void arena_reset(struct arena *a)
{
    struct arena_block *kept = NULL;
    for (struct arena_block *b = a->blocks; b; b = b->next)
        if (!b->own && (!kept || b->size > kept->size))
            kept = b; /* may be a lent block */
    struct arena_block *b = a->blocks;
    while (b) {
        struct arena_block *next = b->next;
        if (b != kept)
            free_block(b);
        b = next;
    }
    a->blocks = kept;
    a->total_bytes = 0;
    if (kept) {
        kept->next = NULL;
        kept->used = kept->back = 0;
        a->total_bytes = kept->lent ? 0 : kept->size;
    }
}

void *arena_alloc(struct arena *a, size_t n)
{
    void *p = cut(a, n, ALIGNMENT);
    memset(p, 0, n);
    return p;
}

void *arena_array_(struct arena *a, size_t size, size_t align, size_t n)
{
    if (size != 0 && n > SIZE_MAX / size)
        abort();
    void *p = cut(a, size * n, align > 1 ? align : 2); /* always from the front */
    memset(p, 0, size * n);
    return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    if (n == SIZE_MAX)
        abort();
    char *p = cut(a, n + 1, 1);
    if (n > 0)
        memcpy(p, s, n);
    p[n] = '\0';
    return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *p = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return p;
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
{
    char small[128];
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    if (n < 0)
        abort(); /* only a broken format or an argument over INT_MAX bytes */
    char *p = cut(a, (size_t)n + 1, 1);
    if ((size_t)n < sizeof small)
        memcpy(p, small, (size_t)n + 1);
    else
        (void)vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

size_t arena_bytes(const struct arena *a)
{
    return a->total_bytes;
}

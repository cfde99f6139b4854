// SPDX-License-Identifier: Apache-2.0
/* arena - many small allocations, one release. Used for three lifetimes: the process, an object
 * (each decoded pod or node owns an arena and is replaced whole), and a cycle or request
 * (arena_reset). Memory is zeroed. Allocation failure aborts, so callers bound every external size.
 * With -DARENA_DEBUG=1 each allocation is a malloc, so sanitizers see overflows and use after
 * arena_reset. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    size_t next_block_bytes;    /* doubles up to 64 KiB */
    size_t total_bytes;         /* heap bytes of all blocks */
};

/* first_block_bytes 0 means 1024. Allocates nothing yet. */
void arena_init(struct arena *a, size_t first_block_bytes);
/* The first block holds exactly `bytes` of strings and of arrays from arena_new, in any order, if
 * each array's size is a multiple of 8. Later allocations should be few. */
void arena_init_exact(struct arena *a, size_t bytes);
/* The first block is the caller's memory (at least 256 bytes, aligned to 16, outlives the
 * arena). */
void arena_init_on(struct arena *a, void *memory, size_t bytes);
void arena_deinit(struct arena *a);
/* Frees everything but one block, which is reused. */
void arena_reset(struct arena *a);

/* n zeroed bytes aligned to 16. n may be 0 (a unique pointer). */
void *arena_alloc(struct arena *a, size_t n);
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

/* arena_new(a, struct reason, n): zeroed array of n; aborts if n * sizeof overflows. */
#define arena_new(a, type, n) ((type *)arena_array_((a), sizeof(type), _Alignof(type), (n)))
void *arena_array_(struct arena *a, size_t size, size_t align, size_t n);

size_t arena_bytes(const struct arena *a);

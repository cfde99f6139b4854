// SPDX-License-Identifier: Apache-2.0
#include "lib/base/mem.h"

#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { LARGE_BYTES = 1 << 20, GROW_BYTES = 1 << 20, TRIM_BYTES = 16 << 20 };

void *mem_array_(size_t n, size_t size)
{
    void *p = calloc(n > 0 ? n : 1, size);
    if (p == NULL)
        abort();
    return p;
}

char *mem_strdup(const char *s)
{
    if (s == NULL)
        return NULL;
    size_t n = strlen(s) + 1;
    char *p = mem_array_(n, 1);
    memcpy(p, s, n);
    return p;
}

void mem_wipe(void *p, size_t n)
{
    static void *(*const volatile set)(void *, int, size_t) = memset;
    if (n > 0)
        (void)set(p, 0, n);
}

void mem_expect_many(void)
{
#ifdef __GLIBC__
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    (void)mallopt(M_TOP_PAD, GROW_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);
#endif
}

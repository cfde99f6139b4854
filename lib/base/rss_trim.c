// SPDX-License-Identifier: Apache-2.0
/*
 * Every node runs one of these processes, so memory matters. Most resident memory of a new process
 * is code: the kernel maps sixteen pages around each page touched, and startup touches much that is
 * never used again (relocations and symbols of eighty libraries, crypto self-tests, gRPC's set-up).
 * MADV_DONTNEED on the read-only segments unmaps it; needed pages come back from the page cache.
 * A pass takes about 1 ms of CPU, every five minutes.
 *
 * This is safe unless a read-only segment was modified, which two may do:
 *   - the dynamic linker, in a library with text relocations (DT_TEXTREL);
 *   - a library that patches itself, as drivers do. So only libraries loaded at start are
 *     trimmed; the driver's is loaded later (backend_nvml).
 * What the linker writes elsewhere and then protects (RELRO) is in segments marked writable.
 *
 * One heap suffices: threads allocate too little to contend and reuse each other's free memory.
 * Blocks of 64 KiB or more (libcurl's buffers, pod lists) are mapped separately, so only used pages
 * count and all are returned when freed.
 */
#include "lib/base/rss_trim.h"

#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HEAPS = 1, LARGE_BYTES = 64 * 1024 };

static size_t objects_at_start; /* written before the first thread */

static bool has_changed_code(const struct dl_phdr_info *o)
{
    for (size_t i = 0; i < o->dlpi_phnum; i++) {
        if (o->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *d = (const void *)(o->dlpi_addr + o->dlpi_phdr[i].p_vaddr);
        for (; d->d_tag != DT_NULL; d++)
            if (d->d_tag == DT_TEXTREL || (d->d_tag == DT_FLAGS && d->d_un.d_val & DF_TEXTREL))
                return true;
    }
    return false;
}

static void release(const struct dl_phdr_info *o)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < o->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &o->dlpi_phdr[i];
        if (h->p_type != PT_LOAD || h->p_flags & PF_W)
            continue;
        uintptr_t begin = (o->dlpi_addr + h->p_vaddr) & ~(page - 1);
        uintptr_t end = (o->dlpi_addr + h->p_vaddr + h->p_memsz + page - 1) & ~(page - 1);
        /* Failure (locked memory) is harmless. */
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
}

static int count_object(struct dl_phdr_info *o, size_t size, void *n)
{
    (void)o, (void)size;
    (*(size_t *)n)++;
    return 0;
}

/* Objects come in load order; those loaded at start are never unloaded. */
static int visit(struct dl_phdr_info *o, size_t size, void *arg)
{
    size_t *seen = arg;
    (void)size;
    if ((*seen)++ < objects_at_start && !has_changed_code(o))
        release(o);
    return 0;
}

void rss_trim_init(void)
{
    (void)mallopt(M_ARENA_MAX, HEAPS);
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, LARGE_BYTES);
    objects_at_start = 0;
    (void)dl_iterate_phdr(count_object, &objects_at_start);
}

void rss_trim_now(void)
{
    size_t seen = 0;
    (void)malloc_trim(0);
    (void)dl_iterate_phdr(visit, &seen);
}

static void on_time(void *arg)
{
    struct rss_trim *s = arg;
    rss_trim_now();
    loop_timer_set(s->loop, &s->timer, RSS_TRIM_MS, on_time, s);
}

void rss_trim_start(struct rss_trim *s, struct loop *loop)
{
    *s = (struct rss_trim){.loop = loop};
    loop_timer_set(loop, &s->timer, RSS_TRIM_FIRST_MS, on_time, s);
}

void rss_trim_stop(struct rss_trim *s)
{
    if (s->loop != NULL)
        loop_timer_cancel(s->loop, &s->timer);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * slim - on every node runs one of us, so what stays in memory for nothing is paid once for each.
 *
 * Most of what a fresh process holds is not its data. The kernel maps code in runs of sixteen pages around each one that is
 * touched, and starting up touches much that is never needed again: relocations and symbol tables of eighty libraries, the
 * tests that a crypto library makes of itself, gRPC's set-up. MADV_DONTNEED on the read-only segments unmaps all of it; what is
 * needed comes back from the page cache at the first use, and the rest is for the kernel to keep or to drop.
 *
 * A read-only segment of a file can be read again at any time as long as nobody has written to it. Two may have:
 *   - the dynamic linker, in a library with relocations in its code (DT_TEXTREL);
 *   - a library that patches itself, as drivers do. So only libraries that were there at the start are touched; the driver's
 *     is loaded later (backend_nvml).
 * What the linker writes elsewhere, and protects afterwards (RELRO), is in segments that are marked writable.
 *
 * It costs about a millisecond of CPU, most of it for what comes back; every five minutes that is nothing.
 *
 * One heap suffices: nobody here allocates so much that threads would wait for each other, and what one frees another uses. A
 * block of 64 KiB or more (libcurl's buffers, lists of pods) is mapped on its own: of a buffer only the pages that were used
 * count, and all of it is given back when it is freed.
 */
#include "lib/base/slim.h"

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
        /* The one integer that is an address: where the linker has put the segment. */
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
        /* What cannot be let go (locked memory) stays: nothing is lost by that. */
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
}

static int count_object(struct dl_phdr_info *o, size_t size, void *n)
{
    (void)o, (void)size;
    (*(size_t *)n)++;
    return 0;
}

/* Objects come in the order in which they were loaded, and those of the start are never unloaded. */
static int visit(struct dl_phdr_info *o, size_t size, void *arg)
{
    size_t *seen = arg;
    (void)size;
    if ((*seen)++ < objects_at_start && !has_changed_code(o))
        release(o);
    return 0;
}

void slim_init(void)
{
    (void)mallopt(M_ARENA_MAX, HEAPS);
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, LARGE_BYTES);
    objects_at_start = 0;
    (void)dl_iterate_phdr(count_object, &objects_at_start);
}

void slim_now(void)
{
    size_t seen = 0;
    (void)malloc_trim(0);
    (void)dl_iterate_phdr(visit, &seen);
}

static void on_time(void *arg)
{
    struct slim *s = arg;
    slim_now();
    loop_timer_set(s->loop, &s->timer, SLIM_MS, on_time, s);
}

void slim_start(struct slim *s, struct loop *loop)
{
    *s = (struct slim){.loop = loop};
    loop_timer_set(loop, &s->timer, SLIM_FIRST_MS, on_time, s);
}

void slim_stop(struct slim *s)
{
    if (s->loop != NULL)
        loop_timer_cancel(s->loop, &s->timer);
}

// SPDX-License-Identifier: Apache-2.0
/* Regions are read into a copy, never mapped: a container can truncate its file, and a mapping
 * would then crash this process. Opening never waits: O_NONBLOCK also refuses a file on which the
 * container has a lease. */
#include "device-plugin/isolation/shares_region.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "device-plugin/isolation/budget.h"
#include "lib/base/cleanup.h"
#include "lib/base/mem.h"

enum {
    SLACK = 1 << 20, /* what a file system may need for a file beside its bytes */
    PROGRAM = S_ISUID | S_ISGID | S_ISVTX | S_IXUSR | S_IXGRP | S_IXOTH,
};

/* Processor time, so that a busy node does not count as a container's doing. */
static int64_t thread_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* NULL, or what the container did to its file. */
static const char *undo(int fd, const struct stat *st, off_t size)
{
    if (st->st_size > size || st->st_blocks * 512 > size + SLACK)
        return ftruncate(fd, size) == 0 ? "it was made larger"
                                        : "it was made larger, and cannot be cut";
    if (st->st_mode & PROGRAM)
        return fchmod(fd, 0666) == 0 ? "it was made a program"
                                     : "it was made a program, and cannot be changed back";
    return NULL;
}

/* A copy of the file. false: not a region that we understand. */
static bool copy_region(int fd, const struct stat *st, struct region *r)
{
    if (!S_ISREG(st->st_mode) || st->st_size <= 0)
        return false;
    size_t size = (size_t)st->st_size, len = 0;
    char *copy = mem_new(char, size);
    for (ssize_t n; len < size && (n = pread(fd, copy + len, size - len, (off_t)len)) > 0;)
        len += (size_t)n;
    if (region_open(r, copy, len))
        return true;
    free(copy);
    *r = (struct region){0};
    return false;
}

/* Does a process hold the slot? */
static bool is_held(int fd, uint32_t slot)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

void shares_region_free(struct shares_region *r)
{
    free(r->region.base);
    *r = (struct shares_region){0};
}

const char *shares_region_read(struct shares_region *out, const char *path, uint32_t cards,
                               int64_t budget_us)
{
    struct stat st;
    *out = (struct shares_region){0};
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0)
        return "it cannot be opened";
    const char *undone =
        S_ISREG(st.st_mode) ? undo(fd, &st, (off_t)region_bytes(REGION_SLOTS, cards)) : NULL;
    out->changed = undone != NULL;
    if (undone != NULL)
        return undone;
    if (!copy_region(fd, &st, &out->region))
        return "what it holds is not a region";
    int64_t began_us = thread_us();
    for (uint32_t slot = 0; slot < out->region.slots; slot++) {
        if (atomic_load(&region_slot(&out->region, slot)->owner) == 0)
            continue;
        out->alive[slot] = is_held(fd, slot);
        out->processes += out->alive[slot];
        if (thread_us() - began_us >= budget_us) {
            shares_region_free(out);
            return "it has so many locks that they cannot be counted";
        }
    }
    return NULL;
}

int64_t shares_region_used_mib(const struct shares_region *r, uint32_t card)
{
    uint64_t bytes = 0;
    for (uint32_t slot = 0; slot < r->region.slots; slot++) {
        uint64_t held = r->alive[slot] ? region_held(&r->region, slot, card) : 0;
        bytes += held <= REGION_USED_MAX ? held : 0;
    }
    return (int64_t)(bytes >> 20);
}

/* Writes to the file, which the container has mapped. If the container overwrites it, that affects
 * only itself. */
bool shares_region_measure(const char *path, uint32_t card, uint64_t ns, uint64_t now_ns)
{
    struct region_header head;
    struct region r;
    struct stat st;
    uint64_t measured[2];
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > REGION_BYTES_MAX ||
        pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        !region_open(&r, &head, (size_t)st.st_size) || card >= r.cards)
        return false;
    off_t row = (off_t)(r.card_offset + (size_t)card * r.card_size);
    _Static_assert(offsetof(struct region_card, measured_at_ns) ==
                       offsetof(struct region_card, measured_ns) + sizeof measured[0],
                   "both in one write");
    off_t at = row + (off_t)offsetof(struct region_card, measured_ns);
    if (pread(fd, measured, sizeof measured, at) != (ssize_t)sizeof measured)
        return false;
    measured[0] += ns;
    measured[1] = now_ns;
    uint64_t check = budget_check(measured[0], measured[1]);
    return pwrite(fd, measured, sizeof measured, at) == (ssize_t)sizeof measured &&
           pwrite(fd, &check, sizeof check,
                  row + (off_t)offsetof(struct region_card, measured_check)) ==
               (ssize_t)sizeof check;
}

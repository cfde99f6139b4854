// SPDX-License-Identifier: Apache-2.0
/*
 * regionfile - ownership of slots, and when a slot's process is dead.
 *
 * A process owns a slot by holding the kernel's lock on the byte of the file with the slot's
 * number. The lock is on an open file description of this process alone, which the mapping keeps
 * alive after the descriptor is closed, so the lock lasts exactly as long as the mapping. Programs
 * that close all descriptors do not lose it; fork does not inherit it (MADV_DONTFORK); exec and
 * every kind of death release it. It works across process namespaces and container restarts, where
 * process ids mean nothing.
 *
 * A dying process loses its memory map, and the lock, a little before the driver has freed its
 * device memory. So a slot with a free lock is left alone while /proc still shows its owner (pid
 * and start time) exiting: a process becomes a zombie only after all its files were released. A
 * process that has called exec is not exiting, and its slot is free at once.
 */
#include "device-plugin/isolation/regionfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STAT_BYTES = 1024, FLAG_EXITING = 4 };

static const char *number(const char *at, uint64_t *out)
{
    uint64_t n = 0;
    if (*at < '0' || *at > '9')
        return NULL;
    for (; *at >= '0' && *at <= '9'; at++)
        n = n * 10 + (uint64_t)(*at - '0');
    *out = n;
    return at;
}

/* The n-th word after `at`. */
static const char *word(const char *at, int n)
{
    while (n-- > 0) {
        at = strchr(at, ' ');
        if (at == NULL)
            return NULL;
        at++;
    }
    return at;
}

bool regionfile_parse(const char *stat, struct regionfile_process *out)
{
    /* The name is in parentheses and may contain any byte; the state follows the last ')'. */
    enum { STATE = 1, FLAGS = 7, THREADS = 18, START = 20 };
    const char *name = strrchr(stat, ')');
    uint64_t pid, flags, threads, start;
    if (name == NULL || number(stat, &pid) == NULL || pid > UINT32_MAX)
        return false;
    const char *state = word(name, STATE), *flag = word(name, FLAGS);
    const char *thread = word(name, THREADS), *began = word(name, START);
    if (began == NULL || number(flag, &flags) == NULL || number(thread, &threads) == NULL ||
        number(began, &start) == NULL)
        return false;
    /* The first thread may be a zombie while others run. */
    bool zombie = (*state == 'Z' || *state == 'X') && threads <= 1;
    *out = (struct regionfile_process){
        .pid = (uint32_t)pid, .start = start, .leaving = (flags & FLAG_EXITING) && !zombie};
    return true;
}

static void stat_path(uint32_t pid, char path[32])
{
    char digits[10];
    size_t n = 0, at = sizeof "/proc/" - 1;
    memcpy(path, "/proc/", at);
    do {
        digits[n++] = (char)('0' + pid % 10);
        pid /= 10;
    } while (pid > 0);
    while (n > 0)
        path[at++] = digits[--n];
    memcpy(path + at, "/stat", sizeof "/stat");
}

bool regionfile_process(uint32_t pid, struct regionfile_process *out)
{
    char path[32] = "/proc/self/stat", text[STAT_BYTES];
    if (pid != 0)
        stat_path(pid, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    return regionfile_parse(text, out);
}

static bool is_leaving(uint64_t owner)
{
    struct regionfile_process p;
    return regionfile_process(region_owner_pid(owner), &p) &&
           region_owner_is(owner, p.pid, p.start) && p.leaving;
}

static bool lock_byte(int fd, uint32_t slot, short type)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &l) == 0;
}

/* With the slot's lock: clears what its previous owner left. false: that is still exiting. */
static bool inherit(const struct region *r, uint32_t slot, uint64_t heir)
{
    struct region_slot *s = region_slot(r, slot);
    uint64_t owner = atomic_load(&s->owner);
    if (owner != 0 && is_leaving(owner))
        return false;
    region_clear(r, slot);
    atomic_store(&s->owner, heir);
    return true;
}

static bool take_slot(struct regionfile *f, int fd)
{
    struct regionfile_process self;
    uint64_t me = regionfile_process(0, &self) ? region_owner(self.pid, self.start) : 1;
    for (uint32_t slot = 0; slot < f->region.slots; slot++) {
        if (!lock_byte(fd, slot, F_WRLCK))
            continue;
        if (inherit(&f->region, slot, me)) {
            f->slot = slot;
            return true;
        }
        (void)lock_byte(fd, slot, F_UNLCK);
    }
    return false;
}

static int fail(int fd, void *map, size_t size, int why)
{
    if (map != MAP_FAILED)
        munmap(map, size);
    close(fd);
    errno = why;
    return -1;
}

int regionfile_attach(struct regionfile *f, const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -1;
    off_t size = lseek(fd, 0, SEEK_END);
    if (size <= 0 || size > REGION_BYTES_MAX)
        return fail(fd, MAP_FAILED, 0, EPROTO);
    *f = (struct regionfile){.size = (size_t)size};
    f->map = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (f->map == MAP_FAILED)
        return fail(fd, MAP_FAILED, 0, errno);
    if (madvise(f->map, f->size, MADV_DONTFORK) < 0)
        return fail(fd, f->map, f->size, errno);
    if (!region_open(&f->region, f->map, f->size))
        return fail(fd, f->map, f->size, EPROTO);
    if (!take_slot(f, fd))
        return fail(fd, f->map, f->size, EAGAIN);
    close(fd); /* the mapping keeps the description, and with it the lock */
    return 0;
}

void regionfile_detach(struct regionfile *f)
{
    region_clear(&f->region, f->slot);
    atomic_store(&region_slot(&f->region, f->slot)->owner, 0);
    munmap(f->map, f->size);
}

unsigned regionfile_reap(const struct regionfile *f, const char *path)
{
    unsigned n = 0;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return 0;
    for (uint32_t slot = 0; slot < f->region.slots; slot++) {
        if (atomic_load(&region_slot(&f->region, slot)->owner) == 0 ||
            !lock_byte(fd, slot, F_WRLCK))
            continue;
        n += inherit(&f->region, slot, 0);
        (void)lock_byte(fd, slot, F_UNLCK);
    }
    close(fd);
    return n;
}

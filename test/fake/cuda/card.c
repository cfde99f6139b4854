// SPDX-License-Identifier: Apache-2.0
/*
 * card - see card.h. Like a real driver it learns from the kernel that a process has ended: each
 * process holds a lock on one byte of the file, which ends with it. The memory of ended processes
 * is freed before anything is counted.
 */
#include "test/fake/cuda/card.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

uint64_t card_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool lock_byte(int fd, int slot, short type, bool test)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
    if (fcntl(fd, test ? F_OFD_GETLK : F_OFD_SETLK, &l) < 0)
        return false;
    return !test || l.l_type == F_UNLCK;
}

static void recount(struct card_world *w)
{
    for (int g = 0; g < CARD_GROUPS; g++)
        for (int k = 0; k < CARD_COUNT; k++)
            w->groups[g].used[k] = 0;
    for (int i = 0; i < CARD_PROCESSES; i++)
        for (int k = 0; w->processes[i].pid != 0 && k < CARD_COUNT; k++)
            w->groups[w->processes[i].group].used[k] += w->processes[i].used[k];
}

static void enter(struct card *c)
{
    if (pthread_mutex_lock(&c->world->lock) == EOWNERDEAD) {
        recount(c->world);
        pthread_mutex_consistent(&c->world->lock);
    }
}

static void leave(struct card *c)
{
    pthread_mutex_unlock(&c->world->lock);
}

/* What the dead had is taken back. */
static void collect(struct card *c)
{
    int fd = open(c->path, O_RDWR | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < CARD_PROCESSES; i++) {
        struct card_process *p = &c->world->processes[i];
        if (p->pid != 0 && i != c->slot && lock_byte(fd, i, F_WRLCK, true))
            *p = (struct card_process){0};
    }
    if (fd >= 0)
        close(fd);
    recount(c->world);
}

bool card_create(const char *path, uint64_t total, uint64_t context_bytes)
{
    pthread_mutexattr_t robust;
    struct card_world *w;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || ftruncate(fd, sizeof *w) < 0)
        return false;
    w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (w == MAP_FAILED)
        return false;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&w->lock, &robust);
    w->total = total;
    w->context_bytes = context_bytes;
    w->ready = 1;
    munmap(w, sizeof *w);
    return true;
}

static bool enlist(struct card *c, int fd)
{
    enter(c);
    collect(c);
    c->slot = -1;
    for (int i = 0; c->slot < 0 && i < CARD_PROCESSES; i++)
        if (c->world->processes[i].pid == 0 && lock_byte(fd, i, F_WRLCK, false))
            c->slot = i;
    if (c->slot >= 0)
        c->world->processes[c->slot] = (struct card_process){.pid = getpid(), .group = c->group};
    leave(c);
    return c->slot >= 0;
}

bool card_open(struct card *c, const char *path, int group)
{
    *c = (struct card){.slot = -1, .group = group};
    snprintf(c->path, sizeof c->path, "%s", path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return false;
    c->world = mmap(NULL, sizeof *c->world, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    bool ok = c->world != MAP_FAILED && c->world->ready == 1;
    if (ok)
        madvise(c->world, sizeof *c->world, MADV_DONTFORK);
    if (ok && group >= 0)
        ok = group < CARD_GROUPS && enlist(c, fd);
    close(fd);
    return ok;
}

void card_close(struct card *c)
{
    munmap(c->world, sizeof *c->world);
}

static uint64_t in_use(const struct card_world *w, int card)
{
    uint64_t sum = 0;
    for (int g = 0; g < CARD_GROUPS; g++)
        sum += w->groups[g].used[card];
    return sum;
}

bool card_take(struct card *c, int card, uint64_t bytes)
{
    struct card_world *w = c->world;
    struct card_group *g = &w->groups[c->group];
    enter(c);
    if (in_use(w, card) + bytes > w->total || g->used[card] + bytes > g->peak[card])
        collect(c);
    bool fits = bytes <= w->total && in_use(w, card) <= w->total - bytes;
    if (fits) {
        w->processes[c->slot].used[card] += bytes;
        g->used[card] += bytes;
        if (g->used[card] > g->peak[card])
            g->peak[card] = g->used[card];
    }
    leave(c);
    return fits;
}

void card_give(struct card *c, int card, uint64_t bytes)
{
    enter(c);
    if (bytes > c->world->processes[c->slot].used[card]) {
        fprintf(stderr, "fake card: more is given back than was taken\n");
        abort();
    }
    c->world->processes[c->slot].used[card] -= bytes;
    c->world->groups[c->group].used[card] -= bytes;
    leave(c);
}

uint64_t card_free_bytes(struct card *c, int card)
{
    enter(c);
    collect(c);
    uint64_t used = in_use(c->world, card);
    leave(c);
    return c->world->total - used;
}

uint64_t card_used(struct card *c, int group, int card)
{
    enter(c);
    collect(c);
    uint64_t used = c->world->groups[group].used[card];
    leave(c);
    return used;
}

/* In one go from each moment at which a group runs dry to the next. */
int card_advance(struct card_world *w, int card, uint64_t now_ns)
{
    uint64_t left = now_ns > w->now_ns[card] ? now_ns - w->now_ns[card] : 0;
    uint64_t active = 1;
    while (active > 0) {
        uint64_t least = UINT64_MAX;
        active = 0;
        for (int g = 0; g < CARD_GROUPS; g++) {
            uint64_t backlog = w->groups[g].backlog_ns[card];
            active += backlog > 0;
            if (backlog > 0 && backlog < least)
                least = backlog;
        }
        uint64_t each = active == 0 ? 0 : left / active < least ? left / active : least;
        if (each == 0)
            break;
        left -= each * active;
        for (int g = 0; g < CARD_GROUPS; g++) {
            if (w->groups[g].backlog_ns[card] == 0)
                continue;
            w->groups[g].backlog_ns[card] -= each;
            w->groups[g].busy_ns[card] += each;
        }
    }
    /* What could not be divided evenly stays for the next time. */
    w->now_ns[card] = active == 0 ? now_ns : now_ns - left;
    return (int)active;
}

static void pause_for(uint64_t ns)
{
    ns = ns < 20000 ? 20000 : ns > 20000000 ? 20000000 : ns;
    nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

/* Waits until the group has no more than this to run. */
static void wait_below(struct card *c, int card, uint64_t ns)
{
    for (;;) {
        enter(c);
        (void)card_advance(c->world, card, card_now_ns());
        uint64_t backlog = c->world->groups[c->group].backlog_ns[card];
        leave(c);
        if (backlog <= ns)
            return;
        pause_for(backlog - ns); /* longer, if others have kernels as well */
    }
}

void card_run(struct card *c, int card, uint64_t ns)
{
    if (ns > 0)
        wait_below(c, card, CARD_AHEAD_NS);
    enter(c);
    c->world->groups[c->group].backlog_ns[card] += ns;
    c->world->groups[c->group].kernels[card]++;
    leave(c);
}

void card_wait(struct card *c, int card)
{
    wait_below(c, card, 0);
}

uint64_t card_busy_ns(struct card *c, int group, int card)
{
    enter(c);
    (void)card_advance(c->world, card, card_now_ns());
    uint64_t ns = c->world->groups[group].busy_ns[card];
    leave(c);
    return ns;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * This process's state lies in memory that the kernel clears in a child of fork (MADV_WIPEONFORK):
 * the child finds an unstarted state, whatever the parent's other threads were doing. On older
 * kernels the process id is compared instead.
 *
 * If the limits file exists but the region is unusable, the usage is unknown and limited cards give
 * no memory. Without a limits file nothing is limited, and the library is not loaded.
 */
#include "device-plugin/isolation/preload/share.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device-plugin/isolation/preload/elf.h"
#include "device-plugin/isolation/preload/hooks.h"
#include "device-plugin/isolation/regionfile.h"

enum { PATH_BYTES = 512, DEVICES = 64, POOLS = 256, ITEMS_FIRST = 1024 };

struct state {
    atomic_int begun; /* 0 not, 1 under way, 2 done */
    atomic_int lock, pools_lock, contexts_lock;
    atomic_int pools_len; /* high-water mark of pools */
    pid_t pid;            /* only where the kernel does not wipe */
    bool attached;
    struct limits limits;
    struct regionfile file;
    _Atomic int16_t cards[DEVICES]; /* of a device: its row + 2; 0: not asked yet */
    struct share_pool pools[POOLS];
    struct share_item *items; /* open addressing */
    size_t items_cap, items_len;
    char folder[PATH_BYTES];
};

_Thread_local int share_depth __attribute__((tls_model("initial-exec")));
static _Atomic(struct state *) page;
static struct state without_mmap;
static atomic_bool compare_pids;

static void spin(atomic_int *lock)
{
    while (atomic_exchange_explicit(lock, 1, memory_order_acquire) != 0)
        sched_yield();
}

static void unspin(atomic_int *lock)
{
    atomic_store_explicit(lock, 0, memory_order_release);
}

static struct state *new_page(void)
{
    struct state *fresh =
        mmap(NULL, sizeof *fresh, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct state *other = NULL;
    bool spare = fresh == MAP_FAILED;
    if (spare)
        fresh = &without_mmap;
#ifdef MADV_WIPEONFORK
    if (spare || madvise(fresh, sizeof *fresh, MADV_WIPEONFORK) < 0)
        atomic_store(&compare_pids, true);
#else
    atomic_store(&compare_pids, true);
#endif
    if (atomic_compare_exchange_strong(&page, &other, fresh))
        return fresh;
    if (!spare)
        munmap(fresh, sizeof *fresh);
    return other;
}

static void with_name(const struct state *s, const char *name, char path[PATH_BYTES + 8])
{
    size_t n = strlen(s->folder);
    memcpy(path, s->folder, n);
    memcpy(path + n, name, strlen(name) + 1);
}

static void read_limits(struct state *s)
{
    char path[PATH_BYTES + 8], text[LIMITS_BYTES_MAX];
    with_name(s, "limits", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    size_t len = 0;
    ssize_t n;
    while (len < sizeof text && (n = read(fd, text + len, sizeof text - len)) > 0)
        len += (size_t)n;
    close(fd);
    (void)limits_parse(text, len, &s->limits);
}

static void begin(struct state *s)
{
    char path[PATH_BYTES + 8];
    int expected = 0, saved = errno;
    if (!atomic_compare_exchange_strong(&s->begun, &expected, 1)) {
        while (atomic_load_explicit(&s->begun, memory_order_acquire) != 2)
            sched_yield();
        return;
    }
    if (elf_folder(s->folder, PATH_BYTES))
        read_limits(s);
    if (s->limits.len > 0) {
        with_name(s, "region", path);
        s->attached =
            regionfile_attach(&s->file, path) == 0 && s->file.region.cards >= s->limits.len;
    }
    s->pid = getpid();
    atomic_store_explicit(&s->begun, 2, memory_order_release);
    errno = saved;
}

static struct state *state(void)
{
    struct state *s = atomic_load_explicit(&page, memory_order_acquire);
    if (s == NULL)
        s = new_page();
    if (atomic_load_explicit(&compare_pids, memory_order_relaxed) &&
        atomic_load_explicit(&s->begun, memory_order_acquire) == 2 && s->pid != getpid())
        memset(s, 0, sizeof *s);
    if (atomic_load_explicit(&s->begun, memory_order_acquire) != 2)
        begin(s);
    return s;
}

const struct limits_card *share_limit(int card)
{
    return &state()->limits.cards[card];
}

bool share_limited(void)
{
    return state()->limits.len > 0;
}

int share_card_by_uuid(const unsigned char uuid[16])
{
    const struct state *s = state();
    return limits_find(&s->limits, uuid);
}

int share_card_of(CUdevice device)
{
    struct state *s = state();
    CUuuid uuid;
    if (s->limits.len == 0 || device < 0)
        return SHARE_FREE_CARD;
    int known = device < DEVICES ? s->cards[device] : 0;
    if (known != 0)
        return known - 2;
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuDeviceGetUuid == NULL ||
        real->cuDeviceGetUuid(&uuid, device) != CUDA_SUCCESS)
        return SHARE_FREE_CARD;
    int card = limits_find(&s->limits, uuid.bytes);
    if (device < DEVICES)
        s->cards[device] = (int16_t)(card + 2);
    return card;
}

int share_card_current(void)
{
    const struct hooks_cuda *real = hooks_cuda();
    const struct state *s = state();
    CUdevice device;
    if (s->limits.len == 0 || real == NULL || real->cuCtxGetDevice == NULL ||
        real->cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return SHARE_FREE_CARD;
    return share_card_of(device);
}

struct region_card *share_region(int card)
{
    const struct state *s = state();
    return s->attached ? region_card(&s->file.region, (uint32_t)card) : NULL;
}

static bool try_take(struct state *s, int card, uint64_t bytes)
{
    spin(&s->lock);
    bool ok = region_take(&s->file.region, s->file.slot, (uint32_t)card, bytes,
                          s->limits.cards[card].bytes);
    unspin(&s->lock);
    return ok;
}

static void reap(struct state *s)
{
    char path[PATH_BYTES + 8];
    int saved = errno;
    with_name(s, "region", path);
    (void)regionfile_reap(&s->file, path);
    errno = saved;
}

CUresult share_take(int card, uint64_t bytes)
{
    struct state *s = state();
    if (card < 0)
        return CUDA_SUCCESS;
    if (!s->attached)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (try_take(s, card, bytes))
        return CUDA_SUCCESS;
    reap(s);
    return try_take(s, card, bytes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult share_denied(int card)
{
    const struct state *s = state();
    if (s->attached)
        region_note_denied(&s->file.region, (uint32_t)card);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void share_give(int card, uint64_t bytes)
{
    struct state *s = state();
    if (card < 0 || !s->attached)
        return;
    spin(&s->lock);
    region_give(&s->file.region, s->file.slot, (uint32_t)card, bytes);
    unspin(&s->lock);
}

uint64_t share_used(int card)
{
    struct state *s = state();
    if (!s->attached)
        return s->limits.cards[card].bytes;
    reap(s);
    return region_used(&s->file.region, (uint32_t)card);
}

static size_t bucket(const struct state *s, uint8_t kind, uint64_t key)
{
    uint64_t h = (key ^ kind) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(h >> 32) & (s->items_cap - 1);
}

static struct share_item *find(const struct state *s, enum share_kind kind, uint64_t key)
{
    for (size_t i = s->items_cap > 0 ? bucket(s, (uint8_t)kind, key) : 0; s->items_cap > 0;
         i = (i + 1) & (s->items_cap - 1)) {
        struct share_item *at = &s->items[i];
        if (at->kind == SHARE_NONE)
            return NULL;
        if (at->kind == kind && at->key == key)
            return at;
    }
    return NULL;
}

static void insert(struct state *s, const struct share_item *item)
{
    size_t i = bucket(s, item->kind, item->key);
    while (s->items[i].kind != SHARE_NONE)
        i = (i + 1) & (s->items_cap - 1);
    s->items[i] = *item;
    s->items_len++;
}

/* Doubles the table, or only removes the tombstones. */
static bool grow(struct state *s)
{
    struct share_item *old = s->items;
    size_t cap = s->items_cap, live = 0;
    for (size_t i = 0; i < cap; i++)
        live += old[i].kind != SHARE_NONE && old[i].kind != SHARE_GONE;
    size_t fresh = cap == 0 ? ITEMS_FIRST : live * 2 >= cap / 2 ? cap * 2 : cap;
    void *memory = share_map(fresh * sizeof *old);
    if (memory == NULL)
        return false;
    s->items = memory;
    s->items_cap = fresh;
    s->items_len = 0;
    for (size_t i = 0; i < cap; i++)
        if (old[i].kind != SHARE_NONE && old[i].kind != SHARE_GONE)
            insert(s, &old[i]);
    share_unmap(old, cap * sizeof *old);
    return true;
}

bool share_put(const struct share_item *item)
{
    struct state *s = state();
    spin(&s->lock);
    bool ok = s->items_len * 2 < s->items_cap || grow(s);
    if (ok)
        insert(s, item);
    unspin(&s->lock);
    return ok;
}

bool share_find(enum share_kind kind, uint64_t key, bool take, struct share_item *out)
{
    struct state *s = state();
    spin(&s->lock);
    struct share_item *at = find(s, kind, key);
    if (at != NULL)
        *out = *at;
    if (at != NULL && take)
        at->kind = SHARE_GONE;
    unspin(&s->lock);
    return at != NULL;
}

bool share_ref(enum share_kind kind, uint64_t key, int by, struct share_item *out)
{
    struct state *s = state();
    bool gone = false;
    spin(&s->lock);
    struct share_item *at = find(s, kind, key);
    if (at != NULL) {
        at->refs = (uint32_t)((int64_t)at->refs + by);
        *out = *at;
        gone = at->refs == 0;
        if (gone)
            at->kind = SHARE_GONE;
    }
    unspin(&s->lock);
    return gone;
}

bool share_take_within(enum share_kind kind, uint64_t from, uint64_t len, struct share_item *out)
{
    struct state *s = state();
    bool found = false;
    spin(&s->lock);
    for (size_t i = 0; i < s->items_cap && !found; i++) {
        struct share_item *at = &s->items[i];
        if (at->kind != kind || at->key < from || at->key - from >= len)
            continue;
        *out = *at;
        at->kind = SHARE_GONE;
        found = true;
    }
    unspin(&s->lock);
    return found;
}

CUcontext share_primary(int card)
{
    struct state *s = state();
    CUcontext found = NULL;
    spin(&s->lock);
    for (size_t i = 0; i < s->items_cap && found == NULL; i++)
        if (s->items[i].kind == SHARE_CONTEXT && s->items[i].card == card && s->items[i].primary)
            found = s->items[i].context;
    unspin(&s->lock);
    return found;
}

void share_end_context(CUcontext context)
{
    struct state *s = state();
    uint64_t bytes[LIMITS_CARDS] = {0};
    if (context == NULL)
        return;
    spin(&s->lock);
    for (size_t i = 0; i < s->items_cap; i++) {
        struct share_item *at = &s->items[i];
        if (at->kind == SHARE_NONE || at->kind == SHARE_GONE || at->context != context)
            continue;
        if (at->card >= 0)
            bytes[at->card] += at->size;
        at->kind = SHARE_GONE;
    }
    unspin(&s->lock);
    for (int card = 0; card < LIMITS_CARDS; card++)
        if (bytes[card] > 0)
            share_give(card, bytes[card]);
}

void share_rename_context(CUcontext from, CUcontext to)
{
    struct state *s = state();
    spin(&s->lock);
    for (size_t i = 0; from != NULL && i < s->items_cap; i++)
        if (s->items[i].context == from)
            s->items[i].context = to;
    unspin(&s->lock);
}

void share_contexts_begin(void)
{
    spin(&state()->contexts_lock);
}

void share_contexts_end(void)
{
    unspin(&state()->contexts_lock);
}

void *share_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

void share_unmap(void *memory, size_t bytes)
{
    if (memory != NULL)
        munmap(memory, bytes);
}

void share_pools_begin(void)
{
    spin(&state()->pools_lock);
}

void share_pools_end(void)
{
    unspin(&state()->pools_lock);
}

struct share_pool *share_pool_find(CUmemoryPool pool)
{
    struct state *s = state();
    for (int i = 0; i < s->pools_len; i++)
        if (s->pools[i].pool == pool)
            return &s->pools[i];
    return NULL;
}

struct share_pool *share_pool(CUmemoryPool pool, int card)
{
    struct state *s = state();
    struct share_pool *p = share_pool_find(pool);
    if (p != NULL)
        return p;
    p = share_pool_find(NULL);
    if (p == NULL && s->pools_len < POOLS)
        p = &s->pools[s->pools_len++];
    if (p != NULL)
        *p = (struct share_pool){.pool = pool, .card = card};
    return p;
}

struct share_pool *share_pool_graphs(int card, CUdevice device)
{
    const struct state *s = state();
    struct share_pool *p = share_pool((CUmemoryPool)(uintptr_t)&s->cards[device % DEVICES], card);
    if (p != NULL) {
        p->graphs = true;
        p->device = device;
    }
    return p;
}

static bool ask(const struct share_pool *p, int of_pool, int of_graphs, uint64_t *bytes)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (p->graphs)
        return real->cuDeviceGetGraphMemAttribute != NULL &&
               real->cuDeviceGetGraphMemAttribute(p->device, of_graphs, bytes) == CUDA_SUCCESS;
    return real->cuMemPoolGetAttribute != NULL &&
           real->cuMemPoolGetAttribute(p->pool, of_pool, bytes) == CUDA_SUCCESS;
}

bool share_pool_reserved(const struct share_pool *p, uint64_t *bytes)
{
    return ask(p, CU_POOL_RESERVED_CURRENT, CU_GRAPH_MEM_RESERVED, bytes);
}

bool share_pool_used(const struct share_pool *p, uint64_t *bytes)
{
    return ask(p, CU_POOL_USED_CURRENT, CU_GRAPH_MEM_USED, bytes);
}

void share_pools_trim(void)
{
    struct state *s = state();
    const struct hooks_cuda *real = hooks_cuda();
    for (int i = 0; i < s->pools_len; i++) {
        const struct share_pool *p = &s->pools[i];
        if (p->pool == NULL || p->charged == 0)
            continue;
        share_depth++;
        if (p->graphs && real->cuDeviceGraphMemTrim != NULL)
            (void)real->cuDeviceGraphMemTrim(p->device);
        else if (!p->graphs && real->cuMemPoolTrimTo != NULL)
            (void)real->cuMemPoolTrimTo(p->pool, 0);
        share_depth--;
    }
    share_pools_settle();
}

void share_pools_settle(void)
{
    struct state *s = state();
    for (int i = 0; i < s->pools_len; i++) {
        struct share_pool *p = &s->pools[i];
        uint64_t reserved;
        if (p->pool == NULL || p->charged == 0 || !share_pool_reserved(p, &reserved) ||
            reserved >= p->charged)
            continue;
        share_give(p->card, p->charged - reserved);
        p->charged = reserved;
    }
}

void share_pools_reset(int card, CUdevice device)
{
    struct state *s = state();
    const struct hooks_cuda *real = hooks_cuda();
    CUmemoryPool own = NULL;
    if (real->cuDeviceGetDefaultMemPool != NULL)
        (void)real->cuDeviceGetDefaultMemPool(&own, device);
    for (int i = 0; i < s->pools_len; i++) {
        struct share_pool *p = &s->pools[i];
        if (p->pool == NULL || p->card != card || p->graphs || p->pool == own)
            continue;
        share_give(p->card, p->charged);
        *p = (struct share_pool){0};
    }
}

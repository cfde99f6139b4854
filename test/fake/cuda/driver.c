// SPDX-License-Identifier: Apache-2.0
/*
 * A libcuda.so.1 for machines without a GPU, on the simulated cards of card.h. The file that
 * COSCHED_FAKE_CUDA names holds them (card_create makes it), COSCHED_FAKE_CUDA_GROUP is the group
 * of this process. What it does is what the driver does as far as memory and time are concerned:
 * allocations of a context end with it, physical memory with its last reference, pools keep what
 * was freed until they are trimmed, a child of fork cannot use what its parent began.
 *
 * Card i has the uuid that the fake NVML gives it by default; COSCHED_FAKE_CUDA_UUID is another for
 * card 0. COSCHED_FAKE_CUDA_VERSION is the version that it gives, as 12090. Kernels are called
 * `busy_<nanoseconds>` and take that long.
 */
#include "test/fake/cuda/driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* found by name */

enum { BUCKETS = 4096, STACK = 16, PITCH = 512 };

struct card driver_card;
_Thread_local CUcontext driver_current;
static _Thread_local CUcontext pushed[STACK];
static _Thread_local int pushed_len;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct driver_block *blocks[BUCKETS];
static struct CUctx_st primary[CARD_COUNT] = {{.device = 0, .primary = true},
                                              {.device = 1, .primary = true}};
static int retained[CARD_COUNT];
static bool started, orphaned;
static uint64_t next_address = 0x7f0000000000;

static void in_child(void)
{
    orphaned = orphaned || started;
}

__attribute__((constructor)) static void loaded(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

CUresult driver_enter(bool context)
{
    if (!started || orphaned)
        return CUDA_ERROR_NOT_INITIALIZED;
    return context && driver_current == NULL ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

void driver_lock(void)
{
    pthread_mutex_lock(&lock);
}

void driver_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static struct driver_block **bucket(enum driver_kind kind, uint64_t key)
{
    return &blocks[(key / 512 * 31 + key + kind) % BUCKETS];
}

struct driver_block *driver_add(enum driver_kind kind, uint64_t key, uint64_t size, int device)
{
    struct driver_block **at = bucket(kind, key), *b = calloc(1, sizeof *b);
    *b = (struct driver_block){
        .next = *at, .kind = kind, .key = key, .size = size, .device = device, .refs = 1};
    *at = b;
    return b;
}

struct driver_block *driver_find(enum driver_kind kind, uint64_t key)
{
    struct driver_block *b = *bucket(kind, key);
    while (b != NULL && (b->kind != kind || b->key != key))
        b = b->next;
    return b;
}

void driver_drop(struct driver_block *b)
{
    struct driver_block **at = bucket(b->kind, b->key);
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    if (b->pool != NULL)
        b->pool->used -= b->size;
    else
        card_give(&driver_card, b->device, b->size);
    free(b);
}

void driver_drop_context(CUcontext c, bool reset)
{
    for (int i = 0; i < BUCKETS; i++) {
        struct driver_block *b = blocks[i], *next;
        for (; b != NULL; b = next) {
            next = b->next;
            if (b->context == c)
                driver_drop(b);
        }
    }
    if (c->primary) { /* and with it the device in this process */
        driver_reset_graphs(c->device);
        driver_reset_pools(c->device, reset);
    }
    card_give(&driver_card, c->device, driver_card.world->context_bytes);
}

uint64_t driver_address(uint64_t size)
{
    uint64_t at = next_address;
    next_address += (size + 511) / 512 * 512 + 512;
    return at;
}

/* ---- the driver and its devices ---- */

EXPORT CUresult cuInit(unsigned flags)
{
    const char *path = getenv("COSCHED_FAKE_CUDA"), *group = getenv("COSCHED_FAKE_CUDA_GROUP");
    CUresult result = flags != 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    driver_lock();
    if (orphaned)
        result = CUDA_ERROR_NOT_INITIALIZED;
    else if (!started && path == NULL)
        result = 100; /* no device */
    else if (!started && !card_open(&driver_card, path, group != NULL ? group[0] - '0' : 0))
        result = 999;
    started = started || result == CUDA_SUCCESS;
    driver_unlock();
    return result;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    const char *other = getenv("COSCHED_FAKE_CUDA_VERSION");
    *version = other != NULL ? (int)strtol(other, NULL, 10) : 12090;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
    *count = CARD_COUNT;
    return driver_enter(false);
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal < 0 || ordinal >= CARD_COUNT ? CUDA_ERROR_INVALID_DEVICE : driver_enter(false);
}

EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    const char *first = getenv("COSCHED_FAKE_CUDA_UUID");
    *uuid = (CUuuid){{0, 0, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, (unsigned char)device}};
    unsigned char *at = uuid->bytes;
    /* "GPU-", then pairs of digits, with dashes. */
    for (const char *c = device == 0 && first != NULL ? first + 4 : ""; *c != '\0'; c++)
        if (*c != '-' && at < uuid->bytes + 16) {
            char pair[3] = {c[0], c[1], '\0'};
            *at++ = (unsigned char)strtoul(pair, NULL, 16);
            c++;
        }
    return driver_enter(false);
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid(uuid, device);
}

EXPORT CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    snprintf(name, (size_t)size, "Simulated card %d", device);
    return driver_enter(false);
}

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    (void)device;
    *value = attribute == 75 ? 8 : attribute == 115 ? 1 : attribute == 76 ? 0 : 32;
    return driver_enter(false);
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CUresult r = driver_enter(false);
    if (r == CUDA_SUCCESS && (device < 0 || device >= CARD_COUNT))
        return CUDA_ERROR_INVALID_DEVICE;
    if (r == CUDA_SUCCESS)
        *bytes = driver_card.world->total;
    return r;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    CUresult r = driver_enter(true);
    if (r == CUDA_SUCCESS) {
        *free_bytes = card_free_bytes(&driver_card, driver_current->device);
        *total = driver_card.world->total;
    }
    return r;
}

/* ---- contexts ---- */

EXPORT CUresult cuCtxGetCurrent(CUcontext *out)
{
    *out = driver_current;
    return driver_enter(false);
}

EXPORT CUresult cuCtxSetCurrent(CUcontext c)
{
    driver_current = c;
    return driver_enter(false);
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext c)
{
    if (pushed_len == STACK)
        return CUDA_ERROR_INVALID_VALUE;
    pushed[pushed_len++] = driver_current;
    driver_current = c;
    return driver_enter(false);
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
    if (pushed_len == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (out != NULL)
        *out = driver_current;
    driver_current = pushed[--pushed_len];
    return driver_enter(false);
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    CUresult r = driver_enter(true);
    if (r == CUDA_SUCCESS)
        *device = driver_current->device;
    return r;
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device)
{
    CUresult r = driver_enter(false);
    (void)flags;
    if (r != CUDA_SUCCESS || device < 0 || device >= CARD_COUNT)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_DEVICE;
    if (!card_take(&driver_card, device, driver_card.world->context_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUcontext c = calloc(1, sizeof *c);
    c->device = device;
    *out = c;
    return cuCtxPushCurrent_v2(c);
}

EXPORT CUresult cuCtxCreate_v3(CUcontext *out, void *affinity, int n, unsigned flags,
                               CUdevice device)
{
    (void)affinity, (void)n;
    return cuCtxCreate_v2(out, flags, device);
}

EXPORT CUresult cuCtxCreate_v4(CUcontext *out, void *params, unsigned flags, CUdevice device)
{
    (void)params;
    return cuCtxCreate_v2(out, flags, device);
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext c)
{
    CUresult r = driver_enter(false);
    if (r != CUDA_SUCCESS || c == NULL || c->primary)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_CONTEXT;
    driver_lock();
    driver_drop_context(c, false);
    driver_unlock();
    if (driver_current == c) {
        CUcontext popped;
        (void)cuCtxPopCurrent_v2(&popped);
    }
    free(c);
    return r;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    CUresult r = driver_enter(false);
    if (r != CUDA_SUCCESS || device < 0 || device >= CARD_COUNT)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    if (retained[device] == 0 && !card_take(&driver_card, device, driver_card.world->context_bytes))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    else
        retained[device]++;
    *out = &primary[device];
    driver_unlock();
    return r;
}

static CUresult release(CUdevice device, bool all)
{
    CUresult r = driver_enter(false);
    if (r != CUDA_SUCCESS || device < 0 || device >= CARD_COUNT)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    if (retained[device] == 0)
        r = all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    else if (all || --retained[device] == 0) {
        retained[device] = 0;
        driver_drop_context(&primary[device], all);
    }
    driver_unlock();
    return r;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    return release(device, false);
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    return release(device, true);
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = retained[device] > 0;
    return driver_enter(false);
}

/* ---- plain memory ---- */

static CUresult allocate(CUdeviceptr *out, uint64_t size)
{
    CUresult r = driver_enter(true);
    if (r != CUDA_SUCCESS || size == 0)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    if (!card_take(&driver_card, driver_current->device, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    driver_lock();
    *out = driver_address(size);
    driver_add(DRIVER_PLAIN, *out, size, driver_current->device)->context = driver_current;
    driver_unlock();
    return r;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
    return allocate(out, size);
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned flags)
{
    (void)flags;
    return allocate(out, size);
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                                   unsigned element)
{
    (void)element;
    *pitch = (width + PITCH - 1) / PITCH * PITCH;
    return allocate(out, *pitch * height);
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr p)
{
    CUresult r = driver_enter(true);
    if (r != CUDA_SUCCESS || p == 0)
        return r;
    driver_lock();
    struct driver_block *b = driver_find(DRIVER_PLAIN, p);
    if (b == NULL)
        b = driver_find(DRIVER_ASYNC, p);
    if (b == NULL)
        r = CUDA_ERROR_INVALID_VALUE;
    else
        driver_drop(b);
    driver_unlock();
    return r;
}

/* ---- by name ---- */

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags,
                                    int *status);
EXPORT CUresult cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(symbol, out, version, flags, NULL);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags,
                             int *status)
{
    const struct driver_entry *best = NULL;
    bool known = false;
    driver_asked(symbol, version, flags, out);
    for (const struct driver_entry *e = driver_entries; e->base != NULL; e++) {
        size_t n = strlen(e->name);
        bool ptsz = n > 5 && strcmp(e->name + n - 5, "_ptsz") == 0;
        if (strcmp(e->base, symbol) != 0)
            continue;
        known = true;
        if (e->since > version || (ptsz && !(flags & CU_PROC_PER_THREAD_STREAM)))
            continue;
        best = e; /* later rows are newer, or ptsz */
    }
    *out = best != NULL ? (void *)(uintptr_t)best->function : NULL;
    if (status != NULL)
        *status = best != NULL ? CU_PROC_FOUND : known ? CU_PROC_TOO_NEW : CU_PROC_NOT_FOUND;
    return best != NULL || status != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

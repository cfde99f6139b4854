// SPDX-License-Identifier: Apache-2.0
/* driver_more - pools, physical memory and arrays of the fake driver. */
#include "test/fake/cuda/driver.h"

#include <stdlib.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* found by name */

enum { POOL_STEP = 2 * 1024 * 1024 };

/* ---- pools ---- */

static struct CUmemPoolHandle_st pools[CARD_COUNT] = {{.device = 0}, {.device = 1}};
static CUmemoryPool current_pool[CARD_COUNT] = {&pools[0], &pools[1]};
static CUmemoryPool made; /* those that programs made */

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device)
{
    if (device < 0 || device >= CARD_COUNT)
        return CUDA_ERROR_INVALID_DEVICE;
    *out = &pools[device];
    return driver_enter(false);
}

EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device)
{
    if (device < 0 || device >= CARD_COUNT)
        return CUDA_ERROR_INVALID_DEVICE;
    *out = current_pool[device];
    return driver_enter(false);
}

EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    if (device < 0 || device >= CARD_COUNT || pool->device != device)
        return CUDA_ERROR_INVALID_VALUE;
    current_pool[device] = pool;
    return driver_enter(false);
}

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
    if (props->location.type != CU_LOCATION_DEVICE || props->location.id < 0 ||
        props->location.id >= CARD_COUNT)
        return CUDA_ERROR_INVALID_VALUE;
    *out = calloc(1, sizeof **out);
    driver_lock();
    **out = (struct CUmemPoolHandle_st){.device = props->location.id, .next = made};
    made = *out;
    driver_unlock();
    return driver_enter(false);
}

/* Under the lock. */
static void trim(CUmemoryPool pool, uint64_t keep)
{
    uint64_t least = (pool->used + POOL_STEP - 1) / POOL_STEP * POOL_STEP;
    if (least < keep)
        least = keep;
    if (pool->reserved <= least)
        return;
    card_give(&driver_card, pool->device, pool->reserved - least);
    pool->reserved = least;
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    driver_lock();
    trim(pool, keep);
    driver_unlock();
    return driver_enter(false);
}

EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    CUmemoryPool *at = &made;
    driver_lock();
    while (*at != NULL && *at != pool)
        at = &(*at)->next;
    CUresult r = *at != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS) {
        *at = pool->next;
        trim(pool, 0);
        if (current_pool[pool->device] == pool)
            current_pool[pool->device] = &pools[pool->device];
        free(pool);
    }
    driver_unlock();
    return r;
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    driver_lock();
    if (attribute == CU_POOL_RESERVED_CURRENT || attribute == CU_POOL_USED_CURRENT)
        *(uint64_t *)value = attribute == CU_POOL_USED_CURRENT ? pool->used : pool->reserved;
    else
        *(int *)value = 0;
    driver_unlock();
    return driver_enter(false);
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    (void)pool, (void)attribute, (void)value;
    return driver_enter(false);
}

bool driver_grow(CUmemoryPool pool, uint64_t size)
{
    uint64_t least = (pool->used + size + POOL_STEP - 1) / POOL_STEP * POOL_STEP;
    if (least <= pool->reserved)
        return true;
    if (!card_take(&driver_card, pool->device, least - pool->reserved))
        return false;
    pool->reserved = least;
    return true;
}

void driver_reset_pools(int device, bool destroy)
{
    trim(&pools[device], 0);
    for (CUmemoryPool *at = &made, one; *at != NULL;) {
        one = *at;
        if (one->device == device)
            trim(one, 0);
        if (one->device == device && destroy) {
            *at = one->next;
            free(one);
        } else {
            at = &one->next;
        }
    }
    if (destroy)
        current_pool[device] = &pools[device];
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size, CUmemoryPool pool,
                                        CUstream stream)
{
    CUresult r = driver_enter(true);
    if (r != CUDA_SUCCESS || size == 0)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    if (driver_capture(stream) != NULL)
        return driver_capture_alloc(stream, out, size, pool->device);
    driver_lock();
    if (driver_grow(pool, size)) {
        pool->used += size;
        *out = driver_address(size);
        struct driver_block *b = driver_add(DRIVER_ASYNC, *out, size, pool->device);
        b->pool = pool;
        b->context = driver_stream_context(stream);
    } else {
        r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    driver_unlock();
    return r;
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream stream)
{
    CUresult r = driver_enter(true);
    return r != CUDA_SUCCESS
               ? r
               : cuMemAllocFromPoolAsync(
                     out, size, current_pool[driver_stream_context(stream)->device], stream);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr p, CUstream stream)
{
    CUresult r = driver_enter(true);
    if (r != CUDA_SUCCESS)
        return r;
    if (driver_capture(stream) != NULL)
        return driver_capture_free(stream, p);
    driver_lock();
    struct driver_block *b = driver_find(DRIVER_ASYNC, p);
    if (b == NULL)
        b = driver_find(DRIVER_PLAIN, p);
    if (b == NULL)
        r = CUDA_ERROR_INVALID_VALUE;
    else
        driver_drop(b);
    driver_unlock();
    return r;
}

/* ---- physical memory ---- */

struct mapping {
    struct mapping *next;
    CUdeviceptr at;
    CUhandle handle;
};
static struct mapping *mappings;
static CUhandle last_handle;

EXPORT CUresult cuMemCreate(CUhandle *out, size_t size, const CUmemAllocationProp *prop,
                            unsigned long long flags)
{
    CUresult r = driver_enter(false);
    (void)flags;
    int device = prop->location.type == CU_LOCATION_DEVICE ? prop->location.id : 0;
    uint64_t cost = prop->location.type == CU_LOCATION_DEVICE ? size : 0;
    if (r != CUDA_SUCCESS)
        return r;
    if (!card_take(&driver_card, device, cost))
        return CUDA_ERROR_OUT_OF_MEMORY;
    driver_lock();
    *out = ++last_handle;
    driver_add(DRIVER_PHYSICAL, *out, cost, device);
    driver_unlock();
    return r;
}

/* Under the lock. */
static CUresult unref(CUhandle handle)
{
    struct driver_block *b = driver_find(DRIVER_PHYSICAL, handle);
    if (b == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (--b->refs == 0)
        driver_drop(b);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemRelease(CUhandle handle)
{
    driver_lock();
    CUresult r = unref(handle);
    driver_unlock();
    return r;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr at,
                                    unsigned long long flags)
{
    (void)alignment, (void)at, (void)flags;
    driver_lock();
    *out = driver_address(size);
    driver_unlock();
    return driver_enter(false);
}

EXPORT CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset, CUhandle handle,
                         unsigned long long flags)
{
    (void)size, (void)offset, (void)flags;
    driver_lock();
    struct driver_block *b = driver_find(DRIVER_PHYSICAL, handle);
    if (b != NULL) {
        struct mapping *m = calloc(1, sizeof *m);
        *m = (struct mapping){mappings, at, handle};
        mappings = m;
        b->refs++;
    }
    driver_unlock();
    return b != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr at, size_t size)
{
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    (void)size;
    driver_lock();
    for (struct mapping **m = &mappings; *m != NULL; m = &(*m)->next) {
        if ((*m)->at != at)
            continue;
        struct mapping *gone = *m;
        *m = gone->next;
        r = unref(gone->handle);
        free(gone);
        break;
    }
    driver_unlock();
    return r;
}

EXPORT CUresult cuMemRetainAllocationHandle(CUhandle *out, void *at)
{
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    for (struct mapping *m = mappings; m != NULL; m = m->next) {
        if (m->at != (CUdeviceptr)(uintptr_t)at)
            continue;
        *out = m->handle;
        driver_find(DRIVER_PHYSICAL, m->handle)->refs++;
        r = CUDA_SUCCESS;
    }
    driver_unlock();
    return r;
}

/* ---- arrays ---- */

/* In the smallest unit of their formats; arrays that are mapped into have no memory of their
 * own. */
static uint64_t element(int format, unsigned channels)
{
    if (format >= 0x91 && format <= 0x9e)
        return 1;
    uint64_t bytes = format == 1 || format == 8                       ? 1
                     : format == 2 || format == 9 || format == 0x10   ? 2
                     : format == 3 || format == 0xa || format == 0x20 ? 4
                                                                      : 0;
    return bytes * channels;
}

static CUresult make_array(void **out, uint64_t size, unsigned flags)
{
    CUresult r = driver_enter(true);
    uint64_t bytes = flags & 0xc0 ? 0 : size;
    if (r != CUDA_SUCCESS || size == 0)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    if (!card_take(&driver_card, driver_current->device, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    driver_lock();
    uint64_t key = driver_address(512);
    driver_add(DRIVER_ARRAY, key, bytes, driver_current->device)->context = driver_current;
    *out = (void *)(uintptr_t)key;
    driver_unlock();
    return r;
}

static CUresult drop_array(void *array)
{
    driver_lock();
    struct driver_block *b = driver_find(DRIVER_ARRAY, (uint64_t)(uintptr_t)array);
    if (b != NULL)
        driver_drop(b);
    driver_unlock();
    return b != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static size_t least_one(size_t n)
{
    return n > 0 ? n : 1;
}

EXPORT CUresult cuArrayCreate_v2(CUarray *out, const CUarrayDescriptor *d)
{
    return make_array((void **)out,
                      d->Width * least_one(d->Height) * element(d->Format, d->NumChannels), 0);
}

EXPORT CUresult cuArray3DCreate_v2(CUarray *out, const CUarray3DDescriptor *d)
{
    return make_array((void **)out,
                      d->Width * least_one(d->Height) * least_one(d->Depth) *
                          element(d->Format, d->NumChannels),
                      d->Flags);
}

EXPORT CUresult cuArrayDestroy(CUarray array)
{
    return drop_array(array);
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUarray3DDescriptor *d,
                                       unsigned levels)
{
    uint64_t size = 0;
    for (unsigned i = 0; i < levels; i++)
        size += least_one(d->Width >> i) * least_one(d->Height >> i) *
                least_one(d->Flags & 0x01 /* layers */ ? d->Depth : d->Depth >> i) *
                element(d->Format, d->NumChannels);
    return make_array((void **)out, size, d->Flags);
}

EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
    return drop_array(array);
}

/* ---- the default stream that is one per thread ---- */

DRIVER_SAME(cuMemAllocAsync_ptsz, cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream));
DRIVER_SAME(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync,
            (CUdeviceptr *, size_t, CUmemoryPool, CUstream));
DRIVER_SAME(cuMemFreeAsync_ptsz, cuMemFreeAsync, (CUdeviceptr, CUstream));

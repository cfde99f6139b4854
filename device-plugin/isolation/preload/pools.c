// SPDX-License-Identifier: Apache-2.0
/*
 * pools - stream-ordered allocation. What counts is what a pool has reserved on the card, not what is handed out of it: freed memory
 * stays with the pool until it is trimmed.
 *
 * A pool grows in steps that only the driver knows, so before it is asked we take the most that it may grow by (a step of 32 MiB, or
 * of 2 MiB where 32 do not fit), and afterwards give back what its own figure says it did not need.
 */
#include "device-plugin/isolation/preload/hooks.h"
#include "device-plugin/isolation/preload/share.h"

#define MIB (UINT64_C(1) << 20)

static uint64_t round_up(uint64_t bytes, uint64_t step)
{
    uint64_t sum;
    return __builtin_add_overflow(bytes, step - 1, &sum) ? UINT64_MAX : sum / step * step;
}

static uint64_t reserved_by(const struct hooks_cuda *real, CUmemoryPool pool)
{
    uint64_t bytes = 0;
    if (real->cuMemPoolGetAttribute != NULL)
        (void)real->cuMemPoolGetAttribute(pool, CU_POOL_RESERVED_CURRENT, &bytes);
    return bytes;
}

/* Takes what the pool may grow by; 0: there is no room, or nothing to take because it has enough. */
static bool take_growth(const struct hooks_cuda *real, const struct share_pool *p, uint64_t size,
                        uint64_t *taken)
{
    uint64_t used = 0, reserved = reserved_by(real, p->pool);
    if (real->cuMemPoolGetAttribute != NULL)
        (void)real->cuMemPoolGetAttribute(p->pool, CU_POOL_USED_CURRENT, &used);
    static const uint64_t steps[] = {32 * MIB, 2 * MIB};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        *taken = round_up(size, steps[i]);
        if (share_take(p->card, *taken) == CUDA_SUCCESS)
            return true;
    }
    /* Full, but what it needs may be lying in the pool already: then it must not grow at all. */
    *taken = 0;
    return used <= reserved && reserved - used >= round_up(size, 2 * MIB);
}

/* After a change: charged is what the pool has. */
static void settle(const struct hooks_cuda *real, struct share_pool *p, uint64_t taken)
{
    uint64_t truth = reserved_by(real, p->pool), paid = p->charged + taken;
    if (truth < paid)
        share_give(p->card, paid - truth);
    else if (truth > paid && share_take(p->card, truth - paid) != CUDA_SUCCESS)
        truth = paid; /* a step larger than we know: what could not be taken stays uncounted */
    p->charged = truth;
}

typedef CUresult (*allocator)(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream);

static CUresult from_pool(const struct hooks_cuda *real, allocator call, CUdeviceptr *out,
                          size_t size, CUmemoryPool pool, CUstream stream)
{
    int card = share_card_current();
    uint64_t taken;
    if (card < 0)
        return call(out, size, pool, stream);
    share_pools_begin();
    struct share_pool *p = share_pool(pool, card);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    bool room = p != NULL && take_growth(real, p, size, &taken);
    if (p != NULL && !room) {
        share_pools_trim();
        room = take_growth(real, p, size, &taken);
    }
    if (room) {
        share_depth++;
        result = call(out, size, pool, stream);
        share_depth--;
        settle(real, p, taken);
    }
    share_pools_end();
    return room ? result : share_denied(card);
}

/* From the device's own pool. */
static CUresult from_device(const struct hooks_cuda *real, allocator call, CUdeviceptr *out,
                            size_t size, CUstream stream)
{
    CUmemoryPool pool = NULL;
    CUdevice device;
    if (real->cuCtxGetDevice == NULL || real->cuDeviceGetMemPool == NULL ||
        real->cuCtxGetDevice(&device) != CUDA_SUCCESS ||
        real->cuDeviceGetMemPool(&pool, device) != CUDA_SUCCESS)
        return call(out, size, NULL, stream);
    return from_pool(real, call, out, size, pool, stream);
}

/* The same signature for those that take no pool. */
static CUresult device_plain(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream)
{
    (void)pool;
    return hooks_cuda()->cuMemAllocAsync(out, size, stream);
}

static CUresult device_ptsz(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream)
{
    (void)pool;
    return hooks_cuda()->cuMemAllocAsync_ptsz(out, size, stream);
}

int cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream stream)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemAllocAsync == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (share_depth > 0)
        return real->cuMemAllocAsync(out, size, stream);
    return from_device(real, device_plain, out, size, stream);
}

int cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t size, CUstream stream)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemAllocAsync_ptsz == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (share_depth > 0)
        return real->cuMemAllocAsync_ptsz(out, size, stream);
    return from_device(real, device_ptsz, out, size, stream);
}

int cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemAllocFromPoolAsync == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (share_depth > 0)
        return real->cuMemAllocFromPoolAsync(out, size, pool, stream);
    return from_pool(real, real->cuMemAllocFromPoolAsync, out, size, pool, stream);
}

int cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemAllocFromPoolAsync_ptsz == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (share_depth > 0)
        return real->cuMemAllocFromPoolAsync_ptsz(out, size, pool, stream);
    return from_pool(real, real->cuMemAllocFromPoolAsync_ptsz, out, size, pool, stream);
}

/* Plain memory may be freed like this too; memory of a pool goes back to the pool, which keeps it. */
static CUresult free_async(CUresult (*call)(CUdeviceptr, CUstream), CUdeviceptr at, CUstream stream)
{
    struct share_item item;
    bool ours = share_depth == 0 && share_find(SHARE_MEMORY, at, true, &item);
    share_depth++;
    CUresult result = call(at, stream);
    share_depth--;
    if (ours && result == CUDA_SUCCESS)
        share_give(item.card, item.size);
    else if (ours)
        (void)share_put(&item);
    return result;
}

int cuMemFreeAsync(CUdeviceptr at, CUstream stream)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemFreeAsync == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    return free_async(real->cuMemFreeAsync, at, stream);
}

int cuMemFreeAsync_ptsz(CUdeviceptr at, CUstream stream)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemFreeAsync_ptsz == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    return free_async(real->cuMemFreeAsync_ptsz, at, stream);
}

int cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemPoolTrimTo == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (share_depth > 0 || share_card_current() < 0)
        return real->cuMemPoolTrimTo(pool, keep);
    share_pools_begin();
    share_depth++;
    CUresult result = real->cuMemPoolTrimTo(pool, keep);
    share_depth--;
    share_pools_settle();
    share_pools_end();
    return result;
}

/* A pool that still has memory out lives on until that is freed: then its charge stays. */
int cuMemPoolDestroy(CUmemoryPool pool)
{
    const struct hooks_cuda *real = hooks_cuda();
    uint64_t used = 0;
    if (real == NULL || real->cuMemPoolDestroy == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (share_depth > 0 || share_card_current() < 0)
        return real->cuMemPoolDestroy(pool);
    share_pools_begin();
    struct share_pool *p = share_pool(pool, SHARE_FREE_CARD);
    if (real->cuMemPoolGetAttribute != NULL)
        (void)real->cuMemPoolGetAttribute(pool, CU_POOL_USED_CURRENT, &used);
    share_depth++;
    CUresult result = real->cuMemPoolDestroy(pool);
    share_depth--;
    if (p != NULL && result == CUDA_SUCCESS) {
        if (used == 0)
            share_give(p->card, p->charged);
        *p = (struct share_pool){0};
    }
    share_pools_end();
    return result;
}

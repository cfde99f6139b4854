// SPDX-License-Identifier: Apache-2.0
/*
 * pools - stream-ordered allocation. A pool is charged for what it has reserved on the card, not
 * for what is allocated from it: freed memory stays in the pool until it is trimmed.
 *
 * Only the driver knows the steps in which a pool grows. So before the call we take the most that
 * it may grow by (a step of 32 MiB, or of 2 MiB if 32 do not fit), and afterwards return what the
 * pool did not need. If it has grown beyond the limit, the memory is freed again. A pool belongs to
 * the card it was made for, and a stream to the card of its context: neither need be the current
 * one.
 */
#include "device-plugin/isolation/preload/charge.h"
#include "device-plugin/isolation/preload/pools.h"

#define MIB (UINT64_C(1) << 20)
#define PER_THREAD ((CUstream)(uintptr_t)2) // NOLINT(performance-no-int-to-ptr)

static uint64_t round_up(uint64_t bytes, uint64_t step)
{
    uint64_t sum;
    return __builtin_add_overflow(bytes, step - 1, &sum) ? UINT64_MAX : sum / step * step;
}

static bool take_growth(const struct share_pool *p, uint64_t size, uint64_t *taken)
{
    static const uint64_t steps[] = {32 * MIB, 2 * MIB};
    uint64_t used = 0, reserved = 0;
    (void)share_pool_reserved(p, &reserved);
    (void)share_pool_used(p, &used);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        *taken = round_up(size, steps[i]);
        if (share_take(p->card, *taken) == CUDA_SUCCESS)
            return true;
    }
    /* Full, but the pool may already have what it needs: then it must not grow at all. */
    *taken = 0;
    return used <= reserved && reserved - used >= round_up(size, 2 * MIB);
}

bool pools_grow(const struct share_pool *p, uint64_t size, uint64_t *taken)
{
    if (take_growth(p, size, taken))
        return true;
    share_pools_trim();
    return take_growth(p, size, taken);
}

bool pools_settle(struct share_pool *p, uint64_t taken, bool gave)
{
    uint64_t truth, paid = p->charged + taken;
    if (!share_pool_reserved(p, &truth))
        truth = gave ? paid : p->charged;
    bool fits = truth <= paid || share_take(p->card, truth - paid) == CUDA_SUCCESS;
    if (truth < paid)
        share_give(p->card, paid - truth);
    p->charged = fits ? truth : paid;
    return fits;
}

static bool is_of(const struct hooks_cuda *real, CUmemoryPool pool, CUdevice device)
{
    CUmemoryPool its = NULL;
    if (real->cuDeviceGetDefaultMemPool != NULL &&
        real->cuDeviceGetDefaultMemPool(&its, device) == CUDA_SUCCESS && its == pool)
        return true;
    return real->cuDeviceGetMemPool != NULL &&
           real->cuDeviceGetMemPool(&its, device) == CUDA_SUCCESS && its == pool;
}

/* Pools made by the program are known; any other is a device's own, or another process'. */
static int card_of_pool(const struct hooks_cuda *real, CUmemoryPool pool)
{
    int devices = 0;
    share_pools_begin();
    const struct share_pool *p = share_pool_find(pool);
    int known = p != NULL ? p->card : 0;
    share_pools_end();
    if (p != NULL)
        return known;
    if (real->cuDeviceGetCount != NULL)
        (void)real->cuDeviceGetCount(&devices);
    for (CUdevice d = 0; d < devices; d++)
        if (is_of(real, pool, d))
            return share_card_of(d);
    return share_card_current();
}

/* The handles 0, 1 and 2 are the built-in streams of every context. */
static bool device_of_stream(const struct hooks_cuda *real, CUstream stream, CUdevice *device)
{
    CUcontext its = NULL;
    if (real->cuCtxGetDevice == NULL)
        return false;
    if ((uintptr_t)stream <= 2 || real->cuStreamGetCtx == NULL ||
        real->cuStreamGetCtx(stream, &its) != CUDA_SUCCESS || its == charge_context(real, 0) ||
        real->cuCtxPushCurrent_v2 == NULL || real->cuCtxPushCurrent_v2(its) != CUDA_SUCCESS)
        return real->cuCtxGetDevice(device) == CUDA_SUCCESS;
    bool known = real->cuCtxGetDevice(device) == CUDA_SUCCESS;
    (void)real->cuCtxPopCurrent_v2(&its);
    return known;
}

/* Calls on a captured stream go into a graph and allocate nothing before it runs (graphmem.c). */
static bool is_captured(const struct hooks_cuda *real, CUstream stream, bool ptsz)
{
    int status = 0;
    if (stream == NULL && ptsz)
        stream = PER_THREAD;
    return (uintptr_t)stream > 1 && real->cuStreamIsCapturing != NULL &&
           real->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status != 0;
}

/* The driver's function for this kind of call; pool NULL: that of the stream's device. */
struct way {
    CUmemoryPool pool;
    CUstream stream;
    bool ptsz;
};

static CUresult ask_driver(const struct hooks_cuda *real, const struct way *w, CUdeviceptr *out,
                           size_t size)
{
    CUresult result;
    if (w->pool != NULL && w->ptsz)
        CHARGE_DRIVER(real->cuMemAllocFromPoolAsync_ptsz(out, size, w->pool, w->stream));
    else if (w->pool != NULL)
        CHARGE_DRIVER(real->cuMemAllocFromPoolAsync(out, size, w->pool, w->stream));
    else if (w->ptsz)
        CHARGE_DRIVER(real->cuMemAllocAsync_ptsz(out, size, w->stream));
    else
        CHARGE_DRIVER(real->cuMemAllocAsync(out, size, w->stream));
    return result;
}

static void back(const struct hooks_cuda *real, const struct way *w, struct share_pool *p,
                 CUdeviceptr at)
{
    CUresult (*release)(CUdeviceptr, CUstream) =
        w->ptsz ? real->cuMemFreeAsync_ptsz : real->cuMemFreeAsync;
    share_depth++;
    if (release != NULL && release(at, w->stream) == CUDA_SUCCESS && real->cuMemPoolTrimTo != NULL)
        (void)real->cuMemPoolTrimTo(p->pool, 0);
    share_depth--;
    (void)pools_settle(p, 0, false);
}

static CUresult from_pool(const struct hooks_cuda *real, const struct way *w, CUmemoryPool pool,
                          int card, CUdeviceptr *out, size_t size)
{
    uint64_t taken;
    if (card < 0 || is_captured(real, w->stream, w->ptsz))
        return ask_driver(real, w, out, size);
    share_pools_begin();
    struct share_pool *p = share_pool(pool, card);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    bool within = p != NULL && pools_grow(p, size, &taken);
    if (within) {
        result = ask_driver(real, w, out, size);
        within = pools_settle(p, taken, result == CUDA_SUCCESS);
        if (!within && result == CUDA_SUCCESS)
            back(real, w, p, *out);
    }
    share_pools_end();
    return within ? result : share_denied(card);
}

static CUresult from_device(const struct hooks_cuda *real, const struct way *w, CUdeviceptr *out,
                            size_t size)
{
    CUmemoryPool pool = NULL;
    CUdevice device;
    if (share_depth > 0 || real->cuDeviceGetMemPool == NULL ||
        !device_of_stream(real, w->stream, &device) ||
        real->cuDeviceGetMemPool(&pool, device) != CUDA_SUCCESS)
        return ask_driver(real, w, out, size);
    return from_pool(real, w, pool, share_card_of(device), out, size);
}

int cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream stream)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemAllocAsync == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    return from_device(real, &(struct way){.stream = stream}, out, size);
}

int cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t size, CUstream stream)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemAllocAsync_ptsz == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    return from_device(real, &(struct way){.stream = stream, .ptsz = true}, out, size);
}

int cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemAllocFromPoolAsync == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (share_depth > 0 || pool == NULL)
        return real->cuMemAllocFromPoolAsync(out, size, pool, stream);
    return from_pool(real, &(struct way){.pool = pool, .stream = stream}, pool,
                     card_of_pool(real, pool), out, size);
}

int cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemAllocFromPoolAsync_ptsz == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (share_depth > 0 || pool == NULL)
        return real->cuMemAllocFromPoolAsync_ptsz(out, size, pool, stream);
    return from_pool(real, &(struct way){.pool = pool, .stream = stream, .ptsz = true}, pool,
                     card_of_pool(real, pool), out, size);
}

/* Plain memory may be freed like this too; memory of a pool returns to the pool, which keeps it. */
static CUresult free_async(CUresult (*call)(CUdeviceptr, CUstream), CUdeviceptr at, CUstream stream)
{
    struct share_item item;
    bool ours = share_depth == 0 && share_find(SHARE_MEMORY, at, true, &item);
    share_depth++;
    CUresult result = call(at, stream);
    share_depth--;
    return ours ? charge_freed(result, &item) : result;
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

int cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
    const struct hooks_cuda *real = hooks_cuda();
    CUresult result;
    if (real == NULL || real->cuMemPoolCreate == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    CHARGE_DRIVER(real->cuMemPoolCreate(out, props));
    if (result != CUDA_SUCCESS || share_depth > 0 || !share_limited())
        return result;
    int card = props->location.type == CU_LOCATION_DEVICE ? share_card_of(props->location.id)
                                                          : SHARE_FREE_CARD;
    share_pools_begin();
    struct share_pool *p = share_pool(*out, card);
    if (p != NULL)
        *p = (struct share_pool){.pool = *out, .card = card}; /* its address may be a reused one */
    share_pools_end();
    return result;
}

int cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemPoolTrimTo == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (share_depth > 0 || !share_limited())
        return real->cuMemPoolTrimTo(pool, keep);
    share_pools_begin();
    share_depth++;
    CUresult result = real->cuMemPoolTrimTo(pool, keep);
    share_depth--;
    share_pools_settle();
    share_pools_end();
    return result;
}

/* A pool with outstanding allocations lives on until they are freed: then its charge stays. */
int cuMemPoolDestroy(CUmemoryPool pool)
{
    const struct hooks_cuda *real = hooks_cuda();
    uint64_t used = 0;
    if (real == NULL || real->cuMemPoolDestroy == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (share_depth > 0 || !share_limited())
        return real->cuMemPoolDestroy(pool);
    share_pools_begin();
    struct share_pool *p = share_pool_find(pool);
    if (p != NULL)
        (void)share_pool_used(p, &used);
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

// SPDX-License-Identifier: Apache-2.0
/*
 * memory - allocations. Each is the same three steps: take its bytes from the container's share, call the driver, and write down
 * what was got under the handle that will be freed; if the driver refuses, give the bytes back. What is freed is out of the books
 * before the driver is called, because at that moment another thread may be given the same address, and its bytes go back
 * after the driver has let go of them.
 *
 * Memory that another process exported and this one imports was charged there; handles to it are not in our books.
 */
#include "device-plugin/isolation/preload/hooks.h"
#include "device-plugin/isolation/preload/share.h"

#define MIN_PITCH 512u

/* Calls into the driver; what the driver calls of ours meanwhile passes. */
#define DRIVER(call)     \
    do {                 \
        share_depth++;   \
        result = (call); \
        share_depth--;   \
    } while (0)

static CUcontext current(const struct hooks_cuda *real)
{
    CUcontext c = NULL;
    if (real->cuCtxGetCurrent != NULL)
        (void)real->cuCtxGetCurrent(&c);
    return c;
}

static CUresult take(int card, uint64_t bytes)
{
    CUresult result = share_take(card, bytes);
    if (result == CUDA_SUCCESS)
        return result;
    /* Pools of this process may hold what nobody uses. */
    share_pools_begin();
    share_pools_trim();
    share_pools_end();
    return share_take(card, bytes) == CUDA_SUCCESS ? CUDA_SUCCESS : share_denied(card);
}

/* The driver has answered: into the books, or back. false: there was no room in the books. */
static bool written(CUresult result, enum share_kind kind, uint64_t key, uint64_t bytes, int card,
                    CUcontext context)
{
    struct share_item item = {.key = key,
                              .size = bytes,
                              .context = context,
                              .card = (int16_t)card,
                              .kind = (uint8_t)kind,
                              .refs = 1};
    if (card < 0 || (result == CUDA_SUCCESS && share_put(&item)))
        return true;
    share_give(card, bytes);
    return result != CUDA_SUCCESS;
}

int cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemAlloc_v2 == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = share_depth > 0 ? SHARE_FREE_CARD : share_card_current();
    CUresult result = take(card, size);
    if (result != CUDA_SUCCESS)
        return result;
    DRIVER(real->cuMemAlloc_v2(out, size));
    if (!written(result, SHARE_MEMORY, result == CUDA_SUCCESS ? *out : 0, size, card,
                 card < 0 ? NULL : current(real))) {
        (void)real->cuMemFree_v2(*out);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

int cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned flags)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemAllocManaged == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = share_depth > 0 ? SHARE_FREE_CARD : share_card_current();
    CUresult result = take(card, size);
    if (result != CUDA_SUCCESS)
        return result;
    DRIVER(real->cuMemAllocManaged(out, size, flags));
    if (!written(result, SHARE_MEMORY, result == CUDA_SUCCESS ? *out : 0, size, card,
                 card < 0 ? NULL : current(real))) {
        (void)real->cuMemFree_v2(*out);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

/* Rows are as long as the driver makes them. 512 bytes is what cards of today round to; one that rounds to more has taken
 * the difference already when we learn of it. */
int cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                       unsigned element)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemAllocPitch_v2 == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = share_depth > 0 ? SHARE_FREE_CARD : share_card_current();
    uint64_t row = 0, bytes = 0, truth;
    if (__builtin_add_overflow((uint64_t)width, MIN_PITCH - 1, &row) ||
        __builtin_mul_overflow(row / MIN_PITCH * MIN_PITCH, (uint64_t)height, &bytes))
        bytes = REGION_USED_MAX + 1;
    CUresult result = take(card, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    DRIVER(real->cuMemAllocPitch_v2(out, pitch, width, height, element));
    truth = result == CUDA_SUCCESS ? (uint64_t)*pitch * height : bytes;
    if (truth < bytes) {
        share_give(card, bytes - truth);
    } else if (truth > bytes && take(card, truth - bytes) != CUDA_SUCCESS) {
        (void)real->cuMemFree_v2(*out);
        share_give(card, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!written(result, SHARE_MEMORY, result == CUDA_SUCCESS ? *out : 0, truth, card,
                 card < 0 ? NULL : current(real))) {
        (void)real->cuMemFree_v2(*out);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

int cuMemFree_v2(CUdeviceptr at)
{
    const struct hooks_cuda *real = hooks_cuda();
    struct share_item item;
    CUresult result;
    if (real == NULL || real->cuMemFree_v2 == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (share_depth > 0 || !share_find(SHARE_MEMORY, at, true, &item))
        return real->cuMemFree_v2(at);
    DRIVER(real->cuMemFree_v2(at));
    if (result == CUDA_SUCCESS)
        share_give(item.card, item.size);
    else
        (void)share_put(&item);
    return result;
}

/* ---- physical memory: alive while there is a handle or a mapping ---- */

int cuMemCreate(CUhandle *out, size_t size, const CUmemAllocationProp *prop,
                unsigned long long flags)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemCreate == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = share_depth > 0 || prop == NULL || prop->location.type != CU_LOCATION_DEVICE
                   ? SHARE_FREE_CARD
                   : share_card_of(prop->location.id);
    CUresult result = take(card, size);
    if (result != CUDA_SUCCESS)
        return result;
    DRIVER(real->cuMemCreate(out, size, prop, flags));
    if (!written(result, SHARE_PHYSICAL, result == CUDA_SUCCESS ? *out : 0, size, card, NULL)) {
        (void)real->cuMemRelease(*out);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

static void one_less(CUhandle handle)
{
    struct share_item item;
    if (share_ref(SHARE_PHYSICAL, handle, -1, &item))
        share_give(item.card, item.size);
}

int cuMemRelease(CUhandle handle)
{
    const struct hooks_cuda *real = hooks_cuda();
    CUresult result;
    if (real == NULL || real->cuMemRelease == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    DRIVER(real->cuMemRelease(handle));
    if (result == CUDA_SUCCESS && share_depth == 0)
        one_less(handle);
    return result;
}

int cuMemRetainAllocationHandle(CUhandle *out, void *at)
{
    const struct hooks_cuda *real = hooks_cuda();
    struct share_item item;
    CUresult result;
    if (real == NULL || real->cuMemRetainAllocationHandle == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    DRIVER(real->cuMemRetainAllocationHandle(out, at));
    if (result == CUDA_SUCCESS && share_depth == 0)
        (void)share_ref(SHARE_PHYSICAL, *out, 1, &item);
    return result;
}

int cuMemMap(CUdeviceptr at, size_t size, size_t offset, CUhandle handle, unsigned long long flags)
{
    const struct hooks_cuda *real = hooks_cuda();
    struct share_item item;
    CUresult result;
    if (real == NULL || real->cuMemMap == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    DRIVER(real->cuMemMap(at, size, offset, handle, flags));
    if (result != CUDA_SUCCESS || share_depth > 0 ||
        !share_find(SHARE_PHYSICAL, handle, false, &item))
        return result;
    struct share_item mapping = {
        .key = at, .size = handle, .card = SHARE_FREE_CARD, .kind = SHARE_MAPPING, .refs = 1};
    if (share_put(&mapping))
        (void)share_ref(SHARE_PHYSICAL, handle, 1, &item);
    return result;
}

int cuMemUnmap(CUdeviceptr at, size_t size)
{
    const struct hooks_cuda *real = hooks_cuda();
    struct share_item mapping;
    CUresult result;
    if (real == NULL || real->cuMemUnmap == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    DRIVER(real->cuMemUnmap(at, size));
    while (result == CUDA_SUCCESS && share_depth == 0 &&
           share_take_within(SHARE_MAPPING, at, size, &mapping))
        one_less(mapping.size);
    return result;
}

/* ---- arrays ---- */

/* Bytes of one channel, at most. */
static uint64_t channel_bytes(int format)
{
    switch (format) {
    case 0x01: /* unsigned and signed, 8 bits */
    case 0x08:
        return 1;
    case 0x02: /* 16 bits, and half */
    case 0x09:
    case 0x10:
        return 2;
    default: /* 32 bits and float; video and compressed formats never need more */
        return 4;
    }
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? REGION_USED_MAX + 1 : product;
}

static uint64_t at_least_one(uint64_t n)
{
    return n > 0 ? n : 1;
}

static uint64_t array_bytes(uint64_t width, uint64_t height, uint64_t depth, int format,
                            unsigned channels)
{
    uint64_t plane = multiply(at_least_one(width), at_least_one(height));
    return multiply(multiply(plane, at_least_one(depth)),
                    channel_bytes(format) * at_least_one(channels));
}

int cuArrayCreate_v2(CUarray *out, const CUarrayDescriptor *d)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuArrayCreate_v2 == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = share_depth > 0 || d == NULL ? SHARE_FREE_CARD : share_card_current();
    uint64_t bytes = card < 0 ? 0 : array_bytes(d->Width, d->Height, 1, d->Format, d->NumChannels);
    CUresult result = take(card, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    DRIVER(real->cuArrayCreate_v2(out, d));
    if (!written(result, SHARE_ARRAY, result == CUDA_SUCCESS ? (uintptr_t)*out : 0, bytes, card,
                 card < 0 ? NULL : current(real))) {
        (void)real->cuArrayDestroy(*out);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

int cuArray3DCreate_v2(CUarray *out, const CUarray3DDescriptor *d)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuArray3DCreate_v2 == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = share_depth > 0 || d == NULL ? SHARE_FREE_CARD : share_card_current();
    uint64_t bytes =
        card < 0 ? 0 : array_bytes(d->Width, d->Height, d->Depth, d->Format, d->NumChannels);
    CUresult result = take(card, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    DRIVER(real->cuArray3DCreate_v2(out, d));
    if (!written(result, SHARE_ARRAY, result == CUDA_SUCCESS ? (uintptr_t)*out : 0, bytes, card,
                 card < 0 ? NULL : current(real))) {
        (void)real->cuArrayDestroy(*out);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

int cuMipmappedArrayCreate(CUmipmappedArray *out, const CUarray3DDescriptor *d, unsigned levels)
{
    const struct hooks_cuda *real = hooks_cuda();
    uint64_t bytes = 0;
    if (real == NULL || real->cuMipmappedArrayCreate == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = share_depth > 0 || d == NULL ? SHARE_FREE_CARD : share_card_current();
    for (unsigned i = 0; card >= 0 && i < levels && i < 64; i++) {
        uint64_t level =
            array_bytes(d->Width >> i, d->Height >> i, d->Depth >> i, d->Format, d->NumChannels);
        if (__builtin_add_overflow(bytes, level, &bytes))
            bytes = REGION_USED_MAX + 1;
    }
    CUresult result = take(card, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    DRIVER(real->cuMipmappedArrayCreate(out, d, levels));
    if (!written(result, SHARE_ARRAY, result == CUDA_SUCCESS ? (uintptr_t)*out : 0, bytes, card,
                 card < 0 ? NULL : current(real))) {
        (void)real->cuMipmappedArrayDestroy(*out);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

/* Both kinds of array end alike. */
static CUresult array_ended(CUresult result, bool ours, const struct share_item *item)
{
    if (ours && result == CUDA_SUCCESS)
        share_give(item->card, item->size);
    else if (ours)
        (void)share_put(item);
    return result;
}

int cuArrayDestroy(CUarray array)
{
    const struct hooks_cuda *real = hooks_cuda();
    struct share_item item;
    CUresult result;
    if (real == NULL || real->cuArrayDestroy == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    bool ours = share_depth == 0 && share_find(SHARE_ARRAY, (uintptr_t)array, true, &item);
    DRIVER(real->cuArrayDestroy(array));
    return array_ended(result, ours, &item);
}

int cuMipmappedArrayDestroy(CUmipmappedArray array)
{
    const struct hooks_cuda *real = hooks_cuda();
    struct share_item item;
    CUresult result;
    if (real == NULL || real->cuMipmappedArrayDestroy == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    bool ours = share_depth == 0 && share_find(SHARE_ARRAY, (uintptr_t)array, true, &item);
    DRIVER(real->cuMipmappedArrayDestroy(array));
    return array_ended(result, ours, &item);
}

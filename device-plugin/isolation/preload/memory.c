// SPDX-License-Identifier: Apache-2.0
/* memory - allocations, by the steps of charge.h. An item leaves the records before the driver
 * frees it, because another thread may get the same address at once; its bytes are returned after
 * the driver has freed them. Memory imported from another process was charged there and is not
 * recorded. */
#include "device-plugin/isolation/preload/charge.h"
#include "device-plugin/isolation/preload/hooks.h"
#include "device-plugin/isolation/preload/share.h"

int cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemAlloc_v2 == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = share_depth > 0 ? SHARE_FREE_CARD : share_card_current();
    CUresult result = charge_take(card, size);
    if (result != CUDA_SUCCESS)
        return result;
    CHARGE_DRIVER(real->cuMemAlloc_v2(out, size));
    if (!charge_written(result, SHARE_MEMORY, result == CUDA_SUCCESS ? *out : 0, size, card,
                        charge_context(real, card))) {
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
    CUresult result = charge_take(card, size);
    if (result != CUDA_SUCCESS)
        return result;
    CHARGE_DRIVER(real->cuMemAllocManaged(out, size, flags));
    if (!charge_written(result, SHARE_MEMORY, result == CUDA_SUCCESS ? *out : 0, size, card,
                        charge_context(real, card))) {
        (void)real->cuMemFree_v2(*out);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

/* The driver chooses the pitch. Current cards round to 512 bytes; one that rounds to more has
 * already taken the difference when we learn of it. */
int cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                       unsigned element)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemAllocPitch_v2 == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = share_depth > 0 ? SHARE_FREE_CARD : share_card_current();
    uint64_t bytes = charge_rows(width, height), truth;
    CUresult result = charge_take(card, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    CHARGE_DRIVER(real->cuMemAllocPitch_v2(out, pitch, width, height, element));
    truth = result == CUDA_SUCCESS ? (uint64_t)*pitch * height : bytes;
    if (truth < bytes) {
        share_give(card, bytes - truth);
    } else if (truth > bytes && charge_take(card, truth - bytes) != CUDA_SUCCESS) {
        (void)real->cuMemFree_v2(*out);
        share_give(card, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!charge_written(result, SHARE_MEMORY, result == CUDA_SUCCESS ? *out : 0, truth, card,
                        charge_context(real, card))) {
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
    CHARGE_DRIVER(real->cuMemFree_v2(at));
    return charge_freed(result, &item);
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
    CUresult result = charge_take(card, size);
    if (result != CUDA_SUCCESS)
        return result;
    CHARGE_DRIVER(real->cuMemCreate(out, size, prop, flags));
    if (!charge_written(result, SHARE_PHYSICAL, result == CUDA_SUCCESS ? *out : 0, size, card,
                        NULL)) {
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
    CHARGE_DRIVER(real->cuMemRelease(handle));
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
    CHARGE_DRIVER(real->cuMemRetainAllocationHandle(out, at));
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
    CHARGE_DRIVER(real->cuMemMap(at, size, offset, handle, flags));
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
    CHARGE_DRIVER(real->cuMemUnmap(at, size));
    while (result == CUDA_SUCCESS && share_depth == 0 &&
           share_take_within(SHARE_MAPPING, at, size, &mapping))
        one_less(mapping.size);
    return result;
}

// SPDX-License-Identifier: Apache-2.0
/* legacy - the first forms of calls, from before CUDA 3.2, with 32-bit sizes and addresses. Drivers
 * still have them, so they are charged like their successors. */
#include "device-plugin/isolation/preload/charge.h"

static int card_now(void)
{
    return share_depth > 0 ? SHARE_FREE_CARD : share_card_current();
}

static unsigned at_most(uint64_t bytes)
{
    return bytes > UINT32_MAX ? UINT32_MAX : (unsigned)bytes;
}

int cuDeviceTotalMem(unsigned *bytes, CUdevice device)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuDeviceTotalMem == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = real->cuDeviceTotalMem(bytes, device);
    int card = result == CUDA_SUCCESS && share_depth == 0 ? share_card_of(device) : SHARE_FREE_CARD;
    if (card >= 0 && share_limit(card)->bytes < *bytes)
        *bytes = at_most(share_limit(card)->bytes);
    return result;
}

int cuMemGetInfo(unsigned *free_bytes, unsigned *total)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemGetInfo == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = real->cuMemGetInfo(free_bytes, total);
    int card = result == CUDA_SUCCESS ? card_now() : SHARE_FREE_CARD;
    if (card < 0)
        return result;
    uint64_t limit = share_limit(card)->bytes, used = share_used(card);
    uint64_t left = used < limit ? limit - used : 0;
    *total = limit < *total ? at_most(limit) : *total;
    *free_bytes = left < *free_bytes ? at_most(left) : *free_bytes;
    return result;
}

int cuMemAlloc(CUdeviceptr_v1 *out, unsigned size)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemAlloc == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = card_now();
    CUresult result = charge_take(card, size);
    if (result != CUDA_SUCCESS)
        return result;
    CHARGE_DRIVER(real->cuMemAlloc(out, size));
    if (!charge_written(result, SHARE_MEMORY, result == CUDA_SUCCESS ? *out : 0, size, card,
                        charge_context(real, card))) {
        (void)real->cuMemFree(*out);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

int cuMemAllocPitch(CUdeviceptr_v1 *out, unsigned *pitch, unsigned width, unsigned height,
                    unsigned element)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMemAllocPitch == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = card_now();
    uint64_t bytes = charge_rows(width, height), truth;
    CUresult result = charge_take(card, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    CHARGE_DRIVER(real->cuMemAllocPitch(out, pitch, width, height, element));
    truth = result == CUDA_SUCCESS ? (uint64_t)*pitch * height : bytes;
    if (truth < bytes) {
        share_give(card, bytes - truth);
    } else if (truth > bytes && charge_take(card, truth - bytes) != CUDA_SUCCESS) {
        (void)real->cuMemFree(*out);
        share_give(card, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!charge_written(result, SHARE_MEMORY, result == CUDA_SUCCESS ? *out : 0, truth, card,
                        charge_context(real, card))) {
        (void)real->cuMemFree(*out);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

int cuMemFree(CUdeviceptr_v1 at)
{
    const struct hooks_cuda *real = hooks_cuda();
    struct share_item item;
    CUresult result;
    if (real == NULL || real->cuMemFree == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (share_depth > 0 || !share_find(SHARE_MEMORY, at, true, &item))
        return real->cuMemFree(at);
    CHARGE_DRIVER(real->cuMemFree(at));
    return charge_freed(result, &item);
}

static CUresult array_made(const struct hooks_cuda *real, CUresult result, const CUarray *out,
                           uint64_t bytes, int card)
{
    if (charge_written(result, SHARE_ARRAY, result == CUDA_SUCCESS ? (uintptr_t)*out : 0, bytes,
                       card, charge_context(real, card)))
        return result;
    (void)real->cuArrayDestroy(*out);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

int cuArrayCreate(CUarray *out, const CUarrayDescriptor_v1 *d)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuArrayCreate == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = d == NULL ? SHARE_FREE_CARD : card_now();
    uint64_t bytes =
        card < 0 ? 0 : charge_array(d->Width, d->Height, 1, d->Format, d->NumChannels, 0);
    CUresult result = charge_take(card, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    CHARGE_DRIVER(real->cuArrayCreate(out, d));
    return array_made(real, result, out, bytes, card);
}

int cuArray3DCreate(CUarray *out, const CUarray3DDescriptor_v1 *d)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuArray3DCreate == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = d == NULL ? SHARE_FREE_CARD : card_now();
    uint64_t bytes =
        card < 0 ? 0
                 : charge_array(d->Width, d->Height, d->Depth, d->Format, d->NumChannels, d->Flags);
    CUresult result = charge_take(card, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    CHARGE_DRIVER(real->cuArray3DCreate(out, d));
    return array_made(real, result, out, bytes, card);
}

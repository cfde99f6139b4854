// SPDX-License-Identifier: Apache-2.0
/* arrays - arrays and mipmapped arrays. Charged by their elements: the driver reports no more. */
#include "device-plugin/isolation/preload/charge.h"

int cuArrayCreate_v2(CUarray *out, const CUarrayDescriptor *d)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuArrayCreate_v2 == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = share_depth > 0 || d == NULL ? SHARE_FREE_CARD : share_card_current();
    uint64_t bytes =
        card < 0 ? 0 : charge_array(d->Width, d->Height, 1, d->Format, d->NumChannels, 0);
    CUresult result = charge_take(card, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    CHARGE_DRIVER(real->cuArrayCreate_v2(out, d));
    if (!charge_written(result, SHARE_ARRAY, result == CUDA_SUCCESS ? (uintptr_t)*out : 0, bytes,
                        card, charge_context(real, card))) {
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
        card < 0 ? 0
                 : charge_array(d->Width, d->Height, d->Depth, d->Format, d->NumChannels, d->Flags);
    CUresult result = charge_take(card, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    CHARGE_DRIVER(real->cuArray3DCreate_v2(out, d));
    if (!charge_written(result, SHARE_ARRAY, result == CUDA_SUCCESS ? (uintptr_t)*out : 0, bytes,
                        card, charge_context(real, card))) {
        (void)real->cuArrayDestroy(*out);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

int cuMipmappedArrayCreate(CUmipmappedArray *out, const CUarray3DDescriptor *d, unsigned levels)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuMipmappedArrayCreate == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = share_depth > 0 || d == NULL ? SHARE_FREE_CARD : share_card_current();
    uint64_t bytes = card < 0 ? 0
                              : charge_levels(d->Width, d->Height, d->Depth, d->Format,
                                              d->NumChannels, d->Flags, levels);
    CUresult result = charge_take(card, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    CHARGE_DRIVER(real->cuMipmappedArrayCreate(out, d, levels));
    if (!charge_written(result, SHARE_ARRAY, result == CUDA_SUCCESS ? (uintptr_t)*out : 0, bytes,
                        card, charge_context(real, card))) {
        (void)real->cuMipmappedArrayDestroy(*out);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
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
    CHARGE_DRIVER(real->cuArrayDestroy(array));
    return ours ? charge_freed(result, &item) : result;
}

int cuMipmappedArrayDestroy(CUmipmappedArray array)
{
    const struct hooks_cuda *real = hooks_cuda();
    struct share_item item;
    CUresult result;
    if (real == NULL || real->cuMipmappedArrayDestroy == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    bool ours = share_depth == 0 && share_find(SHARE_ARRAY, (uintptr_t)array, true, &item);
    CHARGE_DRIVER(real->cuMipmappedArrayDestroy(array));
    return ours ? charge_freed(result, &item) : result;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * context - a context takes device memory for itself (the limits file says how much, from the driver's own figures), and whatever was allocated
 * in it ends with it. A device's primary context is counted by the driver: it ends when its last holder lets go, or by a reset.
 */
#include "device-plugin/isolation/preload/hooks.h"
#include "device-plugin/isolation/preload/share.h"

/* In the books: refs is 1 for a primary context, 0 for others. */
static bool written(CUcontext context, int card, bool primary)
{
    struct share_item item = {.key = (uintptr_t)context,
                              .size = share_limit(card)->context_bytes,
                              .context = context,
                              .card = (int16_t)card,
                              .kind = SHARE_CONTEXT,
                              .refs = primary};
    return share_put(&item);
}

/* Takes the context's own memory. */
static CUresult before(CUdevice device, int *card)
{
    *card = share_depth > 0 ? SHARE_FREE_CARD : share_card_of(device);
    if (*card < 0 || share_take(*card, share_limit(*card)->context_bytes) == CUDA_SUCCESS)
        return CUDA_SUCCESS;
    return share_denied(*card);
}

static CUresult after(CUresult result, const CUcontext *out, int card)
{
    if (card < 0)
        return result;
    if (result == CUDA_SUCCESS && written(*out, card, false))
        return result;
    share_give(card, share_limit(card)->context_bytes);
    if (result != CUDA_SUCCESS)
        return result;
    (void)hooks_cuda()->cuCtxDestroy_v2(*out);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

int cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device)
{
    const struct hooks_cuda *real = hooks_cuda();
    int card;
    if (real == NULL || real->cuCtxCreate_v2 == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = before(device, &card);
    if (result != CUDA_SUCCESS)
        return result;
    share_depth++;
    result = real->cuCtxCreate_v2(out, flags, device);
    share_depth--;
    return after(result, out, card);
}

int cuCtxCreate_v3(CUcontext *out, void *affinity, int n, unsigned flags, CUdevice device)
{
    const struct hooks_cuda *real = hooks_cuda();
    int card;
    if (real == NULL || real->cuCtxCreate_v3 == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = before(device, &card);
    if (result != CUDA_SUCCESS)
        return result;
    share_depth++;
    result = real->cuCtxCreate_v3(out, affinity, n, flags, device);
    share_depth--;
    return after(result, out, card);
}

int cuCtxCreate_v4(CUcontext *out, void *params, unsigned flags, CUdevice device)
{
    const struct hooks_cuda *real = hooks_cuda();
    int card;
    if (real == NULL || real->cuCtxCreate_v4 == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = before(device, &card);
    if (result != CUDA_SUCCESS)
        return result;
    share_depth++;
    result = real->cuCtxCreate_v4(out, params, flags, device);
    share_depth--;
    return after(result, out, card);
}

int cuCtxDestroy_v2(CUcontext context)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuCtxDestroy_v2 == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    share_depth++;
    CUresult result = real->cuCtxDestroy_v2(context);
    share_depth--;
    if (result == CUDA_SUCCESS && share_depth == 0)
        share_end_context(context);
    return result;
}

/* ---- the primary context ---- */

int cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuDevicePrimaryCtxRetain == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = share_depth > 0 ? SHARE_FREE_CARD : share_card_of(device);
    bool first = card >= 0 && share_primary(card) == NULL;
    if (first && share_take(card, share_limit(card)->context_bytes) != CUDA_SUCCESS)
        return share_denied(card);
    share_depth++;
    CUresult result = real->cuDevicePrimaryCtxRetain(out, device);
    share_depth--;
    if (first && (result != CUDA_SUCCESS || !written(*out, card, true)))
        share_give(card, share_limit(card)->context_bytes);
    return result;
}

/* After it was let go: if it is no more, neither is what was in it. */
static void look_after(const struct hooks_cuda *real, CUdevice device)
{
    int card = share_card_of(device), active = 0;
    unsigned flags;
    if (card < 0 || share_depth > 0)
        return;
    if (real->cuDevicePrimaryCtxGetState != NULL &&
        real->cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && !active)
        share_end_context(share_primary(card));
}

int cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuDevicePrimaryCtxRelease_v2 == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    share_depth++;
    CUresult result = real->cuDevicePrimaryCtxRelease_v2(device);
    share_depth--;
    if (result == CUDA_SUCCESS)
        look_after(real, device);
    return result;
}

int cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuDevicePrimaryCtxReset_v2 == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    share_depth++;
    CUresult result = real->cuDevicePrimaryCtxReset_v2(device);
    share_depth--;
    if (result == CUDA_SUCCESS)
        look_after(real, device);
    return result;
}

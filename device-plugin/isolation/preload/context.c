// SPDX-License-Identifier: Apache-2.0
/* context - a context takes device memory for itself (the limits file says how much, from the
 * driver's own figures), and its end frees what was allocated in it. The driver counts references
 * to a device's primary context: it ends with the last release, or by a reset. */
#include "device-plugin/isolation/preload/charge.h"

static bool written(CUcontext context, int card, bool primary)
{
    struct share_item item = {.key = (uintptr_t)context,
                              .size = share_limit(card)->context_bytes,
                              .context = context,
                              .card = (int16_t)card,
                              .kind = SHARE_CONTEXT,
                              .primary = primary,
                              .refs = 1};
    return share_put(&item);
}

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

#define CREATE(name, ...)                             \
    do {                                              \
        const struct hooks_cuda *real = hooks_cuda(); \
        int card;                                     \
        if (real == NULL || real->name == NULL)       \
            return CUDA_ERROR_NOT_INITIALIZED;        \
        CUresult result = before(device, &card);      \
        if (result != CUDA_SUCCESS)                   \
            return result;                            \
        share_depth++;                                \
        result = real->name(__VA_ARGS__);             \
        share_depth--;                                \
        return after(result, out, card);              \
    } while (0)

int cuCtxCreate(CUcontext *out, unsigned flags, CUdevice device)
{
    CREATE(cuCtxCreate, out, flags, device);
}

int cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device)
{
    CREATE(cuCtxCreate_v2, out, flags, device);
}

int cuCtxCreate_v3(CUcontext *out, void *affinity, int n, unsigned flags, CUdevice device)
{
    CREATE(cuCtxCreate_v3, out, affinity, n, flags, device);
}

int cuCtxCreate_v4(CUcontext *out, void *params, unsigned flags, CUdevice device)
{
    CREATE(cuCtxCreate_v4, out, params, flags, device);
}

/* Once the driver has destroyed the context, another thread may get one at the same address. So
 * before the call, what ends with this one is moved to a unique name. */
static CUresult destroy(CUresult (*call)(CUcontext), CUcontext context)
{
    char name;
    CUcontext ending = (CUcontext)(void *)&name;
    CUresult result;
    if (call == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (share_depth > 0)
        return call(context);
    share_rename_context(context, ending);
    CHARGE_DRIVER(call(context));
    if (result == CUDA_SUCCESS)
        share_end_context(ending);
    else
        share_rename_context(ending, context);
    return result;
}

int cuCtxDestroy(CUcontext context)
{
    const struct hooks_cuda *real = hooks_cuda();
    return destroy(real != NULL ? real->cuCtxDestroy : NULL, context);
}

int cuCtxDestroy_v2(CUcontext context)
{
    const struct hooks_cuda *real = hooks_cuda();
    return destroy(real != NULL ? real->cuCtxDestroy_v2 : NULL, context);
}

/* Attaching to a context adds a reference; it ends when the last one is detached. */
int cuCtxAttach(CUcontext *out, unsigned flags)
{
    const struct hooks_cuda *real = hooks_cuda();
    struct share_item item;
    if (real == NULL || real->cuCtxAttach == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = real->cuCtxAttach(out, flags);
    if (result == CUDA_SUCCESS && share_depth == 0)
        (void)share_ref(SHARE_CONTEXT, (uintptr_t)*out, 1, &item);
    return result;
}

int cuCtxDetach(CUcontext context)
{
    const struct hooks_cuda *real = hooks_cuda();
    struct share_item item;
    if (real == NULL || real->cuCtxDetach == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = real->cuCtxDetach(context);
    if (result != CUDA_SUCCESS || share_depth > 0 ||
        !share_ref(SHARE_CONTEXT, (uintptr_t)context, -1, &item))
        return result;
    share_give(item.card, item.size);
    share_end_context(context);
    return result;
}

/* Primary contexts. Retain and release are serialized: otherwise one thread could end a context
 * that another has just begun. */

int cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    const struct hooks_cuda *real = hooks_cuda();
    CUresult result;
    if (real == NULL || real->cuDevicePrimaryCtxRetain == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = share_depth > 0 ? SHARE_FREE_CARD : share_card_of(device);
    if (card < 0)
        return real->cuDevicePrimaryCtxRetain(out, device);
    share_contexts_begin();
    bool first = share_primary(card) == NULL;
    result = first ? before(device, &card) : CUDA_SUCCESS;
    bool taken = first && result == CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        CHARGE_DRIVER(real->cuDevicePrimaryCtxRetain(out, device));
    if (taken && (result != CUDA_SUCCESS || !written(*out, card, true)))
        share_give(card, share_limit(card)->context_bytes);
    share_contexts_end();
    return result;
}

/* After a release: if the context has ended, so has what was in it. */
static void end_if_inactive(const struct hooks_cuda *real, CUdevice device, int card, bool reset)
{
    unsigned flags;
    int active = 0;
    if (real->cuDevicePrimaryCtxGetState == NULL ||
        real->cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active)
        return;
    share_end_context(share_primary(card));
    share_pools_begin();
    if (reset)
        share_pools_reset(card, device);
    share_pools_settle();
    share_pools_end();
}

static CUresult let_go(const struct hooks_cuda *real, CUresult (*call)(CUdevice), CUdevice device,
                       bool reset)
{
    CUresult result;
    if (call == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    int card = share_depth > 0 ? SHARE_FREE_CARD : share_card_of(device);
    if (card < 0)
        return call(device);
    share_contexts_begin();
    CHARGE_DRIVER(call(device));
    if (result == CUDA_SUCCESS)
        end_if_inactive(real, device, card, reset);
    share_contexts_end();
    return result;
}

int cuDevicePrimaryCtxRelease(CUdevice device)
{
    const struct hooks_cuda *real = hooks_cuda();
    return let_go(real, real != NULL ? real->cuDevicePrimaryCtxRelease : NULL, device, false);
}

int cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    const struct hooks_cuda *real = hooks_cuda();
    return let_go(real, real != NULL ? real->cuDevicePrimaryCtxRelease_v2 : NULL, device, false);
}

int cuDevicePrimaryCtxReset(CUdevice device)
{
    const struct hooks_cuda *real = hooks_cuda();
    return let_go(real, real != NULL ? real->cuDevicePrimaryCtxReset : NULL, device, true);
}

int cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    const struct hooks_cuda *real = hooks_cuda();
    return let_go(real, real != NULL ? real->cuDevicePrimaryCtxReset_v2 : NULL, device, true);
}

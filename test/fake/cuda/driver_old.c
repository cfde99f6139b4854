// SPDX-License-Identifier: Apache-2.0
/*
 * driver_old - the first forms of calls, of before CUDA 3.2, with sizes and addresses of 32 bits:
 * drivers still export them. And those of contexts that were replaced since.
 */
#include "test/fake/cuda/driver.h"

#include <stdlib.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* found by name */

extern CUresult cuDeviceTotalMem_v2(size_t *, CUdevice), cuMemGetInfo_v2(size_t *, size_t *),
    cuMemFree_v2(CUdeviceptr), cuArrayCreate_v2(CUarray *, const CUarrayDescriptor *),
    cuArray3DCreate_v2(CUarray *, const CUarray3DDescriptor *),
    cuCtxCreate_v2(CUcontext *, unsigned, CUdevice), cuCtxDestroy_v2(CUcontext),
    cuDevicePrimaryCtxRelease_v2(CUdevice), cuDevicePrimaryCtxReset_v2(CUdevice);

enum { PITCH = 512 };

static unsigned short_of(size_t bytes)
{
    return bytes > UINT32_MAX ? UINT32_MAX : (unsigned)bytes;
}

EXPORT CUresult cuDeviceTotalMem(unsigned *bytes, CUdevice device)
{
    size_t all = 0;
    CUresult r = cuDeviceTotalMem_v2(&all, device);
    *bytes = short_of(all);
    return r;
}

EXPORT CUresult cuMemGetInfo(unsigned *free_bytes, unsigned *total)
{
    size_t left = 0, all = 0;
    CUresult r = cuMemGetInfo_v2(&left, &all);
    *free_bytes = short_of(left);
    *total = short_of(all);
    return r;
}

/* Below 4 GiB. */
EXPORT CUresult cuMemAlloc(CUdeviceptr_v1 *out, unsigned size)
{
    static CUdeviceptr_v1 next = 0x10000000;
    CUresult r = driver_enter(true);
    if (r != CUDA_SUCCESS || size == 0)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    if (!card_take(&driver_card, driver_current->device, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    driver_lock();
    *out = next;
    next += 512;
    driver_add(DRIVER_PLAIN, *out, size, driver_current->device)->context = driver_current;
    driver_unlock();
    return r;
}

EXPORT CUresult cuMemAllocPitch(CUdeviceptr_v1 *out, unsigned *pitch, unsigned width,
                                unsigned height, unsigned element)
{
    (void)element;
    *pitch = (width + PITCH - 1) / PITCH * PITCH;
    return cuMemAlloc(out, *pitch * height);
}

EXPORT CUresult cuMemFree(CUdeviceptr_v1 at)
{
    return cuMemFree_v2(at);
}

EXPORT CUresult cuArrayCreate(CUarray *out, const CUarrayDescriptor_v1 *d)
{
    return cuArrayCreate_v2(out,
                            &(CUarrayDescriptor){d->Width, d->Height, d->Format, d->NumChannels});
}

EXPORT CUresult cuArray3DCreate(CUarray *out, const CUarray3DDescriptor_v1 *d)
{
    return cuArray3DCreate_v2(out, &(CUarray3DDescriptor){d->Width, d->Height, d->Depth, d->Format,
                                                          d->NumChannels, d->Flags});
}

EXPORT CUresult cuCtxCreate(CUcontext *out, unsigned flags, CUdevice device)
{
    return cuCtxCreate_v2(out, flags, device);
}

EXPORT CUresult cuCtxDestroy(CUcontext c)
{
    return cuCtxDestroy_v2(c);
}

EXPORT CUresult cuCtxAttach(CUcontext *out, unsigned flags)
{
    CUresult r = driver_enter(true);
    (void)flags;
    if (r != CUDA_SUCCESS || driver_current->primary)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_CONTEXT;
    driver_current->attached++;
    *out = driver_current;
    return r;
}

EXPORT CUresult cuCtxDetach(CUcontext c)
{
    if (c == NULL || c->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    return c->attached-- > 0 ? driver_enter(false) : cuCtxDestroy_v2(c);
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    return cuDevicePrimaryCtxRelease_v2(device);
}

EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    return cuDevicePrimaryCtxReset_v2(device);
}

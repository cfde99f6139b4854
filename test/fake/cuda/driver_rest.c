// SPDX-License-Identifier: Apache-2.0
/*
 * driver_rest - what programs and the CUDA runtime also ask of a driver, as far as memory and time
 * are concerned: events, memory of the host, which is of no card, and copies, which have nothing to
 * copy.
 */
#include "test/fake/cuda/driver.h"

#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* found by name */

EXPORT CUresult cuCtxGetApiVersion(CUcontext c, unsigned *version)
{
    (void)c;
    *version = 3020;
    return driver_enter(false);
}

EXPORT CUresult cuCtxGetFlags(unsigned *flags)
{
    *flags = 0;
    return driver_enter(true);
}

EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    (void)device, (void)flags;
    return driver_enter(false);
}

/* ---- events: of the time at which they were recorded ---- */

struct CUevent_st {
    uint64_t ns;
};

EXPORT CUresult cuEventCreate(struct CUevent_st **out, unsigned flags)
{
    (void)flags;
    *out = calloc(1, sizeof **out);
    return driver_enter(true);
}

EXPORT CUresult cuEventRecord(struct CUevent_st *event, CUstream stream)
{
    (void)stream;
    event->ns = card_now_ns();
    return driver_enter(true);
}

EXPORT CUresult cuEventSynchronize(struct CUevent_st *event)
{
    CUresult r = driver_enter(true);
    (void)event;
    if (r == CUDA_SUCCESS)
        card_wait(&driver_card, driver_current->device);
    return r;
}

EXPORT CUresult cuEventQuery(const struct CUevent_st *event)
{
    (void)event;
    return driver_enter(true);
}

EXPORT CUresult cuEventElapsedTime(float *ms, const struct CUevent_st *from,
                                   const struct CUevent_st *to)
{
    *ms = (float)(to->ns - from->ns) / 1e6f;
    return driver_enter(false);
}

EXPORT CUresult cuEventDestroy_v2(struct CUevent_st *event)
{
    free(event);
    return driver_enter(false);
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, const struct CUevent_st *event, unsigned flags)
{
    (void)stream, (void)event, (void)flags;
    return driver_enter(true);
}

/* ---- memory of the host ---- */

EXPORT CUresult cuMemHostAlloc(void **out, size_t size, unsigned flags)
{
    (void)flags;
    *out = malloc(size);
    return *out != NULL ? driver_enter(true) : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemAllocHost_v2(void **out, size_t size)
{
    return cuMemHostAlloc(out, size, 0);
}

EXPORT CUresult cuMemFreeHost(void *at)
{
    free(at);
    return driver_enter(true);
}

/* ---- filling and copying ---- */

EXPORT CUresult cuMemsetD8_v2(CUdeviceptr at, unsigned char value, size_t n)
{
    (void)at, (void)value, (void)n;
    return driver_enter(true);
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n)
{
    (void)to, (void)from, (void)n;
    return driver_enter(true);
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n)
{
    (void)from;
    memset(to, 0, n);
    return driver_enter(true);
}

extern CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream);
EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream stream)
{
    return cuMemcpyAsync(to, (CUdeviceptr)(uintptr_t)from, n, stream);
}

/* Tables of functions that are nowhere described, by which NVIDIA's libcudart also knows a driver
 * that is NVIDIA's: this one has none, and there it ends. Without the function itself libcudart
 * takes the driver for too old and asks for nothing. */
EXPORT CUresult cuGetExportTable(const void **out, const CUuuid *id)
{
    (void)id;
    *out = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

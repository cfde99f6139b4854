// SPDX-License-Identifier: Apache-2.0
/* worker - what the files of the test program share: the driver's functions as it found them, and
 * what it allocated. */
#pragma once

#include "device-plugin/isolation/preload/cuda.h"

/* The functions by the names that programs know them by; the exported name is made from the
 * suffix. */
#define FUNCTIONS(X)                                                                               \
    X(cuInit, "", (unsigned))                                                                      \
    X(cuCtxCreate, "_v2", (CUcontext *, unsigned, CUdevice))                                       \
    X(cuCtxDestroy, "_v2", (CUcontext))                                                            \
    X(cuCtxSetCurrent, "", (CUcontext))                                                            \
    X(cuCtxGetCurrent, "", (CUcontext *))                                                          \
    X(cuCtxGetDevice, "", (CUdevice *))                                                            \
    X(cuDevicePrimaryCtxRetain, "", (CUcontext *, CUdevice))                                       \
    X(cuDevicePrimaryCtxRelease, "_v2", (CUdevice))                                                \
    X(cuDevicePrimaryCtxReset, "_v2", (CUdevice))                                                  \
    X(cuMemGetInfo, "_v2", (size_t *, size_t *))                                                   \
    X(cuDeviceTotalMem, "_v2", (size_t *, CUdevice))                                               \
    X(cuMemAlloc, "_v2", (CUdeviceptr *, size_t))                                                  \
    X(cuMemAllocManaged, "", (CUdeviceptr *, size_t, unsigned))                                    \
    X(cuMemAllocPitch, "_v2", (CUdeviceptr *, size_t *, size_t, size_t, unsigned))                 \
    X(cuMemFree, "_v2", (CUdeviceptr))                                                             \
    X(cuMemAllocAsync, "", (CUdeviceptr *, size_t, CUstream))                                      \
    X(cuMemAllocFromPoolAsync, "", (CUdeviceptr *, size_t, CUmemoryPool, CUstream))                \
    X(cuMemFreeAsync, "", (CUdeviceptr, CUstream))                                                 \
    X(cuDeviceGetMemPool, "", (CUmemoryPool *, CUdevice))                                          \
    X(cuMemPoolTrimTo, "", (CUmemoryPool, size_t))                                                 \
    X(cuMemCreate, "", (CUhandle *, size_t, const CUmemAllocationProp *, unsigned long long))      \
    X(cuMemRelease, "", (CUhandle))                                                                \
    X(cuMemAddressReserve, "", (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long))   \
    X(cuMemMap, "", (CUdeviceptr, size_t, size_t, CUhandle, unsigned long long))                   \
    X(cuMemUnmap, "", (CUdeviceptr, size_t))                                                       \
    X(cuArrayCreate, "_v2", (CUarray *, const CUarrayDescriptor *))                                \
    X(cuArray3DCreate, "_v2", (CUarray *, const CUarray3DDescriptor *))                            \
    X(cuArrayDestroy, "", (CUarray))                                                               \
    X(cuMipmappedArrayCreate, "", (CUmipmappedArray *, const CUarray3DDescriptor *, unsigned))     \
    X(cuMipmappedArrayDestroy, "", (CUmipmappedArray))                                             \
    X(cuModuleGetFunction, "", (CUfunction *, void *, const char *))                               \
    X(cuLaunchKernel, "",                                                                          \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, \
       void **, void **))                                                                          \
    X(cuLaunchCooperativeKernel, "",                                                               \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, \
       void **))                                                                                   \
    X(cuLaunchKernelEx, "", (const CUlaunchConfig *, CUfunction, void **, void **))                \
    X(cuLaunch, "", (CUfunction))                                                                  \
    X(cuLaunchGrid, "", (CUfunction, int, int))                                                    \
    X(cuLaunchGridAsync, "", (CUfunction, int, int, CUstream))                                     \
    X(cuLaunchCooperativeKernelMultiDevice, "", (void *, unsigned, unsigned))                      \
    X(cuCtxSynchronize, "", (void))                                                                \
    X(cuGraphCreate, "", (CUgraph *, unsigned))                                                    \
    X(cuGraphAddKernelNode, "_v2",                                                                 \
      (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUfunction *))                   \
    X(cuGraphAddEmptyNode, "", (CUgraphNode *, CUgraph, const CUgraphNode *, size_t))              \
    X(cuGraphInstantiateWithFlags, "", (CUgraphExec *, CUgraph, unsigned long long))               \
    X(cuGraphLaunch, "", (CUgraphExec, CUstream))                                                  \
    X(cuGraphAddMemAllocNode, "",                                                                  \
      (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUmemAllocNodeParams *))               \
    X(cuDeviceGraphMemTrim, "", (CUdevice))                                                        \
    X(cuMemPoolCreate, "", (CUmemoryPool *, const CUmemPoolProps *))                               \
    X(cuMemPoolDestroy, "", (CUmemoryPool))                                                        \
    X(cuStreamCreate, "", (CUstream *, unsigned))                                                  \
    X(cuCtxPushCurrent, "_v2", (CUcontext))                                                        \
    X(cuCtxPopCurrent, "_v2", (CUcontext *))                                                       \
    X(cuIpcGetMemHandle, "", (handle64 *, CUdeviceptr))                                            \
    X(cuIpcOpenMemHandle, "_v2", (CUdeviceptr *, handle64, unsigned))                              \
    X(cuIpcCloseMemHandle, "", (CUdeviceptr))                                                      \
    X(cuMemExportToShareableHandle, "", (void *, CUhandle, int, unsigned long long))               \
    X(cuMemImportFromShareableHandle, "", (CUhandle *, void *, int))

/* Forms that later ones replaced, with the version of CUDA by which they are asked for. */
#define OLD_FUNCTIONS(X)                                                                   \
    X(cuMemAlloc, 2000, (CUdeviceptr_v1 *, unsigned))                                      \
    X(cuMemAllocPitch, 2000, (CUdeviceptr_v1 *, unsigned *, unsigned, unsigned, unsigned)) \
    X(cuMemFree, 2000, (CUdeviceptr_v1))                                                   \
    X(cuArrayCreate, 2000, (CUarray *, const CUarrayDescriptor_v1 *))                      \
    X(cuArray3DCreate, 2000, (CUarray *, const CUarray3DDescriptor_v1 *))                  \
    X(cuMemGetInfo, 2000, (unsigned *, unsigned *))                                        \
    X(cuDeviceTotalMem, 2000, (unsigned *, CUdevice))                                      \
    X(cuCtxCreate, 2000, (CUcontext *, unsigned, CUdevice))                                \
    X(cuCtxDestroy, 2000, (CUcontext))                                                     \
    X(cuCtxAttach, 2000, (CUcontext *, unsigned))                                          \
    X(cuCtxDetach, 2000, (CUcontext))                                                      \
    X(cuDevicePrimaryCtxRelease, 7000, (CUdevice))                                         \
    X(cuDevicePrimaryCtxReset, 7000, (CUdevice))

typedef struct {
    char bytes[64];
} handle64;

#define FIELD(name, suffix, args) CUresult(*name) args;
extern struct worker_cu {
    FUNCTIONS(FIELD)
} cu;
#define OLD_FIELD(name, version, args) CUresult(*name) args;
extern struct worker_old {
    OLD_FUNCTIONS(OLD_FIELD)
} old;

struct thing {
    char kind[12];
    uint64_t handle, at;
};

/* Finds all functions anew. */
void worker_by(const char *path);
CUresult worker_allocate(struct thing *t, const char *kind, size_t bytes);
CUresult worker_let_go(const struct thing *t);

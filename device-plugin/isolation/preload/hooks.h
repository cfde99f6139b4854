// SPDX-License-Identifier: Apache-2.0
/*
 * hooks - the list of hooked functions: source of their prototypes, the pointers to the real ones,
 * and the table for dlsym and cuGetProcAddress. Later forms of a function come after earlier ones:
 * drivers keep the first ones for programs from before CUDA 3.2, and the runtime requests some by
 * their first version. _ptsz is the form for per-thread default streams.
 *
 *     X(exported name, name for cuGetProcAddress, first CUDA version with this form, arguments)
 */
#pragma once

#include <stdbool.h>

#include "device-plugin/isolation/preload/cuda.h"

#define LAUNCH_DIMS                                                                             \
    CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
        unsigned shared, CUstream stream, void **params

/* clang-format off */
#define HOOKS_CUDA(X) \
    X(cuGetProcAddress,               "cuGetProcAddress",        11030, (const char *symbol, void **out, int version, uint64_t flags)) \
    X(cuGetProcAddress_v2,            "cuGetProcAddress",        12000, (const char *symbol, void **out, int version, uint64_t flags, int *status)) \
    X(cuDeviceTotalMem,               "cuDeviceTotalMem",         2000, (unsigned *bytes, CUdevice device)) \
    X(cuDeviceTotalMem_v2,            "cuDeviceTotalMem",         3020, (size_t *bytes, CUdevice device)) \
    X(cuMemGetInfo,                   "cuMemGetInfo",             2000, (unsigned *free_bytes, unsigned *total)) \
    X(cuMemGetInfo_v2,                "cuMemGetInfo",             3020, (size_t *free_bytes, size_t *total)) \
    X(cuMemAlloc,                     "cuMemAlloc",               2000, (CUdeviceptr_v1 *out, unsigned size)) \
    X(cuMemAlloc_v2,                  "cuMemAlloc",               3020, (CUdeviceptr *out, size_t size)) \
    X(cuMemAllocPitch,                "cuMemAllocPitch",          2000, (CUdeviceptr_v1 *out, unsigned *pitch, unsigned width, unsigned height, unsigned element)) \
    X(cuMemAllocPitch_v2,             "cuMemAllocPitch",          3020, (CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element)) \
    X(cuMemAllocManaged,              "cuMemAllocManaged",        6000, (CUdeviceptr *out, size_t size, unsigned flags)) \
    X(cuMemFree,                      "cuMemFree",                2000, (CUdeviceptr_v1 at)) \
    X(cuMemFree_v2,                   "cuMemFree",                3020, (CUdeviceptr at)) \
    X(cuMemAllocAsync,                "cuMemAllocAsync",         11020, (CUdeviceptr *out, size_t size, CUstream stream)) \
    X(cuMemAllocAsync_ptsz,           "cuMemAllocAsync",         11020, (CUdeviceptr *out, size_t size, CUstream stream)) \
    X(cuMemAllocFromPoolAsync,        "cuMemAllocFromPoolAsync", 11020, (CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream)) \
    X(cuMemAllocFromPoolAsync_ptsz,   "cuMemAllocFromPoolAsync", 11020, (CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream)) \
    X(cuMemFreeAsync,                 "cuMemFreeAsync",          11020, (CUdeviceptr at, CUstream stream)) \
    X(cuMemFreeAsync_ptsz,            "cuMemFreeAsync",          11020, (CUdeviceptr at, CUstream stream)) \
    X(cuMemPoolCreate,                "cuMemPoolCreate",         11020, (CUmemoryPool *out, const CUmemPoolProps *props)) \
    X(cuMemPoolTrimTo,                "cuMemPoolTrimTo",         11020, (CUmemoryPool pool, size_t keep)) \
    X(cuMemPoolDestroy,               "cuMemPoolDestroy",        11020, (CUmemoryPool pool)) \
    X(cuMemCreate,                    "cuMemCreate",             10020, (CUhandle *out, size_t size, const CUmemAllocationProp *prop, unsigned long long flags)) \
    X(cuMemRelease,                   "cuMemRelease",            10020, (CUhandle handle)) \
    X(cuMemMap,                       "cuMemMap",                10020, (CUdeviceptr at, size_t size, size_t offset, CUhandle handle, unsigned long long flags)) \
    X(cuMemUnmap,                     "cuMemUnmap",              10020, (CUdeviceptr at, size_t size)) \
    X(cuMemRetainAllocationHandle,    "cuMemRetainAllocationHandle", 11000, (CUhandle *out, void *at)) \
    X(cuArrayCreate,                  "cuArrayCreate",            2000, (CUarray *out, const CUarrayDescriptor_v1 *d)) \
    X(cuArrayCreate_v2,               "cuArrayCreate",            3020, (CUarray *out, const CUarrayDescriptor *d)) \
    X(cuArray3DCreate,                "cuArray3DCreate",          2000, (CUarray *out, const CUarray3DDescriptor_v1 *d)) \
    X(cuArray3DCreate_v2,             "cuArray3DCreate",          3020, (CUarray *out, const CUarray3DDescriptor *d)) \
    X(cuArrayDestroy,                 "cuArrayDestroy",           2000, (CUarray array)) \
    X(cuMipmappedArrayCreate,         "cuMipmappedArrayCreate",   5000, (CUmipmappedArray *out, const CUarray3DDescriptor *d, unsigned levels)) \
    X(cuMipmappedArrayDestroy,        "cuMipmappedArrayDestroy",  5000, (CUmipmappedArray array)) \
    X(cuCtxCreate,                    "cuCtxCreate",              2000, (CUcontext *out, unsigned flags, CUdevice device)) \
    X(cuCtxCreate_v2,                 "cuCtxCreate",              3020, (CUcontext *out, unsigned flags, CUdevice device)) \
    X(cuCtxCreate_v3,                 "cuCtxCreate",             11040, (CUcontext *out, void *affinity, int n, unsigned flags, CUdevice device)) \
    X(cuCtxCreate_v4,                 "cuCtxCreate",             12050, (CUcontext *out, void *params, unsigned flags, CUdevice device)) \
    X(cuCtxDestroy,                   "cuCtxDestroy",             2000, (CUcontext context)) \
    X(cuCtxDestroy_v2,                "cuCtxDestroy",             4000, (CUcontext context)) \
    X(cuCtxAttach,                    "cuCtxAttach",              2000, (CUcontext *out, unsigned flags)) \
    X(cuCtxDetach,                    "cuCtxDetach",              2000, (CUcontext context)) \
    X(cuDevicePrimaryCtxRetain,       "cuDevicePrimaryCtxRetain", 7000, (CUcontext *out, CUdevice device)) \
    X(cuDevicePrimaryCtxRelease,      "cuDevicePrimaryCtxRelease", 7000, (CUdevice device)) \
    X(cuDevicePrimaryCtxRelease_v2,   "cuDevicePrimaryCtxRelease", 11000, (CUdevice device)) \
    X(cuDevicePrimaryCtxReset,        "cuDevicePrimaryCtxReset",  7000, (CUdevice device)) \
    X(cuDevicePrimaryCtxReset_v2,     "cuDevicePrimaryCtxReset", 11000, (CUdevice device)) \
    X(cuLaunchKernel,                 "cuLaunchKernel",           4000, (LAUNCH_DIMS, void **extra)) \
    X(cuLaunchKernel_ptsz,            "cuLaunchKernel",           7000, (LAUNCH_DIMS, void **extra)) \
    X(cuLaunchCooperativeKernel,      "cuLaunchCooperativeKernel", 9000, (LAUNCH_DIMS)) \
    X(cuLaunchCooperativeKernel_ptsz, "cuLaunchCooperativeKernel", 9000, (LAUNCH_DIMS)) \
    X(cuLaunchKernelEx,               "cuLaunchKernelEx",        11060, (const CUlaunchConfig *config, CUfunction f, void **params, void **extra)) \
    X(cuLaunchKernelEx_ptsz,          "cuLaunchKernelEx",        11060, (const CUlaunchConfig *config, CUfunction f, void **params, void **extra)) \
    X(cuLaunch,                       "cuLaunch",                 2000, (CUfunction f)) \
    X(cuLaunchGrid,                   "cuLaunchGrid",             2000, (CUfunction f, int width, int height)) \
    X(cuLaunchGridAsync,              "cuLaunchGridAsync",        2000, (CUfunction f, int width, int height, CUstream stream)) \
    X(cuLaunchCooperativeKernelMultiDevice, "cuLaunchCooperativeKernelMultiDevice", 9000, (void *list, unsigned n, unsigned flags)) \
    X(cuGraphInstantiate,             "cuGraphInstantiate",      10000, (CUgraphExec *out, CUgraph graph, CUgraphNode *node, char *text, size_t size)) \
    X(cuGraphInstantiate_v2,          "cuGraphInstantiate",      11000, (CUgraphExec *out, CUgraph graph, CUgraphNode *node, char *text, size_t size)) \
    X(cuGraphInstantiateWithFlags,    "cuGraphInstantiate",      12000, (CUgraphExec *out, CUgraph graph, unsigned long long flags)) \
    X(cuGraphInstantiateWithParams,   "cuGraphInstantiateWithParams", 12000, (CUgraphExec *out, CUgraph graph, void *params)) \
    X(cuGraphInstantiateWithParams_ptsz, "cuGraphInstantiateWithParams", 12000, (CUgraphExec *out, CUgraph graph, void *params)) \
    X(cuGraphExecDestroy,             "cuGraphExecDestroy",      10000, (CUgraphExec exec)) \
    X(cuGraphUpload,                  "cuGraphUpload",           11010, (CUgraphExec exec, CUstream stream)) \
    X(cuGraphUpload_ptsz,             "cuGraphUpload",           11010, (CUgraphExec exec, CUstream stream)) \
    X(cuGraphLaunch,                  "cuGraphLaunch",           10000, (CUgraphExec exec, CUstream stream)) \
    X(cuGraphLaunch_ptsz,             "cuGraphLaunch",           10000, (CUgraphExec exec, CUstream stream))

#define HOOKS_NVML(X) \
    X(nvmlDeviceGetMemoryInfo,        NULL, 0, (nvmlDevice device, nvmlMemory *out)) \
    X(nvmlDeviceGetMemoryInfo_v2,     NULL, 0, (nvmlDevice device, nvmlMemory_v2 *out))

/* Not hooked: functions that we call ourselves. */
#define HOOKS_ASK_CUDA(X) \
    X(cuCtxGetDevice,                 NULL, 0, (CUdevice *device)) \
    X(cuCtxGetCurrent,                NULL, 0, (CUcontext *out)) \
    X(cuDeviceGetUuid,                NULL, 0, (CUuuid *uuid, CUdevice device)) \
    X(cuDevicePrimaryCtxGetState,     NULL, 0, (CUdevice device, unsigned *flags, int *active)) \
    X(cuDeviceGetCount,               NULL, 0, (int *count)) \
    X(cuDeviceGetMemPool,             NULL, 0, (CUmemoryPool *out, CUdevice device)) \
    X(cuDeviceGetDefaultMemPool,      NULL, 0, (CUmemoryPool *out, CUdevice device)) \
    X(cuDeviceGetGraphMemAttribute,   NULL, 0, (CUdevice device, int attribute, void *value)) \
    X(cuDeviceGraphMemTrim,           NULL, 0, (CUdevice device)) \
    X(cuStreamGetCtx,                 NULL, 0, (CUstream stream, CUcontext *out)) \
    X(cuStreamIsCapturing,            NULL, 0, (CUstream stream, int *status)) \
    X(cuCtxPushCurrent_v2,            NULL, 0, (CUcontext context)) \
    X(cuCtxPopCurrent_v2,             NULL, 0, (CUcontext *out)) \
    X(cuGraphMemAllocNodeGetParams,   NULL, 0, (CUgraphNode node, CUmemAllocNodeParams *out)) \
    X(cuMemPoolGetAttribute,          NULL, 0, (CUmemoryPool pool, int attribute, void *value)) \
    X(cuGraphGetNodes,                NULL, 0, (CUgraph graph, CUgraphNode *nodes, size_t *len)) \
    X(cuGraphNodeGetType,             NULL, 0, (CUgraphNode node, int *type)) \
    X(cuGraphChildGraphNodeGetGraph,  NULL, 0, (CUgraphNode node, CUgraph *out))

#define HOOKS_ASK_NVML(X) \
    X(nvmlDeviceGetUUID,              NULL, 0, (nvmlDevice device, char *out, unsigned size))
/* clang-format on */

#define HOOKS_PROTOTYPE(name, base, since, args) \
    __attribute__((visibility("default"))) int name args;
HOOKS_CUDA(HOOKS_PROTOTYPE)
HOOKS_NVML(HOOKS_PROTOTYPE)

/* The real functions; NULL if the driver lacks them. */
#define HOOKS_POINTER(name, base, since, args) int(*name) args;
struct hooks_cuda {
    HOOKS_CUDA(HOOKS_POINTER)
    HOOKS_ASK_CUDA(HOOKS_POINTER)
};
struct hooks_nvml {
    HOOKS_NVML(HOOKS_POINTER)
    HOOKS_ASK_NVML(HOOKS_POINTER)
};

/* NULL: the library is not loaded in this process. */
const struct hooks_cuda *hooks_cuda(void);
const struct hooks_nvml *hooks_nvml(void);

// SPDX-License-Identifier: Apache-2.0
/*
 * driver_names - what cuGetProcAddress of the fake driver knows: a row for each function that it exports. Declared here without
 * their arguments, because only the addresses are wanted.
 */
#include "test/fake/cuda/driver.h"

#define ROWS(X)                                                                \
    X("cuArray3DCreate", 3020, cuArray3DCreate_v2)                             \
    X("cuArrayCreate", 3020, cuArrayCreate_v2)                                 \
    X("cuArrayDestroy", 2000, cuArrayDestroy)                                  \
    X("cuCtxCreate", 3020, cuCtxCreate_v2)                                     \
    X("cuCtxCreate", 11040, cuCtxCreate_v3)                                    \
    X("cuCtxCreate", 12050, cuCtxCreate_v4)                                    \
    X("cuCtxDestroy", 3020, cuCtxDestroy_v2)                                   \
    X("cuCtxGetCurrent", 2000, cuCtxGetCurrent)                                \
    X("cuCtxGetDevice", 2000, cuCtxGetDevice)                                  \
    X("cuCtxPopCurrent", 3020, cuCtxPopCurrent_v2)                             \
    X("cuCtxPushCurrent", 3020, cuCtxPushCurrent_v2)                           \
    X("cuCtxSetCurrent", 2000, cuCtxSetCurrent)                                \
    X("cuCtxSynchronize", 2000, cuCtxSynchronize)                              \
    X("cuDeviceGet", 2000, cuDeviceGet)                                        \
    X("cuDeviceGetAttribute", 2000, cuDeviceGetAttribute)                      \
    X("cuDeviceGetCount", 2000, cuDeviceGetCount)                              \
    X("cuDeviceGetDefaultMemPool", 2000, cuDeviceGetDefaultMemPool)            \
    X("cuDeviceGetMemPool", 2000, cuDeviceGetMemPool)                          \
    X("cuDeviceGetName", 2000, cuDeviceGetName)                                \
    X("cuDeviceGetUuid", 2000, cuDeviceGetUuid)                                \
    X("cuDeviceGetUuid", 3020, cuDeviceGetUuid_v2)                             \
    X("cuDevicePrimaryCtxGetState", 2000, cuDevicePrimaryCtxGetState)          \
    X("cuDevicePrimaryCtxRelease", 3020, cuDevicePrimaryCtxRelease_v2)         \
    X("cuDevicePrimaryCtxReset", 3020, cuDevicePrimaryCtxReset_v2)             \
    X("cuDevicePrimaryCtxRetain", 2000, cuDevicePrimaryCtxRetain)              \
    X("cuDeviceTotalMem", 3020, cuDeviceTotalMem_v2)                           \
    X("cuDriverGetVersion", 2000, cuDriverGetVersion)                          \
    X("cuGetProcAddress", 11030, cuGetProcAddress)                             \
    X("cuGetProcAddress", 12000, cuGetProcAddress_v2)                          \
    X("cuGraphAddChildGraphNode", 2000, cuGraphAddChildGraphNode)              \
    X("cuGraphAddKernelNode", 3020, cuGraphAddKernelNode_v2)                   \
    X("cuGraphChildGraphNodeGetGraph", 2000, cuGraphChildGraphNodeGetGraph)    \
    X("cuGraphCreate", 2000, cuGraphCreate)                                    \
    X("cuGraphExecDestroy", 2000, cuGraphExecDestroy)                          \
    X("cuGraphGetNodes", 2000, cuGraphGetNodes)                                \
    X("cuGraphInstantiate", 11000, cuGraphInstantiate_v2)                      \
    X("cuGraphInstantiate", 11040, cuGraphInstantiateWithFlags)                \
    X("cuGraphInstantiateWithParams", 2000, cuGraphInstantiateWithParams)      \
    X("cuGraphInstantiateWithParams", 7000, cuGraphInstantiateWithParams_ptsz) \
    X("cuGraphLaunch", 2000, cuGraphLaunch)                                    \
    X("cuGraphLaunch", 7000, cuGraphLaunch_ptsz)                               \
    X("cuGraphNodeGetType", 2000, cuGraphNodeGetType)                          \
    X("cuInit", 2000, cuInit)                                                  \
    X("cuLaunchCooperativeKernel", 2000, cuLaunchCooperativeKernel)            \
    X("cuLaunchCooperativeKernel", 7000, cuLaunchCooperativeKernel_ptsz)       \
    X("cuLaunchKernel", 2000, cuLaunchKernel)                                  \
    X("cuLaunchKernel", 7000, cuLaunchKernel_ptsz)                             \
    X("cuLaunchKernelEx", 2000, cuLaunchKernelEx)                              \
    X("cuLaunchKernelEx", 7000, cuLaunchKernelEx_ptsz)                         \
    X("cuMemAddressReserve", 2000, cuMemAddressReserve)                        \
    X("cuMemAlloc", 3020, cuMemAlloc_v2)                                       \
    X("cuMemAllocAsync", 2000, cuMemAllocAsync)                                \
    X("cuMemAllocAsync", 7000, cuMemAllocAsync_ptsz)                           \
    X("cuMemAllocFromPoolAsync", 2000, cuMemAllocFromPoolAsync)                \
    X("cuMemAllocFromPoolAsync", 7000, cuMemAllocFromPoolAsync_ptsz)           \
    X("cuMemAllocManaged", 2000, cuMemAllocManaged)                            \
    X("cuMemAllocPitch", 3020, cuMemAllocPitch_v2)                             \
    X("cuMemCreate", 2000, cuMemCreate)                                        \
    X("cuMemFree", 3020, cuMemFree_v2)                                         \
    X("cuMemFreeAsync", 2000, cuMemFreeAsync)                                  \
    X("cuMemFreeAsync", 7000, cuMemFreeAsync_ptsz)                             \
    X("cuMemGetInfo", 3020, cuMemGetInfo_v2)                                   \
    X("cuMemMap", 2000, cuMemMap)                                              \
    X("cuMemPoolCreate", 2000, cuMemPoolCreate)                                \
    X("cuMemPoolDestroy", 2000, cuMemPoolDestroy)                              \
    X("cuMemPoolGetAttribute", 2000, cuMemPoolGetAttribute)                    \
    X("cuMemPoolSetAttribute", 2000, cuMemPoolSetAttribute)                    \
    X("cuMemPoolTrimTo", 2000, cuMemPoolTrimTo)                                \
    X("cuMemRelease", 2000, cuMemRelease)                                      \
    X("cuMemRetainAllocationHandle", 2000, cuMemRetainAllocationHandle)        \
    X("cuMemUnmap", 2000, cuMemUnmap)                                          \
    X("cuMipmappedArrayCreate", 2000, cuMipmappedArrayCreate)                  \
    X("cuMipmappedArrayDestroy", 2000, cuMipmappedArrayDestroy)                \
    X("cuModuleGetFunction", 2000, cuModuleGetFunction)                        \
    X("cuModuleLoadData", 2000, cuModuleLoadData)                              \
    X("cuStreamCreate", 2000, cuStreamCreate)                                  \
    X("cuStreamSynchronize", 2000, cuStreamSynchronize)

#define DECLARE(base, since, name) extern void name(void);
ROWS(DECLARE)

#define ROW(base, since, name) {base, since, #name, name},
const struct driver_entry driver_entries[] = {ROWS(ROW){0}};

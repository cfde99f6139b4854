// SPDX-License-Identifier: Apache-2.0
/*
 * driver_names - what cuGetProcAddress of the fake driver knows: a row for each function that it
 * exports. Declared here without their arguments, because only the addresses are wanted.
 */
#include "test/fake/cuda/driver.h"

/* clang-format off */
#define ROWS(X) \
    X("cuArray3DCreate", 2000, cuArray3DCreate) \
    X("cuArray3DCreate", 3020, cuArray3DCreate_v2) \
    X("cuArrayCreate", 2000, cuArrayCreate) \
    X("cuArrayCreate", 3020, cuArrayCreate_v2) \
    X("cuArrayDestroy", 2000, cuArrayDestroy) \
    X("cuCtxAttach", 2000, cuCtxAttach) \
    X("cuCtxCreate", 2000, cuCtxCreate) \
    X("cuCtxCreate", 3020, cuCtxCreate_v2) \
    X("cuCtxCreate", 11040, cuCtxCreate_v3) \
    X("cuCtxCreate", 12050, cuCtxCreate_v4) \
    X("cuCtxDestroy", 2000, cuCtxDestroy) \
    X("cuCtxDestroy", 4000, cuCtxDestroy_v2) \
    X("cuCtxDetach", 2000, cuCtxDetach) \
    X("cuCtxGetApiVersion", 3020, cuCtxGetApiVersion) \
    X("cuCtxGetCurrent", 4000, cuCtxGetCurrent) \
    X("cuCtxGetDevice", 2000, cuCtxGetDevice) \
    X("cuCtxGetFlags", 7000, cuCtxGetFlags) \
    X("cuCtxPopCurrent", 4000, cuCtxPopCurrent_v2) \
    X("cuCtxPushCurrent", 4000, cuCtxPushCurrent_v2) \
    X("cuCtxSetCurrent", 4000, cuCtxSetCurrent) \
    X("cuCtxSynchronize", 2000, cuCtxSynchronize) \
    X("cuDeviceGet", 2000, cuDeviceGet) \
    X("cuDeviceGetAttribute", 2000, cuDeviceGetAttribute) \
    X("cuDeviceGetCount", 2000, cuDeviceGetCount) \
    X("cuDeviceGetDefaultMemPool", 11020, cuDeviceGetDefaultMemPool) \
    X("cuDeviceGetGraphMemAttribute", 11040, cuDeviceGetGraphMemAttribute) \
    X("cuDeviceGetMemPool", 11020, cuDeviceGetMemPool) \
    X("cuDeviceGetName", 2000, cuDeviceGetName) \
    X("cuDeviceGetUuid", 9020, cuDeviceGetUuid) \
    X("cuDeviceGetUuid", 11040, cuDeviceGetUuid_v2) \
    X("cuDeviceGraphMemTrim", 11040, cuDeviceGraphMemTrim) \
    X("cuDevicePrimaryCtxGetState", 7000, cuDevicePrimaryCtxGetState) \
    X("cuDevicePrimaryCtxRelease", 7000, cuDevicePrimaryCtxRelease) \
    X("cuDevicePrimaryCtxRelease", 11000, cuDevicePrimaryCtxRelease_v2) \
    X("cuDevicePrimaryCtxReset", 7000, cuDevicePrimaryCtxReset) \
    X("cuDevicePrimaryCtxReset", 11000, cuDevicePrimaryCtxReset_v2) \
    X("cuDevicePrimaryCtxRetain", 7000, cuDevicePrimaryCtxRetain) \
    X("cuDevicePrimaryCtxSetFlags", 11000, cuDevicePrimaryCtxSetFlags_v2) \
    X("cuDeviceSetMemPool", 11020, cuDeviceSetMemPool) \
    X("cuDeviceTotalMem", 2000, cuDeviceTotalMem) \
    X("cuDeviceTotalMem", 3020, cuDeviceTotalMem_v2) \
    X("cuDriverGetVersion", 2020, cuDriverGetVersion) \
    X("cuEventCreate", 2000, cuEventCreate) \
    X("cuEventDestroy", 4000, cuEventDestroy_v2) \
    X("cuEventElapsedTime", 2000, cuEventElapsedTime) \
    X("cuEventQuery", 2000, cuEventQuery) \
    X("cuEventRecord", 2000, cuEventRecord) \
    X("cuEventSynchronize", 2000, cuEventSynchronize) \
    X("cuGetExportTable", 3000, cuGetExportTable) \
    X("cuGetProcAddress", 11030, cuGetProcAddress) \
    X("cuGetProcAddress", 12000, cuGetProcAddress_v2) \
    X("cuGraphAddChildGraphNode", 10000, cuGraphAddChildGraphNode) \
    X("cuGraphAddEmptyNode", 10000, cuGraphAddEmptyNode) \
    X("cuGraphAddKernelNode", 10000, cuGraphAddKernelNode_v2) \
    X("cuGraphAddMemAllocNode", 11040, cuGraphAddMemAllocNode) \
    X("cuGraphAddMemFreeNode", 11040, cuGraphAddMemFreeNode) \
    X("cuGraphChildGraphNodeGetGraph", 10000, cuGraphChildGraphNodeGetGraph) \
    X("cuGraphCreate", 10000, cuGraphCreate) \
    X("cuGraphDestroy", 10000, cuGraphDestroy) \
    X("cuGraphExecDestroy", 10000, cuGraphExecDestroy) \
    X("cuGraphGetNodes", 10000, cuGraphGetNodes) \
    X("cuGraphInstantiate", 10000, cuGraphInstantiate) \
    X("cuGraphInstantiate", 11000, cuGraphInstantiate_v2) \
    X("cuGraphInstantiate", 12000, cuGraphInstantiateWithFlags) \
    X("cuGraphInstantiateWithFlags", 11040, cuGraphInstantiateWithFlags) \
    X("cuGraphInstantiateWithParams", 12000, cuGraphInstantiateWithParams) \
    X("cuGraphInstantiateWithParams", 12000, cuGraphInstantiateWithParams_ptsz) \
    X("cuGraphLaunch", 10000, cuGraphLaunch) \
    X("cuGraphLaunch", 10000, cuGraphLaunch_ptsz) \
    X("cuGraphMemAllocNodeGetParams", 11040, cuGraphMemAllocNodeGetParams) \
    X("cuGraphNodeGetType", 10000, cuGraphNodeGetType) \
    X("cuGraphUpload", 11010, cuGraphUpload) \
    X("cuGraphUpload", 11010, cuGraphUpload_ptsz) \
    X("cuInit", 2000, cuInit) \
    X("cuIpcCloseMemHandle", 4010, cuIpcCloseMemHandle) \
    X("cuIpcGetMemHandle", 4010, cuIpcGetMemHandle) \
    X("cuIpcOpenMemHandle", 4010, cuIpcOpenMemHandle) \
    X("cuIpcOpenMemHandle", 11000, cuIpcOpenMemHandle_v2) \
    X("cuLaunch", 2000, cuLaunch) \
    X("cuLaunchCooperativeKernelMultiDevice", 9000, cuLaunchCooperativeKernelMultiDevice) \
    X("cuLaunchGrid", 2000, cuLaunchGrid) \
    X("cuLaunchGridAsync", 2000, cuLaunchGridAsync) \
    X("cuLaunchCooperativeKernel", 9000, cuLaunchCooperativeKernel) \
    X("cuLaunchCooperativeKernel", 9000, cuLaunchCooperativeKernel_ptsz) \
    X("cuLaunchKernel", 4000, cuLaunchKernel) \
    X("cuLaunchKernel", 7000, cuLaunchKernel_ptsz) \
    X("cuLaunchKernelEx", 11060, cuLaunchKernelEx) \
    X("cuLaunchKernelEx", 11060, cuLaunchKernelEx_ptsz) \
    X("cuMemAddressReserve", 10020, cuMemAddressReserve) \
    X("cuMemAlloc", 2000, cuMemAlloc) \
    X("cuMemAlloc", 3020, cuMemAlloc_v2) \
    X("cuMemAllocAsync", 11020, cuMemAllocAsync) \
    X("cuMemAllocAsync", 11020, cuMemAllocAsync_ptsz) \
    X("cuMemAllocFromPoolAsync", 11020, cuMemAllocFromPoolAsync) \
    X("cuMemAllocFromPoolAsync", 11020, cuMemAllocFromPoolAsync_ptsz) \
    X("cuMemAllocHost", 3020, cuMemAllocHost_v2) \
    X("cuMemAllocManaged", 6000, cuMemAllocManaged) \
    X("cuMemAllocPitch", 2000, cuMemAllocPitch) \
    X("cuMemAllocPitch", 3020, cuMemAllocPitch_v2) \
    X("cuMemCreate", 10020, cuMemCreate) \
    X("cuMemExportToShareableHandle", 10020, cuMemExportToShareableHandle) \
    X("cuMemFree", 2000, cuMemFree) \
    X("cuMemFree", 3020, cuMemFree_v2) \
    X("cuMemFreeAsync", 11020, cuMemFreeAsync) \
    X("cuMemFreeAsync", 11020, cuMemFreeAsync_ptsz) \
    X("cuMemFreeHost", 2000, cuMemFreeHost) \
    X("cuMemGetInfo", 2000, cuMemGetInfo) \
    X("cuMemGetInfo", 3020, cuMemGetInfo_v2) \
    X("cuMemHostAlloc", 2020, cuMemHostAlloc) \
    X("cuMemImportFromShareableHandle", 10020, cuMemImportFromShareableHandle) \
    X("cuMemMap", 10020, cuMemMap) \
    X("cuMemPoolCreate", 11020, cuMemPoolCreate) \
    X("cuMemPoolDestroy", 11020, cuMemPoolDestroy) \
    X("cuMemPoolGetAttribute", 11020, cuMemPoolGetAttribute) \
    X("cuMemPoolSetAttribute", 11020, cuMemPoolSetAttribute) \
    X("cuMemPoolTrimTo", 11020, cuMemPoolTrimTo) \
    X("cuMemRelease", 10020, cuMemRelease) \
    X("cuMemRetainAllocationHandle", 11000, cuMemRetainAllocationHandle) \
    X("cuMemUnmap", 10020, cuMemUnmap) \
    X("cuMemcpyAsync", 4000, cuMemcpyAsync) \
    X("cuMemcpyDtoH", 3020, cuMemcpyDtoH_v2) \
    X("cuMemcpyHtoD", 3020, cuMemcpyHtoD_v2) \
    X("cuMemcpyHtoDAsync", 3020, cuMemcpyHtoDAsync_v2) \
    X("cuMemsetD8", 3020, cuMemsetD8_v2) \
    X("cuMemsetD8Async", 3020, cuMemsetD8Async) \
    X("cuMipmappedArrayCreate", 5000, cuMipmappedArrayCreate) \
    X("cuMipmappedArrayDestroy", 5000, cuMipmappedArrayDestroy) \
    X("cuModuleGetFunction", 2000, cuModuleGetFunction) \
    X("cuModuleLoadData", 2000, cuModuleLoadData) \
    X("cuModuleUnload", 2000, cuModuleUnload) \
    X("cuStreamBeginCapture", 10010, cuStreamBeginCapture_v2) \
    X("cuStreamCreate", 2000, cuStreamCreate) \
    X("cuStreamCreateWithPriority", 5050, cuStreamCreateWithPriority) \
    X("cuStreamDestroy", 4000, cuStreamDestroy_v2) \
    X("cuStreamEndCapture", 10000, cuStreamEndCapture) \
    X("cuStreamGetCtx", 9020, cuStreamGetCtx) \
    X("cuStreamIsCapturing", 10000, cuStreamIsCapturing) \
    X("cuStreamQuery", 2000, cuStreamQuery) \
    X("cuStreamSynchronize", 2000, cuStreamSynchronize) \
    X("cuStreamWaitEvent", 3020, cuStreamWaitEvent)
/* clang-format on */

#define DECLARE(base, since, name) extern void name(void);
ROWS(DECLARE)

#define ROW(base, since, name) {base, since, #name, name},
const struct driver_entry driver_entries[] = {ROWS(ROW){0}};

// SPDX-License-Identifier: Apache-2.0
/* cuda - the part of the CUDA driver's ABI that we hook, transcribed by us. Names with _v2 etc. are
 * what the driver exports. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef unsigned CUdeviceptr_v1; /* before CUDA 3.2 */
typedef uint64_t CUhandle;       /* CUmemGenericAllocationHandle */
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUfunc_st *CUfunction;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_OPERATING_SYSTEM = 304,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_SUPPORTED = 801,
};

enum { CU_LOCATION_DEVICE = 1 };
enum { CU_POOL_RESERVED_CURRENT = 5, CU_POOL_USED_CURRENT = 7 };
enum { CU_GRAPH_UPLOAD = 2 };
enum { CU_GRAPH_MEM_USED = 0, CU_GRAPH_MEM_RESERVED = 2 };
enum { CU_NODE_KERNEL = 0, CU_NODE_GRAPH = 4, CU_NODE_MEM_ALLOC = 10 };
enum { CU_PROC_PER_THREAD_STREAM = 2 };
enum { CU_PROC_FOUND = 0, CU_PROC_NOT_FOUND = 1, CU_PROC_TOO_NEW = 2 };

typedef struct {
    unsigned char bytes[16];
} CUuuid;

typedef struct {
    size_t Width, Height;
    int Format;
    unsigned NumChannels;
} CUarrayDescriptor;

typedef struct {
    size_t Width, Height, Depth;
    int Format;
    unsigned NumChannels, Flags;
} CUarray3DDescriptor;

typedef struct {
    unsigned Width, Height;
    int Format;
    unsigned NumChannels;
} CUarrayDescriptor_v1;

typedef struct {
    unsigned Width, Height, Depth;
    int Format;
    unsigned NumChannels, Flags;
} CUarray3DDescriptor_v1;

typedef struct {
    int type, requestedHandleTypes;
    struct {
        int type, id;
    } location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct {
    int allocType, handleTypes;
    struct {
        int type, id;
    } location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned char reserved[56];
} CUmemPoolProps;

typedef struct {
    CUmemPoolProps poolProps;
    const void *accessDescs;
    size_t accessDescCount, bytesize;
    CUdeviceptr dptr;
} CUmemAllocNodeParams;

typedef struct {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    void *attrs;
    unsigned numAttrs;
} CUlaunchConfig;

/* NVML */
typedef struct nvmlDevice_st *nvmlDevice;
typedef struct {
    unsigned long long total, free, used;
} nvmlMemory;
typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2;

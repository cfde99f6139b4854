// SPDX-License-Identifier: Apache-2.0
/* driver_more - pools, physical memory, arrays, kernels and graphs of the fake driver. */
#include "test/fake/cuda/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* found by name */

enum { POOL_STEP = 2 * 1024 * 1024, NODES = 256 };

/* ---- pools ---- */

static struct CUmemPoolHandle_st pools[CARD_COUNT] = {{.device = 0}, {.device = 1}};

EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device)
{
    *out = &pools[device];
    return driver_enter(false);
}

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device)
{
    return cuDeviceGetMemPool(out, device);
}

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemAllocationProp *props)
{
    *out = calloc(1, sizeof **out);
    (*out)->device = props->location.id;
    return driver_enter(false);
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    driver_lock();
    uint64_t least = (pool->used + POOL_STEP - 1) / POOL_STEP * POOL_STEP;
    if (least < keep)
        least = keep;
    if (pool->reserved > least) {
        card_give(&driver_card, pool->device, pool->reserved - least);
        pool->reserved = least;
    }
    driver_unlock();
    return driver_enter(false);
}

EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    CUresult r = cuMemPoolTrimTo(pool, 0);
    free(pool);
    return r;
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    driver_lock();
    *(uint64_t *)value = attribute == CU_POOL_RESERVED_CURRENT ? pool->reserved : pool->used;
    driver_unlock();
    return driver_enter(false);
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    (void)pool, (void)attribute, (void)value;
    return driver_enter(false);
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size, CUmemoryPool pool,
                                        CUstream stream)
{
    CUresult r = driver_enter(true);
    (void)stream;
    if (r != CUDA_SUCCESS || size == 0)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    uint64_t least = (pool->used + size + POOL_STEP - 1) / POOL_STEP * POOL_STEP;
    if (least > pool->reserved) {
        if (card_take(&driver_card, pool->device, least - pool->reserved))
            pool->reserved = least;
        else
            r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (r == CUDA_SUCCESS) {
        pool->used += size;
        *out = driver_address(size);
        driver_add(DRIVER_ASYNC, *out, size, pool->device)->pool = pool;
    }
    driver_unlock();
    return r;
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream stream)
{
    CUresult r = driver_enter(true);
    return r != CUDA_SUCCESS
               ? r
               : cuMemAllocFromPoolAsync(out, size, &pools[driver_current->device], stream);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr p, CUstream stream)
{
    CUresult r = driver_enter(true);
    (void)stream;
    if (r != CUDA_SUCCESS)
        return r;
    driver_lock();
    struct driver_block *b = driver_find(DRIVER_ASYNC, p);
    if (b == NULL)
        b = driver_find(DRIVER_PLAIN, p);
    if (b == NULL)
        r = CUDA_ERROR_INVALID_VALUE;
    else {
        if (b->pool != NULL)
            b->pool->used -= b->size;
        driver_drop(b);
    }
    driver_unlock();
    return r;
}

/* ---- physical memory ---- */

struct mapping {
    struct mapping *next;
    CUdeviceptr at;
    CUhandle handle;
};
static struct mapping *mappings;
static CUhandle last_handle;

EXPORT CUresult cuMemCreate(CUhandle *out, size_t size, const CUmemAllocationProp *prop,
                            unsigned long long flags)
{
    CUresult r = driver_enter(false);
    (void)flags;
    int device = prop->location.type == CU_LOCATION_DEVICE ? prop->location.id : 0;
    uint64_t cost = prop->location.type == CU_LOCATION_DEVICE ? size : 0;
    if (r != CUDA_SUCCESS)
        return r;
    if (!card_take(&driver_card, device, cost))
        return CUDA_ERROR_OUT_OF_MEMORY;
    driver_lock();
    *out = ++last_handle;
    driver_add(DRIVER_PHYSICAL, *out, cost, device);
    driver_unlock();
    return r;
}

/* Under the lock. */
static CUresult unref(CUhandle handle)
{
    struct driver_block *b = driver_find(DRIVER_PHYSICAL, handle);
    if (b == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (--b->refs == 0)
        driver_drop(b);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemRelease(CUhandle handle)
{
    driver_lock();
    CUresult r = unref(handle);
    driver_unlock();
    return r;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr at,
                                    unsigned long long flags)
{
    (void)alignment, (void)at, (void)flags;
    driver_lock();
    *out = driver_address(size);
    driver_unlock();
    return driver_enter(false);
}

EXPORT CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset, CUhandle handle,
                         unsigned long long flags)
{
    (void)size, (void)offset, (void)flags;
    driver_lock();
    struct driver_block *b = driver_find(DRIVER_PHYSICAL, handle);
    if (b != NULL) {
        struct mapping *m = calloc(1, sizeof *m);
        *m = (struct mapping){mappings, at, handle};
        mappings = m;
        b->refs++;
    }
    driver_unlock();
    return b != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr at, size_t size)
{
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    (void)size;
    driver_lock();
    for (struct mapping **m = &mappings; *m != NULL; m = &(*m)->next) {
        if ((*m)->at != at)
            continue;
        struct mapping *gone = *m;
        *m = gone->next;
        r = unref(gone->handle);
        free(gone);
        break;
    }
    driver_unlock();
    return r;
}

EXPORT CUresult cuMemRetainAllocationHandle(CUhandle *out, void *at)
{
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    for (struct mapping *m = mappings; m != NULL; m = m->next) {
        if (m->at != (CUdeviceptr)(uintptr_t)at)
            continue;
        *out = m->handle;
        driver_find(DRIVER_PHYSICAL, m->handle)->refs++;
        r = CUDA_SUCCESS;
    }
    driver_unlock();
    return r;
}

/* ---- arrays ---- */

static uint64_t element(int format, unsigned channels)
{
    uint64_t bytes = format == 1 || format == 8                       ? 1
                     : format == 2 || format == 9 || format == 0x10   ? 2
                     : format == 3 || format == 0xa || format == 0x20 ? 4
                                                                      : 0;
    return bytes * channels;
}

static CUresult make_array(void **out, uint64_t size)
{
    CUresult r = driver_enter(true);
    if (r != CUDA_SUCCESS || size == 0)
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    if (!card_take(&driver_card, driver_current->device, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    driver_lock();
    uint64_t key = driver_address(512);
    driver_add(DRIVER_ARRAY, key, size, driver_current->device)->context = driver_current;
    *out = (void *)(uintptr_t)key;
    driver_unlock();
    return r;
}

static CUresult drop_array(void *array)
{
    driver_lock();
    struct driver_block *b = driver_find(DRIVER_ARRAY, (uint64_t)(uintptr_t)array);
    if (b != NULL)
        driver_drop(b);
    driver_unlock();
    return b != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static size_t least_one(size_t n)
{
    return n > 0 ? n : 1;
}

EXPORT CUresult cuArrayCreate_v2(CUarray *out, const CUarrayDescriptor *d)
{
    return make_array((void **)out,
                      d->Width * least_one(d->Height) * element(d->Format, d->NumChannels));
}

EXPORT CUresult cuArray3DCreate_v2(CUarray *out, const CUarray3DDescriptor *d)
{
    return make_array((void **)out, d->Width * least_one(d->Height) * least_one(d->Depth) *
                                        element(d->Format, d->NumChannels));
}

EXPORT CUresult cuArrayDestroy(CUarray array)
{
    return drop_array(array);
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUarray3DDescriptor *d,
                                       unsigned levels)
{
    uint64_t size = 0;
    for (unsigned i = 0; i < levels; i++)
        size += least_one(d->Width >> i) * least_one(d->Height >> i) * least_one(d->Depth >> i) *
                element(d->Format, d->NumChannels);
    return make_array((void **)out, size);
}

EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
    return drop_array(array);
}

/* ---- kernels ---- */

struct CUfunc_st {
    uint64_t ns;
};

EXPORT CUresult cuModuleLoadData(void **module, const void *image)
{
    (void)image;
    *module = (void *)1;
    return driver_enter(true);
}

EXPORT CUresult cuModuleGetFunction(CUfunction *out, void *module, const char *name)
{
    unsigned long long ns;
    (void)module;
    if (sscanf(name, "busy_%llu", &ns) != 1)
        return CUDA_ERROR_NOT_FOUND;
    *out = malloc(sizeof **out);
    (*out)->ns = ns;
    return driver_enter(true);
}

static CUresult run(uint64_t ns)
{
    CUresult r = driver_enter(true);
    if (r == CUDA_SUCCESS)
        card_run(&driver_card, driver_current->device, ns);
    return r;
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared, CUstream stream,
                               void **params, void **extra)
{
    (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream;
    (void)params, (void)extra;
    return run(f->ns);
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                                          unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                          CUstream stream, void **params)
{
    return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, NULL);
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params,
                                 void **extra)
{
    (void)config, (void)params, (void)extra;
    return run(f->ns);
}

EXPORT CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    (void)flags;
    *out = (CUstream)(uintptr_t)driver_address(1);
    return driver_enter(true);
}

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
    CUresult r = driver_enter(true);
    (void)stream;
    if (r == CUDA_SUCCESS)
        card_wait(&driver_card, driver_current->device);
    return r;
}

EXPORT CUresult cuCtxSynchronize(void)
{
    return cuStreamSynchronize(NULL);
}

/* ---- graphs ---- */

struct CUgraphNode_st {
    int type;
    uint64_t ns;
    CUgraph child;
};
struct CUgraph_st {
    struct CUgraphNode_st *nodes[NODES];
    size_t len;
};
struct CUgraphExec_st {
    uint64_t ns;
};

EXPORT CUresult cuGraphCreate(CUgraph *out, unsigned flags)
{
    (void)flags;
    *out = calloc(1, sizeof **out);
    return driver_enter(false);
}

static CUresult add_node(CUgraphNode *out, CUgraph g, struct CUgraphNode_st node)
{
    if (g->len == NODES)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = malloc(sizeof **out);
    **out = node;
    g->nodes[g->len++] = *out;
    return driver_enter(false);
}

/* The first member of the parameters is the function. */
EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph g, const CUgraphNode *after,
                                        size_t n, const CUfunction *params)
{
    (void)after, (void)n;
    return add_node(out, g, (struct CUgraphNode_st){CU_NODE_KERNEL, (*params)->ns, NULL});
}

EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after,
                                         size_t n, CUgraph child)
{
    (void)after, (void)n;
    return add_node(out, g, (struct CUgraphNode_st){CU_NODE_GRAPH, 0, child});
}

EXPORT CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *len)
{
    if (nodes != NULL)
        memcpy(nodes, g->nodes, (*len < g->len ? *len : g->len) * sizeof *nodes);
    *len = g->len;
    return driver_enter(false);
}

EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, int *type)
{
    *type = node->type;
    return driver_enter(false);
}

EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *out)
{
    *out = node->child;
    return driver_enter(false);
}

static uint64_t graph_ns(const struct CUgraph_st *g)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < g->len; i++)
        ns += g->nodes[i]->child != NULL ? graph_ns(g->nodes[i]->child) : g->nodes[i]->ns;
    return ns;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long flags)
{
    (void)flags;
    *out = malloc(sizeof **out);
    (*out)->ns = graph_ns(g);
    return driver_enter(false);
}

EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph g, void *params)
{
    (void)params;
    return cuGraphInstantiateWithFlags(out, g, 0);
}

EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph g, CUgraphNode *node, char *text,
                                      size_t size)
{
    (void)node, (void)text, (void)size;
    return cuGraphInstantiateWithFlags(out, g, 0);
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    free(exec);
    return driver_enter(false);
}

EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    (void)stream;
    return run(exec->ns);
}

/* ---- the default stream that is one per thread ---- */

#define SAME(name, of, args) EXPORT CUresult name args __attribute__((alias(#of)))
SAME(cuMemAllocAsync_ptsz, cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream));
SAME(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync,
     (CUdeviceptr *, size_t, CUmemoryPool, CUstream));
SAME(cuMemFreeAsync_ptsz, cuMemFreeAsync, (CUdeviceptr, CUstream));
SAME(cuLaunchKernel_ptsz, cuLaunchKernel,
     (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
      void **, void **));
SAME(cuLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel,
     (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
      void **));
SAME(cuLaunchKernelEx_ptsz, cuLaunchKernelEx,
     (const CUlaunchConfig *, CUfunction, void **, void **));
SAME(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams,
     (CUgraphExec *, CUgraph, void *));
SAME(cuGraphLaunch_ptsz, cuGraphLaunch, (CUgraphExec, CUstream));

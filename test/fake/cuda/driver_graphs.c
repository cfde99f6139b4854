// SPDX-License-Identifier: Apache-2.0
/* driver_graphs - kernels, streams and graphs of the fake driver, with capture of streams and
 * memory that graphs allocate. */
#include "test/fake/cuda/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* found by name */

enum { NODES = 256, MEMCPY = 1, MEMSET = 2, EMPTY = 5, MEM_FREE = 11 };

struct CUfunc_st {
    uint64_t ns;
};
struct CUgraphNode_st {
    int type;
    uint64_t ns;
    CUgraph child;
    CUmemAllocNodeParams memory;
};
struct CUgraph_st {
    struct CUgraphNode_st *nodes[NODES];
    size_t len;
};
/* What each launch allocates, and what of it the graph does not free. */
struct CUgraphExec_st {
    uint64_t ns, bytes[CARD_COUNT];
    struct {
        CUdeviceptr at;
        uint64_t size;
        int device;
    } kept[NODES];
    int kept_len;
};

/* ---- kernels ---- */

EXPORT CUresult cuModuleLoadData(void **module, const void *image)
{
    (void)image;
    *module = (void *)1;
    return driver_enter(true);
}

EXPORT CUresult cuModuleUnload(void *module)
{
    (void)module;
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

static CUresult add_node(CUgraphNode *out, CUgraph g, struct CUgraphNode_st node)
{
    CUgraphNode made;
    if (g->len == NODES)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made = malloc(sizeof *made);
    *made = node;
    g->nodes[g->len++] = made;
    if (out != NULL)
        *out = made;
    return driver_enter(false);
}

static CUresult run(uint64_t ns, CUstream stream)
{
    CUresult r = driver_enter(true);
    CUgraph capture = r == CUDA_SUCCESS ? driver_capture(stream) : NULL;
    if (capture != NULL)
        return add_node(NULL, capture, (struct CUgraphNode_st){.type = CU_NODE_KERNEL, .ns = ns});
    if (r == CUDA_SUCCESS)
        card_run(&driver_card, driver_stream_context(stream)->device, ns);
    return r;
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared, CUstream stream,
                               void **params, void **extra)
{
    (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared;
    (void)params, (void)extra;
    return run(f->ns, stream);
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
    (void)params, (void)extra;
    return run(f->ns, config->hStream);
}

/* Forms of before CUDA 4, and the one for several devices at once. */
EXPORT CUresult cuLaunch(CUfunction f)
{
    return run(f->ns, NULL);
}

EXPORT CUresult cuLaunchGrid(CUfunction f, int width, int height)
{
    (void)width, (void)height;
    return run(f->ns, NULL);
}

EXPORT CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream)
{
    (void)width, (void)height;
    return run(f->ns, stream);
}

EXPORT CUresult cuLaunchCooperativeKernelMultiDevice(void *list, unsigned n, unsigned flags)
{
    struct {
        CUfunction function;
        unsigned grid[3], block[3], shared;
        CUstream stream;
        void **params;
    } *each = list;
    (void)flags;
    CUresult r = CUDA_SUCCESS;
    for (unsigned i = 0; r == CUDA_SUCCESS && i < n; i++)
        r = run(each[i].function->ns, each[i].stream);
    return r;
}

/* ---- streams: the handles 0, 1 and 2 are those that every context has ---- */

CUcontext driver_stream_context(CUstream stream)
{
    return (uintptr_t)stream <= 2 ? driver_current : stream->context;
}

CUgraph driver_capture(CUstream stream)
{
    return (uintptr_t)stream <= 2 ? NULL : stream->capture;
}

EXPORT CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    CUresult r = driver_enter(true);
    (void)flags;
    *out = calloc(1, sizeof **out);
    (*out)->context = driver_current;
    return r;
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority)
{
    (void)priority;
    return cuStreamCreate(out, flags);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
    free(stream);
    return driver_enter(false);
}

EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext *out)
{
    *out = driver_stream_context(stream);
    return driver_enter(true);
}

EXPORT CUresult cuStreamQuery(CUstream stream)
{
    (void)stream;
    return driver_enter(true);
}

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
    CUresult r = driver_enter(true);
    if (r == CUDA_SUCCESS)
        card_wait(&driver_card, driver_stream_context(stream)->device);
    return r;
}

EXPORT CUresult cuCtxSynchronize(void)
{
    return cuStreamSynchronize(NULL);
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    (void)mode;
    if ((uintptr_t)stream <= 2)
        return CUDA_ERROR_INVALID_VALUE;
    stream->capture = calloc(1, sizeof *stream->capture);
    return driver_enter(true);
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *out)
{
    if (driver_capture(stream) == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = stream->capture;
    stream->capture = NULL;
    return driver_enter(true);
}

EXPORT CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
    *status = driver_capture(stream) != NULL;
    return driver_enter(true);
}

static CUdeviceptr own_address(uint64_t size)
{
    driver_lock();
    CUdeviceptr at = driver_address(size);
    driver_unlock();
    return at;
}

CUresult driver_capture_alloc(CUstream stream, CUdeviceptr *out, uint64_t size, int device)
{
    struct CUgraphNode_st node = {
        .type = CU_NODE_MEM_ALLOC,
        .memory = {.poolProps = {.allocType = 1, .location = {CU_LOCATION_DEVICE, device}},
                   .bytesize = size,
                   .dptr = own_address(size)}};
    *out = node.memory.dptr;
    return add_node(NULL, stream->capture, node);
}

CUresult driver_capture_free(CUstream stream, CUdeviceptr at)
{
    struct CUgraphNode_st node = {.type = MEM_FREE, .memory = {.dptr = at}};
    return add_node(NULL, stream->capture, node);
}

/* Memory has no contents: filling and copying it are nodes of a graph, and otherwise nothing. */
EXPORT CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t n, CUstream stream)
{
    CUgraph capture = driver_capture(stream);
    (void)at, (void)value, (void)n;
    return capture != NULL ? add_node(NULL, capture, (struct CUgraphNode_st){.type = MEMSET})
                           : driver_enter(true);
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream)
{
    CUgraph capture = driver_capture(stream);
    (void)to, (void)from, (void)n;
    return capture != NULL ? add_node(NULL, capture, (struct CUgraphNode_st){.type = MEMCPY})
                           : driver_enter(true);
}

/* ---- graphs ---- */

EXPORT CUresult cuGraphCreate(CUgraph *out, unsigned flags)
{
    (void)flags;
    *out = calloc(1, sizeof **out);
    return driver_enter(false);
}

EXPORT CUresult cuGraphDestroy(CUgraph g)
{
    for (size_t i = 0; i < g->len; i++)
        free(g->nodes[i]);
    free(g);
    return driver_enter(false);
}

/* The first member of the parameters is the function. */
EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph g, const CUgraphNode *after,
                                        size_t n, const CUfunction *params)
{
    (void)after, (void)n;
    return add_node(out, g, (struct CUgraphNode_st){.type = CU_NODE_KERNEL, .ns = (*params)->ns});
}

EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n)
{
    (void)after, (void)n;
    return add_node(out, g, (struct CUgraphNode_st){.type = EMPTY});
}

EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after,
                                         size_t n, CUgraph child)
{
    (void)after, (void)n;
    return add_node(out, g, (struct CUgraphNode_st){.type = CU_NODE_GRAPH, .child = child});
}

EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after,
                                       size_t n, CUmemAllocNodeParams *params)
{
    (void)after, (void)n;
    params->dptr = own_address(params->bytesize);
    return add_node(out, g, (struct CUgraphNode_st){.type = CU_NODE_MEM_ALLOC, .memory = *params});
}

EXPORT CUresult cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph g, const CUgraphNode *after,
                                      size_t n, CUdeviceptr at)
{
    (void)after, (void)n;
    return add_node(out, g, (struct CUgraphNode_st){.type = MEM_FREE, .memory = {.dptr = at}});
}

EXPORT CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUmemAllocNodeParams *out)
{
    if (node->type != CU_NODE_MEM_ALLOC)
        return CUDA_ERROR_INVALID_VALUE;
    *out = node->memory;
    return driver_enter(false);
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

static bool is_freed(const struct CUgraph_st *g, CUdeviceptr at)
{
    for (size_t i = 0; i < g->len; i++)
        if (g->nodes[i]->type == MEM_FREE && g->nodes[i]->memory.dptr == at)
            return true;
    return false;
}

static void sum(const struct CUgraph_st *g, struct CUgraphExec_st *out)
{
    for (size_t i = 0; i < g->len; i++) {
        const struct CUgraphNode_st *n = g->nodes[i];
        out->ns += n->ns;
        if (n->child != NULL)
            sum(n->child, out);
        if (n->type != CU_NODE_MEM_ALLOC)
            continue;
        int device = n->memory.poolProps.location.id;
        out->bytes[device] += n->memory.bytesize;
        if (is_freed(g, n->memory.dptr) || out->kept_len == NODES)
            continue;
        out->kept[out->kept_len].at = n->memory.dptr;
        out->kept[out->kept_len].size = n->memory.bytesize;
        out->kept[out->kept_len++].device = device;
    }
}

static CUresult get_memory(CUgraphExec exec, bool keep);

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long flags)
{
    CUgraphExec exec = calloc(1, sizeof *exec);
    sum(g, exec);
    CUresult r = flags & CU_GRAPH_UPLOAD ? get_memory(exec, false) : driver_enter(false);
    if (r == CUDA_SUCCESS)
        *out = exec;
    else
        free(exec);
    return r;
}

/* The first member of the parameters is the flags. */
EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph g, const uint64_t *params)
{
    return cuGraphInstantiateWithFlags(out, g, params != NULL ? *params : 0);
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

/* What graphs allocate lies in a pool of the device. */
static struct CUmemPoolHandle_st memory[CARD_COUNT] = {{.device = 0}, {.device = 1}};

static CUresult get_memory(CUgraphExec exec, bool keep)
{
    CUresult r = CUDA_SUCCESS;
    driver_lock();
    for (int i = 0; i < exec->kept_len && keep; i++)
        if (driver_find(DRIVER_ASYNC, exec->kept[i].at) != NULL)
            r = CUDA_ERROR_INVALID_VALUE; /* the last launch's is still there */
    for (int i = 0; i < CARD_COUNT && r == CUDA_SUCCESS; i++)
        r = driver_grow(&memory[i], exec->bytes[i]) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < exec->kept_len && r == CUDA_SUCCESS && keep; i++) {
        CUmemoryPool pool = &memory[exec->kept[i].device];
        struct driver_block *b =
            driver_add(DRIVER_ASYNC, exec->kept[i].at, exec->kept[i].size, pool->device);
        pool->used += b->size;
        b->pool = pool;
        b->context = driver_current;
    }
    driver_unlock();
    return r;
}

void driver_reset_graphs(int device)
{
    card_give(&driver_card, device, memory[device].reserved);
    memory[device].reserved = memory[device].used = 0;
}

EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value)
{
    if (device < 0 || device >= CARD_COUNT)
        return CUDA_ERROR_INVALID_DEVICE;
    driver_lock();
    *(uint64_t *)value =
        attribute == CU_GRAPH_MEM_USED ? memory[device].used : memory[device].reserved;
    driver_unlock();
    return driver_enter(false);
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    if (device < 0 || device >= CARD_COUNT)
        return CUDA_ERROR_INVALID_DEVICE;
    return cuMemPoolTrimTo(&memory[device], 0);
}

EXPORT CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    CUresult r = driver_enter(true);
    (void)stream;
    return r != CUDA_SUCCESS ? r : get_memory(exec, false);
}

EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    CUresult r = driver_enter(true);
    if (r == CUDA_SUCCESS)
        r = get_memory(exec, true);
    return r != CUDA_SUCCESS ? r : run(exec->ns, stream);
}

/* ---- the default stream that is one per thread, and first forms ---- */

DRIVER_SAME(cuLaunchKernel_ptsz, cuLaunchKernel,
            (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
             CUstream, void **, void **));
DRIVER_SAME(cuLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel,
            (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
             CUstream, void **));
DRIVER_SAME(cuLaunchKernelEx_ptsz, cuLaunchKernelEx,
            (const CUlaunchConfig *, CUfunction, void **, void **));
DRIVER_SAME(cuGraphInstantiate, cuGraphInstantiate_v2,
            (CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t));
DRIVER_SAME(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams,
            (CUgraphExec *, CUgraph, const uint64_t *));
DRIVER_SAME(cuGraphLaunch_ptsz, cuGraphLaunch, (CUgraphExec, CUstream));
DRIVER_SAME(cuGraphUpload_ptsz, cuGraphUpload, (CUgraphExec, CUstream));

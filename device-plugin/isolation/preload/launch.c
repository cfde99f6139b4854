// SPDX-License-Identifier: Apache-2.0
/* launch - kernels wait until the container has device time (budget.c). A graph counts as its
 * kernels, counted at its instantiation. Cards without a time limit cost one check. */
#include "device-plugin/isolation/preload/graphmem.h"
#include "device-plugin/isolation/preload/hooks.h"
#include "device-plugin/isolation/preload/share.h"

#include <errno.h>
#include <time.h>

enum { DEPTH_MAX = 8, BATCH = 64 };

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void wait_for_time(uint64_t launches)
{
    int card = share_depth > 0 ? SHARE_FREE_CARD : share_card_current();
    uint32_t percent = card < 0 ? 100 : share_limit(card)->percent;
    struct region_card *region = percent < 100 ? share_region(card) : NULL;
    if (region == NULL)
        return;
    uint64_t began = now_ns(), now = began, wait;
    int saved = errno;
    while ((wait = budget_charge(region, percent, launches, now)) > 0) {
        struct timespec t = {.tv_sec = (time_t)(wait / 1000000000u),
                             .tv_nsec = (long)(wait % 1000000000u)};
        nanosleep(&t, NULL);
        now = now_ns();
    }
    if (now > began)
        budget_note_throttled(region, now - began);
    errno = saved;
}

#define LAUNCH(name, ...) LAUNCHES(name, 1, __VA_ARGS__)
#define LAUNCHES(name, times, ...)                    \
    do {                                              \
        const struct hooks_cuda *real = hooks_cuda(); \
        if (real == NULL || real->name == NULL)       \
            return CUDA_ERROR_NOT_INITIALIZED;        \
        wait_for_time(times);                         \
        share_depth++;                                \
        CUresult result = real->name(__VA_ARGS__);    \
        share_depth--;                                \
        return result;                                \
    } while (0)

int cuLaunchKernel(LAUNCH_DIMS, void **extra)
{
    LAUNCH(cuLaunchKernel, f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

int cuLaunchKernel_ptsz(LAUNCH_DIMS, void **extra)
{
    LAUNCH(cuLaunchKernel_ptsz, f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

int cuLaunchCooperativeKernel(LAUNCH_DIMS)
{
    LAUNCH(cuLaunchCooperativeKernel, f, gx, gy, gz, bx, by, bz, shared, stream, params);
}

int cuLaunchCooperativeKernel_ptsz(LAUNCH_DIMS)
{
    LAUNCH(cuLaunchCooperativeKernel_ptsz, f, gx, gy, gz, bx, by, bz, shared, stream, params);
}

int cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
    LAUNCH(cuLaunchKernelEx, config, f, params, extra);
}

int cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
    LAUNCH(cuLaunchKernelEx_ptsz, config, f, params, extra);
}

int cuLaunch(CUfunction f)
{
    LAUNCH(cuLaunch, f);
}

int cuLaunchGrid(CUfunction f, int width, int height)
{
    LAUNCH(cuLaunchGrid, f, width, height);
}

int cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream)
{
    LAUNCH(cuLaunchGridAsync, f, width, height, stream);
}

/* One kernel on each of several cards, all charged to the current card; measurements correct
 * that. */
int cuLaunchCooperativeKernelMultiDevice(void *list, unsigned n, unsigned flags)
{
    LAUNCHES(cuLaunchCooperativeKernelMultiDevice, n, list, n, flags);
}

/* ---- graphs ---- */

static uint64_t kernels_in(const struct hooks_cuda *real, CUgraph graph, int depth);

static uint64_t kernels_of(const struct hooks_cuda *real, CUgraphNode node, int depth)
{
    int type = -1;
    CUgraph child;
    if (real->cuGraphNodeGetType(node, &type) != CUDA_SUCCESS || type == CU_NODE_KERNEL)
        return 1;
    if (type == CU_NODE_GRAPH && real->cuGraphChildGraphNodeGetGraph != NULL &&
        real->cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS)
        return kernels_in(real, child, depth + 1);
    return 0;
}

static uint64_t kernels_in(const struct hooks_cuda *real, CUgraph graph, int depth)
{
    size_t len = 0;
    uint64_t kernels = 0;
    if (depth > DEPTH_MAX || real->cuGraphGetNodes == NULL || real->cuGraphNodeGetType == NULL ||
        real->cuGraphGetNodes(graph, NULL, &len) != CUDA_SUCCESS)
        return 1;
    CUgraphNode few[BATCH], *nodes = len <= BATCH ? few : share_map(len * sizeof *nodes);
    size_t cap = len;
    if (nodes == NULL || (len > 0 && real->cuGraphGetNodes(graph, nodes, &len) != CUDA_SUCCESS))
        kernels = cap; /* their kinds are unknown: each may be one */
    else
        for (size_t i = 0; i < len && i < cap; i++)
            kernels += kernels_of(real, nodes[i], depth);
    if (nodes != few)
        share_unmap(nodes, cap * sizeof *nodes);
    return kernels;
}

static CUresult made(const struct hooks_cuda *real, CUresult result, const CUgraphExec *out,
                     CUgraph graph)
{
    if (result != CUDA_SUCCESS || share_depth > 0 || share_card_current() < 0)
        return result;
    struct share_item item = {.key = (uintptr_t)*out,
                              .size = kernels_in(real, graph, 0),
                              .card = SHARE_FREE_CARD,
                              .kind = SHARE_GRAPH,
                              .refs = 1};
    (void)share_put(&item); /* without it the graph counts as one */
    return result;
}

/* upload: its memory is needed now. */
#define INSTANTIATE(name, upload, ...)                     \
    do {                                                   \
        const struct hooks_cuda *real = hooks_cuda();      \
        if (real == NULL || real->name == NULL)            \
            return CUDA_ERROR_NOT_INITIALIZED;             \
        struct graphmem memory, none = {.any = false};     \
        graphmem_of(real, graph, &memory);                 \
        struct graphmem *now = (upload) ? &memory : &none; \
        CUresult result = graphmem_begin(now);             \
        if (result != CUDA_SUCCESS)                        \
            return result;                                 \
        share_depth++;                                     \
        result = real->name(__VA_ARGS__);                  \
        share_depth--;                                     \
        graphmem_end(now, result);                         \
        if (result == CUDA_SUCCESS)                        \
            graphmem_keep(*out, &memory);                  \
        return made(real, result, out, graph);             \
    } while (0)

int cuGraphInstantiate(CUgraphExec *out, CUgraph graph, CUgraphNode *node, char *text, size_t size)
{
    INSTANTIATE(cuGraphInstantiate, false, out, graph, node, text, size);
}

int cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *node, char *text,
                          size_t size)
{
    INSTANTIATE(cuGraphInstantiate_v2, false, out, graph, node, text, size);
}

int cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    INSTANTIATE(cuGraphInstantiateWithFlags, flags & CU_GRAPH_UPLOAD, out, graph, flags);
}

/* The first member is the flags. */
static bool uploads(const void *params)
{
    return params != NULL && (*(const uint64_t *)params & CU_GRAPH_UPLOAD) != 0;
}

int cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph, void *params)
{
    INSTANTIATE(cuGraphInstantiateWithParams, uploads(params), out, graph, params);
}

int cuGraphInstantiateWithParams_ptsz(CUgraphExec *out, CUgraph graph, void *params)
{
    INSTANTIATE(cuGraphInstantiateWithParams_ptsz, uploads(params), out, graph, params);
}

int cuGraphExecDestroy(CUgraphExec exec)
{
    const struct hooks_cuda *real = hooks_cuda();
    struct share_item item;
    if (real == NULL || real->cuGraphExecDestroy == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    (void)share_find(SHARE_GRAPH, (uintptr_t)exec, true, &item);
    graphmem_forget(exec);
    return real->cuGraphExecDestroy(exec);
}

/* Takes the memory of its nodes first. */
static CUresult with_memory(CUresult (*call)(CUgraphExec, CUstream), CUgraphExec exec,
                            CUstream stream)
{
    struct graphmem memory;
    graphmem_find(exec, &memory);
    CUresult result = graphmem_begin(&memory);
    if (result != CUDA_SUCCESS)
        return result;
    share_depth++;
    result = call(exec, stream);
    share_depth--;
    graphmem_end(&memory, result);
    return result;
}

int cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuGraphUpload == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    return with_memory(real->cuGraphUpload, exec, stream);
}

int cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
    const struct hooks_cuda *real = hooks_cuda();
    if (real == NULL || real->cuGraphUpload_ptsz == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    return with_memory(real->cuGraphUpload_ptsz, exec, stream);
}

static CUresult launch_graph(CUresult (*call)(CUgraphExec, CUstream), CUgraphExec exec,
                             CUstream stream)
{
    struct share_item item = {.size = 1};
    if (call == NULL)
        return CUDA_ERROR_NOT_INITIALIZED;
    (void)share_find(SHARE_GRAPH, (uintptr_t)exec, false, &item);
    wait_for_time(item.size);
    return with_memory(call, exec, stream);
}

int cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    const struct hooks_cuda *real = hooks_cuda();
    return launch_graph(real != NULL ? real->cuGraphLaunch : NULL, exec, stream);
}

int cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
    const struct hooks_cuda *real = hooks_cuda();
    return launch_graph(real != NULL ? real->cuGraphLaunch_ptsz : NULL, exec, stream);
}

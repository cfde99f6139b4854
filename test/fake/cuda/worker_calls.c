// SPDX-License-Identifier: Apache-2.0
/* worker_calls - how the test program finds the driver's functions, and allocates with each of
 * them. */
#include "test/fake/cuda/worker.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern CUresult cuGetProcAddress(const char *, void **, int, uint64_t);
extern CUresult cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);

struct worker_cu cu;
struct worker_old old;

static void *look_up(const char *path, const char *base, const char *suffix, int version)
{
    static void *library;
    char name[64];
    void *found = NULL;
    int status;
    if (library == NULL)
        library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    snprintf(name, sizeof name, "%s%s", base, suffix);
    if (strcmp(path, "dlsym") == 0)
        found = dlsym(library, name);
    else if (strcmp(path, "default") == 0 || strcmp(path, "link") == 0)
        found = dlsym(RTLD_DEFAULT, name);
    else if (strcmp(path, "next") == 0)
        found = dlsym(RTLD_NEXT, name);
    else if (strcmp(path, "proc") == 0)
        (void)cuGetProcAddress(base, &found, version > 0 ? version : 11080, 0);
    else if (strcmp(path, "proc2") == 0)
        (void)cuGetProcAddress_v2(base, &found, version > 0 ? version : 12000, 0, &status);
    else if (strcmp(path, "ptsz") == 0)
        (void)cuGetProcAddress_v2(base, &found, version > 0 ? version : 12000,
                                  CU_PROC_PER_THREAD_STREAM, &status);
    if (found == NULL) {
        printf("no %s by %s\n", name, path);
        exit(3);
    }
    return found;
}

void worker_by(const char *path)
{
#define FILL(name, suffix, args) *(void **)&cu.name = look_up(path, #name, suffix, 0);
#define OLD_FILL(name, version, args) *(void **)&old.name = look_up(path, #name, "", version);
    FUNCTIONS(FILL)
    OLD_FUNCTIONS(OLD_FILL)
}

/* ---- allocations of other kinds ---- */

/* flags 2: its memory is there as soon as it is instantiated. */
static CUresult in_graph(struct thing *t, size_t bytes, CUdevice device, unsigned flags)
{
    CUmemAllocNodeParams params = {
        .poolProps = {.allocType = 1, .location = {CU_LOCATION_DEVICE, device}}, .bytesize = bytes};
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    (void)cu.cuGraphCreate(&graph, 0);
    (void)cu.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params);
    t->handle = params.dptr;
    CUresult r = cu.cuGraphInstantiateWithFlags(&exec, graph, flags);
    return r != 0 ? r : cu.cuGraphLaunch(exec, NULL);
}

static CUresult in_pool_of(struct thing *t, size_t bytes, CUdevice device)
{
    CUmemPoolProps props = {.allocType = 1, .location = {CU_LOCATION_DEVICE, device}};
    CUmemoryPool pool;
    CUresult r = cu.cuMemPoolCreate(&pool, &props);
    r = r != 0 ? r : cu.cuMemAllocFromPoolAsync(&t->handle, bytes, pool, NULL);
    t->at = (uintptr_t)pool;
    if (r != 0)
        (void)cu.cuMemPoolDestroy(pool);
    return r;
}

/* On a stream of card 0, with another context current. */
static CUresult on_stream_0(struct thing *t, size_t bytes)
{
    CUcontext c;
    CUstream stream;
    CUresult r = cu.cuDevicePrimaryCtxRetain(&c, 0);
    if (r != 0 || (r = cu.cuCtxPushCurrent(c)) != 0 || (r = cu.cuStreamCreate(&stream, 0)) != 0 ||
        (r = cu.cuCtxPopCurrent(&c)) != 0)
        return r;
    r = cu.cuMemAllocAsync(&t->handle, bytes, stream);
    return r;
}

static CUresult by_first_form(struct thing *t, const char *kind, unsigned bytes)
{
    CUdeviceptr_v1 at = 0;
    unsigned pitch;
    CUresult r;
    CUarrayDescriptor_v1 flat = {.Width = bytes, .Format = 1, .NumChannels = 1};
    CUarray3DDescriptor_v1 solid = {
        .Width = bytes, .Height = 1, .Depth = 1, .Format = 1, .NumChannels = 1};
    if (strcmp(kind, "oldarray") == 0)
        return old.cuArrayCreate((CUarray *)&t->handle, &flat);
    if (strcmp(kind, "oldarray3d") == 0)
        return old.cuArray3DCreate((CUarray *)&t->handle, &solid);
    if (strcmp(kind, "oldpitch") == 0)
        r = old.cuMemAllocPitch(&at, &pitch, 500, (bytes + 511) / 512, 4);
    else
        r = old.cuMemAlloc(&at, bytes);
    t->handle = at;
    return r;
}

CUresult worker_allocate(struct thing *t, const char *kind, size_t bytes)
{
    size_t pitch;
    CUdevice device = 0;
    CUmemoryPool pool;
    CUarrayDescriptor flat = {.Width = bytes, .Height = 0, .Format = 1, .NumChannels = 1};
    CUarray3DDescriptor solid = {.Width = bytes, .Format = 1, .NumChannels = 1};
    snprintf(t->kind, sizeof t->kind, "%s", kind);
    (void)cu.cuCtxGetDevice(&device);
    CUmemAllocationProp prop = {.type = 1, .location = {CU_LOCATION_DEVICE, device}};
    if (strncmp(kind, "old", 3) == 0)
        return by_first_form(t, kind, (unsigned)bytes);
    if (strcmp(kind, "graph") == 0 || strcmp(kind, "upload") == 0)
        return in_graph(t, bytes, device, kind[0] == 'u' ? CU_GRAPH_UPLOAD : 0);
    if (strcmp(kind, "ownpool") == 0 || strcmp(kind, "pool0") == 0)
        return in_pool_of(t, bytes, kind[0] == 'p' ? 0 : device);
    if (strcmp(kind, "stream0") == 0)
        return on_stream_0(t, bytes);
    if (strcmp(kind, "plain") == 0)
        return cu.cuMemAlloc(&t->handle, bytes);
    if (strcmp(kind, "managed") == 0)
        return cu.cuMemAllocManaged(&t->handle, bytes, 1);
    if (strcmp(kind, "pitch") ==
        0) /* rows of 512 bytes; the last may be one byte, and counts as all */
        return cu.cuMemAllocPitch(&t->handle, &pitch, 500, (bytes + 511) / 512, 4);
    if (strcmp(kind, "async") == 0)
        return cu.cuMemAllocAsync(&t->handle, bytes, NULL);
    if (strcmp(kind, "pool") == 0) {
        CUresult r = cu.cuDeviceGetMemPool(&pool, device);
        return r != 0 ? r : cu.cuMemAllocFromPoolAsync(&t->handle, bytes, pool, NULL);
    }
    if (strcmp(kind, "create") == 0)
        return cu.cuMemCreate(&t->handle, bytes, &prop, 0);
    if (strcmp(kind, "map") == 0) { /* the handle is let go, the mapping keeps the memory */
        CUresult r = cu.cuMemCreate(&t->handle, bytes, &prop, 0);
        if (r != 0 || (r = cu.cuMemAddressReserve(&t->at, bytes, 0, 0, 0)) != 0 ||
            (r = cu.cuMemMap(t->at, bytes, 0, t->handle, 0)) != 0)
            return r;
        return cu.cuMemRelease(t->handle);
    }
    if (strcmp(kind, "array") == 0)
        return cu.cuArrayCreate((CUarray *)&t->handle, &flat);
    if (strcmp(kind, "array3d") == 0) {
        solid.Height = solid.Depth = 1;
        return cu.cuArray3DCreate((CUarray *)&t->handle, &solid);
    }
    if (strcmp(kind, "layers") == 0) { /* of 3 bytes, and of 1 */
        solid = (CUarray3DDescriptor){
            .Width = 3, .Depth = (bytes + 3) / 4, .Format = 1, .NumChannels = 1, .Flags = 1};
        return cu.cuMipmappedArrayCreate((CUmipmappedArray *)&t->handle, &solid, 2);
    }
    /* One level more than the bytes: half of them, a quarter, …, 1, 1. */
    if (strcmp(kind, "mipmap") == 0)
        return cu.cuMipmappedArrayCreate((CUmipmappedArray *)&t->handle, &solid, 1);
    return -1;
}

CUresult worker_let_go(const struct thing *t)
{
    if (strcmp(t->kind, "old") == 0 || strcmp(t->kind, "oldpitch") == 0)
        return old.cuMemFree((CUdeviceptr_v1)t->handle);
    if (strncmp(t->kind, "oldarray", 8) == 0)
        return cu.cuArrayDestroy((CUarray)(uintptr_t)t->handle);
    if (strcmp(t->kind, "ownpool") == 0 || strcmp(t->kind, "pool0") == 0) {
        CUresult r = cu.cuMemFreeAsync(t->handle, NULL);
        return r != 0 ? r : cu.cuMemPoolDestroy((CUmemoryPool)(uintptr_t)t->at);
    }
    if (strcmp(t->kind, "async") == 0 || strcmp(t->kind, "pool") == 0 ||
        strcmp(t->kind, "stream0") == 0)
        return cu.cuMemFreeAsync(t->handle, NULL);
    if (strcmp(t->kind, "create") == 0)
        return cu.cuMemRelease(t->handle);
    if (strcmp(t->kind, "map") == 0)
        return cu.cuMemUnmap(t->at, 1);
    if (strncmp(t->kind, "array", 5) == 0)
        return cu.cuArrayDestroy((CUarray)(uintptr_t)t->handle);
    if (strcmp(t->kind, "mipmap") == 0 || strcmp(t->kind, "layers") == 0)
        return cu.cuMipmappedArrayDestroy((CUmipmappedArray)(uintptr_t)t->handle);
    return cu.cuMemFree(t->handle);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * driver_shared - memory of one process that others use: handles of IPC (64 bytes that say where it
 * is), and physical memory as a file descriptor. The driver counts it where it was made.
 */
#include "test/fake/cuda/driver.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* found by name */

struct wire {
    char magic[8];
    int64_t pid;
    uint64_t at, size;
    int64_t device;
};

typedef struct {
    char reserved[64];
} handle64;

static const char magic[8] = "fakecuda";

EXPORT CUresult cuIpcGetMemHandle(handle64 *out, CUdeviceptr at)
{
    driver_lock();
    const struct driver_block *b = driver_find(DRIVER_PLAIN, at);
    struct wire w = {.pid = getpid(), .at = at};
    if (b != NULL) {
        w.size = b->size;
        w.device = b->device;
    }
    driver_unlock();
    memcpy(w.magic, magic, sizeof magic);
    memset(out, 0, sizeof *out);
    memcpy(out->reserved, &w, sizeof w);
    return b != NULL ? driver_enter(true) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, handle64 handle, unsigned flags)
{
    struct wire w;
    CUresult r = driver_enter(true);
    (void)flags;
    memcpy(&w, handle.reserved, sizeof w);
    if (r != CUDA_SUCCESS || memcmp(w.magic, magic, sizeof magic) != 0 || w.pid == getpid())
        return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    *out = driver_address(w.size);
    driver_add(DRIVER_IMPORTED, *out, 0, (int)w.device)->context = driver_current;
    driver_unlock();
    return r;
}

EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr at)
{
    driver_lock();
    struct driver_block *b = driver_find(DRIVER_IMPORTED, at);
    if (b != NULL)
        driver_drop(b);
    driver_unlock();
    return b != NULL ? driver_enter(false) : CUDA_ERROR_INVALID_VALUE;
}

/* out: an int. */
EXPORT CUresult cuMemExportToShareableHandle(void *out, CUhandle handle, int type,
                                             unsigned long long flags)
{
    (void)flags;
    driver_lock();
    const struct driver_block *b = driver_find(DRIVER_PHYSICAL, handle);
    struct wire w = {.pid = getpid(), .size = b != NULL ? b->size : 0};
    driver_unlock();
    memcpy(w.magic, magic, sizeof magic);
    int fd = b != NULL && type == 1 ? memfd_create("fakecuda", MFD_CLOEXEC) : -1;
    if (fd < 0 || write(fd, &w, sizeof w) != (ssize_t)sizeof w)
        return CUDA_ERROR_INVALID_VALUE;
    *(int *)out = fd;
    return driver_enter(false);
}

/* handle: the descriptor itself. */
EXPORT CUresult cuMemImportFromShareableHandle(CUhandle *out, void *handle, int type)
{
    struct wire w;
    if (type != 1 || pread((int)(intptr_t)handle, &w, sizeof w, 0) != (ssize_t)sizeof w ||
        memcmp(w.magic, magic, sizeof magic) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    *out = driver_address(512);
    driver_add(DRIVER_PHYSICAL, *out, 0, 0);
    driver_unlock();
    return driver_enter(false);
}
DRIVER_SAME(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2, (CUdeviceptr *, handle64, unsigned));

// SPDX-License-Identifier: Apache-2.0
/* driver - what the files of the fake libcuda.so.1 share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device-plugin/isolation/preload/cuda.h"
#include "test/fake/cuda/card.h"

#define EXPORT __attribute__((visibility("default")))

struct CUctx_st {
    int device;
    bool primary;
    int attached;
};

enum driver_kind { DRIVER_PLAIN, DRIVER_ASYNC, DRIVER_PHYSICAL, DRIVER_ARRAY, DRIVER_IMPORTED };

struct driver_block {
    struct driver_block *next;
    enum driver_kind kind;
    uint64_t key, size;
    int device, refs;
    CUcontext context; /* NULL: of none */
    CUmemoryPool pool;
};

struct CUmemPoolHandle_st {
    int device;
    uint64_t reserved, used;
    CUmemoryPool next;
};

struct CUstream_st {
    CUcontext context;
    CUgraph capture; /* what is put on it goes into this one */
};

extern struct card driver_card;
extern _Thread_local CUcontext driver_current;

/* Is the driver in use, and is there a context (if one is needed)? */
CUresult driver_enter(bool context);
void driver_lock(void);
void driver_unlock(void);
/* Under the lock. */
struct driver_block *driver_add(enum driver_kind kind, uint64_t key, uint64_t size, int device);
struct driver_block *driver_find(enum driver_kind kind, uint64_t key);
void driver_drop(struct driver_block *b);
/* Has the pool so much more reserved, or can it get it? */
bool driver_grow(CUmemoryPool pool, uint64_t size);
/* Nothing is left in the device's pools and graphs; destroy: pools that programs made are no
 * more. */
void driver_reset_pools(int device, bool destroy);
void driver_reset_graphs(int device);
/* All blocks of the context go, and its own cost. */
void driver_drop_context(CUcontext c, bool reset);
uint64_t driver_address(uint64_t size);

void driver_asked(const char *symbol, int version, uint64_t flags, void **out);
/* The graph that the stream is captured into, or NULL. */
CUgraph driver_capture(CUstream stream);
CUresult driver_capture_alloc(CUstream stream, CUdeviceptr *out, uint64_t size, int device);
CUresult driver_capture_free(CUstream stream, CUdeviceptr at);
/* Of the streams that every context has: the current one. */
CUcontext driver_stream_context(CUstream stream);

/* A function that is exported by another name as well. */
#define DRIVER_SAME(name, of, args) EXPORT CUresult name args __attribute__((alias(#of)))

/* The functions that cuGetProcAddress knows: a base name, since when, the name with which it is
 * exported. */
struct driver_entry {
    const char *base;
    int since;
    const char *name;
    void (*function)(void);
};
extern const struct driver_entry driver_entries[];

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
};

enum driver_kind { DRIVER_PLAIN, DRIVER_ASYNC, DRIVER_PHYSICAL, DRIVER_ARRAY, DRIVER_KINDS };

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
/* All blocks of the context go, and its own cost. */
void driver_drop_context(CUcontext c);
uint64_t driver_address(uint64_t size);

/* The functions that cuGetProcAddress knows: a base name, since when, the name with which it is exported. */
struct driver_entry {
    const char *base;
    int since;
    const char *name;
    void (*function)(void);
};
extern const struct driver_entry driver_entries[];

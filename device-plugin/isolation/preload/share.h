// SPDX-License-Identifier: Apache-2.0
/*
 * share - this process's part of the container's share: its limits, its slot in the region, and what it holds by which handle.
 * Begun by the first call that needs it, and begun anew in a child of fork.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/isolation/budget.h"
#include "device-plugin/isolation/limits.h"
#include "device-plugin/isolation/preload/cuda.h"

enum { SHARE_FREE_CARD = -1 /* a card without a limit */ };

/* Kinds of handles: the same number may be one of each. */
enum share_kind {
    SHARE_NONE,
    SHARE_MEMORY,
    SHARE_ARRAY,
    SHARE_PHYSICAL,
    SHARE_MAPPING, /* size is the handle that is mapped */
    SHARE_CONTEXT,
    SHARE_GRAPH,        /* size is the number of kernels */
    SHARE_GRAPH_MEMORY, /* size is what its memory nodes may take of one card */
    SHARE_GONE
};

struct share_item {
    uint64_t key, size;
    CUcontext context; /* it ends with this one; NULL: with none */
    int16_t card;
    uint8_t kind;
    bool primary; /* a context: the device's own */
    uint32_t refs;
};

/* The row of a device, or of the one that is current; SHARE_FREE_CARD. */
int share_card_of(CUdevice device);
int share_card_current(void);
/* Is any card limited? */
bool share_limited(void);
int share_card_by_uuid(const unsigned char uuid[16]);
const struct limits_card *share_limit(int card);

/* Takes bytes of the card: CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY. A card without a limit always has room. */
CUresult share_take(int card, uint64_t bytes);
void share_give(int card, uint64_t bytes);
/* The program is told that there is no memory: counted. Returns CUDA_ERROR_OUT_OF_MEMORY. */
CUresult share_denied(int card);
/* In use by the container, without those that died. */
uint64_t share_used(int card);
struct region_card *share_region(int card);

/* What this process holds. put is false when there is no memory for it. */
bool share_put(const struct share_item *item);
/* Finds, and takes out of the books when `take`. */
bool share_find(enum share_kind kind, uint64_t key, bool take, struct share_item *out);
/* Adds to the references; at 0 it is taken out and out says what it was. true: it was. */
bool share_ref(enum share_kind kind, uint64_t key, int by, struct share_item *out);
/* The first of a kind whose key lies in [from, from + len); taken out. */
bool share_take_within(enum share_kind kind, uint64_t from, uint64_t len, struct share_item *out);
/* The primary context of the card that is in the books, or NULL. */
CUcontext share_primary(int card);
/* Gives back all that ends with the context. */
void share_end_context(CUcontext context);
/* What ends with one ends with the other from now on. */
void share_rename_context(CUcontext from, CUcontext to);
/* Between begin and end no other thread takes or lets go a primary context. */
void share_contexts_begin(void);
void share_contexts_end(void);

/* Memory of our own that is not the program's malloc, which may be under way. NULL: none. */
void *share_room(size_t bytes);
void share_room_end(void *room, size_t bytes);

/* Pools: what is charged for each. What graphs allocate by themselves is a pool of each device, with other questions to the driver.
 * Between begin and end no other thread changes pools. */
struct share_pool {
    CUmemoryPool pool; /* or share_graphs_of */
    int card, device;
    bool graphs;
    uint64_t charged;
};
void share_pools_begin(void);
void share_pools_end(void);
struct share_pool *share_pool_find(CUmemoryPool pool);
/* As it is, or a new one; NULL: too many. */
struct share_pool *share_pool(CUmemoryPool pool, int card);
struct share_pool *share_pool_graphs(int card, CUdevice device);
/* What it has of the card, by the driver's word; false: the driver does not say. */
bool share_pool_reserved(const struct share_pool *p, uint64_t *bytes);
bool share_pool_used(const struct share_pool *p, uint64_t *bytes); /* of that, handed out */
/* Asks the driver what its pools hold now, and gives back what they no longer do. */
void share_pools_settle(void);
/* The same after making them let go of what nobody uses, as the driver does when a card is full. */
void share_pools_trim(void);
/* The device was reset: pools that programs made on it are no more, and must not be asked about. */
void share_pools_reset(int card, CUdevice device);

/* Are we inside a call of ours into the driver? Then what comes in is the driver's own and passes. */
extern _Thread_local int share_depth __attribute__((tls_model("initial-exec")));

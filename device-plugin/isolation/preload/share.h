// SPDX-License-Identifier: Apache-2.0
/* share - this process's part of the container's share: its limits, its slot in the region, and
 * what it holds by handle. Initialised by the first call that needs it, and again in a child of
 * fork. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/isolation/budget.h"
#include "device-plugin/isolation/limits.h"
#include "device-plugin/isolation/preload/cuda.h"

enum { SHARE_FREE_CARD = -1 /* a card without a limit */ };

/* Kinds of handles: their number ranges overlap. */
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

/* The row of a device, or of the current one; SHARE_FREE_CARD. */
int share_card_of(CUdevice device);
int share_card_current(void);
/* Is any card limited? */
bool share_limited(void);
int share_card_by_uuid(const unsigned char uuid[16]);
const struct limits_card *share_limit(int card);

/* CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY. Always succeeds on a card without a limit. */
CUresult share_take(int card, uint64_t bytes);
void share_give(int card, uint64_t bytes);
/* Counts a denial. Returns CUDA_ERROR_OUT_OF_MEMORY. */
CUresult share_denied(int card);
/* In use by the container, without dead processes. */
uint64_t share_used(int card);
struct region_card *share_region(int card);

/* Records what this process holds. false: no memory for the record. */
bool share_put(const struct share_item *item);
/* Finds, and removes if `take`. */
bool share_find(enum share_kind kind, uint64_t key, bool take, struct share_item *out);
/* Adds to the references; at 0 removes the item, which out then describes. true: removed. */
bool share_ref(enum share_kind kind, uint64_t key, int by, struct share_item *out);
/* Removes the first of a kind whose key lies in [from, from + len). */
bool share_take_within(enum share_kind kind, uint64_t from, uint64_t len, struct share_item *out);
/* The recorded primary context of the card, or NULL. */
CUcontext share_primary(int card);
/* Returns all that ends with the context. */
void share_end_context(CUcontext context);
/* From now on `to` ends what ended with `from`. */
void share_rename_context(CUcontext from, CUcontext to);
/* Between begin and end no other thread retains or releases a primary context. */
void share_contexts_begin(void);
void share_contexts_end(void);

/* Memory of our own, not from the program's malloc, which may be in progress. NULL: none. */
void *share_map(size_t bytes);
void share_unmap(void *memory, size_t bytes);

/* Pools and their charges. A device's graph memory is a pool too, with other driver queries.
 * Between begin and end no other thread changes pools. */
struct share_pool {
    CUmemoryPool pool; /* or a key for a device's graphs (share_pool_graphs) */
    int card, device;
    bool graphs;
    uint64_t charged;
};
void share_pools_begin(void);
void share_pools_end(void);
struct share_pool *share_pool_find(CUmemoryPool pool);
/* The existing or a new one; NULL: too many. */
struct share_pool *share_pool(CUmemoryPool pool, int card);
struct share_pool *share_pool_graphs(int card, CUdevice device);
/* The pool's memory on the card, from the driver; false: unknown. */
bool share_pool_reserved(const struct share_pool *p, uint64_t *bytes);
bool share_pool_used(const struct share_pool *p, uint64_t *bytes); /* of that, allocated */
/* Queries what the driver's pools hold now, and returns the rest. */
void share_pools_settle(void);
/* The same after trimming them, as the driver does when a card is full. */
void share_pools_trim(void);
/* After a device reset: programs' pools on it no longer exist and must not be queried. */
void share_pools_reset(int card, CUdevice device);

/* > 0: we are inside a driver call of ours; hooked calls are the driver's own and pass through. */
extern _Thread_local int share_depth __attribute__((tls_model("initial-exec")));

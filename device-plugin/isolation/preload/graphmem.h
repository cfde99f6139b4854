// SPDX-License-Identifier: Apache-2.0
/*
 * graphmem - memory that graphs allocate by themselves, in nodes (cuGraphAddMemAllocNode, or stream-ordered allocation that was captured).
 * The driver takes it from a pool of the device when the graph is uploaded or launched first: both take their bytes before it is asked, like an
 * allocation. A graph can be instantiated whatever room there is, unless it is uploaded in the same call.
 */
#pragma once

#include "device-plugin/isolation/preload/hooks.h"
#include "device-plugin/isolation/preload/share.h"

struct graphmem {
    bool any;
    struct {
        uint64_t bytes, taken; /* 0: none of this card */
        CUdevice device;
    } cards[LIMITS_CARDS];
};

/* What the nodes of a graph allocate, and of those inside it. */
void graphmem_of(const struct hooks_cuda *real, CUgraph graph, struct graphmem *out);
/* The same for one that was instantiated: kept, found and forgotten. */
void graphmem_keep(CUgraphExec exec, const struct graphmem *g);
void graphmem_find(CUgraphExec exec, struct graphmem *out);
void graphmem_forget(CUgraphExec exec);
/* Around the driver's call. begin: CUDA_SUCCESS, or CUDA_ERROR_OUT_OF_MEMORY and end is not called. */
CUresult graphmem_begin(struct graphmem *g);
void graphmem_end(struct graphmem *g, CUresult result);

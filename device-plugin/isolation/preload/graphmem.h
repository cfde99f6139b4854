// SPDX-License-Identifier: Apache-2.0
/* graphmem - memory that graph nodes allocate (cuGraphAddMemAllocNode, or captured stream-ordered
 * allocation). The driver takes it from a pool of the device at the graph's first upload or launch,
 * so both take their bytes beforehand. Instantiation needs none, unless it also uploads. */
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

/* What the nodes of a graph and its child graphs allocate. */
void graphmem_of(const struct hooks_cuda *real, CUgraph graph, struct graphmem *out);
/* For an instantiated graph: keep, find and forget. */
void graphmem_keep(CUgraphExec exec, const struct graphmem *g);
void graphmem_find(CUgraphExec exec, struct graphmem *out);
void graphmem_forget(CUgraphExec exec);
/* Around the driver's call. begin: CUDA_SUCCESS; or CUDA_ERROR_OUT_OF_MEMORY, without an end. */
CUresult graphmem_begin(struct graphmem *g);
void graphmem_end(struct graphmem *g, CUresult result);

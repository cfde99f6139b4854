// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/isolation/preload/graphmem.h"

#include <string.h>

#include "device-plugin/isolation/preload/pools.h"

#define STEP (UINT64_C(2) << 20) /* what the driver rounds each to */

enum { DEPTH_MAX = 8, BATCH = 64 };

/* Most programs have none, and launches check no further. May be stale (true) in a child of
 * fork. */
static atomic_bool used;

static void add(const struct hooks_cuda *real, CUgraphNode node, struct graphmem *out)
{
    CUmemAllocNodeParams params = {0};
    if (real->cuGraphMemAllocNodeGetParams == NULL ||
        real->cuGraphMemAllocNodeGetParams(node, &params) != CUDA_SUCCESS ||
        params.poolProps.location.type != CU_LOCATION_DEVICE)
        return;
    int card = share_card_of(params.poolProps.location.id);
    if (card < 0)
        return;
    uint64_t *bytes = &out->cards[card].bytes, rounded;
    if (__builtin_add_overflow((uint64_t)params.bytesize, STEP - 1, &rounded) ||
        __builtin_add_overflow(*bytes, rounded / STEP * STEP, bytes))
        *bytes = REGION_USED_MAX + 1;
    out->cards[card].device = params.poolProps.location.id;
    out->any = true;
}

static void walk(const struct hooks_cuda *real, CUgraph graph, int depth, struct graphmem *out);

static void add_node(const struct hooks_cuda *real, CUgraphNode node, int depth,
                     struct graphmem *out)
{
    CUgraph child;
    int type;
    if (real->cuGraphNodeGetType(node, &type) != CUDA_SUCCESS)
        return;
    if (type == CU_NODE_MEM_ALLOC)
        add(real, node, out);
    else if (type == CU_NODE_GRAPH && real->cuGraphChildGraphNodeGetGraph != NULL &&
             real->cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS)
        walk(real, child, depth + 1, out);
}

static void walk(const struct hooks_cuda *real, CUgraph graph, int depth, struct graphmem *out)
{
    size_t len = 0;
    if (depth > DEPTH_MAX || real->cuGraphGetNodes(graph, NULL, &len) != CUDA_SUCCESS || len == 0)
        return;
    CUgraphNode few[BATCH], *nodes = len <= BATCH ? few : share_map(len * sizeof *nodes);
    size_t cap = len;
    if (nodes != NULL && real->cuGraphGetNodes(graph, nodes, &len) == CUDA_SUCCESS)
        for (size_t i = 0; i < len && i < cap; i++)
            add_node(real, nodes[i], depth, out);
    if (nodes != few)
        share_unmap(nodes, cap * sizeof *nodes);
}

void graphmem_of(const struct hooks_cuda *real, CUgraph graph, struct graphmem *out)
{
    memset(out, 0, sizeof *out);
    if (share_depth == 0 && share_limited() && real->cuGraphGetNodes != NULL &&
        real->cuGraphNodeGetType != NULL)
        walk(real, graph, 0, out);
}

static uint64_t key_of(CUgraphExec exec, int card)
{
    return (uint64_t)(uintptr_t)exec ^ (uint64_t)(card + 1) << 56;
}

void graphmem_keep(CUgraphExec exec, const struct graphmem *g)
{
    for (int card = 0; g->any && card < LIMITS_CARDS; card++) {
        struct share_item item = {.key = key_of(exec, card),
                                  .size = g->cards[card].bytes,
                                  .card = SHARE_FREE_CARD,
                                  .kind = SHARE_GRAPH_MEMORY,
                                  .refs = (uint32_t)g->cards[card].device};
        if (item.size > 0)
            (void)share_put(&item);
    }
    if (g->any)
        atomic_store_explicit(&used, true, memory_order_relaxed);
}

void graphmem_find(CUgraphExec exec, struct graphmem *out)
{
    struct share_item item;
    out->any = false;
    if (share_depth > 0 || !atomic_load_explicit(&used, memory_order_relaxed))
        return;
    memset(out, 0, sizeof *out);
    for (int card = 0; card < LIMITS_CARDS; card++) {
        if (!share_find(SHARE_GRAPH_MEMORY, key_of(exec, card), false, &item))
            continue;
        out->any = true;
        out->cards[card].bytes = item.size;
        out->cards[card].device = (CUdevice)item.refs;
    }
}

void graphmem_forget(CUgraphExec exec)
{
    struct share_item item;
    for (int card = 0; atomic_load_explicit(&used, memory_order_relaxed) && card < LIMITS_CARDS;
         card++)
        (void)share_find(SHARE_GRAPH_MEMORY, key_of(exec, card), true, &item);
}

static void settle(const struct graphmem *g, int cards, bool gave)
{
    for (int card = 0; card < cards; card++) {
        struct share_pool *p =
            g->cards[card].bytes > 0 ? share_pool_graphs(card, g->cards[card].device) : NULL;
        if (p != NULL)
            (void)pools_settle(p, g->cards[card].taken, gave);
    }
}

CUresult graphmem_begin(struct graphmem *g)
{
    if (!g->any)
        return CUDA_SUCCESS;
    share_pools_begin();
    for (int card = 0; card < LIMITS_CARDS; card++) {
        if (g->cards[card].bytes == 0)
            continue;
        const struct share_pool *p = share_pool_graphs(card, g->cards[card].device);
        if (p != NULL && pools_grow(p, g->cards[card].bytes, &g->cards[card].taken))
            continue;
        settle(g, card, false); /* what was taken of earlier cards */
        share_pools_end();
        return share_denied(card);
    }
    return CUDA_SUCCESS;
}

void graphmem_end(struct graphmem *g, CUresult result)
{
    if (!g->any)
        return;
    settle(g, LIMITS_CARDS, result == CUDA_SUCCESS);
    share_pools_end();
}

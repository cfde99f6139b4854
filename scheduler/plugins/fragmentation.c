// SPDX-License-Identifier: Apache-2.0
/* fragmentation - cards need CPU: a pod that requests none of our resources costs what it strands
 * of the node's idle cards, and one that requests whole cards by nvidia.com/gpu also their model's
 * value to others (gpu_prices.h). Score only. gpu scores pods that request our resources. */
#include "scheduler/model/gpu_prices.h"
#include "scheduler/plugins/all.h"

static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    return gpu_prices_score(ask->cluster, ask->pod, node);
}

/* The row shows which nodes have no cards, and most have none. */
static int32_t rate(const struct plugin_ask *ask, const struct node_table_row *row)
{
    return row->cards ? (int32_t)score(ask, row->node) : 0;
}

static uint64_t version(const struct cluster *c)
{
    return c->gpu_prices->prices.version;
}

static bool applies(const struct cluster_pod *pod)
{
    return !pod->gpu.any;
}

const struct plugin plugin_fragmentation = {.name = "fragmentation",
                                            .score_depends = PLUGIN_HELD,
                                            .version = version,
                                            .applies = applies,
                                            .score = score,
                                            .rate = rate,
                                            .weight = 1};

// SPDX-License-Identifier: Apache-2.0
/*
 * gpu_prices - demand and prices (demand.h, prices.h) of a cluster: what its pods request, what is
 * idle, and when prices are recomputed. Pure.
 *
 * Every pod that requests cards counts once, when first seen, whatever its scheduler: after a
 * restart the running pods are the history. Between decisions, never within one, gpu_prices_refresh
 * recomputes prices if enough pods arrived, or enough cards were taken or released. Both are counts
 * and not times, so the same events lead to the same prices (I4).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/accounts/demand.h"
#include "scheduler/accounts/prices.h"

struct cluster;
struct cluster_node;
struct cluster_pod;
struct resource_vector_names;

enum {
    GPU_PRICES_CHECK_EVERY = 64,  /* pods that took or released cards */
    GPU_PRICES_SCORE_MAX = 10000, /* points: ten cards; higher costs count the same */
    GPU_PRICES_CARD_GIB = 16      /* assumed size while no node has published one */
};

struct gpu_prices {
    struct demand demand;
    struct prices prices;
    char *models[DEMAND_MODELS_MAX]; /* as in node labels and pod specs; heap */
    uint32_t models_len;
    uint32_t whole_id;  /* id of nvidia.com/gpu in the resource vectors */
    uint64_t taken;     /* demand.seen when prices were computed */
    uint64_t changes;   /* pods with cards that were placed on a node or left it */
    uint64_t checked;   /* changes at the last check of idle cards */
    bool nodes_changed; /* a node's cards changed since prices were computed */
    int64_t card_gib;   /* mean size of a card; 0: unknown */
};

struct gpu_prices *gpu_prices_new(struct resource_vector_names *names);
void gpu_prices_free(struct gpu_prices *g);

/* The number of a model; DEMAND_MODELS_MAX if there are too many or name is NULL. */
uint32_t gpu_prices_model(struct gpu_prices *g, const char *name);
/* Call once per pod, when it is first seen. */
void gpu_prices_see(struct cluster *c, const struct cluster_pod *cp);
/* The pod was placed on a node, or left it. */
void gpu_prices_pod_moved(struct gpu_prices *g, const struct cluster_pod *cp);
/* The Node's cards, model or another property changed. */
void gpu_prices_node_changed(struct cluster *c, struct cluster_node *cn);
/* Call between decisions. */
void gpu_prices_refresh(struct cluster *c);

/* The pod's score on that node, in points: higher is better; 0: no difference. */
int64_t gpu_prices_score(const struct cluster *c, const struct cluster_pod *cp,
                         const struct cluster_node *cn);

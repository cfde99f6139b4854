// SPDX-License-Identifier: Apache-2.0
/*
 * gpu_prices - the demand and the prices (demand.h, prices.h) of a cluster: what its pods ask for, what of its nodes is idle, and when prices are taken anew. Pure.
 *
 * Every pod that asks for cards is counted once, when it comes, whoever schedules it: after a restart the pods that run are the history. Between two decisions, never within one,
 * gpu_prices_refresh looks whether so many pods came since, or so many cards were taken or left, that prices should follow. Both are counts and not times, so the same events
 * lead to the same prices (I4).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/accounts/demand.h"
#include "scheduler/accounts/prices.h"

struct cluster;
struct cluster_node;
struct cluster_pod;
struct amounts_names;

enum {
    GPU_PRICES_LOOK_EVERY = 64,   /* pods that took cards, or left them */
    GPU_PRICES_SCORE_MAX = 10000, /* points: ten cards; the rest is no better or worse */
    GPU_PRICES_CARD_GIB = 16      /* of a card, as long as no node has said */
};

struct gpu_prices {
    struct demand demand;
    struct prices prices;
    char *models[DEMAND_MODELS_MAX]; /* as nodes are labelled, and pods say; heap */
    uint32_t models_len;
    uint32_t whole_id;  /* of nvidia.com/gpu among the amounts */
    uint64_t taken;     /* demand.seen when prices were taken */
    uint64_t changes;   /* pods with cards that came to a node or left it */
    uint64_t looked;    /* changes when it was last looked what is idle */
    bool nodes_changed; /* a node has other cards since prices were taken */
    int64_t card_gib;   /* of a card on average; 0: not known */
};

struct gpu_prices *gpu_prices_new(struct amounts_names *names);
void gpu_prices_free(struct gpu_prices *g);

/* The number of a model, DEMAND_MODELS_MAX when there are too many or name is NULL. */
uint32_t gpu_prices_model(struct gpu_prices *g, const char *name);
/* A pod that was never seen before. */
void gpu_prices_see(struct cluster *c, const struct cluster_pod *cp);
/* It came to a node, or left it. */
void gpu_prices_pod_moved(struct gpu_prices *g, const struct cluster_pod *cp);
/* The node's cards, model and whatever else is read of the Node object. */
void gpu_prices_node_changed(struct cluster *c, struct cluster_node *cn);
/* Between decisions. */
void gpu_prices_refresh(struct cluster *c);

/* Of putting the pod on that node, in points: higher is better; 0 where it makes no difference. */
int64_t gpu_prices_score(const struct cluster *c, const struct cluster_pod *cp,
                         const struct cluster_node *cn);

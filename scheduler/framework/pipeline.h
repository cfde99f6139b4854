// SPDX-License-Identifier: Apache-2.0
/* pipeline - asks the plugins (scheduler/plugins/all.c) for the best node for one pod. Pure. */
#pragma once

#include "lib/base/arena.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/framework/reasons.h"

struct pipeline_choice {
    struct cluster_node *node; /* NULL: none fits */
    struct grant grant;        /* in a */
    struct reasons why;        /* node NULL: the tally over all nodes */
    uint32_t wakes;            /* node NULL: events that may help */
};

/* All nodes, with the cluster's packing. */
void pipeline_init(struct pipeline *p, struct cluster *c);
void pipeline_deinit(struct pipeline *p);

/* Highest score, ties by node name. */
void pipeline_choose(const struct pipeline *p, struct cluster_pod *pod, struct arena *a,
                     struct pipeline_choice *out);
/* The same by asking every plugin about every node: the reference for tests and benchmarks. */
void pipeline_scan(const struct pipeline *p, struct cluster_pod *pod, struct arena *a,
                   struct pipeline_choice *out);
/* true: the node fits, and *out is set. */
bool pipeline_try(const struct pipeline *p, struct cluster_pod *pod, struct cluster_node *node,
                  struct arena *a, struct pipeline_choice *out);
/* Every event that can change where the pod may go: more than those of the plugins that refuse. */
uint32_t pipeline_wakes(const struct pipeline *p, struct cluster_pod *pod);
/* The query in the plugins' form; valid until the next change of the cluster. */
struct plugin_ask pipeline_ask(const struct pipeline *p, struct cluster_pod *pod);
/* Of a node that fits. */
int64_t pipeline_score(const struct plugin_ask *ask, const struct cluster_node *node);

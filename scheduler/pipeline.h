// SPDX-License-Identifier: Apache-2.0
/*
 * pipeline - the table of plugins, and the best node for one pod. Pure.
 */
#pragma once

#include "lib/base/arena.h"
#include "scheduler/cluster.h"
#include "scheduler/plugin.h"
#include "scheduler/reasons.h"

/* NULL-terminated, in the order of filtering: cheap and common refusals first. */
extern const struct plugin *const pipeline_plugins[];

struct pipeline_choice {
    struct cluster_node *node; /* NULL: none fits */
    struct claim claim;        /* in a */
    struct reasons why;        /* node NULL: the tally over all nodes */
    uint32_t wakes;            /* node NULL: events that may help */
};

/* Highest score, ties by node name. */
void pipeline_choose(struct cluster *c, struct cluster_pod *pod, struct arena *a,
                     struct pipeline_choice *out);
/* The same by asking every plugin about every node: to check the former, and to measure it against. */
void pipeline_scan(struct cluster *c, struct cluster_pod *pod, struct arena *a,
                   struct pipeline_choice *out);
/* This node, if it fits: true, and *out is set. */
bool pipeline_try(struct cluster *c, struct cluster_pod *pod, struct cluster_node *node,
                  struct arena *a, struct pipeline_choice *out);
/* The question in the form in which plugins want it; good until the next change of the cluster. */
struct plugin_ask pipeline_ask(struct cluster *c, struct cluster_pod *pod);
/* The first plugin that refuses this node and why; NULL: it fits. why may be NULL. */
const struct plugin *pipeline_refusing(const struct plugin_ask *ask,
                                       const struct cluster_node *node, struct arena *a,
                                       struct reason *why);
/* Of a node that fits. */
int64_t pipeline_score(const struct plugin_ask *ask, const struct cluster_node *node);

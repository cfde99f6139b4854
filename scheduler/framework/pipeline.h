// SPDX-License-Identifier: Apache-2.0
/*
 * pipeline - the table of plugins, and the best node for one pod. Pure.
 */
#pragma once

#include "lib/base/arena.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/framework/reasons.h"

struct classes;

/* NULL-terminated, in the order of filtering: cheap and common refusals first. */
extern const struct plugin *const pipeline_plugins[];

struct pipeline_choice {
    struct cluster_node *node; /* NULL: none fits */
    struct claim claim;        /* in a */
    struct reasons why;        /* node NULL: the tally over all nodes */
    uint32_t wakes;            /* node NULL: events that may help */
};

/*
 * Whom to ask, and how. side and packing are part of the question: whoever wants to ask otherwise asks
 * with a copy. One for each cluster, since pods remember their class: copies share the classes.
 */
struct pipeline {
    struct cluster *cluster;
    struct classes *classes;      /* what is remembered of earlier answers */
    enum cluster_side side;       /* which nodes a pod may use that has real nodes first */
    enum cluster_packing packing; /* which of the nodes with room is filled first, or AS_SET */
};

/* All nodes, as the cluster is set. */
void pipeline_init(struct pipeline *p, struct cluster *c);
void pipeline_deinit(struct pipeline *p);

/* Highest score, ties by node name. */
void pipeline_choose(const struct pipeline *p, struct cluster_pod *pod, struct arena *a,
                     struct pipeline_choice *out);
/* The same by asking every plugin about every node: to check the former, and to measure it against. */
void pipeline_scan(const struct pipeline *p, struct cluster_pod *pod, struct arena *a,
                   struct pipeline_choice *out);
/* This node, if it fits: true, and *out is set. */
bool pipeline_try(const struct pipeline *p, struct cluster_pod *pod, struct cluster_node *node,
                  struct arena *a, struct pipeline_choice *out);
/* The question in the form in which plugins want it; good until the next change of the cluster. */
struct plugin_ask pipeline_ask(const struct pipeline *p, struct cluster_pod *pod);
/* The same of a class that is known, or NULL. */
struct plugin_ask pipeline_question(const struct pipeline *p, struct cluster_pod *pod,
                                    const struct pod_class *class);
/* The first plugin that refuses this node and why; NULL: it fits. why may be NULL. */
const struct plugin *pipeline_refusing(const struct plugin_ask *ask,
                                       const struct cluster_node *node, struct arena *a,
                                       struct reason *why);
/* Of a node that fits. */
int64_t pipeline_score(const struct plugin_ask *ask, const struct cluster_node *node);

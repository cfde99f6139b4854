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
void pipeline_choose(struct cluster *c, const struct cluster_pod *pod, struct arena *a,
                     struct pipeline_choice *out);

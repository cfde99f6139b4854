// SPDX-License-Identifier: Apache-2.0
/* all - the plugins by name, for the table in all.c; and functions shared between plugins. Pure. A
 * new plugin is its own file, a name here and its row in all.c; a refusal that no other plugin
 * gives is a kind in framework/reasons (CONTRIBUTING.md has the whole recipe). */
#pragma once

#include "scheduler/framework/plugin.h"

extern const struct plugin plugin_virtual, plugin_taints, plugin_taints_provider, plugin_affinity,
    plugin_fit, plugin_gpu, plugin_fragmentation, plugin_ports, plugin_images, plugin_features,
    plugin_spread, plugin_interpod, plugin_volumes, plugin_volumes_attach, plugin_compute,
    plugin_cpu, plugin_policy, plugin_policy_open;

/* Whether it is a virtual node that the pod may use: the provider's taint does not keep it away. */
bool plugin_virtual_may_use(const struct plugin_ask *ask, const struct cluster_node *node);
/* Whether the node's cards could not hold the pod if no other pod were there: *why says so. */
bool plugin_gpu_is_too_large(const struct plugin_ask *ask, const struct cluster_node *node,
                             struct arena *a, struct reason *why);
/* The cards that gpu would reserve on one NUMA node alone; for cpu, which runs after it. */
bool plugin_gpu_choose_on(const struct plugin_ask *ask, const struct cluster_node *node,
                          int32_t numa, struct arena *a, struct grant *grant);

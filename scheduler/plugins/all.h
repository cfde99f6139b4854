// SPDX-License-Identifier: Apache-2.0
/* all - the plugins by name, for the table in all.c; and functions shared between plugins. Pure. */
#pragma once

#include "scheduler/framework/plugin.h"

extern const struct plugin plugin_virtual, plugin_taints, plugin_affinity, plugin_fit, plugin_gpu,
    plugin_fragmentation, plugin_ports, plugin_images, plugin_features, plugin_spread,
    plugin_interpod, plugin_volumes, plugin_volumes_attach, plugin_compute, plugin_cpu,
    plugin_policy, plugin_policy_open;

/* The cards that gpu would reserve on one NUMA node alone; for cpu, which runs after it. */
bool plugin_gpu_choose_on(const struct plugin_ask *ask, const struct cluster_node *node,
                          int32_t numa, struct arena *a, struct grant *grant);

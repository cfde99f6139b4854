// SPDX-License-Identifier: Apache-2.0
#include "scheduler/plugins/all.h"

#include "scheduler/framework/pipeline.h"

/* virtual first: if a node is of the wrong kind for the pod, nothing else about it matters. Then
 * volumes: a broken claim is broken on every node, and is what the user needs to know. */
const struct plugin *const plugin_table[] = {&plugin_virtual,
                                             &plugin_volumes,
                                             &plugin_taints,
                                             &plugin_taints_provider,
                                             &plugin_policy,
                                             &plugin_policy_open,
                                             &plugin_affinity,
                                             &plugin_compute,
                                             &plugin_features,
                                             &plugin_fit,
                                             &plugin_ports,
                                             &plugin_gpu,
                                             &plugin_cpu,
                                             &plugin_volumes_attach,
                                             &plugin_spread,
                                             &plugin_interpod,
                                             &plugin_images,
                                             &plugin_fragmentation,
                                             NULL};

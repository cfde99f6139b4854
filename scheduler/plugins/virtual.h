// SPDX-License-Identifier: Apache-2.0
/* virtual - what the plugin taints needs to know about virtual nodes. Pure. */
#pragma once

#include <stdbool.h>

#include "scheduler/framework/plugin.h"

/* Whether it is the provider's taint of a virtual node that the pod may use. */
bool virtual_tolerates(const struct plugin_ask *ask, const struct cluster_node *node,
                       const struct taint *t);

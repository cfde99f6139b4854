// SPDX-License-Identifier: Apache-2.0
/*
 * virtual - what taints needs to know of virtual nodes. Pure.
 */
#pragma once

#include <stdbool.h>

#include "scheduler/framework/plugin.h"

/* The provider's taint of a virtual node, and no other, is tolerated for pods that may use it. */
bool virtual_tolerates(const struct plugin_ask *ask, const struct cluster_node *node,
                       const struct taint *t);

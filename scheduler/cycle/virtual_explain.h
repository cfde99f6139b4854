// SPDX-License-Identifier: Apache-2.0
/* virtual_explain - why a pod goes to a virtual node, for its Event. Pure. */
#pragma once

#include "lib/base/arena.h"
#include "scheduler/framework/pipeline.h"

/* "bursting to virtual node vk-1: 0/12 real nodes fit: ..."; NULL: the pod does not prefer real
 * nodes, or the node is real. The pod may be there already. */
const char *virtual_explain(const struct pipeline *ask, struct cluster_pod *cp,
                            const struct cluster_node *node, struct arena *a);

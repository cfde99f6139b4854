// SPDX-License-Identifier: Apache-2.0
/* binding_content - what a Binding writes into the pod besides its node: the grant, the unit of the
 * ResourcePolicy, and that the gang has its quorum. For its labels see policies_labels. */
#pragma once

#include "lib/base/arena.h"
#include "lib/model/selector.h"
#include "scheduler/model/model.h"

/* In the arena. Unit and gang override a key that the grant only blanks. */
struct labels binding_content_annotations(struct cluster_pod *cp, const struct cluster_node *node,
                                          struct arena *a);

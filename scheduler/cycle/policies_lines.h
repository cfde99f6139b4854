// SPDX-License-Identifier: Apache-2.0
/* policies_lines - the units in a ResourcePolicy's status. Pure. */
#pragma once

#include "scheduler/cache/policies.h"
#include "scheduler/framework/pipeline.h"

struct policies_line {
    int32_t unit;
    const char *resource; /* "ecs" */
    int64_t pods;         /* placed in it, of all groups, including terminating ones */
    int64_t terminating;
    int64_t max; /* per group; -1: none */
    /* Why pods skip it or do not fit: "is at its max of 2 pods", "0/2 of its nodes fit: ...". NULL:
     * they fit, or there is no sample pod (policies_lines.c). */
    const char *skipped;
};
/* Units in order, in a. waiting: the policy's unplaced pods. Leaves the cluster unchanged. */
size_t policies_lines(const struct pipeline *ask, const struct policy *p, struct arena *a,
                      struct policies_line **out, int64_t *waiting);

/* The same in parts: why one unit is skipped, in a, which costs a look at the policy's pods and
 * perhaps at all nodes; and the lines with these answers by unit, which are borrowed. */
struct policies_look {
    const char *skipped;
    size_t looks; /* at pods and nodes */
};
struct policies_look policies_lines_look(const struct pipeline *ask, const struct policy *p,
                                         size_t unit, struct arena *a);
size_t policies_lines_of(const struct cluster *c, const struct policy *p,
                         const char *const *skipped, struct arena *a, struct policies_line **out,
                         int64_t *waiting);

// SPDX-License-Identifier: Apache-2.0
/*
 * policies_lines - what a ResourcePolicy's status says of its units. Pure.
 */
#pragma once

#include "scheduler/cache/policies.h"
#include "scheduler/framework/pipeline.h"

/* One unit, as it stands. */
struct policies_line {
    int32_t unit;
    const char *resource; /* "ecs" */
    int64_t pods;         /* placed in it, of all groups; terminating ones among them */
    int64_t terminating;
    int64_t max; /* of each group; -1: none */
    /* Why pods pass it by, or do not get in: "is at its max of 2 pods", "0/2 of its nodes fit: ...". NULL: they do, or nobody is there to tell (policies_lines.c). */
    const char *skipped;
};
/* Units in order, in a. waiting: pods of the policy that are not placed. The cluster is as before. */
size_t policies_lines(const struct pipeline *ask, const struct policy *p, struct arena *a,
                      struct policies_line **out, int64_t *waiting);

// SPDX-License-Identifier: Apache-2.0
/* placing_job - candidate node sets for a gpu-topology job, the fewest nodes first. Pure. First
 * single nodes with enough GPUs for all members: those that already run members, then those with
 * the best linked GPUs, then those with fewest left over. Then the two nodes with most free GPUs,
 * then three, and so on: for equal members no other set would be smaller. */
#pragma once

#include <stdbool.h>

#include "scheduler/cycle/placing.h"
#include "scheduler/cycle/placing_domains.h"

enum {
    PLACING_JOB_NODES = 256, /* whose links are compared */
    PLACING_JOB_TRIES = 16   /* for one node, and again for several */
};

struct placing_job {
    struct placing *placing;
    struct placing_job_node {
        uint32_t place;
        int64_t held; /* members of the job on the node */
        uint64_t free;
        int64_t weakest, sum; /* of the links between as many GPUs as are wanted */
    } * nodes;
    size_t nodes_len;
    int64_t want; /* GPUs of all members */
    size_t single, singles_len;
    size_t several, tries;
};

/* Yields nothing unless it is such a job. */
void placing_job_init(struct placing_job *j, struct placing *p);
bool placing_job_next(struct placing_job *j, struct placing_domain *out);

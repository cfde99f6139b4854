// SPDX-License-Identifier: Apache-2.0
/*
 * placing_job - the nodes on which a gpu-topology job could be, the fewest first. Pure.
 *
 * One node that has cards for all members: where members already are, then where the best linked
 * cards are, then where fewest stay over. If there is none, the two nodes with most free cards,
 * then three, and so on: where members ask for the same, no other nodes would be fewer.
 */
#pragma once

#include <stdbool.h>

#include "scheduler/cycle/placing.h"
#include "scheduler/cycle/placing_domains.h"

enum {
    PLACING_JOB_NODES = 256, /* whose links are looked at */
    PLACING_JOB_TRIES = 16   /* of one node, and again of several */
};

struct placing_job {
    struct placing *placing;
    struct placing_job_node {
        uint32_t place;
        int64_t held; /* members of the job that are there */
        uint64_t free;
        int64_t weakest, sum; /* of the links between as many cards as are wanted */
    } * nodes;
    size_t nodes_len;
    int64_t want; /* cards of all members */
    size_t single, singles_len;
    size_t several, tries;
};

/* No node at all unless it is such a job. */
void placing_job_init(struct placing_job *j, struct placing *p);
bool placing_job_next(struct placing_job *j, struct placing_domain *out);

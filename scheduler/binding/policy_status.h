// SPDX-License-Identifier: Apache-2.0
/*
 * policy_status - writes the statuses of ResourcePolicies, and Events for what is wrong with them.
 * For policy_writer.c.
 *
 * Why a unit is skipped costs a look at the policy's pods and at each node of the unit, so statuses
 * are computed unit by unit, POLICY_STATUS_LOOKS in a pass. Policies take turns: none is computed
 * again before all that are due were. So the share of the loop is bounded, however many policies,
 * units, pods and nodes there are; only the statuses get older.
 */
#pragma once

#include <stdint.h>

#include "scheduler/binding/pod_writer.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/framework/pipeline.h"

enum {
    POLICY_STATUS_LOOKS = 5000, /* at pods and nodes; exceeded by at most one unit's */
    POLICY_STATUS_SLICE_MS = 50 /* between passes while statuses are due */
};

struct policy_status;

struct policy_status_config {
    struct cluster *cluster;
    const struct pipeline *pipeline;
    struct pod_writer *pod_writer;
    int64_t every_ms; /* between computing the status of one policy */
    int64_t again_ms; /* after a write for which there was no space */
};
struct policy_status *policy_status_new(const struct policy_status_config *c);
/* One pass. Lowers *next_ms to when the next one is due. */
void policy_status_pass(struct policy_status *s, int64_t now_ms, int64_t *next_ms);
/* Pods and nodes looked at so far. */
uint64_t policy_status_looked(const struct policy_status *s);
void policy_status_free(struct policy_status *s);

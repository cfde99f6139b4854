// SPDX-License-Identifier: Apache-2.0
/*
 * policy_writer - writes what ResourcePolicies need (see scheduler/cache/policies.h): their
 * statuses, the deletion costs of their pods, labels that an older server left out of a Binding,
 * and Events. The loop's thread.
 *
 * A changed status is written at most every POLICY_WRITER_STATUS_MS per policy, less often where
 * there is much to count (policy_status.h). The Binding carries the deletion cost of a new pod;
 * placed pods are scanned when a policy changed or a pod moved to another unit, and every
 * POLICY_WRITER_SCAN_MS. A write that does not show on the watch is repeated after
 * POLICY_WRITER_AGAIN_MS. A cost set by the user is never changed: an Event says that it may
 * contradict the policy.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/loop.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/binding/pod_writer.h"

enum {
    POLICY_WRITER_DELAY_MS = 200, /* changes within it are one pass */
    POLICY_WRITER_STATUS_MS = 1000,
    POLICY_WRITER_AGAIN_MS = 10000,
    POLICY_WRITER_SCAN_MS = 30000, /* all pods, if there are policies */
    POLICY_WRITER_WRITES = 1000,   /* to pods, per part of a pass over them */
    POLICY_WRITER_PODS = 10000     /* pods, per part */
};

struct policy_writer;

struct policy_writer_config {
    struct loop *loop;
    struct cluster *cluster;
    const struct pipeline *pipeline;
    struct pod_writer *pod_writer;
};
struct policy_writer *policy_writer_new(const struct policy_writer_config *c);
/* Something changed; cheap, may be called often. */
void policy_writer_reconcile(struct policy_writer *p);
/* A Binding of this pod was accepted. */
void policy_writer_bound(struct policy_writer *p, struct cluster_pod *cp);
/* Members of this gang were refused: tells them which policy applies. */
void policy_writer_refused(struct policy_writer *p, const struct gang *g);
/* Pods and nodes that statuses looked at so far. */
uint64_t policy_writer_looked(const struct policy_writer *p);
/* NULL-safe. */
void policy_writer_free(struct policy_writer *p);

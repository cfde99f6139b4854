// SPDX-License-Identifier: Apache-2.0
/*
 * policy_writer - what ResourcePolicies need written (scheduler/cache/policies.h says what): their
 * statuses, the deletion costs of their pods, labels that an older server left out of a Binding,
 * and Events. The loop's thread.
 *
 * A status is written when it has changed, for each policy at most every POLICY_WRITER_STATUS_MS,
 * and less often where there is much to count. The Binding carries the deletion cost of a new pod;
 * pods that are placed already are gone through when a policy has changed or a pod has come into
 * another unit, and now and then. What was sent and does not show on the watch is sent again after
 * POLICY_WRITER_AGAIN_MS. A cost that the user has set is never touched: an Event says that it may
 * contradict the policy.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/loop.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/binding/pod_writer.h"

enum {
    POLICY_WRITER_DELAY_MS = 200, /* changes within it are one look */
    POLICY_WRITER_STATUS_MS = 1000,
    POLICY_WRITER_AGAIN_MS = 10000,
    POLICY_WRITER_SCAN_MS = 30000, /* all pods, where there are policies */
    POLICY_WRITER_WRITES = 1000    /* to pods, of one look */
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
void policy_writer_look(struct policy_writer *p);
/* A Binding of this pod was accepted. */
void policy_writer_bound(struct policy_writer *p, struct cluster_pod *cp);
/* Members of this gang found no place: whoever looks at them should know which policy it is that
 * holds. */
void policy_writer_refused(struct policy_writer *p, const struct gang *g);
/* NULL is fine. */
void policy_writer_free(struct policy_writer *p);
/* How often the status of a policy with so many units is looked at. It is a pass over all pods, and
 * for each unit that is passed by over the nodes: many policies, or one with many units, in a large
 * cluster are told about less often, so that it stays a small part of the loop's time. */
int64_t policy_writer_interval_ms(size_t policies, size_t units, size_t pods, size_t nodes);

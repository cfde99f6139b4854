// SPDX-License-Identifier: Apache-2.0
/* evictor - evicts pods, for a more important one or because their gang fell below its quorum:
 * first writes the condition DisruptionTarget with the reason, then deletes, with the pod's own
 * grace period. Both need the victim's uid and the lease. A pod that is gone counts as evicted. If
 * the pod cannot be deleted, the condition becomes False. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "lib/kube/config.h"
#include "lib/kube/lease.h"
#include "lib/model/pod.h"

struct evictor_result {
    bool gone; /* leaving or gone; else error says why not */
    char *victim, *victim_uid;
    char *pod, *pod_uid; /* the preemptor; "ns/name" */
    struct error error;
};
void evictor_result_free(void *result);

struct evictor;

struct evictor_config {
    const struct lease *lease; /* NULL: no election, always allowed */
    struct mailbox *results;   /* receives each struct evictor_result */
};
int evictor_start(struct evictor **out, struct kube_config *kube, const struct kube_options *o,
                  const struct evictor_config *c, struct error *err);
/* Copies everything. */
void evictor_submit(struct evictor *e, const struct pod *victim, const struct pod *for_pod);
/* For this reason, a sentence, instead of a preemptor; the result has no pod ("" and ""). */
void evictor_submit_stale(struct evictor *e, const struct pod *victim, const char *why);
/* Cancels evictions in flight; NULL-safe. */
void evictor_stop(struct evictor *e);

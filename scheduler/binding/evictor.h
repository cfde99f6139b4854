// SPDX-License-Identifier: Apache-2.0
/*
 * evictor - sends pods away, for one that is more important or since their gang has fallen apart:
 * first the condition DisruptionTarget that says why, then the deletion, with the pod's own grace
 * period.
 *
 * Only the very pod that was chosen (its uid is a precondition of both), only while the lease
 * allows it. A pod that is gone already is as good as sent away.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "lib/kube/config.h"
#include "lib/kube/lease.h"
#include "lib/model/pod.h"

/* What became of one victim. */
struct evictor_result {
    bool gone; /* it leaves, or has left; else error says why not */
    char *victim, *victim_uid;
    char *pod, *pod_uid; /* for whom; "ns/name" */
    struct error error;
};
void evictor_result_free(void *result);

struct evictor;

struct evictor_config {
    const struct lease *lease; /* NULL: no election, always allowed */
    struct mailbox *results;   /* gets each struct evictor_result */
};
int evictor_start(struct evictor **out, struct kube_config *kube, const struct kube_options *o,
                  const struct evictor_config *c, struct error *err);
/* Copies everything. */
void evictor_submit(struct evictor *e, const struct pod *victim, const struct pod *for_pod);
/* Not for another pod but for this reason, a sentence; the result names no pod ("" and ""). */
void evictor_submit_stale(struct evictor *e, const struct pod *victim, const char *why);
/* Those under way are cancelled; NULL is fine. */
void evictor_stop(struct evictor *e);

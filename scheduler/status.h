// SPDX-License-Identifier: Apache-2.0
/*
 * status - tells the user why a pod waits: the condition PodScheduled=False on the pod, and an Event. One thread of its own, so binds never wait for it.
 *
 * A reason is written when its class changes (another resource, another kind of refusal), not when an amount does.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/kube/config.h"
#include "lib/kube/events.h"
#include "lib/kube/lease.h"
#include "scheduler/cluster.h"

enum { STATUS_QUEUE = 10000 };

struct status;

int status_start(struct status **out, struct kube_config *kube, const struct kube_options *k,
                 const struct events_options *e, const struct lease *lease, struct error *err);
/* For each waiting member of the gang that has not been told this class yet. waiting_for_gang: the reason is WaitingForGang, otherwise Unschedulable. */
void status_tell_waiting(struct status *s, struct gang *g, bool waiting_for_gang, uint64_t class,
                         const char *sentence);
void status_tell_bound(struct status *s, const struct pod *p, const char *node);
void status_tell_bind_failed(struct status *s, const struct pod *p, const char *node,
                             const char *why);
/* Sends what waits for at most drain_ms. NULL is fine. */
void status_stop(struct status *s, int64_t drain_ms);

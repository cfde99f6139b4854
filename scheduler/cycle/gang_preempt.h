// SPDX-License-Identifier: Apache-2.0
/*
 * gang_preempt - chooses the victims that let waiting gang members fit: a part of a cycle's result.
 * Pure.
 *
 * preempt.h handles a lone pod. For a gang the victims are chosen in one plan: pods that are
 * leaving anyway count as gone; then each member takes free capacity, and preempts only where there
 * is none, until the quorum is reached. If it is not reached, or would not fit once its own victims
 * are gone, no pod is evicted. Otherwise all members of the quorum are nominated, also those on
 * free capacity, so that it stays theirs until the last victim has left. They hold nothing else.
 */
#pragma once

#include "scheduler/cycle/outcome.h"
#include "scheduler/cycle/placing.h"

/* Call after placing_run failed. Sets nominations, victims and awaits, and extends the sentence.
 * Leaves the cluster and the plan unchanged. */
void gang_preempt_make(struct placing *p, struct cycle_result *out);
/* Withdraws the nominations of members that wait although no pod leaves for them. */
void gang_preempt_withdraw(const struct placing *p, struct cycle_result *out);
/* Whether a pod is leaving for one of the waiting members. */
bool gang_preempt_is_awaited(const struct placing *p);
/* If so, extends the sentence by that. */
bool gang_preempt_say_awaited(const struct placing *p, struct cycle_result *out);

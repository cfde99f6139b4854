// SPDX-License-Identifier: Apache-2.0
/*
 * gang_preempt - who has to go so that the waiting members of gangs find their places: a part of a
 * cycle's result. Pure.
 *
 * A lone pod is preempt.h' business alone. For a gang the victims are chosen in one plan: pods that
 * are leaving anyway count as gone; then member after member takes what is free and sends others
 * away only where nothing is, until the quorum stands. It is all or nothing: if the quorum does not
 * come about, or would not stand without its own victims, nobody goes. Then all members of the
 * quorum are nominated, those on free room too, so that the room stays theirs until the last victim
 * has left; they hold nothing else.
 */
#pragma once

#include "scheduler/cycle/outcome.h"
#include "scheduler/cycle/placing.h"

/* After placing_run found no room: sets nominations, victims and awaits, and adds to the sentence.
 * The cluster and the plan are as before when this returns. */
void gang_preempt_make(struct placing *p, struct cycle_result *out);
/* Members that still wait, though nobody leaves for them: what they were promised is taken back. */
void gang_preempt_withdraw(const struct placing *p, struct cycle_result *out);
/* Whether somebody is leaving for one of the waiting members. */
bool gang_preempt_is_awaited(const struct placing *p);

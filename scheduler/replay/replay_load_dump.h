// SPDX-License-Identifier: Apache-2.0
/*
 * replay_load_dump - what a dump says beside its objects, in "cosched": of the scheduler that wrote
 * it, and of gangs that wait for room or have lost members (dump_reservations.h), so that a replay
 * decides as the scheduler would have.
 *
 * Of reservations only what holds at that moment: no look is taken in a replay, so room is kept for
 * whom it was kept, until they are placed.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/json.h"
#include "scheduler/replay/replay_load.h"

/* Before the objects: the scheduler's name, and the options that decide where pods go. own: the
 * "cosched" of a List, or NULL. false: a form that this program does not read; the warning is
 * made. */
bool replay_load_dump_read_head(struct replay_load *l, json *own, const char *where);
/* When all objects are there. What cannot be read, or names what is not there, is a warning. */
void replay_load_dump_read_rest(struct replay_load *l, json *own, const char *where);

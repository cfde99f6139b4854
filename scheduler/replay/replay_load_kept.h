// SPDX-License-Identifier: Apache-2.0
/*
 * replay_load_kept - reads back what a dump says of gangs that wait for room or have lost members (dump_kept.h), so that a replay decides as the scheduler would have.
 *
 * Only what holds at that moment: no look is taken in a replay, so room is kept for whom it was kept, until they are placed.
 */
#pragma once

#include "lib/base/json.h"
#include "scheduler/replay/replay_load.h"

/* Whether the "cosched" of a dump has anything of it. */
bool replay_load_kept_is_in(json *own);
/* When all objects are there. What cannot be read, or names what is not there, is a warning. */
void replay_load_kept_read(struct replay_load *l, json *own, const char *where);

// SPDX-License-Identifier: Apache-2.0
/* replay_load_dump - reads a dump's "cosched": the scheduler's settings, and gangs that wait for
 * capacity or have lost members (dump_reservations.h), so that a replay decides as the scheduler
 * would have. A replay makes no reservations; those of the dump hold until their gangs are
 * placed. */
#pragma once

#include <stdbool.h>

#include "lib/base/json.h"
#include "scheduler/replay/replay_load.h"

/* Before the objects: reads the scheduler's name, and the options that affect placement. own: the
 * "cosched" of a List, or NULL. false: an unknown format; warns. */
bool replay_load_dump_read_head(struct replay_load *l, json *own, const char *where);
/* After all objects. Warns of what cannot be read, or names missing objects. */
void replay_load_dump_read_rest(struct replay_load *l, json *own, const char *where);

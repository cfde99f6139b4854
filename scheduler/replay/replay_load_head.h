// SPDX-License-Identifier: Apache-2.0
/*
 * replay_load_head - what a dump says of the scheduler that wrote it: its name, and the options that decide where pods go.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/json.h"
#include "scheduler/replay/replay_load.h"

/* own: the "cosched" of a List, or NULL. false: a form that this program does not read; the warning is made. */
bool replay_load_head_read(struct replay_load *l, json *own, const char *where);

// SPDX-License-Identifier: Apache-2.0
/*
 * cycle - one gang in, a committed plan or a sentence out. Pure.
 *
 * All-or-nothing: members are placed under the undo journal (placing.h); fewer than min-available
 * placed (with those that already run) and everything is rolled back, so a waiting gang holds
 * nothing (I2). Members beyond the quorum are placed as far as they fit. Gangs that name each other
 * are placed as one.
 *
 * Where there is no room the cycle also says who would have to go (gang_preempt.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cycle/outcome.h"
#include "scheduler/cycle/plan.h"
#include "scheduler/framework/pipeline.h"

/* plan was begun by the caller; committed for PLACED and PARTLY, empty otherwise. */
void cycle_run(const struct pipeline *ask, struct gang *g, struct plan *plan, struct arena *a,
               struct cycle_result *out);

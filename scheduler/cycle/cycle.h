// SPDX-License-Identifier: Apache-2.0
/*
 * cycle - schedules one gang: yields a committed plan or a sentence that says why not. Pure.
 *
 * All or nothing: members are placed under the undo journal (placing.h). If fewer than
 * min-available are placed (counting those that already run), everything is rolled back, so a
 * waiting gang holds nothing (I2). Members beyond the quorum are placed as far as they fit. Gangs
 * that name each other are placed as one. If the gang does not fit, the cycle also names the
 * victims (gang_preempt.h).
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

/* The caller has begun the plan. It is committed for PLACED and PARTLY, empty otherwise. */
void cycle_run(const struct pipeline *ask, struct gang *g, struct plan *plan, struct arena *a,
               struct cycle_result *out);
/* What a cycle would say of a gang that waits: nothing is placed, and no victim is looked for.
 * PLACED: something would be placed now. NOTHING: only a cycle can tell. Otherwise verdict,
 * sentence and class are set, and nothing else counts. */
void cycle_ask(const struct pipeline *ask, struct gang *g, struct arena *a,
               struct cycle_result *out);

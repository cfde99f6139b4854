// SPDX-License-Identifier: Apache-2.0
/*
 * cpu_lending - CPUs on loan (static-burst) that are called back for a pod that finds no place
 * without them: a part of a cycle's result. Pure.
 *
 * Two phases, so that no CPU ever has two containers bound to it that both believe that it is
 * theirs:
 *
 *     1  the borrower's annotation cpuset is written without them (sched_loop.c, as
 *        cycle_result.recalls says); the books stay as they are
 *     2  the node agent takes its containers off them and says so in cosched.io/cpuset-applied; now
 *        the books follow (cluster.c), and the pod that waits is placed
 *
 * The pod is nominated meanwhile, so that nobody takes what comes free. CPUs are called back only
 * from pods that the node agent has answered for: of others nobody knows yet where they are. A
 * borrower that was called back again and again in vain is on a node whose agent is away: others
 * are asked before it, and pods of lower priority are sent away before a pod waits for it alone.
 */
#pragma once

#include "scheduler/cycle/outcome.h"
#include "scheduler/cycle/placing.h"

enum { CPU_LENDING_PATIENCE = 2 }; /* so often CPUs are called back again before others are asked */

/* For the pod that is stuck, or all members that a quorum needs: all of them at once, and each is
 * nominated. false: no loan helps. The plan is as before. late: also from borrowers that do not
 * answer; where such were left out, p->passed_over is set. */
bool cpu_lending_call(struct placing *p, bool late, struct cycle_result *out);
/* Members of a gang are placed with what is their own: a loan of one of them would be in the way of
 * the next, in the same plan. When all are placed, before the plan is committed, each gets what is
 * left in its L3 groups. */
void cpu_lending_lend(const struct pipeline *p, struct plan *plan, struct arena *a);
/* What is left of a borrower's grant, in a: without those that are called back, now or before. */
void cpu_lending_left(const struct cluster_pod *borrower, struct arena *a, struct cpu_grant *out);

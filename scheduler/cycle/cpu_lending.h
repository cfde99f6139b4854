// SPDX-License-Identifier: Apache-2.0
/*
 * cpu_lending - reclaims lent CPUs (static-burst) for a pod that fits nowhere without them: a part
 * of a cycle's result. Pure.
 *
 * Two phases, so that no CPU ever has two containers bound to it that both believe they own it:
 *
 *     1  sched_loop.c writes the borrower's cpuset annotation without them (cycle_result.recalls);
 *        the accounts stay as they are
 *     2  the node agent moves its containers off them and confirms in cosched.io/cpuset-applied;
 *        now cluster.c updates the accounts, and the waiting pod is placed
 *
 * The pod is nominated meanwhile, so that no other pod takes the freed CPUs. Only pods whose cpuset
 * the node agent has confirmed are asked; where the others run is unknown. A borrower that was
 * asked repeatedly in vain is on a node whose agent is down: other borrowers are asked first, and
 * pods of lower priority are evicted before a pod waits for it alone.
 */
#pragma once

#include "scheduler/cycle/outcome.h"
#include "scheduler/cycle/placing.h"

enum { CPU_LENDING_PATIENCE = 2 }; /* repeats before others are asked */

/* Reclaims for the stuck pod, or for all members that a quorum needs at once, and nominates each.
 * false: no loan helps. Leaves the plan unchanged. late: also from borrowers that do not answer; if
 * false and any were skipped, sets p->passed_over. */
bool cpu_lending_reclaim(struct placing *p, bool late, struct cycle_result *out);
/* Gang members are placed with exclusive CPUs only, since a loan to one would obstruct the next in
 * the same plan. Before the commit each gets what is left in its L3 groups. */
void cpu_lending_lend(const struct pipeline *p, struct plan *plan, struct arena *a);
/* The borrower's grant, in a, without CPUs that are being reclaimed. */
void cpu_lending_left(const struct cluster_pod *borrower, struct arena *a, struct cpu_grant *out);

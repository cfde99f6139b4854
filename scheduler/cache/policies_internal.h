// SPDX-License-Identifier: Apache-2.0
/* policies_internal - shared by policies.c and policies_change.c only. Pure. */
#pragma once

#include "scheduler/cache/policies.h"
#include "scheduler/cache/policies_index.h"

/* The pod leaves its policy, and waits among the stale pods of its namespace. */
void policies_set_stale(struct cluster *c, struct cluster_pod *cp);
/* The pod joins that policy (NULL: none) from wherever it is. */
void policies_rejoin(struct cluster *c, struct cluster_pod *cp, struct policies_entry *e);
void policies_entry_free(struct policies_entry *e);
/* Frees the changes that wait. */
void policies_change_deinit(struct policies *ps);

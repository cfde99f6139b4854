// SPDX-License-Identifier: Apache-2.0
/* gangs_settings - the settings of a gang from its members and PodGroup, and their conflicts. Pure;
 * for gangs.c. */
#pragma once

#include "lib/base/arena.h"
#include "scheduler/model/model.h"

/* Whether a member's settings count: it is neither terminating nor finished. */
bool gangs_settings_counts(const struct cluster_pod *cp);
/* Whether both members say the same: priority, and all that gangs_settings_read and
 * gangs_bundle_read hear. */
bool gangs_settings_equal(const struct cluster_pod *a, const struct cluster_pod *b);
/* Sets size, match-policy, priority and age from the current members and PodGroup. */
void gangs_settings_read(const struct cluster *c, struct gang *g);
/* Why the gang is refused whatever its pods and the capacity: a sentence in a; NULL: it is not. */
const char *gangs_settings_conflict(const struct cluster *c, const struct gang *g, struct arena *a);

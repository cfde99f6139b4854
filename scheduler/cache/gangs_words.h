// SPDX-License-Identifier: Apache-2.0
/*
 * gangs_words - what the members of a gang and its PodGroup say, and where they do not agree. Pure; for gangs.c.
 */
#pragma once

#include "lib/base/arena.h"
#include "scheduler/cache/model.h"

/* Those that may speak: members that are not leaving. */
bool gangs_words_counts(const struct cluster_pod *cp);
/* Size rule, match-policy, priority and age, from the members and the PodGroup as they are now. */
void gangs_words_read(const struct cluster *c, struct gang *g);
/* Why the gang is refused whatever pods and room there are: a sentence in a; NULL: nothing speaks against it. */
const char *gangs_words_conflict(const struct cluster *c, const struct gang *g, struct arena *a);

// SPDX-License-Identifier: Apache-2.0
/*
 * gangs_bundle - gangs that are placed as one because each of them names the same list of gangs. Pure; for gangs.c, which has the one public function in its header.
 */
#pragma once

#include "lib/base/arena.h"
#include "scheduler/cache/model.h"

/* The gang's list, from its members and its PodGroup as they are now. */
void gangs_bundle_read(struct cluster *c, struct gang *g);
/* Tells the gangs that name g what changed of it for them; ready: all but its list is in order. */
void gangs_bundle_tell(struct cluster *c, struct gang *g, bool ready,
                       const struct cluster_hooks *hooks);
/* Whether anybody names g: only then need gangs_bundle_tell be called. */
bool gangs_bundle_is_named(const struct cluster *c, const struct gang *g);
/* The gang has no members any more and is about to be freed; it is in the cluster no more. */
void gangs_bundle_leave(struct cluster *c, struct gang *g, const struct cluster_hooks *hooks);
void gangs_bundle_deinit(struct cluster *c);
/* What is wrong with the gang's own list: a sentence in a, or NULL. */
const char *gangs_bundle_conflict(const struct cluster *c, const struct gang *g, struct arena *a);
/* Which other gang keeps g waiting, and why: a sentence in a, or NULL. is_ready answers for one gang without the others. */
const char *gangs_bundle_waits(const struct cluster *c, const struct gang *g,
                               bool (*is_ready)(const struct cluster *c, const struct gang *g),
                               struct arena *a);

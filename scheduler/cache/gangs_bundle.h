// SPDX-License-Identifier: Apache-2.0
/* gangs_bundle - gangs that are placed as one because each names the same list of gangs. Pure; for
 * gangs.c, whose header declares the one public function. */
#pragma once

#include "lib/base/arena.h"
#include "scheduler/model/model.h"

/* The member joined its gang, or what it says or whether it counts may have changed. */
void gangs_bundle_count(struct cluster_pod *cp);
/* It is about to leave. */
void gangs_bundle_discount(struct cluster_pod *cp);
/* Reads the gang's list from its current members and PodGroup. */
void gangs_bundle_read(struct cluster *c, struct gang *g);
/* Notifies the gangs that name g of its change. ready: g is ready apart from its list. */
void gangs_bundle_tell(struct cluster *c, struct gang *g, bool ready,
                       const struct cluster_hooks *hooks);
/* Whether a gang names g; otherwise gangs_bundle_tell is not needed. */
bool gangs_bundle_is_named(const struct cluster *c, const struct gang *g);
/* The gang has lost its last member and is about to be freed; it is already out of the cluster. */
void gangs_bundle_leave(struct cluster *c, struct gang *g, const struct cluster_hooks *hooks);
void gangs_bundle_deinit(struct cluster *c);
/* What is wrong with the gang's own list: a sentence in a, or NULL. */
const char *gangs_bundle_conflict(const struct cluster *c, const struct gang *g, struct arena *a);
/* Which other gang keeps g waiting, and why: a sentence in a, or NULL. is_ready judges one gang. */
const char *gangs_bundle_waits(const struct cluster *c, const struct gang *g,
                               bool (*is_ready)(const struct cluster *c, const struct gang *g),
                               struct arena *a);

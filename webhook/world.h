// SPDX-License-Identifier: Apache-2.0
/*
 * world - what the rules must know beside the object itself: labels of namespaces, sizes of PodGroups, selectors of ResourcePolicies. Kept by reflectors,
 * read by the server's threads.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/error.h"
#include "lib/kube/config.h"
#include "webhook/rules.h"

struct world;

/* Starts the watches. listed is called (on a reflector's thread) after each full list of namespaces; NULL is fine. PodGroups and ResourcePolicies may be absent
 * from the cluster. */
int world_start(struct world **out, struct kube_config *kube, const struct kube_options *o,
                void (*listed)(void *arg), void *arg, struct error *err);
void world_stop(struct world *w); /* NULL is fine */

/* A world without a cluster, of the objects that were put into it: nothing follows from what is not there. For --check. */
struct world *world_new(void);
/* A Namespace, PodGroup or ResourcePolicy becomes part of it (a copy); true if it was one of these, and could be read. */
bool world_put(struct world *w, json *object);

/* What is known around an object of this namespace: out is valid until world_leave, which every enter needs. Any thread. The arg is the struct world. */
void world_enter(void *arg, const char *ns, struct rules_context *out);
void world_leave(void *arg);

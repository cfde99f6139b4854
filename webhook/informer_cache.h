// SPDX-License-Identifier: Apache-2.0
/*
 * informer_cache - what the rules must know besides the object: labels of namespaces, sizes of
 * PodGroups, selectors of ResourcePolicies. Filled by reflectors, read by the server's threads.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/error.h"
#include "lib/kube/config.h"
#include "webhook/rules/rules.h"

struct informer_cache;

/* Starts the watches. listed is called (on a reflector's thread) after each full list of
 * namespaces; NULL is fine. PodGroups and ResourcePolicies may be absent from the cluster. */
int informer_cache_start(struct informer_cache **out, struct kube_config *kube,
                         const struct kube_options *o, void (*listed)(void *arg), void *arg,
                         struct error *err);
void informer_cache_stop(struct informer_cache *w); /* NULL is fine */

/* A cache without a cluster: the absence of an object means nothing. For --check. */
struct informer_cache *informer_cache_new(void);
/* Adds (a copy of) a Namespace, PodGroup or ResourcePolicy; true if it was one, and readable. */
bool informer_cache_put(struct informer_cache *w, json *object);

/* What is known around an object of this namespace: out is valid until informer_cache_leave, which
 * every enter needs. Any thread. The arg is the struct informer_cache. */
void informer_cache_enter(void *arg, const char *ns, struct rules_context *out);
void informer_cache_leave(void *arg);

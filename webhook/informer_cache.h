// SPDX-License-Identifier: Apache-2.0
/* informer_cache - cluster state the rules need: namespace labels, PodGroup sizes, ResourcePolicy
 * selectors. Reflectors fill it, server threads read it. Of the policies of one namespace it keeps
 * INFORMER_CACHE_POLICY_BYTES; others are passed over until the next list, with a warning in the
 * log. */
#pragma once

#include <stdbool.h>

#include "lib/base/error.h"
#include "lib/kube/config.h"
#include "webhook/rules/rules.h"

struct informer_cache;

enum { INFORMER_CACHE_POLICY_BYTES = 1024 * 1024 };

/* Starts the watches. Calls listed (may be NULL) on a reflector's thread after each full list of
 * namespaces. The cluster may lack PodGroups and ResourcePolicies. */
int informer_cache_start(struct informer_cache **out, struct kube_config *kube,
                         const struct kube_options *o, void (*listed)(void *arg), void *arg,
                         struct error *err);
void informer_cache_stop(struct informer_cache *w); /* NULL is fine */

/* A cache without a cluster, for --check: the absence of an object means nothing. */
struct informer_cache *informer_cache_new(void);
/* Copies a Namespace, PodGroup or ResourcePolicy. False for other or unreadable objects. */
bool informer_cache_put(struct informer_cache *w, json *object);

/* Fills the context for an object of this namespace; valid until the matching informer_cache_leave.
 * Any thread. arg: the struct informer_cache. */
void informer_cache_enter(void *arg, const char *ns, struct rules_context *out);
void informer_cache_leave(void *arg);

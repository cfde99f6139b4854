// SPDX-License-Identifier: Apache-2.0
/*
 * namespaces - the labels of every namespace, kept by a reflector, asked by the server's threads.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/kube/config.h"
#include "lib/model/selector.h"

struct namespaces;

/* listed is called (on the reflector's thread) after each full list; NULL is fine. */
int namespaces_start(struct namespaces **out, struct kube_config *kube,
                     const struct kube_options *o, void (*listed)(void *arg), void *arg,
                     struct error *err);
void namespaces_stop(struct namespaces *n); /* NULL is fine */

/* Labels of a namespace, copied into a: true; or false when we do not know it. Any thread. A review_ns_labels; arg is the struct namespaces. */
bool namespaces_labels(void *arg, const char *ns, struct arena *a, struct labels *out);

// SPDX-License-Identifier: Apache-2.0
/*
 * reconciler - what has to be done a moment after something has changed, on the loop: the state
 * file of pods is kept up to date, and promises are compared with what the kubelet handed out.
 */
#pragma once

#include "device-plugin/kubelet/service.h"
#include "lib/base/loop.h"

#define RECONCILER_FILE "pods.json"
enum {
    RECONCILER_MS = 1000,
    RECONCILER_SLOW_MS = 30000,
    RECONCILER_LIST_MS = 500,
    RECONCILER_BYTES_MAX = 4 * 1024 * 1024,
    RECONCILER_PODS_MAX = 4096
};

struct reconciler;

/* Puts what the state file remembers into the service's pod cache: until the watch has listed the
 * pods it is all that is known. A file that cannot be used is said and left. */
int reconciler_new(struct reconciler **out, struct loop *loop, struct service *service,
                   struct podcache *pods, const char *state_dir, struct error *err);
/* Something has changed: RECONCILER_MS later it is looked after. Any thread. */
void reconciler_poke(const struct reconciler *t);
/* Saves once more. NULL is fine. */
void reconciler_free(struct reconciler *t);

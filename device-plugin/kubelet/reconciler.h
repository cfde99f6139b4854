// SPDX-License-Identifier: Apache-2.0
/* reconciler - follow-up work shortly after a change, on the loop: it updates the state file of
 * pods and compares grants with the ids the kubelet allocated. */
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

/* Loads the state file into the service's pod cache, which has nothing else until the watch has
 * listed the pods. An unusable file is logged and ignored. */
int reconciler_new(struct reconciler **out, struct loop *loop, struct service *service,
                   struct podcache *pods, const char *state_dir, struct error *err);
/* Schedules a run RECONCILER_MS from now. Any thread. */
void reconciler_poke(const struct reconciler *t);
/* Saves once more. NULL is allowed. */
void reconciler_free(struct reconciler *t);

// SPDX-License-Identifier: Apache-2.0
/*
 * tend - what has to be done a moment after something has changed, on the loop: the state file of pods is kept up to date, and
 * promises are compared with what the kubelet handed out.
 */
#pragma once

#include "device-plugin/kubelet/service.h"
#include "lib/base/loop.h"

#define TEND_FILE "pods.json"
enum {
    TEND_MS = 1000,
    TEND_SLOW_MS = 30000,
    TEND_LIST_MS = 500,
    TEND_BYTES_MAX = 4 * 1024 * 1024,
    TEND_PODS_MAX = 4096
};

struct tend;

/* Puts what the state file remembers into the service: until the watch has listed the pods it is all that is known. A file that
 * cannot be used is said and left. */
int tend_new(struct tend **out, struct loop *loop, struct service *service, const char *state_dir,
             struct error *err);
/* Something has changed: TEND_MS later it is looked after. Any thread. */
void tend_poke(const struct tend *t);
/* Saves once more. NULL is fine. */
void tend_free(struct tend *t);

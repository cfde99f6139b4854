// SPDX-License-Identifier: Apache-2.0
/* sweeper - removes the isolation folders of containers that have ended. Removed too early, a
 * folder leaves running processes without limits. So a pod that the watch lacks, or that cannot be
 * decoded, does not count as gone. A folder goes only when all of these say so: the pod cache, the
 * kubelet's checkpoint, its pod resources list, and the cgroups. If one of them cannot be asked,
 * nothing is removed. On the loop. */
#pragma once

#include "device-plugin/kubelet/service.h"
#include "lib/base/loop.h"

enum { SWEEPER_MS = 10 * 1000, SWEEPER_LIST_MS = 500 };

struct sweeper_config {
    struct loop *loop;
    struct service *service; /* outlives the sweeper */
    const char *shares;      /* the folders */
    /* The host's cgroups, and the kubelet's cgroupRoot in them. Strings are borrowed. */
    const char *cgroup_mount, *cgroup_root;
};

struct sweeper;

struct sweeper *sweeper_new(const struct sweeper_config *c);
/* NULL is allowed. */
void sweeper_free(struct sweeper *w);
/* What the timer does every SWEEPER_MS, for folders older than keep_ms. Returns how many were
 * removed. */
size_t sweeper_run(struct sweeper *w, int64_t keep_ms);

// SPDX-License-Identifier: Apache-2.0
/*
 * podfiles - what a simulated node leaves on disk: each container's environment and a directory
 * tree in the form of cgroups; and the few file operations that the node's other files need.
 *
 *   NODE/kubelet/{device-plugins,pod-resources}/     sockets, checkpoint
 *   NODE/state/                                      the device plugin's
 *   NODE/cards.json, NODE/device-plugin.log
 *   NODE/pods/UID/CONTAINER/env                      KEY=VALUE lines from Allocate
 *   NODE/pods/UID/CONTAINER/devices                  mounts, device files and CDI names from
 *                                                    Allocate
 *   NODE/cgroup/cpuset/kubepods/[besteffort|burstable]/podUID/CONTAINERID/
 *       {cpuset.cpus,cpuset.mems,tasks}
 */
#pragma once

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "test/local/nodes/podview.h"

enum { PODFILES_PATH = 512 };

/* Atomically: writes another file and renames it. */
int podfiles_write(const char *path, const char *text, size_t n, struct error *err);
/* With its parents. */
int podfiles_mkdir(const char *path, struct error *err);
/* With all below it; what is not there is fine. */
void podfiles_remove(const char *path);

struct podfiles {
    const char *node_dir;
    unsigned cpus, numa; /* of the node */
};
/* cgroup/cpuset/ and cgroup/cpuset/kubepods/, where there are none yet. */
int podfiles_prepare(const struct podfiles *f, struct error *err);
/* name: "env", "devices". */
int podfiles_container(const struct podfiles *f, const char *uid, const char *container,
                       const char *name, const char *text, struct error *err);
int podfiles_cgroup(const struct podfiles *f, const struct podview *v, const char *container_id,
                    struct error *err);
void podfiles_end_container(const struct podfiles *f, const struct podview *v,
                            const char *container_id);
/* The pod has gone. */
void podfiles_end_pod(const struct podfiles *f, const struct podview *v);

// SPDX-License-Identifier: Apache-2.0
/* cgroups_path - the cgroup paths of pods and containers, by cgroup driver and runtime. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    CGROUPS_PLACES = 6, /* three QoS classes for each of two drivers */
    CGROUPS_PATH_SIZE = 1024,
    CGROUPS_ID_SIZE = 129,
};

/* The directory of a QoS class, by driver, for place 0 to CGROUPS_PLACES - 1. root is the kubelet's
 * cgroupRoot ("" and "/": none). The path has no slash at either end. false: too long. */
bool cgroups_path_class(unsigned place, const char *root, char out[CGROUPS_PATH_SIZE]);
/* The pod's group in that directory. */
bool cgroups_path_pod(unsigned place, const char *root, const char *uid,
                      char out[CGROUPS_PATH_SIZE]);
/* The container id in the name of a group below its pod's. false: not a container's group. */
bool cgroups_path_container(const char *name, char id[CGROUPS_ID_SIZE]);
/* The id in a pod's status: what follows "containerd://". Borrowed; "" for anything else. */
const char *cgroups_path_id(const char *status_id);

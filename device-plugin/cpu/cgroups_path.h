// SPDX-License-Identifier: Apache-2.0
/*
 * cgroups_path - where the kubelet and the container runtimes put the groups of pods and
 * containers. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    CGROUPS_PLACES = 6, /* three QoS classes with each of two drivers */
    CGROUPS_PATH_SIZE = 1024,
    CGROUPS_ID_SIZE = 129,
};

/* Where pods of a QoS class are, by the driver: for place 0 to CGROUPS_PLACES - 1. root is the
 * kubelet's own cgroupRoot ("" and "/": none). The path has no slash at either end. false: too
 * long. */
bool cgroups_path_class(unsigned place, const char *root, char out[CGROUPS_PATH_SIZE]);
/* The pod's group in that place. */
bool cgroups_path_pod(unsigned place, const char *root, const char *uid,
                      char out[CGROUPS_PATH_SIZE]);
/* The id of the container whose group, in its pod's, has this name. false: it is no container's. */
bool cgroups_path_container(const char *name, char id[CGROUPS_ID_SIZE]);
/* The id in a pod's status: what follows "containerd://". Borrowed; "" for anything else. */
const char *cgroups_path_id(const char *status_id);

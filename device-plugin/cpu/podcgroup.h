// SPDX-License-Identifier: Apache-2.0
/*
 * podcgroup - a process's /proc/PID/cgroup → the pod that it belongs to. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { PODCGROUP_UID_SIZE = 37, PODCGROUP_CONTAINER_SIZE = 65, PODCGROUP_BYTES_MAX = 64 * 1024 };

struct podcgroup {
    char uid[PODCGROUP_UID_SIZE]; /* as the API server writes it, with '-' */
    char container
        [PODCGROUP_CONTAINER_SIZE]; /* the container's id, 64 hex digits; "": it is in none */
};

/* false: no line of it is a pod's. */
bool podcgroup_parse(const char *text, size_t n, struct podcgroup *out);

// SPDX-License-Identifier: Apache-2.0
/* podcgroup - finds the pod of a process by its /proc/PID/cgroup. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { PODCGROUP_UID_SIZE = 37, PODCGROUP_CONTAINER_SIZE = 65, PODCGROUP_BYTES_MAX = 64 * 1024 };

struct podcgroup {
    char uid[PODCGROUP_UID_SIZE]; /* as the API server writes it, with '-' */
    char container
        [PODCGROUP_CONTAINER_SIZE]; /* the container's id, 64 hex digits; "": it is in none */
};

/* false: no line names a pod. */
bool podcgroup_parse(const char *text, size_t n, struct podcgroup *out);

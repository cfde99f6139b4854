// SPDX-License-Identifier: Apache-2.0
/*
 * response - a grant → what the container gets: environment, mounts, devices. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "device-plugin/match.h"
#include "lib/base/arena.h"
#include "lib/model/gpu.h"

enum { RESPONSE_ENVS_MAX = 16 };

struct response_env {
    const char *key, *value;
};

struct response_mount {
    const char *container_path, *host_path;
    bool read_only;
};

struct response {
    struct response_env envs[RESPONSE_ENVS_MAX];
    size_t envs_len;
    struct response_mount *mounts;
    size_t mounts_len;
};

/* Strings live in a. */
void response_build(const struct gpu_inventory *inv, enum gpu_mode mode,
                    const struct match_grant *grant, struct arena *a, struct response *out);

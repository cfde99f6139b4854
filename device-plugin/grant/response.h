// SPDX-License-Identifier: Apache-2.0
/* response - turns a grant into the container's environment, mounts and devices. Pure. What an
 * isolation engine adds is in isolation/isolation.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "device-plugin/grant/match.h"
#include "lib/base/arena.h"
#include "lib/base/str.h"
#include "lib/model/gpu.h"

enum { RESPONSE_ENVS_MAX = 16, RESPONSE_MOUNTS_MAX = 4 };

#define RESPONSE_CDI_KIND "cosched.io/gpu"
#define RESPONSE_CDI_KIND_NVIDIA "nvidia.com/gpu"

/* How the container runtime learns the cards, beside the environment. */
enum response_list {
    RESPONSE_ENVVAR,      /* NVIDIA's runtime reads NVIDIA_VISIBLE_DEVICES */
    RESPONSE_CDI,         /* names of our CDI spec */
    RESPONSE_CDI_NVIDIA,  /* names of the spec that NVIDIA's toolkit generates */
    RESPONSE_DEVICE_SPECS /* the device files themselves */
};

struct response_env {
    const char *key, *value;
};

struct response_mount {
    const char *container_path, *host_path;
    bool read_only;
};

struct shares_plan;

struct response {
    struct response_env envs[RESPONSE_ENVS_MAX];
    size_t envs_len;
    struct response_mount mounts[RESPONSE_MOUNTS_MAX];
    size_t mounts_len;
    const char **devices; /* files, at the same path in the container */
    size_t devices_len;
    const char **cdi; /* "cosched.io/gpu=GPU-…", "nvidia.com/gpu=GPU-…" */
    size_t cdi_len;
    /* must be set up before the container starts; NULL: nothing */
    const struct shares_plan *share;
};

/* The files every container with a card needs; NULL-terminated. */
extern const char *const response_common_devices[];
/* The card's own device file. */
const char *response_device(const struct gpu_card *card, struct arena *a);
/* Borrows key and value for the life of the response. */
void response_env(struct response *r, const char *key, const char *value);
void response_mount(struct response *r, struct arena *a, const char *container_path,
                    const char *host_path, bool read_only);

/* Strings live in a. */
void response_build(const struct gpu_inventory *inv, enum gpu_mode mode, enum response_list list,
                    const struct match_grant *grant, struct arena *a, struct response *out);
/* The CDI spec of these cards: one device per card, named by uuid. */
void response_cdi_spec(const struct gpu_inventory *inv, struct strbuf *out);

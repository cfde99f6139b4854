// SPDX-License-Identifier: Apache-2.0
/*
 * kwire - the kubelet's side of the device plugin messages as bytes; device-plugin/kubelet/wire is
 * the other side. Everything decoded is copied into the arena and bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/str.h"

enum { KWIRE_IDS_MAX = 64 * 1024, KWIRE_PODS_MAX = 1024 };

struct kwire_ids {
    const char **items;
    size_t len;
};

struct kwire_register {
    const char *version, *endpoint, *resource;
};
struct kwire_options {
    bool pre_start, preferred;
};
struct kwire_device {
    const char *id;
    bool healthy;
    int64_t numa; /* -1: none */
};
struct kwire_devices {
    struct kwire_device *items;
    size_t len;
};
struct kwire_env {
    const char *key, *value;
};
struct kwire_answer {  /* of Allocate, for one container */
    const char *bytes; /* as it came, for the checkpoint */
    size_t bytes_len;
    struct kwire_env *envs;
    size_t envs_len;
};

int kwire_decode_register(const void *bytes, size_t n, struct arena *a, struct kwire_register *out,
                          struct error *err);
int kwire_decode_options(const void *bytes, size_t n, struct kwire_options *out, struct error *err);
int kwire_decode_devices(const void *bytes, size_t n, struct arena *a, struct kwire_devices *out,
                         struct error *err);
void kwire_encode_preferred(const struct kwire_ids *available, const struct kwire_ids *must,
                            size_t count, struct strbuf *out);
int kwire_decode_preferred(const void *bytes, size_t n, struct arena *a, struct kwire_ids *out,
                           struct error *err);
void kwire_encode_allocate(const struct kwire_ids *ids, struct strbuf *out);
int kwire_decode_allocate(const void *bytes, size_t n, struct arena *a, struct kwire_answer *out,
                          struct error *err);
/* What is in an answer's bytes beside the environment, a line for each: "mount HOST CONTAINER
 * ro|rw", "device HOST CONTAINER PERMISSIONS", "cdi NAME". Lines that out has already are not
 * added. */
void kwire_print_rest(const struct kwire_answer *answer, struct strbuf *out);
/* The same from what the checkpoint kept: one container's response. */
int kwire_decode_answer(const void *bytes, size_t n, struct arena *a, struct kwire_answer *out,
                        struct error *err);
void kwire_encode_pre_start(const struct kwire_ids *ids, struct strbuf *out);

struct kwire_held {
    const char *resource;
    struct kwire_ids ids;
};
struct kwire_container {
    const char *name;
    struct kwire_held *held;
    size_t held_len;
};
struct kwire_pod {
    const char *ns, *name;
    struct kwire_container *containers;
    size_t containers_len;
};
/* ListPodResourcesResponse. */
void kwire_encode_pods(const struct kwire_pod *pods, size_t n, struct strbuf *out);

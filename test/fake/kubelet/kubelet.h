// SPDX-License-Identifier: Apache-2.0
/*
 * kubelet - the kubelet's side of the device plugin protocol, for tests: Registration and the pod
 * resources service on real sockets in a directory, and a client of whatever registers there.
 *
 * Like the real one it deletes every socket in its directory when it starts, dials back inside
 * Register, never redials a stream that has ended, serves one admission at a time, and lists the
 * pod under admission with a container that holds nothing yet. Unlike the real one it may be told
 * to misbehave. All functions are the test's thread's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

struct kubelet;

enum { KUBELET_IDS = 1024, KUBELET_ID = 64, KUBELET_ENVS = 16 };

struct kubelet_ids {
    char items[KUBELET_IDS][KUBELET_ID];
    size_t len;
};

struct kubelet_env {
    char key[64], value[512];
};

struct kubelet_answer {
    struct kubelet_env envs[KUBELET_ENVS];
    size_t envs_len;
};

/* dir is the kubelet's root; device-plugins/ and pod-resources/ are made in it. Not running yet.
 * rpc_init comes first. */
struct kubelet *kubelet_new(const char *dir);
void kubelet_free(struct kubelet *k);
const char *kubelet_plugin_dir(const struct kubelet *k);
const char *kubelet_pod_resources(const struct kubelet *k);

void kubelet_start(struct kubelet *k);
/* Like the end of a process: connections close, and kubelet.sock stays as a file without a
 * listener. */
void kubelet_stop(struct kubelet *k);
/* The next n calls of Register are answered with an error. */
void kubelet_refuse_registrations(struct kubelet *k, int n);
/* The next n calls of Register are carried out, and answered with an error once the devices are
 * listed. */
void kubelet_lose_answers(struct kubelet *k, int n);
/* The next n calls of List are refused, as the kubelet's rate limit does. */
void kubelet_limit_lists(struct kubelet *k, int n);
/* Ends the device stream of the resource from our side. */
void kubelet_drop_stream(struct kubelet *k, const char *resource);

/* How often the resource was registered since kubelet_new. */
int kubelet_registrations(struct kubelet *k, const char *resource);
/* Devices of the last list; *healthy may be NULL. -1: none has come since the last registration. */
int kubelet_devices(struct kubelet *k, const char *resource, int *healthy);
/* Ids of the last list that are healthy and not allocated. */
void kubelet_free_ids(struct kubelet *k, const char *resource, struct kubelet_ids *out);

/* A pod in the pod resources list; containers: names, NULL-terminated. */
void kubelet_add_pod(struct kubelet *k, const char *ns, const char *name,
                     const char *const *containers);
void kubelet_remove_pod(struct kubelet *k, const char *ns, const char *name);
void kubelet_hold(struct kubelet *k, const char *ns, const char *name, const char *container,
                  const char *resource, const struct kubelet_ids *ids);

/* The three calls. -1: err has the plugin's sentence. */
int kubelet_prefer(struct kubelet *k, const char *resource, const struct kubelet_ids *available,
                   size_t count, struct kubelet_ids *out, struct error *err);
int kubelet_allocate(struct kubelet *k, const char *resource, const struct kubelet_ids *ids,
                     struct kubelet_answer *out, struct error *err);
int kubelet_pre_start(struct kubelet *k, const char *resource, const struct kubelet_ids *ids,
                      struct error *err);
/* Admission of one container for one resource: preferred ids, Allocate, hold. */
int kubelet_give(struct kubelet *k, const char *ns, const char *name, const char *container,
                 const char *resource, size_t count, struct kubelet_ids *ids,
                 struct kubelet_answer *out, struct error *err);
/* The same, of a container that asks for nothing else and starts: then PreStartContainer. */
int kubelet_admit(struct kubelet *k, const char *ns, const char *name, const char *container,
                  const char *resource, size_t count, struct kubelet_answer *out,
                  struct error *err);
/* Value, or NULL. */
const char *kubelet_env(const struct kubelet_answer *a, const char *key);

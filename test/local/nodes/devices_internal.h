// SPDX-License-Identifier: Apache-2.0
/* devices_internal - what devices.c, devices_allocate.c and devices_checkpoint.c share. */
#pragma once

#include <pthread.h>

#include "device-plugin/kubelet/rpc.h"
#include "lib/base/arena.h"
#include "lib/base/vec.h"
#include "test/fake/kubelet/stream.h"
#include "test/local/nodes/devices.h"
#include "test/local/nodes/kwire.h"

enum { DEVICES_PATH = 256, DEVICES_CALL_MS = 30 * 1000 };

/* One resource that was registered, now or before a restart. */
struct devices_plugin {
    struct devices *devices;
    char *name;
    char *socket; /* NULL: known from the checkpoint alone */
    struct stream *stream;
    uint64_t epoch;  /* counts registrations: what an older stream says is ignored */
    bool connected;  /* a list has come and the stream is open */
    bool was_listed; /* since the last registration */
    int64_t lost_ms; /* when the stream ended */
    struct kwire_options options;
    struct arena arena; /* the list */
    struct kwire_devices list;
};

/* What one container holds of one resource. */
struct devices_holding {
    struct arena arena;
    const char *uid, *container, *resource;
    struct kwire_ids ids;
    struct kwire_answer answer;
};

struct devices_pod { /* a pod that PodResources lists */
    struct arena arena;
    const char *uid, *ns, *name;
    const char **containers;
    size_t containers_len;
};

struct devices {
    struct devices_config config;
    char plugin_dir[DEVICES_PATH], registration[DEVICES_PATH], pod_resources[DEVICES_PATH],
        checkpoint[DEVICES_PATH];
    struct rpc_server *registry, *lister;
    bool fresh;
    pthread_mutex_t lock; /* everything below */
    uint64_t epochs;
    struct VEC(struct devices_plugin *) plugins;
    struct VEC(struct devices_holding *) holdings;
    struct VEC(struct devices_pod *) pods;
};

/* The lock is held. make: a new one if there is none. */
struct devices_plugin *devices_plugin_of(struct devices *d, const char *resource, bool make);
struct devices_holding *devices_holding_of(struct devices *d, const char *uid,
                                           const char *container, const char *resource);
void devices_hold(struct devices *d, const char *uid, const char *container, const char *resource,
                  const struct kwire_ids *ids, const struct kwire_answer *answer);
void devices_holding_free(struct devices_holding *h);

/* device-plugins/kubelet_internal_checkpoint. Write: takes the lock. Read: it is held. */
void devices_checkpoint_write(struct devices *d);
int devices_checkpoint_read(struct devices *d, struct error *err);

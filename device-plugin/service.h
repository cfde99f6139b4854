// SPDX-License-Identifier: Apache-2.0
/*
 * service - the five DevicePlugin methods, for every resource that we register.
 *
 * The loop puts in what is known (cards, mode, pods); the kubelet's calls arrive on the transport's threads and
 * read it under one lock, which is never held over I/O. Every call is answered within two seconds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device-plugin/inventory.h"
#include "device-plugin/mode.h"
#include "device-plugin/rpc.h"
#include "lib/base/error.h"
#include "lib/model/gpu.h"
#include "lib/model/pod.h"

/* Inner calls: together below two seconds. All GETs of one call share SERVICE_GET_MS. */
enum { SERVICE_LIST_MS = 900, SERVICE_GET_MS = 900, SERVICE_GETS_MAX = 8 };

struct service_hooks {
    /* The API server's word on one pod of this node, within the time. ERROR_NOT_FOUND: there is none. NULL: cannot be
     * asked. On a transport thread. */
    int (*get_pod)(void *arg, const char *ns, const char *name, int64_t timeout_ms,
                   struct pod **out, struct error *err);
    /* A container of the pod is about to start on the claimed cards. pod NULL: the watch has not brought it yet. Must not
     * block. */
    void (*starting)(void *arg, const char *ns, const char *name, const struct pod *pod);
    /* A container was refused. pod NULL: nobody could be named. Must not block. */
    void (*refused)(void *arg, const struct pod *pod, const char *why);
    void *arg;
};

struct service;

int service_new(struct service **out, const char *pod_resources_socket,
                const struct service_hooks *hooks, struct error *err);
void service_free(struct service *s);

/* The loop's side. */
void service_set_inventory(struct service *s, const struct gpu_inventory *inv); /* copies */
/* refusal NULL: containers are served; otherwise every one is refused with this sentence (copied). */
void service_set_mode(struct service *s, enum gpu_mode mode, const char *refusal);
/* The list for the kubelet; true when it differs from the one before. */
bool service_set_devices(struct service *s, enum mode_resource r,
                         const struct inventory_devices *d);
void service_put_pod(struct service *s, struct pod *take);
void service_delete_pod(struct service *s, const char *key);
/* All pods of this node; every pointer is taken. */
void service_reset_pods(struct service *s, struct pod **pods, size_t len);
/* Ids that containers hold, by resource, as the kubelet says now. */
int service_held(struct service *s, int64_t timeout_ms, struct arena *a,
                 struct inventory_ids held[MODE_RESOURCES], struct error *err);
/* Pods of this node, not finished, that ask for one of the resources (a bit set) in an ordinary init container: what
 * such a container holds is in no list until the pod is gone. */
size_t service_init_holders(struct service *s, uint32_t resources);

/* The transport's side: methods, and the argument they take for a resource. */
extern const struct rpc_method service_methods[];
extern const size_t service_methods_len;
void *service_endpoint(struct service *s, enum mode_resource r);

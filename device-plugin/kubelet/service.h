// SPDX-License-Identifier: Apache-2.0
/*
 * service - the five DevicePlugin methods for every resource that we register.
 *
 * The loop sets the inventory and mode. The kubelet's calls run on transport threads and read
 * these, and the pods, under the pod cache's lock, which is never held during a call to the kubelet
 * or the API server. Every call is answered within two seconds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device-plugin/cards/inventory.h"
#include "device-plugin/isolation/isolation.h"
#include "device-plugin/cards/mode.h"
#include "device-plugin/grant/response.h"
#include "device-plugin/kubelet/rpc.h"
#include "device-plugin/node/podcache.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/model/grant.h"
#include "lib/model/gpu.h"
#include "lib/model/pod.h"

/* Timeouts of calls made inside one call: together below two seconds. All GETs share
 * SERVICE_GET_MS. */
enum {
    SERVICE_LIST_MS = 900,
    SERVICE_GET_MS = 900,
    SERVICE_GETS_MAX = 8,
    SERVICE_PREFERRED_MS = 2000 /* from GetPreferredAllocation to its Allocate, at most */
};

struct service_hooks {
    /* Gets one pod of this node from the API server, within the timeout. ERROR_NOT_FOUND: it does
     * not exist. NULL: no API server. On a transport thread. */
    int (*get_pod)(void *arg, const char *ns, const char *name, int64_t timeout_ms,
                   struct pod **out, struct error *err);
    /* A container of the pod is about to start on the granted cards. pod NULL: not in the cache
     * yet. placed: the grant was made or corrected here, and the annotations may not show it yet.
     * Must not block. */
    void (*starting)(void *arg, const char *ns, const char *name, const struct pod *pod,
                     bool placed);
    /* Write the grant, made or corrected here, into the pod's annotations. Must not block. May be
     * NULL. */
    void (*record)(void *arg, const struct pod *pod, const struct grant *grant,
                   const struct gpu_inventory *inv);
    /* A container was refused. pod NULL: not identified. Must not block. */
    void (*refused)(void *arg, const struct pod *pod, const char *why);
    /* A running pod is not limited to its share. On the loop, under the cache's lock. May be
     * NULL. */
    void (*unheld)(void *arg, const struct pod *pod, const char *why);
    /* There is something to save (service_version) or to compare (service_reconcile). Any thread,
     * under the cache's lock: must not call the service. May be NULL. */
    void (*changed)(void *arg);
    void *arg;
    struct podcache *pods;  /* of this node; outlives the service, which subscribes to it */
    const char *checkpoint; /* path of the kubelet's checkpoint, copied; NULL: not read */
};

struct service;

int service_new(struct service **out, const char *pod_resources_socket,
                const struct service_hooks *hooks, struct error *err);
void service_free(struct service *s);

/* Called on the loop. */
void service_set_inventory(struct service *s, const struct gpu_inventory *inv); /* copies */
/* refusal NULL: containers are served; otherwise all are refused with this text (copied). */
void service_set_mode(struct service *s, enum gpu_mode mode, const char *refusal);
/* What Allocate returns beside the standard environment. Borrowed; must outlive the service. */
struct service_answer {
    const struct isolation_engine *engine; /* NULL: none */
    const struct isolation_config *isolation;
    enum response_list list;
};
void service_set_answer(struct service *s, const struct service_answer *answer);
/* Sets the resource's device list; true if it changed. */
bool service_set_devices(struct service *s, enum mode_resource r,
                         const struct inventory_devices *d);
/* Which card is filled first, for pods without a grant. */
void service_set_placement(struct service *s, enum gpu_placement placement);
/* Periodic: limits pods to their shares where the engine can do so only from outside. */
void service_keep(struct service *s);
/* Ids that containers hold now, by resource, according to the kubelet. */
int service_held(struct service *s, int64_t timeout_ms, struct arena *a,
                 struct inventory_ids held[MODE_RESOURCES], struct error *err);
/* Unfinished pods of this node with an ordinary init container that asks for one of the resources
 * (a bit set). No list shows what such a container holds until the pod is gone. */
size_t service_init_holders(const struct service *s, uint32_t resources);

/* Changes whenever service_print_pods would print something else. */
uint64_t service_version(struct service *s);
/* The pods that ask for our resources, with their grants: a JSON array for decode_pod. */
void service_print_pods(struct service *s, struct strbuf *out);
/* If a comparison is due (after a list of all pods, after serving an unknown pod), compares the ids
 * that containers hold with the grants and records the differences. 1: nothing to do; 0: done; -1:
 * the kubelet could not be asked. */
int service_reconcile(struct service *s, int64_t timeout_ms, struct error *err);
/* Is a comparison due, because the kubelet did not answer or the watch lacks an unknown pod? */
bool service_owes(struct service *s);

/* For the transport: the methods, and their argument for a resource. */
extern const struct rpc_method service_methods[];
extern const size_t service_methods_len;
void *service_endpoint(struct service *s, enum mode_resource r);

// SPDX-License-Identifier: Apache-2.0
/*
 * service - the five DevicePlugin methods, for every resource that we register.
 *
 * The loop puts in what is known (cards, mode); the kubelet's calls arrive on the transport's
 * threads and read it, and the pods, under the lock of the pod cache, which is not held while the
 * kubelet or the API server is asked. Every call is answered within two seconds.
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

/* Inner calls: together below two seconds. All GETs of one call share SERVICE_GET_MS. */
enum {
    SERVICE_LIST_MS = 900,
    SERVICE_GET_MS = 900,
    SERVICE_GETS_MAX = 8,
    SERVICE_PREFERRED_MS = 2000 /* from GetPreferredAllocation to its Allocate, at most */
};

struct service_hooks {
    /* The API server's word on one pod of this node, within the time. ERROR_NOT_FOUND: there is
     * none. NULL: cannot be asked. On a transport thread. */
    int (*get_pod)(void *arg, const char *ns, const char *name, int64_t timeout_ms,
                   struct pod **out, struct error *err);
    /* A container of the pod is about to start on the claimed cards. pod NULL: the watch has not
     * brought it yet. placed: the grant was made or corrected here, its annotations may not say so
     * yet. Must not block. */
    void (*starting)(void *arg, const char *ns, const char *name, const struct pod *pod,
                     bool placed);
    /* The pod's grant, made or corrected here, belongs into its annotations. Must not block. May be
     * NULL. */
    void (*record)(void *arg, const struct pod *pod, const struct grant *grant,
                   const struct gpu_inventory *inv);
    /* A container was refused. pod NULL: nobody could be named. Must not block. */
    void (*refused)(void *arg, const struct pod *pod, const char *why);
    /* A pod that runs is not held to its share. The loop, under the pod cache's lock. May be
     * NULL. */
    void (*unheld)(void *arg, const struct pod *pod, const char *why);
    /* There is something new to save (service_version) or to compare (service_reconcile). Any
     * thread, under the pod cache's lock: must not call the service. May be NULL. */
    void (*changed)(void *arg);
    void *arg;
    struct podcache *pods;  /* of this node; outlives the service, which subscribes to it */
    const char *checkpoint; /* path of the kubelet's checkpoint; NULL: it is not read. Copied. */
};

struct service;

int service_new(struct service **out, const char *pod_resources_socket,
                const struct service_hooks *hooks, struct error *err);
void service_free(struct service *s);

/* The loop's side. */
void service_set_inventory(struct service *s, const struct gpu_inventory *inv); /* copies */
/* refusal NULL: containers are served; otherwise every one is refused with this sentence
 * (copied). */
void service_set_mode(struct service *s, enum gpu_mode mode, const char *refusal);
/* What is in the answer beside the contract's environment. Borrowed: lives as long as the
 * service. */
struct service_answer {
    const struct isolation_engine *engine; /* NULL: none */
    const struct isolation_config *isolation;
    enum response_list list;
};
void service_set_answer(struct service *s, const struct service_answer *answer);
/* The list for the kubelet; true when it differs from the one before. */
bool service_set_devices(struct service *s, enum mode_resource r,
                         const struct inventory_devices *d);
/* Which card is filled first, for pods that come without a grant. */
void service_set_placement(struct service *s, enum gpu_placement placement);
/* Now and then: pods are held to their shares where the engine can do that only from outside. */
void service_keep(struct service *s);
/* Ids that containers hold, by resource, as the kubelet says now. */
int service_held(struct service *s, int64_t timeout_ms, struct arena *a,
                 struct inventory_ids held[MODE_RESOURCES], struct error *err);
/* Pods of this node, not finished, that ask for one of the resources (a bit set) in an ordinary
 * init container: what such a container holds is in no list until the pod is gone. */
size_t service_init_holders(const struct service *s, uint32_t resources);

/* Counts changes of what service_print_pods prints. */
uint64_t service_version(struct service *s);
/* The pods that ask for our resources, with their grants, as a JSON array of objects that
 * decode_pod reads. */
void service_print_pods(struct service *s, struct strbuf *out);
/* Compares what containers hold with what was promised, when there is reason to: after a list of
 * all pods, after a stranger was served. Differences are recorded. 1: there was nothing to do; 0:
 * done; -1: the kubelet could not be asked. */
int service_reconcile(struct service *s, int64_t timeout_ms, struct error *err);
/* Is there still reason to? After a comparison: the kubelet could not be asked, or a stranger is
 * not in the watch yet. */
bool service_owes(struct service *s);

/* The transport's side: methods, and the argument they take for a resource. */
extern const struct rpc_method service_methods[];
extern const size_t service_methods_len;
void *service_endpoint(struct service *s, enum mode_resource r);

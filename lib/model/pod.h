// SPDX-License-Identifier: Apache-2.0
/* pod - a decoded pod. Immutable; the next version replaces it as a whole. The pod, and all it
 * points to, lives in its own arena. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/podterm.h"
#include "lib/model/resources.h"
#include "lib/model/selector.h"
#include "lib/model/spread.h"
#include "lib/model/volume.h"

enum pod_phase { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED, POD_UNKNOWN };

struct container_port {
    uint16_t host_port; /* only ports with a host port are kept */
    const char *host_ip;
    const char *protocol; /* "TCP" when absent */
};

/* Sizes in the status: they differ from the spec during an in-place resize. */
struct resized {
    struct resources allocated; /* allocatedResources */
    struct resources actual;    /* resources.requests */
    bool has_allocated;
    bool has_actual; /* status has `resources`, even without requests */
};

struct container {
    const char *name;
    const char *image;
    struct resources requests; /* as in the spec, after defaulting from limits by the API server */
    struct resources limits;
    struct resized *resized; /* from the status; NULL: no size other than requests */
    struct container_port *ports;
    size_t ports_len;
    bool sidecar; /* restartable init container */
    bool has_id;  /* status names a container: it runs, or has run */
    /* "containerd://9f…" of a running container. Only its node's agent needs it: set by
     * decode_container_ids, else NULL. */
    const char *id;
};

/* Pod-level sizes, which few pods have. */
struct pod_sizes {
    struct resources overhead;
    struct resources requests; /* spec.resources.requests */
    bool has_requests;
    struct resized status; /* status.allocatedResources, status.resources: pod level */
};

enum toleration_op { TOLERATION_EQUAL, TOLERATION_EXISTS };
enum taint_effect {
    TAINT_NO_SCHEDULE,
    TAINT_PREFER_NO_SCHEDULE,
    TAINT_NO_EXECUTE,
    TAINT_ALL /* tolerations only */
};

struct toleration {
    const char *key; /* "" with Exists: every key */
    enum toleration_op op;
    const char *value;
    enum taint_effect effect;
};

struct preferred_term {
    int32_t weight;
    struct node_term term;
};

struct pod_condition {
    const char *type;
    const char *status;
    const char *reason;
    const char *message;
};

/* What a pod needs its node to declare (status.declaredFeatures), as Kubernetes 1.36 infers it for
 * scheduling. pod_feature_name gives the name. */
enum pod_feature {
    POD_FEATURE_RESTART_ALL = 1 << 0,     /* a restartPolicyRule with action RestartAllContainers */
    POD_FEATURE_HOST_NET_USERNS = 1 << 1, /* hostNetwork together with hostUsers: false */
    POD_FEATURES = 2
};

struct pod {
    struct arena arena; /* owns everything below, and the struct itself */

    const char *ns;
    const char *name;
    const char *key; /* "ns/name" */
    const char *uid;
    const char *resource_version;
    struct labels labels;
    struct labels annotations; /* those that are read (pod_annotation_is_read) */
    int64_t created_ns;        /* since the epoch, 0 when absent */
    bool terminating;          /* deletionTimestamp set */
    int64_t leaves_ns;         /* deletionTimestamp: when its grace period ends; 0: unknown */
    const char *owner_kind;    /* controlling owner, or NULL */
    const char *owner_name;
    const char *owner_uid;

    const char *node; /* spec.nodeName, NULL while not bound */
    const char *scheduler;
    int32_t priority;
    bool preempt_never;           /* preemptionPolicy: Never */
    bool gated;                   /* schedulingGates not empty */
    bool resource_claims;         /* spec.resourceClaims not empty */
    const char *scheduling_group; /* spec.schedulingGroup.podGroupName, or NULL */
    struct container *containers;
    size_t containers_len;
    struct container *init_containers; /* sidecars included */
    size_t init_containers_len;
    struct pod_sizes *sizes; /* NULL: none */
    bool resize_infeasible;  /* condition PodResizePending, reason Infeasible */

    struct labels node_selector;
    bool has_required_affinity;
    struct node_selector required_affinity;
    struct preferred_term *preferred_affinity;
    size_t preferred_affinity_len;
    struct toleration *tolerations;
    size_t tolerations_len;
    const struct podterms *terms; /* affinity to other pods; NULL: none */
    struct spread *spread;        /* topologySpreadConstraints */
    size_t spread_len;
    struct pod_volume *volumes; /* those that affect where it may run */
    size_t volumes_len;
    const char **image_volumes; /* references of volumes of kind image */
    size_t image_volumes_len;
    int64_t active_deadline_s; /* spec.activeDeadlineSeconds, from started_ns on; 0: none */
    bool host_network;
    uint8_t features; /* POD_FEATURE_* that its node must declare */

    enum pod_phase phase;
    const char *status_reason; /* status.reason of a Failed pod: "OutOfcpu"; NULL: none */
    int64_t started_ns;        /* status.startTime; 0: the kubelet has not started it */
    const char *nominated_node;
    /* Extended resources that a claim of dynamic resource allocation provides
     * (status.extendedResourceClaimStatus). They are no device plugin's, so `request` excludes
     * them. */
    const char **claimed;
    size_t claimed_len;
    struct pod_condition scheduled; /* the PodScheduled condition; type NULL when absent */

    /* Why no node may take it: a value that decides where it may run could not be read, or there
     * are more of them than we judge. NULL: none. What it holds is known: a bound pod counts like
     * any other. */
    const char *unplaceable;
    /* Why it could not be decoded, as a sentence; NULL: it was. Such a pod has only its metadata
     * and phase: the last version that could be read stays in force. Only decode_pod_remains makes
     * it. */
    const char *unreadable;

    struct resources request; /* the effective request (pod_effective_request); filled by decode */
};

/* Frees the arena, and so the pod. NULL is allowed. */
void pod_free(struct pod *p);
/* A deep copy in one block of exactly its size, for long-term storage. p, in whatever arena, is
 * unchanged. */
struct pod *pod_pack(struct pod *p);
/* Succeeded or Failed: holds nothing. */
bool pod_is_finished(const struct pod *p);
/*
 * Kubernetes' formula, for every resource:
 *   containers = sum of containers + sum of sidecars
 *   init peak  = max over ordinary init containers of (it + the sidecars declared before it)
 *   request    = max(containers, init peak); pod-level requests replace it for the resources they
 *                name (cpu, memory, hugepages); + overhead
 * A container or sidecar whose status has `resources` (in-place resize) counts with the largest of
 * spec, allocated and actual; without spec when the resize is Infeasible. Ordinary init containers
 * count by spec. Pod-level status likewise, for the names in the pod-level requests. As in
 * Kubernetes 1.36. What a ResourceClaim provides (pod.claimed) is left out. Sums saturate. false:
 * too many names; those beyond the bound are left out.
 */
bool pod_effective_request(const struct pod *p, struct arena *a, struct resources *out);
/* Whether one of the tolerations covers the taint. Operators as of 1.36: Equal and Exists. */
bool toleration_covers(const struct toleration *t, const char *key, const char *value,
                       enum taint_effect effect);
/* Containers, then init containers: the index that grants use. */
size_t pod_container_count(const struct pod *p);
const struct container *pod_container(const struct pod *p, size_t i);
/* An ordinary init container, which ends before the containers start. */
bool pod_container_is_init(const struct pod *p, size_t i);
/* How many bytes of this pod annotation decoding keeps; 0: none of our programs reads it. Users'
 * and controllers' annotations are the largest part of many pods. The bounds are beyond the longest
 * value that a reader takes: it sees that one is too long. */
size_t pod_annotation_bytes(const char *key);
/* A static pod as the API server shows it: its kubelet runs it regardless of the API. */
bool pod_is_mirror(const struct pod *p);
/* nodeSelector and required node affinity. */
bool pod_may_use_node(const struct pod *p, const struct labels *labels, const char *name);
/* The uid under which the kubelet runs the static pod that this one mirrors: a hash of its file.
 * NULL: not a mirror. */
const char *pod_mirrored_uid(const struct pod *p);
/* "RestartAllContainersOnContainerExits"... of one POD_FEATURE_* bit; NULL for any other number. */
const char *pod_feature_name(unsigned bit);
/* The bit of a declared feature's name; 0: none that a pod can need. */
unsigned pod_feature_of(const char *name);

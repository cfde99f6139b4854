// SPDX-License-Identifier: Apache-2.0
/* publish - writes to the API server: the node's inventory, labels and gpu-count; and for pods that
 * a grant is in use, the grant, and their usage. It has its own thread, so a slow API server delays
 * no caller. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/kube/config.h"
#include "lib/model/grant.h"
#include "lib/model/gpu.h"
#include "lib/model/gpuuse.h"
#include "lib/model/node.h"
#include "lib/model/pod.h"
#include "lib/model/selector.h"

enum {
    PUBLISH_INTERVAL_MS = 10000,
    PUBLISH_RETRY_MS = 1000,
    PUBLISH_EVICTION_MS = 10000,
    PUBLISH_ASSIGNED_MAX = 1024
};

struct publish_wanted {
    const char *inventory; /* cosched.io/gpu-inventory; NULL: cards are not published */
    struct labels labels;  /* accelerator labels; value NULL: the node must not have the key */
    int64_t gpu_count; /* aliyun.com/gpu-count; 0 is written only if the node has the resource */
    /* cosched.io/cpu-topology; NULL: not published. Set by publish_cpus, not publish_want. */
    const char *cpus;
};

/* The merge patches of the node and its status that make node match w. Empty: nothing to do. */
void publish_patches(const struct publish_wanted *w, const struct node *node, struct strbuf *meta,
                     struct strbuf *status);
/* The merge patch that sets "assigned". old_form: the pod also has the older annotations. */
void publish_assigned_patch(const char *uid, bool old_form, struct strbuf *out);

/* The merge patch that writes and confirms a grant made or corrected on this node. */
void publish_grant_patch(const struct pod *pod, const struct grant *grant,
                         const struct gpu_inventory *inv, struct strbuf *out);

struct publish;

int publish_start(struct publish **out, struct kube_config *kube, const struct kube_options *o,
                  const char *node, int64_t interval_ms, struct error *err);
/* Cancels the write in progress. */
void publish_stop(struct publish *p);
/* Any thread, never blocks. Copies. The first write is sent at once, later ones at least
 * interval_ms apart. */
void publish_want(struct publish *p, const struct publish_wanted *w);
/* The same for cosched.io/cpu-topology. NULL: leaves it alone. */
void publish_cpus(struct publish *p, const char *topology);
/* Our node as the watch shows it. Takes it. */
void publish_seen(struct publish *p, struct node *take);
/* The pod's container is about to start. uid "": unknown. */
void publish_assigned(struct publish *p, const char *ns, const char *name, const char *uid,
                      bool old_form);
/* Writes publish_grant_patch, replacing a waiting one for this pod. */
void publish_grant(struct publish *p, const struct pod *pod, const struct grant *grant,
                   const struct gpu_inventory *inv);
/* The same for the CPUs applied to the pod (cosched.io/cpuset-applied); a waiting grant stays. */
void publish_applied(struct publish *p, const struct pod *pod, const char *cpuset);
/* The same for the pod's GPU usage. */
void publish_use(struct publish *p, const struct pod *pod, const struct gpuuse *use);
/* Evicts the pod unless it was replaced by another of that name. Retries while a disruption budget
 * forbids it. */
void publish_evict(struct publish *p, const struct pod *pod);

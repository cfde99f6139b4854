// SPDX-License-Identifier: Apache-2.0
/*
 * publish - what the API server learns from us: the node's inventory, its labels and gpu-count;
 * that a pod's grant is in use, what it is, and what its processes use. A thread of its own, so
 * that a slow API server delays nobody.
 */
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
    const char *inventory; /* text of cosched.io/gpu-inventory; NULL: nothing is said of cards */
    struct labels labels;  /* accelerator labels; value NULL: the node has none of this key */
    int64_t gpu_count; /* aliyun.com/gpu-count; 0 is written only where the node has the resource */
    /* text of cosched.io/cpu-topology; NULL: nothing is said of CPUs. Not by publish_want: by
     * publish_cpus. */
    const char *cpus;
};

/* The merge patches that turn node into what is wanted: for the node, and for its status. Empty:
 * nothing to do. */
void publish_patches(const struct publish_wanted *w, const struct node *node, struct strbuf *meta,
                     struct strbuf *status);
/* The merge patch that sets "assigned". old_form: the pod has the older annotations as well. */
void publish_assigned_patch(const char *uid, bool old_form, struct strbuf *out);

/* The merge patch with a grant that was made or corrected on this node: the grant, and that we
 * confirm it. */
void publish_grant_patch(const struct pod *pod, const struct grant *grant,
                         const struct gpu_inventory *inv, struct strbuf *out);

struct publish;

int publish_start(struct publish **out, struct kube_config *kube, const struct kube_options *o,
                  const char *node, int64_t interval_ms, struct error *err);
/* What is under way is cancelled. */
void publish_stop(struct publish *p);
/* Any thread, never blocks. Copies. The first write goes out at once, later ones at least
 * interval_ms apart. */
void publish_want(struct publish *p, const struct publish_wanted *w);
/* The same for cosched.io/cpu-topology. NULL: it is left alone. */
void publish_cpus(struct publish *p, const char *topology);
/* Our node as the watch shows it. Takes it. */
void publish_seen(struct publish *p, struct node *take);
/* The pod's container is about to start. uid "" when it is not known. */
void publish_assigned(struct publish *p, const char *ns, const char *name, const char *uid,
                      bool old_form);
/* Writes publish_grant_patch; one of this pod that waits already is replaced by it. */
void publish_grant(struct publish *p, const struct pod *pod, const struct grant *grant,
                   const struct gpu_inventory *inv);
/* The same for what was done with its CPUs (cosched.io/cpuset-applied); a grant of cards that waits
 * is not replaced by it. */
void publish_applied(struct publish *p, const struct pod *pod, const char *cpuset);
/* Writes what the pod uses; the same. */
void publish_use(struct publish *p, const struct pod *pod, const struct gpuuse *use);
/* Evicts the pod, unless a namesake is there by now; again and again while its owner's disruption
 * budget forbids it. */
void publish_evict(struct publish *p, const struct pod *pod);

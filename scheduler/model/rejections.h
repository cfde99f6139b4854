// SPDX-License-Identifier: Apache-2.0
/*
 * rejections - nodes whose kubelet rejected a pod. Pure.
 *
 * Another scheduler may have taken the capacity before our Binding, or a device plugin knows better
 * than the Node object. The kubelet then fails the pod (OutOfcpu, UnexpectedAdmissionError), and
 * its owner creates another one, which would fail on the same node. So pods that want the missing
 * resource avoid the node for REJECTIONS_MS; others may still use it.
 *
 * A device plugin is usually back soon after a restart or upgrade. So for a device the node is
 * closed only for REJECTIONS_DEVICE_MS; for the rest of the time it is the last resort.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/model/model.h"

enum { REJECTIONS_MS = 30000, REJECTIONS_DEVICE_MS = 5000 /* closed for a device */ };

/* Whether the kubelet failed the pod for lack of a resource, by status.reason. */
bool rejections_is_one(const struct pod *p);
/* Records the node of such a pod for REJECTIONS_MS less the event's age; ignores other pods and old
 * events. */
void rejections_note(struct cluster *c, const struct pod *p, int64_t age_ms, int64_t now_ms);
/* Reopens nodes and forgets expired rejections; returns the events: usable capacity. *next_ms is
 * when the next one ends, or -1. */
uint32_t rejections_expire(struct cluster *c, int64_t now_ms, int64_t *next_ms);
/* The name of a resource that the pod wants and for which the node is closed, or NULL. */
const char *rejections_against(const struct cluster *c, const struct cluster_pod *pod,
                               const struct cluster_node *node);
/* Whether the node's kubelet recently lacked what the pod wants: the node is its last resort. */
bool rejections_avoid(const struct cluster *c, const struct cluster_pod *pod,
                      const struct cluster_node *node);
/* Number of rejections of the node. */
uint32_t rejections_count(const struct cluster *c, const char *node);
void rejections_deinit(struct cluster *c);

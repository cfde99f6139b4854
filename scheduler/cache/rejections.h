// SPDX-License-Identifier: Apache-2.0
/*
 * rejections - nodes whose kubelet sent a pod back. Pure.
 *
 * Another scheduler may have taken the room between our look and our Binding, or a device plugin knows better than the Node object. The kubelet then fails the pod
 * (OutOfcpu, UnexpectedAdmissionError), and its owner makes another one, which would go to the same node and fail as well. So the node is left alone for a while by pods
 * that want the resource which was missing; others may still go there.
 *
 * A device plugin that was away for a moment (a restart, an upgrade) is back soon. So for a device the node is closed for a short time only; for the rest of the while it is
 * the last resort: who fits anywhere else goes there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/cache/model.h"

enum { REJECTIONS_MS = 30000, REJECTIONS_DEVICE_MS = 5000 /* closed for a device */ };

/* Whether the pod was failed by its kubelet for want of a resource, as the kubelet's status.reason tells. */
bool rejections_is_one(const struct pod *p);
/* Notes such a pod's node for REJECTIONS_MS less the age of the news; another pod, and old news: does nothing. */
void rejections_note(struct cluster *c, const struct pod *p, int64_t age_ms, int64_t now_ms);
/* What is over by now is opened or forgotten; returns the events: room that may be used again. *next_ms is when there will be more of it, or -1. */
uint32_t rejections_expire(struct cluster *c, int64_t now_ms, int64_t *next_ms);
/* The name of a resource that the pod wants and for which the node is closed, or NULL. */
const char *rejections_against(const struct cluster *c, const struct cluster_pod *pod,
                               const struct cluster_node *node);
/* Whether the node's kubelet lacked lately what the pod wants: it goes there only if it fits nowhere else. */
bool rejections_avoid(const struct cluster *c, const struct cluster_pod *pod,
                      const struct cluster_node *node);
/* How many are about the node. */
uint32_t rejections_count(const struct cluster *c, const char *node);
void rejections_deinit(struct cluster *c);

// SPDX-License-Identifier: Apache-2.0
/*
 * rejections - nodes whose kubelet sent a pod back. Pure.
 *
 * Another scheduler may have taken the room between our look and our Binding, or a device plugin knows better than the Node object. The kubelet then fails the pod
 * (OutOfcpu, UnexpectedAdmissionError), and its owner makes another one, which would go to the same node and fail as well. So the node is left alone for a while by pods
 * that want the resource which was missing; others may still go there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/cluster.h"

/* A device plugin that was away for a moment is back soon, and so may be the pod's replacement. */
enum { REJECTIONS_MS = 30000, REJECTIONS_DEVICE_MS = 5000 };

/* Whether the pod was failed by its kubelet for want of a resource, as the kubelet's status.reason tells. */
bool rejections_is_one(const struct pod *p);
/* Notes such a pod's node for REJECTIONS_MS (or, for devices, REJECTIONS_DEVICE_MS) less the age of the news; another pod, and old news: does nothing. */
void rejections_note(struct cluster *c, const struct pod *p, int64_t age_ms, int64_t now_ms);
/* What is over by now is forgotten; returns the events: room that may be used again. *next_ms is when the next one is over, or -1. */
uint32_t rejections_expire(struct cluster *c, int64_t now_ms, int64_t *next_ms);
/* The name of a resource that the pod wants and that the node's kubelet lacked lately, or NULL. */
const char *rejections_against(const struct cluster *c, const struct cluster_pod *pod,
                               const struct cluster_node *node);
/* How many are about the node. */
uint32_t rejections_count(const struct cluster *c, const char *node);
void rejections_deinit(struct cluster *c);

// SPDX-License-Identifier: Apache-2.0
/*
 * monitor - what goes on on the cards: scans and errors in, the cards with their health out; and
 * what pods use of them. The metrics of cards and pods are its. On the loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/cards/inventory.h"
#include "device-plugin/cards/mode.h"
#include "device-plugin/monitor/scan.h"
#include "device-plugin/node/podcache.h"
#include "lib/base/loop.h"
#include "lib/model/gpu.h"
#include "lib/model/gpuuse.h"
#include "lib/model/pod.h"

struct monitor_hooks {
    /* Every scan's cards, each with its health; those that vanished are there, sick. */
    void (*cards)(void *arg, const struct gpu_inventory *inv);
    /* On our node. */
    void (*event)(void *arg, bool warning, const char *reason, const char *message);
    /* On a pod of this node. */
    void (*pod_event)(void *arg, const struct pod *pod, bool warning, const char *reason,
                      const char *message);
    /* What a pod uses has changed by much. */
    void (*pod_used)(void *arg, const struct pod *pod, const struct gpuuse *use);
    /* A pod whose processes got past the library is to go. NULL: it is only told. */
    void (*evict)(void *arg, const struct pod *pod);
    void *arg;
    struct podcache *pods;              /* of this node; the monitor subscribes to it */
    const char *program, *cuda_library; /* this one, and the CUDA driver's library: see contexts */
    /* what a context takes of each card, found out here; NULL: it is not */
    _Atomic int32_t *contexts;
    const char *state_dir; /* where sick cards are remembered; NULL: nowhere. Borrowed. */
    /* folders of containers with our own library, swept here; NULL: none. Borrowed. */
    const char *shares;
};

struct monitor_config {
    struct loop *loop;
    int64_t interval_ms;           /* between two scans */
    int64_t deadline_ms;           /* of one call into the backend */
    int64_t hold_ms;               /* see health_init */
    const char *cpu_manager_state; /* the kubelet's file; NULL: it is not looked at */
    struct monitor_hooks hooks;
};

struct monitor;

struct monitor *monitor_new(const struct monitor_config *c);
/* After the metrics are no longer served. */
void monitor_free(struct monitor *m);
/* The scan whose calls are watched; NULL: none any more. */
void monitor_watch(struct monitor *m, struct scan *s);
/* Any but SCAN_FATAL. Borrowed. */
void monitor_letter(struct monitor *m, const struct scan_letter *l);
/* The mode that the node is in, and whether our own library is its engine. */
void monitor_mode(struct monitor *m, enum gpu_mode mode, bool confined);
/* What is offered to the kubelet of the resource. */
void monitor_offered(struct monitor *m, enum mode_resource r, const struct inventory_devices *d);

// SPDX-License-Identifier: Apache-2.0
/* monitor - turns scans and error events into the cards' health and the pods' GPU usage, and
 * exports the metrics of both. On the loop. */
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
    /* The cards of every scan, with their health; vanished cards are included, as unhealthy. */
    void (*cards)(void *arg, const struct gpu_inventory *inv);
    /* On our node. */
    void (*event)(void *arg, bool warning, const char *reason, const char *message);
    /* On a pod of this node. */
    void (*pod_event)(void *arg, const struct pod *pod, bool warning, const char *reason,
                      const char *message);
    /* A pod's usage has changed considerably. */
    void (*pod_used)(void *arg, const struct pod *pod, const struct gpuuse *use);
    /* Evict a pod whose processes bypassed the library. NULL: it is only reported. */
    void (*evict)(void *arg, const struct pod *pod);
    void *arg;
    struct podcache *pods; /* of this node; the monitor subscribes to it */
    const char *program,
        *cuda_library; /* this executable and the CUDA driver library: see contexts */
    /* measured context size of each card; NULL: not measured */
    _Atomic int32_t *contexts;
    const char *state_dir; /* where unhealthy cards are recorded; NULL: nowhere. Borrowed. */
    /* our library's container folders; NULL: none. Borrowed. */
    const char *shares;
};

struct monitor_config {
    struct loop *loop;
    int64_t interval_ms;           /* between two scans */
    int64_t deadline_ms;           /* of one backend call */
    int64_t hold_ms;               /* see health_init */
    const char *cpu_manager_state; /* the kubelet's file; NULL: not read */
    struct monitor_hooks hooks;
};

struct monitor;

int monitor_new(struct monitor **out, const struct monitor_config *c, struct error *err);
/* Ends the work on containers' files. false: it does not end, and nothing may be freed. */
bool monitor_stop(struct monitor *m);
/* After monitor_stop, when the metrics are no longer served. */
void monitor_free(struct monitor *m);
/* The scan whose calls are watched; NULL: none any more. */
void monitor_watch(struct monitor *m, struct scan *s);
/* Any message but SCAN_FATAL. Borrowed. */
void monitor_message(struct monitor *m, const struct scan_message *l);
/* The node's mode, and the name of its isolation engine; NULL: none. */
void monitor_mode(struct monitor *m, enum gpu_mode mode, const char *engine);
/* The devices offered to the kubelet for the resource. */
void monitor_offered(struct monitor *m, enum mode_resource r, const struct inventory_devices *d);
/* For tests: until the work on containers' files that was asked for is done. */
void monitor_settle(struct monitor *m);

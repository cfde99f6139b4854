// SPDX-License-Identifier: Apache-2.0
/*
 * events - Kubernetes Events, de-duplicated and bounded. One worker thread.
 *
 * The same (object, reason, message) within 10 minutes raises the count of the existing Event by a
 * patch. The queue is bounded (--event-queue, default 10000; when full the newest is dropped and
 * counted), so is the memory of sent messages (4096, oldest out), and a token bucket limits sending
 * (--event-qps, default 50); it may be shared with other writers (lib/base/rate_limit). Messages
 * that waited longer than a minute (--event-max-age) are dropped and counted. cosched_events_total
 * counts the outcomes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/base/rate_limit.h"
#include "lib/kube/config.h"

enum { EVENTS_MAX_AGE_MS = 60 * 1000 };

struct events_options { /* rows: events_option_rows */
    int64_t queue;
    int64_t qps;
    int64_t max_age_ms; /* 0: EVENTS_MAX_AGE_MS */
    /* no option; NULL: its own bucket. Must outlive the events. */
    const struct events_limit *shared;
    const char *host; /* no option; in whose name they are written, NULL: this machine's */
};

/* One bucket for several writers; its slow rate applies while is_busy returns true. */
struct events_limit {
    struct rate_limit *rate;
    bool (*is_busy)(void *arg); /* any thread */
    void *arg;
};
extern const struct option_row events_option_rows[];

struct events_object {
    const char *api_version; /* "v1" */
    const char *kind;        /* "Pod" */
    const char *ns;          /* "" for cluster-scoped objects: their Events are in "default" */
    const char *name;
    const char *uid;
};

struct events;
int events_start(struct events **out, struct kube_config *kube, const struct kube_options *k,
                 const struct events_options *o, const char *component, struct error *err);
/* Any thread. Copies everything; never blocks. Cuts message at 1024 bytes. warning: type Warning
 * instead of Normal. */
void events_emit(struct events *e, const struct events_object *object, bool warning,
                 const char *reason, const char *message);
/* Sends queued messages for at most drain_ms, then ends. */
void events_stop(struct events *e, int64_t drain_ms);
int64_t events_dropped(const struct events *e);

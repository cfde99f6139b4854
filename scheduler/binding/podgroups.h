// SPDX-License-Identifier: Apache-2.0
/*
 * podgroups - keeps PodGroup statuses up to date, ends attempts that take too long, and handles
 * stale gangs. The loop's thread.
 *
 * An attempt begins when a quorum of members waits for capacity. It fails after
 * scheduleTimeoutSeconds (60 for gangs without a PodGroup): Events on the PodGroup and its pods, a
 * backoff (queue.c), and the next attempt. A waiting gang holds nothing, so a failed attempt costs
 * others nothing, and the gang is always retried.
 *
 * A gang is stale when it had members on nodes, but fewer than its quorum, for that long;
 * --stale-gang says what happens to it. Unused replacement holds (replacement_hold.h) also expire
 * here, and lost records of gangs that had their quorum (gangs.h) are sent again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/loop.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/model/failures.h"
#include "scheduler/binding/evictor.h"
#include "scheduler/queue/queue.h"
#include "scheduler/binding/pod_writer.h"

enum {
    PODGROUPS_DELAY_MS = 100,   /* changes within it are one write */
    PODGROUPS_AGAIN_MS = 10000, /* resend a status or record that the watch does not show */
};

struct podgroups;

struct podgroups_config {
    struct loop *loop;
    struct cluster *cluster;
    const struct failures *failures;
    struct queue *queue;
    struct pod_writer *pod_writer;
    struct evictor *evictor;
    bool evict_stale;
    void (*changed)(void *arg); /* a gang may be tried again */
    void *arg;
};
struct podgroups *podgroups_new(const struct podgroups_config *c);
/* Something changed; cheap, may be called often. */
void podgroups_reconcile(struct podgroups *p);
/* State of a gang. Exposed for tests, like podgroups_sent. */
struct podgroups_trial {
    int64_t since_ms;     /* since when a quorum waits for capacity; 0: it does not */
    int64_t since_ns;     /* the same in wall-clock seconds; kept once placed */
    int64_t broken_ms;    /* since when it is below its quorum with members placed; 0: no */
    int64_t recording_ms; /* gangs_follow_record */
    bool told_broken;
    bool had_success; /* a member has succeeded: it is about to end */
};
struct podgroups_trial *podgroups_trial(struct podgroups *p, const struct gang *g);
/* The last status sent for a PodGroup. */
struct podgroups_sent {
    uint64_t digest;
    int64_t ms;
};
struct podgroups_sent *podgroups_sent(struct podgroups *p, const struct cluster_groups *all);
/* NULL-safe. */
void podgroups_free(struct podgroups *p);

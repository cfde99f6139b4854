// SPDX-License-Identifier: Apache-2.0
/*
 * podgroups - keeps PodGroups' statuses true, ends attempts that take too long, and looks after
 * gangs that have fallen apart. The loop's thread.
 *
 * An attempt begins when a quorum of members waits for room; when scheduleTimeoutSeconds (60 for
 * gangs without a PodGroup) are over it has failed: Events on the PodGroup and its pods, a backoff,
 * and the next attempt begins. A waiting gang holds nothing, so a failed attempt costs nobody
 * anything, and it is never the last one.
 *
 * Slots (replacement_hold.h) that nobody came for end here too, and records of gangs that had their
 * quorum (gangs.h) are sent again where they got lost.
 *
 * A gang is stale when it has had members on nodes, but fewer than its quorum, for that long: it
 * could not be healed. --stale-gang says what becomes of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/loop.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/binding/evictor.h"
#include "scheduler/queue/queue.h"
#include "scheduler/binding/pod_writer.h"

enum {
    PODGROUPS_DELAY_MS = 100, /* changes within it are one write */
    PODGROUPS_AGAIN_MS =
        10000, /* a status, or a gang's record, that the watch does not show is sent again */
};

struct podgroups;

struct podgroups_config {
    struct loop *loop;
    struct cluster *cluster;
    struct queue *queue;
    struct pod_writer *pod_writer;
    struct evictor *evictor;
    bool evict_stale;
    void (*changed)(void *arg); /* a gang may be tried again */
    void *arg;
};
struct podgroups *podgroups_new(const struct podgroups_config *c);
/* Something changed; cheap, may be called often. */
void podgroups_look(struct podgroups *p);
/* What is remembered of a gang. For tests, as the next one. */
struct podgroups_trial {
    int64_t since_ms;     /* since when a quorum waits for room; 0: it does not */
    int64_t since_ns;     /* the same on the wall, in whole seconds; stays when it was placed */
    int64_t broken_ms;    /* since when some are placed, but fewer than the quorum; 0: no */
    int64_t recording_ms; /* gangs_follow_record */
    bool told_broken;
    bool had_success; /* a member has succeeded: it is about to end */
};
struct podgroups_trial *podgroups_trial(struct podgroups *p, const struct gang *g);
/* The status of a PodGroup that was sent last, and when. */
struct podgroups_sent {
    uint64_t digest;
    int64_t ms;
};
struct podgroups_sent *podgroups_sent(struct podgroups *p, const struct cluster_groups *all);
/* NULL is fine. */
void podgroups_free(struct podgroups *p);

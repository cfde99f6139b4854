// SPDX-License-Identifier: Apache-2.0
/*
 * victims - remembers pods that were to be evicted and are still there. On the loop thread.
 *
 *     victims_sent ──► leaves ──┬─ gone
 *                               └─ due ──┐
 *     victims_failed ────────────────────┴──► stays ── delay over ──► may be chosen again
 *
 * A pod is due a minute after its deletionTimestamp, which includes its grace period. A pod that
 * stays is no victim and frees nothing (cluster_set_staying), so others are chosen meanwhile; each
 * time the delay is twice as long. It is remembered by its uid, an hour beyond that.
 */
#pragma once

#include <stdint.h>

#include "lib/base/heap.h"
#include "lib/base/loop.h"
#include "lib/base/map.h"
#include "scheduler/queue/queue.h"

enum { VICTIMS_STAY_MS = 30000, VICTIMS_STAY_MAX_MS = 1800000 };

struct victims {
    struct loop *loop;
    struct cluster *cluster;
    struct queue *queue;
    struct map by_uid;
    struct heap due;
    struct loop_timer timer;
    /* The pod was nominated to a node whose victims do not go: its nomination is worth nothing. */
    void (*give_up)(void *arg, struct cluster_pod *cp);
    void (*changed)(void *arg); /* gangs were woken */
    void *arg;
};

/* Borrows everything; the caller sets the hooks. */
void victims_init(struct victims *v, struct loop *loop, struct cluster *c, struct queue *q);
void victims_deinit(struct victims *v);
/* The pod is to go; it may be said again. */
void victims_sent(struct victims *v, const struct cluster_pod *cp);
/* The gang waits for the pods that leave the nodes of its nominations. */
void victims_await(struct victims *v, const struct gang *g);
/* It could not be evicted. */
void victims_failed(struct victims *v, struct cluster_pod *cp);
/* Carries out what is due at that time on the loop's clock. */
void victims_follow(struct victims *v, int64_t now_ms, int64_t wall_ms);

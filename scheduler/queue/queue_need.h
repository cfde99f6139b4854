// SPDX-License-Identifier: Apache-2.0
/*
 * queue_need - what a waiting gang needs at least of a node where a pod left: the smallest amount
 * that any of its waiting members asks for, of each resource by itself. Pure.
 *
 * A gang of which no member fits on the node that changed cannot go because of that change, so it
 * is not tried. It errs on the side of trying: amounts are rounded down, so that gangs of about the
 * same size share an answer; nominations and reservations of others count as free; resources that
 * are not listed here are not looked at; and for a gang that may preempt, less important pods and
 * those that are leaving count as gone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/cache/cluster.h"

/* Zero: any node may help. */
struct queue_need {
    bool set;
    bool preempts;
    int32_t priority; /* preempts: the highest of the members */
    int64_t cpu_milli, memory_bytes, ephemeral_bytes;
    int64_t card_gib; /* on one card */
    int64_t cards;    /* whole */
};

/* Another member that waits. */
void queue_need_add(struct queue_need *n, const struct cluster_pod *cp);
/* Rounds the amounts down. */
void queue_need_round(struct queue_need *n);
/* Whether the node, as it is now, may have what the gang needs. */
bool queue_need_may_fit(const struct queue_need *n, const struct cluster_node *cn);

// SPDX-License-Identifier: Apache-2.0
/*
 * reservation - capacity reserved for a gang that has waited long. Pure.
 *
 * A large gang needs many pods to have ended at the same moment. Small jobs need one, so they take
 * capacity as it comes free, and the gang never starts. Therefore a gang ages while it waits for
 * capacity. When it is old enough its start is planned: which running pods must end
 * (reservation_plan.h), when that will be (start_ms), and where its members go. From then on pods
 * of the same or a lower priority may use these nodes only if they do not delay it
 * (plugins/reservation_capacity.h): they end by start_ms, or the members fit beside them.
 *
 *                  follow: does not fit         look: old enough, fits an empty cluster
 *      (not waiting) ─────────────► AGING ─────────────────────────────────────────────────► KEPT
 *            ▲                       │  ▲                                                      │
 *            │ follow, ends          │  │ look: no progress for long; it is the youngest now   │
 *            ├───────────────────────┘  └──────────────────────────────────────────────────────┤
 *            └────────────────────────────────────────────────────────── follow, ends ─────────┘
 *
 * When pods end is said, learned or guessed (cache/expected_end.h). A gang is old enough after
 * after_ms; if its plan rests on a guess only after RESERVATION_PATIENCE_MEANS times the mean run
 * time: until then others may pass it. The plan is made anew while pods end, or do not when they
 * should have. Pods placed since the first plan, of which only the age is known, stay in the next
 * ones.
 *
 * Reservations cannot freeze the cluster. Each priority has at most one. A gang gets none if it
 * does not fit the empty cluster, or if its start is too far away. One lapses if for
 * RESERVATION_STALL_MEANS times the mean run time there are not fewer pods in its way than ever
 * before, so it lasts at most as often as long as there are pods; after one lapses the gang is the
 * youngest and must wait twice as long. Pods of higher priority ignore it. A reservation holds no
 * capacity and is in no digest: it only refuses others.
 *
 * Gangs that are placed as one (gangs_bundle) share one reservation: the plan has all their
 * quorums, and it ends with any of them. Its priority is the lowest of theirs.
 *
 * A new leader knows the age of a waiting gang: if a member's condition says that it was refused,
 * the gang has waited since its quorum was complete. The number of lapses and the plan are not
 * kept.
 *
 * Times are in milliseconds since the epoch, like those of pods.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cycle/cycle.h"
#include "scheduler/cycle/reservation_plan.h"

enum {
    RESERVATION_MAX = 16,         /* the highest priorities */
    RESERVATION_AGAIN_MS = 60000, /* retry if none could be made */
    RESERVATION_DOUBLINGS = 6,    /* of the waiting time, one per lapsed reservation */
    RESERVATION_AFTER_S = 300,    /* default of the option */
    RESERVATION_STALL_LEAST_MS = 1800000,
    RESERVATION_REPLAN_PART = 64, /* of the time until the start */
    /* times the mean run time */
    RESERVATION_PATIENCE_MEANS = 7,
    RESERVATION_STALL_MEANS = 16,
};

struct reservation_news {
    uint32_t events; /* for capacity no longer reserved */
    /* Its reservation_verdict may have changed, and that of the gangs placed with it; or NULL. */
    struct gang *looked;
    bool made;       /* capacity is reserved for it now */
    uint32_t lapsed; /* reservations that ended without a start */
};

/* Call after a cycle of the gang: it goes on waiting for capacity (ages), or stops. Returns the
 * events for capacity no longer reserved. */
uint32_t reservation_follow(struct cluster *c, struct gang *g, const struct cycle_result *r,
                            int64_t now_ms);
/* From a dump, gangs by key; until_ms as it was. */
void reservation_restore(struct cluster *c, struct gang *g, struct gang *const *gangs, size_t len,
                         const struct reservation_plan *plan, const struct reservation_term *term);
/* since_ms 0: it does not wait. */
void reservation_restore_age(struct cluster *c, struct gang *g, int64_t since_ms, int32_t lapses);
/* Drops ended reservations and may make one. Call between cycles, since it tries the cluster
 * without some of its pods. */
struct reservation_news reservation_reconcile(const struct pipeline *ask, int64_t now_ms,
                                              struct arena *a);
/* When reservation_reconcile is due; -1: no gang waits. */
int64_t reservation_next(const struct cluster *c);
/* What members are told about it: "room is kept for it on 3 nodes until it starts, ..."; NULL:
 * nothing. */
const char *reservation_message(const struct cluster *c, const struct gang *g, struct arena *a);

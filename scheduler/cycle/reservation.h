// SPDX-License-Identifier: Apache-2.0
/*
 * reservation - room that is kept for a gang that has waited long. Pure.
 *
 * A large gang needs many pods to have ended at the same moment. Small jobs need one: whenever room
 * comes free one of them takes it, and the gang never starts. So a gang ages while it waits for
 * room, and when it is old enough its start is planned: which of the pods that run now have to end
 * (reservation_plan.h), when that will be (start_ms), and where its members go then. From that
 * moment others of the same or a lower priority use these nodes only as far as they do not delay it
 * (plugins/reservation_capacity.h): either they are over by start_ms, or the members fit beside
 * them.
 *
 *                  follow: no room              look: old enough, fits an empty cluster
 *      (not waiting) ─────────────► AGING ─────────────────────────────────────────────────► KEPT
 *            ▲                       │  ▲                                                      │
 *            │ follow, ends          │  │ look: for_ms are over; it is the youngest now        │
 *            ├───────────────────────┘  └──────────────────────────────────────────────────────┤
 *            └────────────────────────────────────────────────────────── follow, ends ─────────┘
 *
 * Nobody can freeze the cluster with this: there is one reservation for each priority, none for a
 * gang that does not fit the cluster when empty or whose start is further away than it may last,
 * none lasts longer than for_ms, after one in vain the gang is the youngest and must wait twice as
 * long as before, and pods of a higher priority do not see it. A reservation holds nothing and is
 * in no digest: it only says no to others.
 *
 * Gangs that are placed as one (gangs_bundle) wait for one start: the plan has the quorums of all
 * of them, what is kept is kept for each, and it ends with any of them. Its priority is that of the
 * least important.
 *
 * The next leader knows how old a waiting gang is: if a member says that it was refused before (its
 * condition), the gang has waited since its quorum was complete. How often room was kept for it in
 * vain, and the plan itself, are made anew.
 *
 * Times are in milliseconds since the epoch, as those of pods are.
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
    RESERVATION_MAX = 16, /* at a time: the highest priorities */
    RESERVATION_AGAIN_MS =
        60000, /* a gang for which none could be made is looked at again after this */
    RESERVATION_STEP_MS =
        10000, /* time passes in steps, so that answers about nodes can be remembered */
    RESERVATION_DOUBLINGS = 6, /* of after_ms, one for each time that room was kept in vain */
    RESERVATION_AFTER_S = 300, /* the defaults of the options below */
    RESERVATION_FOR_S = 1800,
    RESERVATION_ASSUME_S = 600,
};

struct reservation_news {
    uint32_t events; /* room that is kept no more */
    /* its reservation_verdict may be another one now, and that of the gangs that it goes with; or
     * NULL */
    struct gang *looked;
    bool made;       /* room is kept for it from now on */
    uint32_t lapsed; /* how many were over without a start */
};

/* After a cycle of the gang: it goes on waiting for room (ages), or not. Returns the events: room
 * that is kept no more. */
uint32_t reservation_follow(struct cluster *c, struct gang *g, const struct cycle_result *r,
                            int64_t now_ms);
/* As read from a dump, the gangs by key; until_ms as it was. */
void reservation_restore(struct cluster *c, struct gang *g, struct gang *const *gangs, size_t len,
                         const struct reservation_plan *plan, int64_t made_ms, int64_t until_ms);
/* since_ms 0: it does not wait. */
void reservation_restore_age(struct cluster *c, struct gang *g, int64_t since_ms, int32_t lapses);
/* What is over goes, and one more gang may get room kept. Between cycles, since the cluster is
 * tried without some of its pods. */
struct reservation_news reservation_look(const struct pipeline *ask, int64_t now_ms,
                                         struct arena *a);
/* When the next look is due; -1: nobody waits. */
int64_t reservation_next(const struct cluster *c);
/* What the gang's members should know beside why they wait: "room is kept for it on 3 nodes until
 * ..."; NULL: nothing. */
const char *reservation_words(const struct cluster *c, const struct gang *g, struct arena *a);

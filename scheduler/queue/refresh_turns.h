// SPDX-License-Identifier: Apache-2.0
/*
 * refresh_turns - which waiting gang's sentence is brought up to date next. Pure.
 *
 * Gangs are in bands by how likely somebody reads their sentence and it changes. In each band the
 * one that was looked at longest ago is next, and it is due when the band's pause is over. The
 * bands take turns by a fixed wheel, so that with any number of young gangs the old ones still have
 * their share, and a large gang, whose members are told one by one, does not hold up others:
 *
 *     band        which                                                     pause   turns of 8
 *     YOUNG       refused for amounts, waits for less than ten minutes       10 s       4
 *     AMOUNTS     refused for amounts, waits longer                          30 s       1
 *     REST        refused for what no pod's end changes, or pods are missing 60 s       1
 *     UNFINISHED  looked at, and more of its members may have to be told     none       2
 *
 * A band in which nobody is due leaves its turn to the next. Gangs are ids, not pointers: one that
 * is gone keeps its place until its turn, and the caller finds that the queue does not know it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/ids.h"

enum refresh_band {
    REFRESH_YOUNG,
    REFRESH_AMOUNTS,
    REFRESH_REST,
    REFRESH_UNFINISHED,
    REFRESH_BANDS
};

enum { REFRESH_YOUNG_MS = 600000, REFRESH_PAUSE_MS = 10000 /* the shortest but for UNFINISHED */ };

struct refresh_entry {
    struct refresh_entry *older, *newer; /* a ring with refresh_turns.bands; NULL: not in a band */
    struct id gang;
    enum refresh_band band;
    int64_t due_ms;
};

struct refresh_turns {
    struct ids_table entries; /* by gang */
    struct refresh_entry bands[REFRESH_BANDS];
    size_t turn; /* of the wheel */
};

struct refresh_turn {
    struct id gang;
    enum refresh_band band;
};

/* Do not move it afterwards. */
void refresh_turns_init(struct refresh_turns *t);
void refresh_turns_deinit(struct refresh_turns *t);
/* amounts: refused for what pods hold, so that a pod's end changes the sentence. */
enum refresh_band refresh_turns_band(bool amounts, int64_t waited_ms);
/* The gang was looked at now: to the end of the band. */
void refresh_turns_put(struct refresh_turns *t, struct id gang, enum refresh_band band,
                       int64_t now_ms);
/* Whether it is in a band. */
bool refresh_turns_has(const struct refresh_turns *t, struct id gang);
/* Takes out the one whose turn it is. false: nobody is due. */
bool refresh_turns_take(struct refresh_turns *t, int64_t now_ms, struct refresh_turn *out);
/* When the next is due; -1: there is none. */
int64_t refresh_turns_next_due(const struct refresh_turns *t);

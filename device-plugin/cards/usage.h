// SPDX-License-Identifier: Apache-2.0
/* usage - what pods use of their cards, compared with their requests. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device-plugin/cpu/podcgroup.h"
#include "device-plugin/cpu/podmounts.h"

enum {
    USAGE_CALM = 3,            /* consecutive samples within the share that end "over" */
    USAGE_TOLD_MS = 60 * 1000, /* minimum time between two reports */
    USAGE_TOLD_MIB = 256,      /* a difference worth reporting, or a tenth of the request */
};

/* One process on one card. */
struct usage_process {
    int32_t card;
    int64_t pid;
    int64_t mib;                  /* -1: the driver does not report it */
    char uid[PODCGROUP_UID_SIZE]; /* of its pod; "": in none */
    char folder
        [PODMOUNTS_NAME_SIZE]; /* of its container's limits (isolation/shares); "": it has none */
};

/* What the pod's annotation says. */
struct usage_told {
    bool any;
    int64_t mib;
    bool over;
    int64_t at_ms; /* when; 0: before this process started */
};

struct usage {
    int64_t mib, processes;
    bool over; /* more than requested */
    int calm;
    struct usage_told told;
};

enum usage_change { USAGE_SAME, USAGE_OVER, USAGE_WITHIN };

/* Sums the usage of the pod's processes on all cards; a process on two cards counts once. uid "":
 * processes in no pod; NULL: all. */
void usage_sum(const struct usage_process *list, size_t len, const char *uid, int64_t *mib,
               int64_t *processes);
/* A new sample. asked_mib 0: no memory requested, so nothing is too much. */
enum usage_change usage_scan(struct usage *u, int64_t asked_mib, int64_t mib, int64_t processes);
/* After a sample: should it be reported? Then it counts as reported. Start, end and overuse are
 * reported at once, other changes when large and a minute after the last report. */
bool usage_is_news(struct usage *u, int64_t asked_mib, int64_t now_ms);

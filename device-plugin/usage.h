// SPDX-License-Identifier: Apache-2.0
/*
 * usage - what pods really use of their cards, against what they asked for. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device-plugin/podcgroup.h"

enum { USAGE_CALM = 3 /* looks in a row within the share before it counts as kept again */ };

/* One process on one card. */
struct usage_process {
    int32_t card;
    int64_t pid;
    int64_t mib;                  /* -1: the driver does not tell */
    char uid[PODCGROUP_UID_SIZE]; /* of its pod; "": in none */
};

struct usage {
    int64_t mib, processes;
    bool over; /* more than it asked for */
    int calm;
};

enum usage_change { USAGE_SAME, USAGE_OVER, USAGE_WITHIN };

/* Sums up what the pod's processes use on all its cards; a process on two cards counts once. uid "": those in no pod; NULL:
 * all. */
void usage_sum(const struct usage_process *list, size_t len, const char *uid, int64_t *mib,
               int64_t *processes);
/* A new look. asked_mib 0: it asked for no memory, so nothing is too much. */
enum usage_change usage_look(struct usage *u, int64_t asked_mib, int64_t mib, int64_t processes);

// SPDX-License-Identifier: Apache-2.0
/*
 * usage - what pods really use of their cards, against what they asked for. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device-plugin/cpu/podcgroup.h"
#include "device-plugin/cpu/podmounts.h"

enum {
    USAGE_CALM = 3,            /* looks in a row within the share before it counts as kept again */
    USAGE_TOLD_MS = 60 * 1000, /* between two that are told, at least */
    USAGE_TOLD_MIB = 256, /* a difference that is worth telling, or a tenth of what was asked for */
};

/* One process on one card. */
struct usage_process {
    int32_t card;
    int64_t pid;
    int64_t mib;                  /* -1: the driver does not tell */
    char uid[PODCGROUP_UID_SIZE]; /* of its pod; "": in none */
    char folder
        [PODMOUNTS_NAME_SIZE]; /* of its container's limits (isolation/shares); "": it has none */
};

/* What the pod's annotation says. */
struct usage_told {
    bool any;
    int64_t mib;
    bool over;
    int64_t at_ms; /* when; 0: before this process began */
};

struct usage {
    int64_t mib, processes;
    bool over; /* more than it asked for */
    int calm;
    struct usage_told told;
};

enum usage_change { USAGE_SAME, USAGE_OVER, USAGE_WITHIN };

/* Sums up what the pod's processes use on all its cards; a process on two cards counts once. uid "": those in no pod; NULL:
 * all. */
void usage_sum(const struct usage_process *list, size_t len, const char *uid, int64_t *mib,
               int64_t *processes);
/* A new look. asked_mib 0: it asked for no memory, so nothing is too much. */
enum usage_change usage_look(struct usage *u, int64_t asked_mib, int64_t mib, int64_t processes);
/* After a look: is it to be told? Then it counts as told. Beginning, ending and going beyond what was asked for are told at once, other changes when they are large and
 * a minute has passed. */
bool usage_is_news(struct usage *u, int64_t asked_mib, int64_t now_ms);

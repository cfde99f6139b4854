// SPDX-License-Identifier: Apache-2.0
/*
 * loop_time - what the loop's thread spends its time on, as
 * cosched_scheduler_loop_seconds_total{work}. Each kind of work encloses what it does at a time:
 *
 *     int64_t began_us = clock_mono_us();
 *     ...
 *     loop_time_add(LOOP_TIME_ATTEMPTS, began_us);
 */
#pragma once

#include <stdint.h>

enum loop_time_work {
    LOOP_TIME_ATTEMPTS,     /* scheduling cycles, and what they submit */
    LOOP_TIME_INTAKE,       /* what the watches say */
    LOOP_TIME_POLICIES,     /* statuses and deletion costs of ResourcePolicies */
    LOOP_TIME_PODGROUPS,    /* PodGroups' statuses, timeouts and stale gangs */
    LOOP_TIME_STATUSES,     /* telling waiting pods why */
    LOOP_TIME_RESERVATIONS, /* planning the start of gangs */
    LOOP_TIME_OTHER,        /* results of Bindings and evictions, checks of claims */
    LOOP_TIME_WORKS
};

void loop_time_register(void);
/* From began_us (clock_mono_us) until now. */
void loop_time_add(enum loop_time_work work, int64_t began_us);

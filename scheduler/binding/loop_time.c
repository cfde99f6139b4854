// SPDX-License-Identifier: Apache-2.0
#include "scheduler/binding/loop_time.h"

#include "lib/base/clock.h"
#include "lib/base/metrics.h"

static struct metric spent = {
    .kind = METRIC_COUNTER,
    .name = "cosched_scheduler_loop_seconds_total",
    .help = "Time of the thread that decides, by what it did: attempts, intake, policies, "
            "podgroups, statuses, reservations, other.",
    .label = "work",
    .seconds = true};

void loop_time_register(void)
{
    metrics_register(&spent);
}

void loop_time_add(enum loop_time_work work, int64_t began_us)
{
    static const char *const names[LOOP_TIME_WORKS] = {
        [LOOP_TIME_ATTEMPTS] = "attempts", [LOOP_TIME_INTAKE] = "intake",
        [LOOP_TIME_POLICIES] = "policies", [LOOP_TIME_PODGROUPS] = "podgroups",
        [LOOP_TIME_STATUSES] = "statuses", [LOOP_TIME_RESERVATIONS] = "reservations",
        [LOOP_TIME_OTHER] = "other",
    };
    metrics_add(&spent, names[work], clock_mono_us() - began_us);
}

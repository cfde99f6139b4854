// SPDX-License-Identifier: Apache-2.0
/*
 * dump_reservations - the part of a dump about gangs that wait for capacity or have lost members.
 * Pure; part of dump.h. Members of "cosched", each only if not empty; replay_load_dump.h reads them
 * back:
 *
 *     "aging":[{"gang":"gang ns/x","since":TIME,"lapses":1}]
 *         gangs that wait for capacity, or whose reservation lapsed (reservation.h)
 *     "reserving":{"clock":TIME,"assumeMs":600000}
 *         the time that the next member refers to, and the assumed run time of pods without one
 *     "reservations":[{"for":"gang ns/x","gangs":["gang ns/x"],"priority":0,"made":TIME,
 *                      "start":TIME,"until":TIME,"nodes":{"n1":["ns/pod"]}}]
 *     "slots":[{"gang":"gang ns/x","node":"n1","pod":{...}}]
 *         capacity of lost members (replacement_hold.h)
 */
#pragma once

#include "lib/base/arena.h"
#include "lib/base/json.h"
#include "scheduler/cache/cluster.h"

void dump_reservations_print(const struct cluster *c, struct arena *a, struct json_writer *w);

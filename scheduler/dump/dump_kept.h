// SPDX-License-Identifier: Apache-2.0
/*
 * dump_kept - the part of a dump about gangs that wait for room or have lost members: how long they have waited, what is kept for them. Pure; part of dump.h.
 *
 * Members of "cosched", each only where there is something to say; who reads them back is replay_load_kept.h:
 *
 *     "aging":[{"gang":"gang ns/x","since":TIME,"lapses":1}]           gangs that wait for room, or to which it was given in vain (reservation.h)
 *     "reserving":{"clock":TIME,"assumeMs":600000}                     what time it is for the next member, and how long pods run that do not say
 *     "reservations":[{"for":"gang ns/x","gangs":["gang ns/x"],"priority":0,"made":TIME,"start":TIME,"until":TIME,"nodes":{"n1":["ns/pod"]}}]
 *     "slots":[{"gang":"gang ns/x","node":"n1","pod":{...}}]           room of members that were lost (slots.h)
 */
#pragma once

#include "lib/base/arena.h"
#include "lib/base/json.h"
#include "scheduler/cache/cluster.h"

void dump_kept_print(const struct cluster *c, struct arena *a, struct json_writer *w);

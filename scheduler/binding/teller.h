// SPDX-License-Identifier: Apache-2.0
/* teller - tells parked gangs' pods why they wait (pod_writer.h): those that were just refused in
 * the same round, and now and then the others, whose earlier report is due to be renewed. The
 * loop's thread. */
#pragma once

#include <stdint.h>

#include "lib/base/ids.h"
#include "lib/base/loop.h"
#include "lib/base/vec.h"
#include "scheduler/binding/pod_writer.h"
#include "scheduler/queue/queue.h"

enum { TELLER_ALL_MS = 100 }; /* between two passes over all parked gangs */

struct teller {
    struct loop *loop;
    const struct queue *queue;
    struct pod_writer *pod_writer; /* NULL: tells nobody */
    struct loop_timer timer;
    struct ids_table due;          /* by gang: int64_t ms when due; -1: all told */
    struct VEC(struct id) refused; /* gangs since the timer last fired */
    int64_t all_ms;                /* when all parked ones are looked at again */
};

void teller_init(struct teller *t, struct loop *loop, const struct queue *queue);
void teller_start(struct teller *t, struct pod_writer *s);
/* The queue has a new reason for the gang. */
void teller_note(struct teller *t, const struct gang *g);
void teller_pause(struct teller *t);
void teller_deinit(struct teller *t);

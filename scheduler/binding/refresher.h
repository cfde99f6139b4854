// SPDX-License-Identifier: Apache-2.0
/*
 * refresher - keeps what waiting pods are told true while nothing wakes them: amounts change, pods
 * come and go elsewhere, and a condition that is read ten minutes later should not say what was
 * free ten minutes ago. The loop's thread.
 *
 * Every REFRESHER_TICK_MS it looks at the gangs whose turn it is (refresh_turns.h), until one of
 * them needs a write: at most 5 writes/s and 20 looks/s. The look at a large gang takes longer, and
 * so does the pause behind it: all of them have at most a REFRESHER_SHARE-th of the loop's time. A
 * look asks what an attempt would say (attempt_ask), which changes nothing. Nobody is looked at
 * while other conditions wait to be written.
 */
#pragma once

#include "lib/base/loop.h"
#include "scheduler/binding/pod_writer.h"
#include "scheduler/cycle/attempt.h"
#include "scheduler/queue/queue.h"
#include "scheduler/queue/refresh_turns.h"

enum {
    REFRESHER_TICK_MS = 200,
    REFRESHER_LOOKS = 4,       /* per tick */
    REFRESHER_SLICE_US = 5000, /* after which no other look begins in this tick */
    REFRESHER_SHARE = 20
};

struct refresher {
    struct loop *loop;
    struct attempt *attempt;
    struct queue *queue;
    struct pod_writer *pod_writer; /* set by refresher_start */
    /* The gang's class changed: tell its members as after an attempt. */
    void (*changed)(void *arg, struct gang *g);
    void *arg;
    struct refresh_turns turns;
    struct loop_timer timer;
};

void refresher_init(struct refresher *r, struct loop *loop, struct attempt *attempt,
                    struct queue *queue, void (*changed)(void *arg, struct gang *g), void *arg);
void refresher_start(struct refresher *r, struct pod_writer *pod_writer);
/* After an attempt: the gang goes on waiting. */
void refresher_note(struct refresher *r, const struct gang *g, const struct cycle_result *result);
void refresher_pause(struct refresher *r);
void refresher_deinit(struct refresher *r);

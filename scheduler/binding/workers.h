// SPDX-License-Identifier: Apache-2.0
/*
 * workers - a few threads and a queue of jobs. What waits for the network waits here, never in the
 * loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"

struct workers;

struct workers_config {
    unsigned threads;
    size_t capacity; /* jobs that wait; 0: no bound (the submitter bounds them) */
    /* On thread number `thread`; takes the job. */
    void (*run)(void *arg, unsigned thread, void *job);
    void (*dispose)(void *job); /* a job that will not be run */
    void *arg;
};

int workers_start(struct workers **out, const struct workers_config *c, struct error *err);
/* Any thread. Takes the job. false: full or stopping, the job was disposed of. */
bool workers_submit(struct workers *w, void *job);
/* Any thread. Jobs that wait or run. */
size_t workers_pending(struct workers *w);
/* Jobs that wait are disposed of, those that run are finished, then the threads end. NULL is
 * fine. */
void workers_stop(struct workers *w);

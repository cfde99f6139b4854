// SPDX-License-Identifier: Apache-2.0
/* workers - a few threads with a job queue, so that the loop never waits for the network. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"

struct workers;

struct workers_config {
    unsigned threads;
    size_t capacity; /* of the queue; 0: unbounded (the submitter bounds it) */
    /* On thread number `thread`; takes the job. */
    void (*run)(void *arg, unsigned thread, void *job);
    void (*dispose)(void *job); /* a job that will not run */
    void *arg;
};

int workers_start(struct workers **out, const struct workers_config *c, struct error *err);
/* Any thread. Takes the job. false: full or stopping, and the job was disposed of. */
bool workers_submit(struct workers *w, void *job);
/* Any thread. Queued and running jobs. */
size_t workers_pending(struct workers *w);
/* Disposes of queued jobs, finishes running ones, and ends the threads. NULL-safe. */
void workers_stop(struct workers *w);

// SPDX-License-Identifier: Apache-2.0
/*
 * shares_worker - the thread for all work on containers' files. How long such work takes is up to
 * the containers (their locks, the size of their files), so the main loop and the metrics never do
 * it: they ask for a look, and read the result of the last one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device-plugin/isolation/shares.h"
#include "lib/base/error.h"

enum { SHARES_WORKER_MEASURES = 4096 };

struct shares_worker_config {
    const char *base; /* borrowed */
    /* A look is complete. On the worker's thread. */
    void (*looked)(void *arg);
    void *arg;
};

struct shares_worker;

int shares_worker_start(struct shares_worker **out, const struct shares_worker_config *c,
                        struct error *err);
/* false: it does not return from a call of the kernel; the thread is left behind, and neither it
 * nor what `looked` uses may be freed. */
bool shares_worker_stop(struct shares_worker *w, int64_t wait_ms);
/* After shares_worker_stop. NULL is fine. */
void shares_worker_free(struct shares_worker *w);

/* Asks for a look at all regions. false: the last look is not complete. */
bool shares_worker_ask(struct shares_worker *w);
/* Writes device time, see shares_measure. Beyond SHARES_WORKER_MEASURES that wait it is dropped. */
void shares_worker_measure(struct shares_worker *w, const char *folder, uint32_t card, uint64_t ns,
                           uint64_t now_ns);
/* The cards of the last look; none before the first. Any thread. Does not wait for a look. */
void shares_worker_each(struct shares_worker *w,
                        void (*report)(void *arg, const struct shares_scan *l), void *arg);
/* For tests: until all that was asked for is done. */
void shares_worker_settle(struct shares_worker *w);

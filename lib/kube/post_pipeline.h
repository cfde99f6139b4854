// SPDX-License-Identifier: Apache-2.0
/*
 * post_pipeline - many small writes under way at once, for the price of few system calls: one
 * thread, epoll, a number of kept connections.
 *
 * It only knows the good case. A write is sent once and never again; whatever comes of it is
 * reported with all that is known, and an answer other than 2xx is the owner's to deal with.
 * Results come in no particular order, on the pipeline's thread; good news a few milliseconds late
 * while there is more to do, several at a time, since whoever gets them would be woken for each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/kube/config.h"

struct post_pipeline_answer {
    struct error error; /* code ERROR_NONE: 2xx */
    bool never_sent;    /* not a byte of it went out */
    int64_t until_ms;   /* on clock_mono_ms: the server was told to give up then */
    int64_t began_us;   /* on clock_mono_us: when it was composed; 0: never */
    int64_t ended_us;   /* and when the answer came, or was no longer awaited */
};

struct post_pipeline_config {
    unsigned connections; /* at most, made when there is work for them */
    bool ahead;           /* made before there is work, and renewed while there is none */
    int64_t timeout_ms;   /* of each write, as a whole; also told to the server (?timeout=) */
    const char *user_agent;
    /* What to POST, the path without a query, the body as JSON. The write's time runs already: what
     * compose finds out (a fence) still holds when it is sent. -1: it is not sent, and done says
     * why. Neither may wait. */
    int (*compose)(void *arg, void *job, struct strbuf *path, struct strbuf *body,
                   struct error *err);
    /* Takes the job. */
    void (*done)(void *arg, void *job, const struct post_pipeline_answer *a);
    void (*dispose)(void *job); /* when we stop: nothing is known of it */
    void *arg;
};

struct post_pipeline;
int post_pipeline_start(struct post_pipeline **out, struct kube_config *kube,
                        const struct kube_options *o, const struct post_pipeline_config *c,
                        struct error *err);
/* Any thread. Takes the job. The owner bounds how many. */
void post_pipeline_submit(struct post_pipeline *p, void *job);
/* What is under way is given up, at once. After this no callback is called. NULL is fine. */
void post_pipeline_stop(struct post_pipeline *p);

// SPDX-License-Identifier: Apache-2.0
/*
 * post_pipeline - many small concurrent writes with few system calls: one thread, epoll, a number
 * of kept connections.
 *
 * A write is sent once and never repeated. Its outcome is reported with all that is known; the
 * owner handles every answer other than 2xx. Results arrive in no particular order, on the
 * pipeline's thread. While there is more to do, successes are reported in batches, a few
 * milliseconds late, so that the receiver is not woken for each.
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
    bool never_sent;    /* no byte was sent */
    int64_t until_ms;   /* on clock_mono_ms: the server's deadline for it */
    int64_t began_us;   /* on clock_mono_us: when it was composed; 0: never */
    int64_t ended_us;   /* when the answer arrived, or we stopped waiting */
};

struct post_pipeline_config {
    unsigned connections; /* maximum, made on demand */
    bool ahead;           /* made before there is work, and renewed while idle */
    int64_t timeout_ms;   /* of each write, as a whole; also sent to the server (?timeout=) */
    const char *user_agent;
    /* What to POST: the path without a query, the body as JSON. The write's time already runs, so
     * what compose checks (a fence) still holds when it is sent. -1: it is not sent, and done gets
     * the reason. Neither may block. */
    int (*compose)(void *arg, void *job, struct strbuf *path, struct strbuf *body,
                   struct error *err);
    /* Takes the job. */
    void (*done)(void *arg, void *job, const struct post_pipeline_answer *a);
    void (*dispose)(void *job); /* on stop: the outcome is unknown */
    void *arg;
};

struct post_pipeline;
int post_pipeline_start(struct post_pipeline **out, struct kube_config *kube,
                        const struct kube_options *o, const struct post_pipeline_config *c,
                        struct error *err);
/* Any thread. Takes the job. The owner limits how many. */
void post_pipeline_submit(struct post_pipeline *p, void *job);
/* Gives up all writes at once. No callback is called afterwards. NULL is allowed. */
void post_pipeline_stop(struct post_pipeline *p);

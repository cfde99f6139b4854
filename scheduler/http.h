// SPDX-License-Identifier: Apache-2.0
/* http - /debug/cluster: a dump of the scheduler's model (dump.h), on the probes' server. The model
 * belongs to the loop's thread, which prints the dump in one go: in slices it would show a cluster
 * that never existed, and replaying that proves nothing. The loop blocks meanwhile (README has the
 * figure). So dumps take at most a tenth of the loop's time, and texts being sent to slow readers
 * at most HTTP_TEXT_MAX bytes; beyond either the answer is 503, with the time to wait. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/httpd.h"
#include "lib/base/loop.h"
#include "scheduler/cache/cluster.h"

enum {
    HTTP_TEXT_MAX = 256 * 1024 * 1024,
    HTTP_SENDING_MS = 20000, /* by then the server has sent or dropped the answer */
    HTTP_WAIT_MS = 5000,     /* for the loop */
    HTTP_SHARE = 10          /* dumps take 1/HTTP_SHARE of the loop's time */
};

struct http {
    const struct cluster *cluster;
    /* Completes the model before it is dumped; NULL: it is complete. Set after http_init. */
    void (*settle)(void *arg);
    void *settle_arg;
    struct mailbox *asks;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed;
    _Atomic bool serving;
    size_t last_len;    /* loop's thread: size of the last dump, a guess for the next */
    int64_t not_before; /* under the lock; monotonic ms */
    int64_t window_ms;  /* start of the current window of HTTP_SENDING_MS */
    size_t window_bytes;
};

int http_init(struct http *h, struct loop *loop, const struct cluster *c, struct error *err);
/* Whether the model is complete; until then the answer is 503. Any thread. */
void http_serve(struct http *h, bool complete);
/* For probes_start; arg is the struct http. On one of the server's threads. */
void http_answer(void *arg, const struct httpd_request *request, struct httpd_response *response);
/* Answers waiting requests with 503. Before the server is stopped. NULL-safe before http_init. */
void http_close(struct http *h);
/* After the server was stopped. */
void http_deinit(struct http *h);

// SPDX-License-Identifier: Apache-2.0
/* connector - makes connections one after the other on its own thread, so that the thread that
 * serves them never waits for a handshake. */
#pragma once

#include <stdint.h>

#include "lib/base/error.h"
#include "lib/kube/config.h"
#include "lib/kube/conn.h"

struct connector_config {
    const char *user_agent;
    int64_t timeout_ms;        /* of each attempt */
    void (*notify)(void *arg); /* a result can be taken; on the connector's thread */
    void *arg;
};

struct connector;
int connector_start(struct connector **out, struct kube_config *kube,
                    const struct connector_config *c, struct error *err);
/* Requests n more connections. A failed attempt cancels all that are requested by then. */
void connector_want(struct connector *c, unsigned n);
/* 1: *out is a connection, which the caller owns. -1: an attempt failed. 0: nothing yet. */
int connector_take(struct connector *c, struct conn **out, struct error *err);
/* Stops at once, even during a handshake. NULL is allowed. */
void connector_stop(struct connector *c);

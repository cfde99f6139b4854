// SPDX-License-Identifier: Apache-2.0
/*
 * connector - makes connections on a thread of its own, one after the other: whoever serves many of
 * them must not wait for a handshake.
 */
#pragma once

#include <stdint.h>

#include "lib/base/error.h"
#include "lib/kube/config.h"
#include "lib/kube/conn.h"

struct connector_config {
    const char *user_agent;
    int64_t timeout_ms;        /* of each attempt */
    void (*notify)(void *arg); /* something can be taken; on the connector's thread */
    void *arg;
};

struct connector;
int connector_start(struct connector **out, struct kube_config *kube,
                    const struct connector_config *c, struct error *err);
/* So many more, please. An attempt that fails ends all that are wanted by then. */
void connector_want(struct connector *c, unsigned n);
/* 1: a connection, the caller's from now on. -1: an attempt failed. 0: nothing yet. */
int connector_take(struct connector *c, struct conn **out, struct error *err);
/* At once, also in the middle of a handshake. NULL is fine. */
void connector_stop(struct connector *c);

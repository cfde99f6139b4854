// SPDX-License-Identifier: Apache-2.0
/*
 * conn - a connection to the API server that is ours to speak over: libcurl finds the address, goes
 * through the proxy, makes the TLS handshake and verifies it (transport: the same rules as http's),
 * then carries bytes.
 *
 * One thread uses it at a time; conn_cancel is for any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/kube/config.h"

struct conn;

int conn_new(struct conn **out, struct kube_config *config, const char *user_agent,
             struct error *err);
/* By a reset when an answer is awaited. NULL is fine. */
void conn_free(struct conn *d);
/* Waits for it, so long at most. ERROR_UNAVAILABLE, or ERROR_CANCELLED. Once. */
int conn_connect(struct conn *d, int64_t timeout_ms, struct error *err);
/* conn_connect ends, now or when it is called. */
void conn_cancel(struct conn *d);

int conn_fd(const struct conn *d);           /* to wait for; after conn_connect */
const char *conn_host(const struct conn *d); /* for the Host header */
const char *conn_root(const struct conn *d); /* of every path; "" when the server's URL has none */

/* Before a write's first byte: from now on an answer is awaited, and the kernel gives up on what is
 * unacknowledged after limit_ms. */
void conn_begin(struct conn *d, int64_t limit_ms);
/* The answer has come. */
void conn_end(struct conn *d);
/* 0: *done bytes went, or came; 0 of them: not now. -1: the connection is lost. A peer that closed:
 * *closed. */
int conn_send(struct conn *d, const char *bytes, size_t n, size_t *done, struct error *err);
int conn_recv(struct conn *d, char *buf, size_t size, size_t *done, bool *closed,
              struct error *err);

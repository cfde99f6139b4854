// SPDX-License-Identifier: Apache-2.0
/*
 * conn - a connection to the API server on which we speak HTTP ourselves: libcurl resolves the
 * address, uses the proxy, makes and verifies the TLS handshake (transport: the same rules as
 * http's), then carries bytes.
 *
 * One thread uses it at a time; any thread may call conn_cancel.
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
/* Closes it, by a reset while an answer is awaited. NULL is allowed. */
void conn_free(struct conn *d);
/* Waits at most timeout_ms. ERROR_UNAVAILABLE, or ERROR_CANCELLED. Call once. */
int conn_connect(struct conn *d, int64_t timeout_ms, struct error *err);
/* Ends conn_connect, now or when it is called. */
void conn_cancel(struct conn *d);

int conn_fd(const struct conn *d);           /* for poll, after conn_connect */
const char *conn_host(const struct conn *d); /* for the Host header */
const char *conn_root(const struct conn *d); /* prefix of all paths; "" if the URL has none */

/* Call before a write's first byte: from now on an answer is awaited, and the kernel drops
 * unacknowledged bytes after limit_ms. */
void conn_begin(struct conn *d, int64_t limit_ms);
/* The answer has arrived. */
void conn_end(struct conn *d);
/* 0: *done bytes were transferred; 0 bytes: would block. -1: the connection is lost. *closed: the
 * peer closed it. */
int conn_send(struct conn *d, const char *bytes, size_t n, size_t *done, struct error *err);
int conn_recv(struct conn *d, char *buf, size_t size, size_t *done, bool *closed,
              struct error *err);

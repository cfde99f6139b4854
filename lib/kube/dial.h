// SPDX-License-Identifier: Apache-2.0
/*
 * dial - a connection to the API server that is ours to speak over: libcurl finds the address, goes through the proxy, makes the TLS handshake and verifies it
 * (transport: the same rules as http's), then carries bytes.
 *
 * One thread uses it at a time; dial_cancel is for any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/kube/config.h"

struct dial;

int dial_new(struct dial **out, struct kube_config *config, const char *user_agent,
             struct error *err);
/* By a reset when an answer is awaited. NULL is fine. */
void dial_free(struct dial *d);
/* Waits for it, so long at most. ERROR_UNAVAILABLE, or ERROR_CANCELLED. Once. */
int dial_connect(struct dial *d, int64_t timeout_ms, struct error *err);
/* dial_connect ends, now or when it is called. */
void dial_cancel(struct dial *d);

int dial_fd(const struct dial *d);           /* to wait for; after dial_connect */
const char *dial_host(const struct dial *d); /* for the Host header */
const char *dial_root(const struct dial *d); /* of every path; "" when the server's URL has none */

/* Before a write's first byte: from now on an answer is awaited, and the kernel gives up on what is unacknowledged after limit_ms. */
void dial_begin(struct dial *d, int64_t limit_ms);
/* The answer has come. */
void dial_end(struct dial *d);
/* 0: *done bytes went, or came; 0 of them: not now. -1: the connection is lost. A peer that closed: *closed. */
int dial_send(struct dial *d, const char *bytes, size_t n, size_t *done, struct error *err);
int dial_recv(struct dial *d, char *buf, size_t size, size_t *done, bool *closed,
              struct error *err);

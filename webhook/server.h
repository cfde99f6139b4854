// SPDX-License-Identifier: Apache-2.0
/* server - HTTPS endpoint for the API server: POST /mutate and /validate. Handles limits, metrics
 * and logs; review computes the replies. */
#pragma once

#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "webhook/review.h"

struct server_options { /* rows: server_option_rows */
    const char *address;
    int64_t port;
    int64_t threads;
    int64_t max_body_bytes;
    int64_t max_connections;
    int64_t idle_timeout_ms;
    const char *client_ca_file; /* NULL: none */
};
extern const struct option_row server_option_rows[];

struct server;

/* Listens at once; handshakes fail until server_set_certificate. Copies config, not its targets. */
int server_start(struct server **out, const struct server_options *o,
                 const struct review_config *config, struct error *err);
/* From now on every reply closes its connection so that clients reconnect elsewhere. Call some time
 * before server_stop. Any thread. */
void server_drain(struct server *s);
/* Answers requests in progress first. NULL is fine. */
void server_stop(struct server *s);
uint16_t server_port(const struct server *s);
/* Any thread. Open connections keep their certificate. */
int server_set_certificate(struct server *s, const char *cert_pem, const char *key_pem,
                           struct error *err);

// SPDX-License-Identifier: Apache-2.0
/* request - a write as the bytes that are sent, for connections without libcurl (conn). */
#pragma once

#include <stdint.h>

#include "lib/base/str.h"
#include "lib/kube/config.h"
#include "lib/kube/conn.h"

struct request {
    const char *user_agent;
    const struct strbuf *path; /* without a query */
    const struct strbuf *body; /* JSON */
    int64_t timeout_ms;        /* told to the server */
};

/* Appends a POST with the current token. Reserves memory first, so no copy of the token is left
 * behind. The caller wipes it after sending. */
void request_print(const struct request *r, const struct conn *d, struct kube_config *kube,
                   struct strbuf *out);

// SPDX-License-Identifier: Apache-2.0
/* transport - settings of every connection to the API server, whether libcurl (http) or we (conn)
 * speak HTTP on it: address, CA, certificate, proxy, and what happens to bytes of abandoned writes.
 * Only http and conn include this. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <curl/curl.h>

#include "lib/kube/config.h"

enum { TRANSPORT_CONNECT_MS = 10000, TRANSPORT_SOCKETS = 8 };

struct transport {
    struct kube_config *config;
    char *base;                    /* prefix of the path in the URL */
    char *host;                    /* of the Host header */
    bool renamed;                  /* by tls-server-name: libcurl would send another Host */
    struct curl_slist *connect_to; /* for tls-server-name */
    /* One, except while several addresses are tried. */
    curl_socket_t sockets[TRANSPORT_SOCKETS];
    size_t sockets_len;
    bool unanswered; /* a write was sent without an answer yet: closing is a reset */
    char curl_text[CURL_ERROR_SIZE];
};

void transport_init(struct transport *t, struct kube_config *config);
/* Call after the easy handle is freed. */
void transport_deinit(struct transport *t);

/* Every option matters (trusted CA, address, what is not repeated), so the first one that curl
 * refuses fails the whole setup: curl may be built without it, and refuses strings over 8 MB. */
#define TRANSPORT_SET(rc, easy, option, value) \
    ((rc) = (rc) == CURLE_OK ? curl_easy_setopt(easy, option, value) : (rc))
/* t must not move while the handle lives. */
CURLcode transport_set_up(struct transport *t, CURL *easy, const char *user_agent);

/* How long bytes sent now may stay unacknowledged; 0: the system's default. */
void transport_limit_delivery(struct transport *t, int64_t ms);

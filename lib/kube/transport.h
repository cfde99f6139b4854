// SPDX-License-Identifier: Apache-2.0
/*
 * transport - what every connection to the API server has in common, whoever speaks over it (http:
 * libcurl itself; conn: we): which address, which CA, which certificate, which proxy, and what
 * becomes of bytes that nobody waits for any more. Only http and conn include this.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <curl/curl.h>

#include "lib/kube/config.h"

enum { TRANSPORT_CONNECT_MS = 10000, TRANSPORT_SOCKETS = 8 };

struct transport {
    struct kube_config *config;
    char *base;                    /* what stands before the path in the URL */
    char *host;                    /* of the Host header */
    bool renamed;                  /* by tls-server-name: libcurl would say another host */
    struct curl_slist *connect_to; /* for tls-server-name */
    /* One, but for the time in which several addresses are tried. */
    curl_socket_t sockets[TRANSPORT_SOCKETS];
    size_t sockets_len;
    bool unanswered; /* a write was sent, and nothing came back yet: closing is a reset */
    char curl_text[CURL_ERROR_SIZE];
};

void transport_init(struct transport *t, struct kube_config *config);
/* After the easy handle is gone. */
void transport_deinit(struct transport *t);

/* Every option matters (which CA is trusted, which address is asked, what is not repeated), so the
 * first that curl does not take fails the whole: it may be built without it, and strings over 8 MB
 * are refused. */
#define TRANSPORT_SET(rc, easy, option, value) \
    ((rc) = (rc) == CURLE_OK ? curl_easy_setopt(easy, option, value) : (rc))
/* t stays where it is as long as the handle lives. */
CURLcode transport_set_up(struct transport *t, CURL *easy, const char *user_agent);

/* How long what is sent now may stay unacknowledged; 0: as long as the system thinks. */
void transport_limit_delivery(struct transport *t, int64_t ms);

// SPDX-License-Identifier: Apache-2.0
/*
 * server_tls - TLS on a socket that does not block. With pki.c the only file here that knows
 * OpenSSL.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "lib/base/error.h"

struct server_tls_context;
struct server_tls;

/* PEM chain, leaf first, and its key. TLS 1.2 and later; ALPN http/1.1. */
int server_tls_context_new(struct server_tls_context **out, const char *cert_pem,
                           const char *key_pem, struct error *err);
void server_tls_context_free(struct server_tls_context *c); /* NULL is fine */

struct server_tls *server_tls_new(struct server_tls_context *c, int fd); /* fd stays the caller's */
void server_tls_free(struct server_tls *t);                              /* NULL is fine */

/* More than 0: bytes. 0: the peer has closed. Otherwise one of these. */
enum { SERVER_TLS_WANT_READ = -1, SERVER_TLS_WANT_WRITE = -2, SERVER_TLS_FAILED = -3 };
ssize_t server_tls_read(struct server_tls *t, char *buf, size_t n);
/* After a WANT_* the same bytes (there may be more of them now) are written again. */
ssize_t server_tls_write(struct server_tls *t, const char *buf, size_t n);
void server_tls_say_goodbye(struct server_tls *t); /* close_notify, if it can be sent at once */

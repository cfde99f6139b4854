// SPDX-License-Identifier: Apache-2.0
/* wire - a connection of the twin: bytes in, bytes out, plain or TLS. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/str.h"

struct wire;
struct wire_context; /* TLS */
struct wire_context *wire_context_new(const char *cert_pem, const char *key_pem,
                                      const char *client_ca_pem);
void wire_context_free(struct wire_context *c);

/* NULL when the handshake fails; fd is closed then. */
struct wire *wire_accept(int fd, struct wire_context *context);
void wire_close(struct wire *w, bool reset);
bool wire_write(struct wire *w, const char *bytes, size_t n);
/* One request: its head (with the empty line) and body. false: closed, or nonsense. */
bool wire_read_request(struct wire *w, struct strbuf *head, struct strbuf *body);
bool wire_peer_closed(struct wire *w);

// SPDX-License-Identifier: Apache-2.0
/*
 * call - one HTTP request under way in cosched-local, and its answer. The server owns it. The
 * handler answers exactly once, immediately or later (a webhook may have to be called first), by
 * call_reply, call_stream_* or call_drop. Loop thread only.
 *
 * A call whose peer has closed stays valid until it is answered; the answer is discarded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"

struct call;

const char *call_method(const struct call *c);
const char *call_path(const struct call *c); /* percent-decoded, without the query */
const char *call_query(const struct call *c, const char *name);  /* decoded value, or NULL */
const char *call_header(const struct call *c, const char *name); /* or NULL; any case */
const char *call_body(const struct call *c, size_t *n);          /* NUL-terminated */
/* The body's bytes, writable, with JSON_PADDING more behind them: for json_parse_insitu. */
char *call_body_insitu(struct call *c, size_t *n);
bool call_authenticated(const struct call *c); /* a known token, or the server runs --insecure */

/* Takes the body (it is empty afterwards; NULL: none). extra_headers: "Warning: ...\r\n" lines or
 * NULL. The call is gone afterwards. */
void call_reply(struct call *c, int status, const char *content_type, const char *extra_headers,
                struct strbuf *body);

/* Bytes that several streams send without copying them: one watch line, framed once as a chunk. */
struct shared_bytes {
    uint32_t refs;
    size_t len;
    char *bytes;
    char *frame_; /* the same bytes with the chunk's size before and CRLF after them */
    size_t frame_len_;
};
/* One reference, the caller's. take is not empty before, and is afterwards. */
struct shared_bytes *shared_bytes_new(struct strbuf *take);
struct shared_bytes *shared_bytes_ref(struct shared_bytes *b);
void shared_bytes_unref(struct shared_bytes *b);

/* A watch: chunked, open until ended by either side. on_close is called once when the peer is gone
 * or too slow (more than the server's bound of unsent bytes); the stream must not be used after it.
 * It is called later from the loop, never from inside call_stream_*. The bound does not apply to
 * what is written before call_stream_begun: the initial objects. */
void call_stream_begin(struct call *c, int status, const char *content_type,
                       void (*on_close)(void *arg), void *arg);
void call_stream_begun(struct call *c);
void call_stream_write(struct call *c, struct shared_bytes *b); /* takes a reference of its own */
void call_stream_end(struct call *c);                           /* on_close is not called */

/* Faults. */
void call_drop(struct call *c); /* no answer: the connection is reset. The call is gone. */
/* It is carried out, and the connection is reset in place of the reply. */
void call_lose_reply(struct call *c);

// SPDX-License-Identifier: Apache-2.0
/*
 * server_parse - an HTTP/1.1 request out of bytes that arrive in any pieces. Pure: no socket.
 *
 * The bytes are the caller's (one strbuf that grows); the parser keeps offsets into it, writes NULs
 * over separators, decodes path and query in place, and moves the chunks of a chunked body
 * together, so that a request that is complete lies in the buffer ready to be used.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"

enum {
    SERVER_HEAD_MAX = 64 * 1024,   /* request line and headers, and trailers again: 431 */
    SERVER_TARGET_MAX = 16 * 1024, /* path and query: 414 */
    SERVER_HEADERS_MAX = 64,       /* 431 */
    SERVER_QUERY_MAX = 32,         /* arguments: 400 */
    SERVER_CHUNK_LINE_MAX = 256,   /* chunk size and its extensions: 400 */
};

struct server_pair { /* offsets of two NUL-terminated strings */
    uint32_t name, value;
};

enum server_phase {
    SERVER_HEAD,
    SERVER_LENGTH, /* a body of known length */
    SERVER_CHUNK_SIZE,
    SERVER_CHUNK_DATA,
    SERVER_CHUNK_CRLF,
    SERVER_TRAILERS,
    SERVER_DONE,
};

struct server_parse {
    enum server_phase phase;
    size_t at; /* read up to here */
    uint32_t method, path;
    struct server_pair headers[SERVER_HEADERS_MAX];
    struct server_pair query[SERVER_QUERY_MAX];
    unsigned headers_len, query_len;
    size_t body_at, body_len; /* body_len grows while chunks arrive */
    size_t left;              /* of the body, or of the chunk */
    size_t trailers;
    bool keep_alive, http10, expects_continue;
    int status;      /* of a request that is refused */
    const char *why; /* a sentence for it */
};

enum server_progress { SERVER_MORE, SERVER_COMPLETE, SERVER_REFUSED };

/* Goes on with what is in the buffer. {0} starts a request. COMPLETE: the request takes the first
 * p->at bytes. REFUSED: p->status, p->why; the connection is of no use any more. */
enum server_progress server_parse(struct server_parse *p, struct strbuf *in, size_t max_body);
/* Value of a header (any case) or query argument, or NULL. */
const char *server_parse_header(const struct server_parse *p, const char *buf, const char *name);
const char *server_parse_query(const struct server_parse *p, const char *buf, const char *name);

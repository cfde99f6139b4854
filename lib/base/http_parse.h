// SPDX-License-Identifier: Apache-2.0
/*
 * http_parse - incremental HTTP/1.1 parser for requests and replies. Pure: no socket.
 *
 * The caller owns the bytes, in one growing strbuf. The parser keeps offsets into it, writes NULs
 * over separators and merges the chunks of a chunked body, so a complete message is ready for use
 * in the buffer.
 *
 * Ambiguous messages (Content-Length with chunked, two lengths, a folded header, blanks in a header
 * name, control characters) are refused: behind a proxy they allow request smuggling, and a
 * malformed reply says nothing about what was done. Only a request's lines may end in a bare LF.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"

enum {
    /* All heads (with 1xx replies) and trailers together. */
    HTTP_PARSE_HEAD_MAX = 64 * 1024,
    HTTP_PARSE_TARGET_MAX = 16 * 1024,
    HTTP_PARSE_HEADERS_MAX = 64,
    HTTP_PARSE_CHUNK_LINE_MAX = 256,
};

enum http_parse_phase {
    HTTP_PARSE_FIRST_LINE,
    HTTP_PARSE_HEADERS,
    HTTP_PARSE_LENGTH, /* body of known length */
    HTTP_PARSE_UNTIL_CLOSE,
    HTTP_PARSE_CHUNK_SIZE,
    HTTP_PARSE_CHUNK_DATA,
    HTTP_PARSE_CHUNK_END,
    HTTP_PARSE_TRAILERS,
    HTTP_PARSE_DONE,
};

struct http_parse_pair { /* offsets of NUL-terminated strings */
    uint32_t name, value;
};

/* {0} starts a request, {.reply = true} a reply. */
struct http_parse {
    bool reply;
    enum http_parse_phase phase;
    size_t at;               /* parsed up to here */
    uint32_t method, target; /* request: offsets of NUL-terminated strings */
    int status;              /* reply; 0 until the status line is read */
    struct http_parse_pair headers[HTTP_PARSE_HEADERS_MAX];
    unsigned headers_len;
    size_t body_at, body_len; /* body_len grows while a body of unknown length arrives */
    size_t left;              /* of the body or chunk */
    bool keep_alive, http10, expects_continue;

    int refusal;     /* HTTP status for the refusal: 413 and 431 are size limits */
    const char *why; /* reason of the refusal */

    size_t head_bytes; /* private, as is what follows */
    int64_t length;    /* Content-Length + 1 */
    bool chunked, host;
};

enum http_parse_progress { HTTP_PARSE_MORE, HTTP_PARSE_COMPLETE, HTTP_PARSE_REFUSED };

/* Continues with the buffer. COMPLETE: the message is the first p->at bytes. REFUSED: see
 * p->refusal and p->why; the connection must be closed. */
enum http_parse_progress http_parse(struct http_parse *p, struct strbuf *in, size_t max_body);
/* The peer closed the connection. Returns whether that ends the message. */
bool http_parse_closed(struct http_parse *p);
/* Value of a header (case-insensitive), or NULL. */
const char *http_parse_header(const struct http_parse *p, const char *buf, const char *name);
/* Value of a hexadecimal digit, or -1. */
int http_parse_hex(char c);

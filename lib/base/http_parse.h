// SPDX-License-Identifier: Apache-2.0
/*
 * http_parse - an HTTP/1.1 message, a request or a reply, out of bytes that arrive in any pieces.
 * Pure: no socket.
 *
 * The bytes are the caller's (one strbuf that grows); the parser keeps offsets into it, writes NULs
 * over separators, and moves the chunks of a chunked body together, so that a message that is
 * complete lies in the buffer ready to be used.
 *
 * What two readers could understand differently (both Content-Length and chunked, two lengths, a
 * folded header, blanks in its name, a control character) is refused: behind a proxy that is how
 * requests are smuggled, and a reply that breaks a rule says nothing about what was done. Only a
 * request's lines may end in a bare LF.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"

enum {
    /* Of all heads (also the 1xx ones before a reply) and trailers. */
    HTTP_PARSE_HEAD_MAX = 64 * 1024,
    HTTP_PARSE_TARGET_MAX = 16 * 1024,
    HTTP_PARSE_HEADERS_MAX = 64,
    HTTP_PARSE_CHUNK_LINE_MAX = 256,
};

enum http_parse_phase {
    HTTP_PARSE_FIRST_LINE,
    HTTP_PARSE_HEADERS,
    HTTP_PARSE_LENGTH, /* a body of known length */
    HTTP_PARSE_UNTIL_CLOSE,
    HTTP_PARSE_CHUNK_SIZE,
    HTTP_PARSE_CHUNK_DATA,
    HTTP_PARSE_CHUNK_END,
    HTTP_PARSE_TRAILERS,
    HTTP_PARSE_DONE,
};

struct http_parse_pair { /* offsets of two NUL-terminated strings */
    uint32_t name, value;
};

/* {0} starts a request, {.reply = true} a reply. */
struct http_parse {
    bool reply;
    enum http_parse_phase phase;
    size_t at;               /* read up to here */
    uint32_t method, target; /* of a request: offsets of NUL-terminated strings */
    int status;              /* of a reply; 0 until its status line was read */
    struct http_parse_pair headers[HTTP_PARSE_HEADERS_MAX];
    unsigned headers_len;
    size_t body_at, body_len; /* body_len grows while a body without a length arrives */
    size_t left;              /* of the body, or of the chunk */
    bool keep_alive, http10, expects_continue;

    int refusal;     /* the status that a server refuses it with: 413 and 431 are too much */
    const char *why; /* a sentence for it */

    size_t head_bytes; /* the parser's own, as are those below */
    int64_t length;    /* Content-Length + 1 */
    bool chunked, host;
};

enum http_parse_progress { HTTP_PARSE_MORE, HTTP_PARSE_COMPLETE, HTTP_PARSE_REFUSED };

/* Goes on with what is in the buffer. COMPLETE: the message takes its first p->at bytes. REFUSED:
 * p->refusal, p->why; the connection is of no use any more. */
enum http_parse_progress http_parse(struct http_parse *p, struct strbuf *in, size_t max_body);
/* The peer closed the connection: whether that is how this message ends. */
bool http_parse_closed(struct http_parse *p);
/* Value of a header (any case), or NULL. */
const char *http_parse_header(const struct http_parse *p, const char *buf, const char *name);
/* Value of a hexadecimal digit, or -1. */
int http_parse_hex(char c);

// SPDX-License-Identifier: Apache-2.0
/*
 * reply - one HTTP/1.1 answer, from bytes as they come. No I/O: see poster for who brings the bytes.
 *
 * Strict where leniency would let two readers disagree on where an answer ends: lines end with CRLF, Content-Length is digits, said once or always the
 * same, and never beside Transfer-Encoding, of which only "chunked" is known. An answer that breaks a rule says nothing about what was done.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum {
    REPLY_HEAD_MAX =
        64 * 1024, /* of all heads (also the 1xx ones before the answer) and trailers */
    REPLY_CHUNK_LINE_MAX = 1024,
    REPLY_RETRY_AFTER_MAX_S = 3600
};

enum reply_progress { REPLY_MORE, REPLY_DONE, REPLY_BAD };

enum reply_state {
    REPLY_STATUS_LINE,
    REPLY_HEADERS,
    REPLY_BODY,
    REPLY_UNTIL_CLOSE,
    REPLY_CHUNK_SIZE,
    REPLY_CHUNK,
    REPLY_CHUNK_END,
    REPLY_TRAILER,
    REPLY_COMPLETE
};

struct reply {
    int status;            /* of the answer; 0 until its status line was read */
    bool keep;             /* once DONE: the connection may carry another request */
    int64_t retry_after_s; /* 0: none, or a date */
    struct strbuf body;

    enum reply_state state;
    struct strbuf line; /* the beginning of a line that is not whole yet */
    size_t head_bytes, max_body;
    int64_t length; /* Content-Length; -1: not said */
    size_t left;    /* of the body or the chunk */
    bool chunked, begun;
};

void reply_init(struct reply *r, size_t max_body);
void reply_deinit(struct reply *r);
/* Ready for the next answer; memory is kept. */
void reply_reset(struct reply *r);
/* *used: how many of the bytes belong to this answer; all, unless it is DONE. BAD: ERROR_UNAVAILABLE, or ERROR_TOO_LARGE, in err. */
enum reply_progress reply_take(struct reply *r, const char *bytes, size_t n, size_t *used,
                               struct error *err);
/* The peer closed the connection: DONE if that is how this answer ends. */
enum reply_progress reply_closed(struct reply *r, struct error *err);

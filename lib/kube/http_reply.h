// SPDX-License-Identifier: Apache-2.0
/*
 * http_reply - one answer of the API server over a connection without libcurl (conn): http_parse,
 * and what it means for whoever waits for it. No I/O: see post_pipeline for who brings the bytes.
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/http_parse.h"

struct http_reply {
    struct http_parse head;
    struct strbuf in; /* the bytes so far: whoever reads adds to it */
    size_t max_body;
};

enum http_reply_progress { HTTP_REPLY_MORE, HTTP_REPLY_DONE, HTTP_REPLY_BAD };

/* Ready for the next answer; memory is kept. Also the first, {.max_body = ...}. */
void http_reply_reset(struct http_reply *r);
void http_reply_deinit(struct http_reply *r);
/* Goes on with what was added; closed: nothing follows. BAD: ERROR_UNAVAILABLE, or ERROR_TOO_LARGE,
 * in err. */
enum http_reply_progress http_reply_take(struct http_reply *r, bool closed, struct error *err);
/* Once DONE: the connection may carry another request. */
bool http_reply_keeps(const struct http_reply *r);
/* Of an answer with a status of 300 or more. Returns -1. */
int http_reply_status_error(const struct http_reply *r, struct error *err);

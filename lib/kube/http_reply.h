// SPDX-License-Identifier: Apache-2.0
/* http_reply - one answer of the API server over a connection without libcurl (conn), parsed by
 * http_parse. No I/O: post_pipeline supplies the bytes. */
#pragma once

#include "lib/base/error.h"
#include "lib/base/http_parse.h"

struct http_reply {
    struct http_parse head;
    struct strbuf in; /* the bytes so far; the reader appends */
    size_t max_body;
};

enum http_reply_progress { HTTP_REPLY_MORE, HTTP_REPLY_DONE, HTTP_REPLY_BAD };

/* Prepares for the next answer and keeps memory. Also for the first: {.max_body = ...}. */
void http_reply_reset(struct http_reply *r);
void http_reply_deinit(struct http_reply *r);
/* Parses what was appended; closed: nothing follows. BAD: err is ERROR_UNAVAILABLE or
 * ERROR_TOO_LARGE. */
enum http_reply_progress http_reply_take(struct http_reply *r, bool closed, struct error *err);
/* After DONE: whether the connection may carry another request. */
bool http_reply_keeps(const struct http_reply *r);
/* For an answer with a status of 300 or more. Returns -1. */
int http_reply_status_error(const struct http_reply *r, struct error *err);

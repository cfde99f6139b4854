// SPDX-License-Identifier: Apache-2.0
/*
 * server_parse - a request to cosched-local: http_parse, and its path and query decoded in place.
 */
#pragma once

#include "lib/base/http_parse.h"

enum { SERVER_QUERY_MAX = 32 /* arguments: 400 */ };

/* {0} starts a request. */
struct server_parse {
    struct http_parse message;
    bool has_path;
    uint32_t path; /* an offset into the buffer, as all of message's */
    struct http_parse_pair query[SERVER_QUERY_MAX];
    unsigned query_len;
};

/* As http_parse. */
enum http_parse_progress server_parse(struct server_parse *p, struct strbuf *in, size_t max_body);
/* Value of a query argument, or NULL. */
const char *server_parse_query(const struct server_parse *p, const char *buf, const char *name);

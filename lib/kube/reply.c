// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/reply.h"

#include <strings.h>

#include "lib/base/num.h"

enum { KEPT_MAX = 64 * 1024 }; /* of a body's memory, for the next one */

static void begin_head(struct reply *r)
{
    r->status = 0;
    r->keep = false;
    r->retry_after_s = 0;
    r->length = -1;
    r->chunked = false;
    r->state = REPLY_STATUS_LINE;
}

void reply_init(struct reply *r, size_t max_body)
{
    *r = (struct reply){.max_body = max_body};
    begin_head(r);
}

void reply_deinit(struct reply *r)
{
    strbuf_deinit(&r->body);
    strbuf_deinit(&r->line);
}

void reply_reset(struct reply *r)
{
    if (r->body.cap > KEPT_MAX)
        strbuf_deinit(&r->body);
    strbuf_reset(&r->body);
    strbuf_reset(&r->line);
    r->head_bytes = r->left = 0;
    r->begun = false;
    begin_head(r);
}

static int bad(struct error *err, const char *what)
{
    return error_set(err, ERROR_UNAVAILABLE, "the answer is not HTTP: %s", what);
}

/* ---- lines ------------------------------------------------------------------------------------ */

/* "HTTP/1.1 201 Created" */
static int read_status(struct reply *r, const char *s, size_t n, struct error *err)
{
    bool known = n >= 12 && strncmp(s, "HTTP/1.", 7) == 0 && (s[7] == '0' || s[7] == '1') &&
                 s[8] == ' ' && (n == 12 || s[12] == ' ');
    int64_t status;
    if (!known || s[9] < '1' || s[9] > '5' || num_parse(s + 9, 3, &status, NULL) < 0)
        return bad(err, "its status line");
    r->status = (int)status;
    r->keep = s[7] == '1';
    r->state = REPLY_HEADERS;
    return 0;
}

static bool is_token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_word(const char *s, size_t n, const char *word)
{
    return n == strlen(word) && strncasecmp(s, word, n) == 0;
}

/* Is the word one of a list "a, b"? */
static bool lists_word(const char *s, size_t n, const char *word)
{
    for (size_t at = 0; at < n;) {
        size_t end = at;
        while (end < n && s[end] != ',')
            end++;
        size_t from = at, to = end;
        while (from < to && is_blank(s[from]))
            from++;
        while (to > from && is_blank(s[to - 1]))
            to--;
        if (is_word(s + from, to - from, word))
            return true;
        at = end + 1;
    }
    return false;
}

/* Digits alone; -1: anything else, or too many. */
static int64_t digits(const char *s, size_t n)
{
    int64_t v;
    return n > 0 && s[0] != '-' && num_parse(s, n, &v, NULL) == 0 ? v : -1;
}

static int read_field(struct reply *r, const char *name, size_t name_len, const char *s, size_t n,
                      struct error *err)
{
    if (is_word(name, name_len, "Content-Length")) {
        int64_t length = digits(s, n);
        if (length < 0 || (r->length >= 0 && r->length != length))
            return bad(err, "its Content-Length");
        r->length = length;
    } else if (is_word(name, name_len, "Transfer-Encoding")) {
        if (r->chunked || !is_word(s, n, "chunked"))
            return bad(err, "its Transfer-Encoding");
        r->chunked = true;
    } else if (is_word(name, name_len, "Connection")) {
        r->keep = r->keep && !lists_word(s, n, "close");
    } else if (is_word(name, name_len, "Retry-After")) {
        r->retry_after_s = num_min(num_max(digits(s, n), 0), REPLY_RETRY_AFTER_MAX_S);
    }
    return 0;
}

static int read_header(struct reply *r, const char *s, size_t n, struct error *err)
{
    size_t name = 0;
    while (name < n && is_token_char(s[name]))
        name++;
    if (name == 0 || name == n || s[name] != ':')
        return bad(err, "a header without a name");
    size_t from = name + 1, to = n;
    while (from < to && is_blank(s[from]))
        from++;
    while (to > from && is_blank(s[to - 1]))
        to--;
    return r->state == REPLY_TRAILER ? 0 : read_field(r, s, name, s + from, to - from, err);
}

/* The empty line after the headers: what follows? */
static int end_head(struct reply *r, struct error *err)
{
    if (r->status == 101)
        return bad(err, "it changes the protocol");
    if (r->status < 200) {
        begin_head(r);
        return 0;
    }
    if (r->chunked && r->length >= 0)
        return bad(err, "both a Content-Length and a Transfer-Encoding");
    if (r->status == 204 || r->status == 304) {
        r->state = REPLY_COMPLETE;
    } else if (r->chunked) {
        r->state = REPLY_CHUNK_SIZE;
    } else if (r->length < 0) {
        r->keep = false;
        r->state = REPLY_UNTIL_CLOSE;
    } else if ((uint64_t)r->length > r->max_body) {
        return error_set(err, ERROR_TOO_LARGE, "reply is larger than %zu bytes", r->max_body);
    } else {
        r->left = (size_t)r->length;
        r->state = r->left > 0 ? REPLY_BODY : REPLY_COMPLETE;
    }
    return 0;
}

static int hex_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* "1f4" or "1f4;extension" */
static int read_chunk_size(struct reply *r, const char *s, size_t n, struct error *err)
{
    size_t size = 0, at = 0;
    for (; at < n && hex_of(s[at]) >= 0; at++) {
        size = size * 16 + (size_t)hex_of(s[at]);
        if (size > r->max_body - r->body.len)
            return error_set(err, ERROR_TOO_LARGE, "reply is larger than %zu bytes", r->max_body);
    }
    size_t digits_end = at;
    while (at < n && is_blank(s[at]))
        at++;
    if (digits_end == 0 || (at < n && s[at] != ';'))
        return bad(err, "the size of a chunk");
    r->left = size;
    r->state = size > 0 ? REPLY_CHUNK : REPLY_TRAILER;
    return 0;
}

/* A whole line, with its end. */
static int read_line(struct reply *r, const char *s, size_t n, struct error *err)
{
    if (n < 2 || s[n - 2] != '\r')
        return bad(err, "a line without its end");
    n -= 2;
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)s[i] < 0x20 && s[i] != '\t') || s[i] == 0x7f)
            return bad(err, "a control character");
    switch (r->state) {
    case REPLY_STATUS_LINE:
        return read_status(r, s, n, err);
    case REPLY_HEADERS:
        return n > 0 ? read_header(r, s, n, err) : end_head(r, err);
    case REPLY_CHUNK_SIZE:
        return read_chunk_size(r, s, n, err);
    case REPLY_CHUNK_END:
        r->state = REPLY_CHUNK_SIZE;
        return n == 0 ? 0 : bad(err, "a chunk longer than it said");
    default: /* REPLY_TRAILER */
        if (n > 0)
            return read_header(r, s, n, err);
        r->state = REPLY_COMPLETE;
        return 0;
    }
}

/* ---- bytes ------------------------------------------------------------------------------------ */

/* Up to the end of a line, or all; a line that is not whole waits in r->line. */
static int take_line(struct reply *r, const char *bytes, size_t n, size_t *used, struct error *err)
{
    const char *end = memchr(bytes, '\n', n);
    size_t len = end != NULL ? (size_t)(end - bytes) + 1 : n;
    *used = len;
    bool chunk = r->state == REPLY_CHUNK_SIZE || r->state == REPLY_CHUNK_END;
    if (!chunk)
        r->head_bytes += len;
    if (chunk ? r->line.len + len > REPLY_CHUNK_LINE_MAX : r->head_bytes > REPLY_HEAD_MAX)
        return error_set(err, ERROR_TOO_LARGE, "reply has more than %d bytes of headers",
                         chunk ? REPLY_CHUNK_LINE_MAX : REPLY_HEAD_MAX);
    if (end != NULL && r->line.len == 0)
        return read_line(r, bytes, len, err);
    strbuf_add(&r->line, bytes, len);
    if (end == NULL)
        return 0;
    int rc = read_line(r, r->line.ptr, r->line.len, err);
    strbuf_reset(&r->line);
    return rc;
}

static int take_some(struct reply *r, const char *bytes, size_t n, size_t *used, struct error *err)
{
    switch (r->state) {
    case REPLY_BODY:
    case REPLY_CHUNK:
        *used = n < r->left ? n : r->left;
        strbuf_add(&r->body, bytes, *used);
        r->left -= *used;
        if (r->left == 0)
            r->state = r->state == REPLY_BODY ? REPLY_COMPLETE : REPLY_CHUNK_END;
        return 0;
    case REPLY_UNTIL_CLOSE:
        *used = n;
        if (n > r->max_body - r->body.len)
            return error_set(err, ERROR_TOO_LARGE, "reply is larger than %zu bytes", r->max_body);
        strbuf_add(&r->body, bytes, n);
        return 0;
    default:
        return take_line(r, bytes, n, used, err);
    }
}

enum reply_progress reply_take(struct reply *r, const char *bytes, size_t n, size_t *used,
                               struct error *err)
{
    *used = 0;
    r->begun = r->begun || n > 0;
    while (r->state != REPLY_COMPLETE && *used < n) {
        size_t some = 0;
        int rc = take_some(r, bytes + *used, n - *used, &some, err);
        *used += some;
        if (rc < 0)
            return REPLY_BAD;
    }
    return r->state == REPLY_COMPLETE ? REPLY_DONE : REPLY_MORE;
}

enum reply_progress reply_closed(struct reply *r, struct error *err)
{
    if (r->state == REPLY_UNTIL_CLOSE)
        r->state = REPLY_COMPLETE;
    if (r->state == REPLY_COMPLETE)
        return REPLY_DONE;
    (void)error_set(err, ERROR_UNAVAILABLE, "the connection was closed %s",
                    r->begun ? "in the middle of the answer" : "before an answer");
    return REPLY_BAD;
}

// SPDX-License-Identifier: Apache-2.0
/*
 *   FIRST_LINE ──► HEADERS ──┬──► LENGTH, UNTIL_CLOSE ──────────────────────► DONE
 *        ▲            │      │                                                 ▲
 *        └────1xx─────┘      └──► CHUNK_SIZE ──► CHUNK_DATA ──► CHUNK_END ──┐  │
 *                                   ▲   │ size 0                            │  │
 *                                   │   └──► TRAILERS ──────────────────────│──┘
 *                                   └───────────────────────────────────────┘
 *
 * Every transition needs some bytes; with fewer the phase stays and at most one line is reread.
 */
#include "lib/base/http_parse.h"

#include <string.h>
#include <strings.h>

#include "lib/base/num.h"

enum { GAP_MAX = 64 * 1024, METHOD_MAX = 16 };

static enum http_parse_progress refuse(struct http_parse *p, int status, const char *why)
{
    p->refusal = status;
    p->why = why;
    return HTTP_PARSE_REFUSED;
}

int http_parse_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool is_token(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Whether the word is in a list "a, b". */
static bool lists_word(const char *list, const char *word)
{
    for (const char *s = list; *s;) {
        size_t n = strcspn(s, ","), from = 0, to = n;
        while (from < to && is_blank(s[from]))
            from++;
        while (to > from && is_blank(s[to - 1]))
            to--;
        if (to - from == strlen(word) && strncasecmp(s + from, word, to - from) == 0)
            return true;
        s += n + (s[n] == ',');
    }
    return false;
}

/* ---- lines ---- */

/* The next line, NUL-terminated, without its end. */
static enum http_parse_progress take_line(struct http_parse *p, struct strbuf *in, size_t max,
                                          int status, const char *why, char **line)
{
    size_t n = in->len - p->at;
    char *from = n > 0 ? in->ptr + p->at : NULL, *lf = n > 0 ? memchr(from, '\n', n) : NULL;
    n = lf ? (size_t)(lf - from) + 1 : n;
    if (n > max)
        return refuse(p, status, why);
    if (!lf)
        return HTTP_PARSE_MORE;
    bool crlf = lf > from && lf[-1] == '\r';
    if (!crlf && p->reply)
        return refuse(p, 400, "a line without its end");
    char *end = lf - crlf;
    for (const char *c = from; c < end; c++)
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
            return refuse(p, 400, "a control character");
    *end = '\0';
    p->at += n;
    *line = from;
    return HTTP_PARSE_COMPLETE;
}

static enum http_parse_progress take_head_line(struct http_parse *p, struct strbuf *in, char **line)
{
    bool target = p->phase == HTTP_PARSE_FIRST_LINE && !p->reply;
    size_t from = p->at;
    enum http_parse_progress got =
        take_line(p, in, HTTP_PARSE_HEAD_MAX - p->head_bytes, target ? 414 : 431,
                  target ? "the target is too long" : "the head is too large", line);
    p->head_bytes += p->at - from;
    return got;
}

/* "GET /path?query HTTP/1.1" */
static enum http_parse_progress read_request_line(struct http_parse *p, const char *base,
                                                  char *line)
{
    char *target = line;
    while (is_token(*target))
        target++;
    if (target == line || target - line > METHOD_MAX || *target != ' ')
        return refuse(p, 400, "malformed request line");
    *target++ = '\0';
    char *version = strchr(target, ' ');
    if (!version)
        return refuse(p, 400, "malformed request line");
    *version++ = '\0';
    if (version - target - 1 > HTTP_PARSE_TARGET_MAX)
        return refuse(p, 414, "the target is too long");
    if (strchr(target, '\t'))
        return refuse(p, 400, "a control character");
    if (strncmp(version, "HTTP/", 5) != 0)
        return refuse(p, 400, "malformed HTTP version");
    p->http10 = strcmp(version, "HTTP/1.0") == 0;
    if (!p->http10 && strcmp(version, "HTTP/1.1") != 0)
        return refuse(p, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    p->method = (uint32_t)(line - base);
    p->target = (uint32_t)(target - base);
    return HTTP_PARSE_COMPLETE;
}

/* "HTTP/1.1 201 Created" */
static enum http_parse_progress read_status_line(struct http_parse *p, const char *line)
{
    int64_t status;
    size_t n = strlen(line);
    bool known = n >= 12 && strncmp(line, "HTTP/1.", 7) == 0 &&
                 (line[7] == '0' || line[7] == '1') && line[8] == ' ' &&
                 (n == 12 || line[12] == ' ');
    if (!known || line[9] < '1' || line[9] > '5' || num_parse(line + 9, 3, &status, NULL) < 0)
        return refuse(p, 400, "malformed status line");
    p->http10 = line[7] == '0';
    p->status = (int)status;
    return HTTP_PARSE_COMPLETE;
}

static enum http_parse_progress take_first_line(struct http_parse *p, struct strbuf *in)
{
    char *line;
    if (p->at == 0 && !p->reply) { /* RFC 9112: ignore empty lines before a request */
        size_t skip = 0;
        while (skip < in->len && (in->ptr[skip] == '\r' || in->ptr[skip] == '\n'))
            skip++;
        if (skip > 0)
            strbuf_consume(in, skip);
    }
    enum http_parse_progress got = take_head_line(p, in, &line);
    if (got == HTTP_PARSE_COMPLETE)
        got = p->reply ? read_status_line(p, line) : read_request_line(p, in->ptr, line);
    if (got == HTTP_PARSE_COMPLETE) {
        p->phase = HTTP_PARSE_HEADERS;
        p->keep_alive = !p->http10;
    }
    return got;
}

/* Applies headers about the body and the connection. */
static enum http_parse_progress judge_header(struct http_parse *p, const char *name,
                                             const char *value)
{
    if (strcasecmp(name, "content-length") == 0) {
        int64_t n;
        if (*value == '-' || num_parse(value, strlen(value), &n, NULL) < 0 || n == INT64_MAX)
            return refuse(p, 400, "Content-Length is not a number");
        if (p->length > 0 && n + 1 != p->length)
            return refuse(p, 400, "two different Content-Lengths");
        p->length = n + 1;
    } else if (strcasecmp(name, "transfer-encoding") == 0) {
        if (strcasecmp(value, "chunked") != 0 || p->chunked)
            return refuse(p, 501, "the only Transfer-Encoding known here is chunked");
        p->chunked = true;
    } else if (strcasecmp(name, "connection") == 0) {
        if (lists_word(value, "close"))
            p->keep_alive = false;
        else if (p->http10 && lists_word(value, "keep-alive"))
            p->keep_alive = true;
    } else if (strcasecmp(name, "expect") == 0 && !p->reply) {
        if (strcasecmp(value, "100-continue") != 0)
            return refuse(p, 417, "the only expectation known here is 100-continue");
        p->expects_continue = !p->http10;
    } else if (strcasecmp(name, "host") == 0 && !p->reply) {
        if (p->host)
            return refuse(p, 400, "two Host headers");
        p->host = true;
    }
    return HTTP_PARSE_COMPLETE;
}

static enum http_parse_progress read_header(struct http_parse *p, const char *base, char *line)
{
    char *value = line;
    while (is_token(*value))
        value++;
    if (value == line || *value != ':')
        return refuse(p, 400, "malformed header");
    *value++ = '\0';
    while (is_blank(*value))
        value++;
    char *end = value + strlen(value);
    while (end > value && is_blank(end[-1]))
        *--end = '\0';
    if (p->phase == HTTP_PARSE_TRAILERS) /* trailers are ignored */
        return HTTP_PARSE_COMPLETE;
    if (p->headers_len == HTTP_PARSE_HEADERS_MAX)
        return refuse(p, 431, "too many headers");
    p->headers[p->headers_len++] = (struct http_parse_pair){.name = (uint32_t)(line - base),
                                                            .value = (uint32_t)(value - base)};
    return judge_header(p, line, value);
}

/* At the empty line after the headers: decides what follows. */
static enum http_parse_progress end_head(struct http_parse *p, struct strbuf *in, size_t max_body)
{
    if (p->reply && p->status == 101)
        return refuse(p, 400, "it changes the protocol");
    if (p->reply && p->status < 200) { /* the final reply follows */
        strbuf_consume(in, p->at);
        *p = (struct http_parse){.reply = true, .head_bytes = p->head_bytes};
        return HTTP_PARSE_COMPLETE;
    }
    if (!p->reply && !p->host && !p->http10)
        return refuse(p, 400, "missing required Host header");
    if (p->chunked && p->length > 0)
        return refuse(p, 400, "both Content-Length and Transfer-Encoding");
    if (p->chunked && p->http10) /* a proxy without chunk support would see another end */
        return refuse(p, 400, "Transfer-Encoding in HTTP/1.0");
    bool empty = p->reply && (p->status == 204 || p->status == 304);
    if (!empty && p->length > 0 && (uint64_t)p->length - 1 > max_body)
        return refuse(p, 413, "the body is too large");
    p->body_at = p->at;
    if (!empty && p->chunked) {
        p->phase = HTTP_PARSE_CHUNK_SIZE;
    } else if (!empty && p->reply && p->length == 0) {
        p->keep_alive = false;
        p->phase = HTTP_PARSE_UNTIL_CLOSE;
    } else {
        p->phase = HTTP_PARSE_LENGTH;
        p->left = !empty && p->length > 0 ? (size_t)p->length - 1 : 0;
    }
    return HTTP_PARSE_COMPLETE;
}

static enum http_parse_progress take_header(struct http_parse *p, struct strbuf *in,
                                            size_t max_body)
{
    char *line;
    enum http_parse_progress got = take_head_line(p, in, &line);
    if (got != HTTP_PARSE_COMPLETE)
        return got;
    if (*line)
        return read_header(p, in->ptr, line);
    if (p->phase == HTTP_PARSE_HEADERS)
        return end_head(p, in, max_body);
    p->phase = HTTP_PARSE_DONE;
    return HTTP_PARSE_COMPLETE;
}

/* ---- body ---- */

static enum http_parse_progress take_length(struct http_parse *p, const struct strbuf *in)
{
    if (in->len - p->body_at < p->left)
        return HTTP_PARSE_MORE;
    p->body_len = p->left;
    p->at = p->body_at + p->body_len;
    p->phase = HTTP_PARSE_DONE;
    return HTTP_PARSE_COMPLETE;
}

static enum http_parse_progress take_until_close(struct http_parse *p, const struct strbuf *in,
                                                 size_t max_body)
{
    p->at = in->len;
    p->body_len = p->at - p->body_at;
    return p->body_len > max_body ? refuse(p, 413, "the body is too large") : HTTP_PARSE_MORE;
}

/* "1f4" or "1f4;extension" */
static enum http_parse_progress take_chunk_size(struct http_parse *p, struct strbuf *in,
                                                size_t max_body)
{
    char *line;
    enum http_parse_progress got = take_line(p, in, HTTP_PARSE_CHUNK_LINE_MAX, 400,
                                             "the line of a chunk's size is too long", &line);
    if (got != HTTP_PARSE_COMPLETE)
        return got;
    size_t size = 0;
    const char *s = line;
    /* Cannot overflow: no caller allows a body of a sixteenth of the address space. */
    for (int d; (d = http_parse_hex(*s)) >= 0; s++) {
        size = size * 16 + (size_t)d;
        if (size > max_body - p->body_len)
            return refuse(p, 413, "the body is too large");
    }
    bool digits = s > line;
    while (is_blank(*s))
        s++;
    if (!digits || (*s && *s != ';'))
        return refuse(p, 400, "malformed chunk size");
    p->left = size;
    p->phase = size > 0 ? HTTP_PARSE_CHUNK_DATA : HTTP_PARSE_TRAILERS;
    return HTTP_PARSE_COMPLETE;
}

static enum http_parse_progress take_chunk_data(struct http_parse *p, struct strbuf *in)
{
    size_t n = in->len - p->at;
    if (n > p->left)
        n = p->left;
    if (n == 0)
        return HTTP_PARSE_MORE;
    memmove(in->ptr + p->body_at + p->body_len, in->ptr + p->at, n);
    p->body_len += n;
    p->at += n;
    p->left -= n;
    if (p->left == 0)
        p->phase = HTTP_PARSE_CHUNK_END;
    return HTTP_PARSE_COMPLETE;
}

static enum http_parse_progress take_chunk_end(struct http_parse *p, struct strbuf *in)
{
    static const char why[] = "a chunk is longer than its size";
    char *line;
    enum http_parse_progress got = take_line(p, in, strlen("\r\n"), 400, why, &line);
    if (got != HTTP_PARSE_COMPLETE)
        return got;
    p->phase = HTTP_PARSE_CHUNK_SIZE;
    return *line ? refuse(p, 400, why) : got;
}

/* Merged chunks leave a gap of framing behind them. Closing it now and then keeps the buffer in
 * proportion to a body of many small chunks. */
static void close_gap(struct http_parse *p, struct strbuf *in)
{
    size_t body_end = p->body_at + p->body_len, gap = p->at - body_end;
    if (p->phase < HTTP_PARSE_CHUNK_SIZE || gap < GAP_MAX)
        return;
    memmove(in->ptr + body_end, in->ptr + p->at, in->len - p->at);
    in->len -= gap;
    in->ptr[in->len] = '\0';
    p->at = body_end;
}

static enum http_parse_progress step(struct http_parse *p, struct strbuf *in, size_t max_body)
{
    switch (p->phase) {
    case HTTP_PARSE_FIRST_LINE:
        return take_first_line(p, in);
    case HTTP_PARSE_HEADERS:
    case HTTP_PARSE_TRAILERS:
        return take_header(p, in, max_body);
    case HTTP_PARSE_LENGTH:
        return take_length(p, in);
    case HTTP_PARSE_UNTIL_CLOSE:
        return take_until_close(p, in, max_body);
    case HTTP_PARSE_CHUNK_SIZE:
        return take_chunk_size(p, in, max_body);
    case HTTP_PARSE_CHUNK_DATA:
        return take_chunk_data(p, in);
    case HTTP_PARSE_CHUNK_END:
        return take_chunk_end(p, in);
    case HTTP_PARSE_DONE:
        break;
    }
    return HTTP_PARSE_COMPLETE;
}

enum http_parse_progress http_parse(struct http_parse *p, struct strbuf *in, size_t max_body)
{
    enum http_parse_progress got = HTTP_PARSE_COMPLETE;
    while (got == HTTP_PARSE_COMPLETE && p->phase != HTTP_PARSE_DONE)
        got = step(p, in, max_body);
    if (got == HTTP_PARSE_MORE)
        close_gap(p, in);
    return got;
}

bool http_parse_closed(struct http_parse *p)
{
    if (p->phase == HTTP_PARSE_UNTIL_CLOSE)
        p->phase = HTTP_PARSE_DONE;
    return p->phase == HTTP_PARSE_DONE;
}

const char *http_parse_header(const struct http_parse *p, const char *buf, const char *name)
{
    for (unsigned i = 0; i < p->headers_len; i++)
        if (strcasecmp(buf + p->headers[i].name, name) == 0)
            return buf + p->headers[i].value;
    return NULL;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * server_parse - see server_parse.h.
 *
 *   HEAD ──parse_head──► LENGTH ──take_length──────────────────────────► DONE
 *     │                                                                   ▲
 *     └──► CHUNK_SIZE ──take_chunk_size──► CHUNK_DATA ──take_chunk_data──┐│
 *             ▲   │ size 0                                  CHUNK_CRLF ◄─┘│
 *             │   └──► TRAILERS ──take_trailers──────────────────│───────►┘
 *             └──────────────────take_chunk_crlf─────────────────┘
 *
 * Every arrow needs some bytes; with fewer the phase stays as it is and nothing is read twice but
 * one line. What two parsers could understand differently (both Content-Length and chunked, two
 * lengths, a folded or blank-ridden header name, a NUL) is refused: behind a proxy that is how
 * requests are smuggled.
 */
#include "test/local/server/server_parse.h"

#include <stdlib.h>
#include <strings.h>

#include "lib/base/num.h"

static enum server_progress refuse(struct server_parse *p, int status, const char *why)
{
    p->status = status;
    p->why = why;
    return SERVER_REFUSED;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Decodes s in place. false: a bad escape, or a NUL. */
static bool decode(char *s, bool plus_is_blank)
{
    char *w = s;
    for (; *s; s++) {
        if (*s == '%') {
            int high = hex_digit(s[1]);
            int low = high < 0 ? -1 : hex_digit(s[2]);
            if (low < 0 || (high == 0 && low == 0))
                return false;
            *w++ = (char)(high * 16 + low);
            s += 2;
        } else {
            *w++ = *s == '+' && plus_is_blank ? ' ' : *s;
        }
    }
    *w = '\0';
    return true;
}

static bool is_token(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool parse_query(struct server_parse *p, char *base, char *query)
{
    for (char *next; query && *query; query = next) {
        next = strchr(query, '&');
        if (next)
            *next++ = '\0';
        if (!*query)
            continue;
        if (p->query_len == SERVER_QUERY_MAX)
            return false;
        char *value = strchr(query, '=');
        if (value)
            *value++ = '\0';
        else
            value = query + strlen(query);
        if (!decode(query, true) || (*value && !decode(value, true)))
            return false;
        p->query[p->query_len++] = (struct server_pair){.name = (uint32_t)(query - base),
                                                        .value = (uint32_t)(value - base)};
    }
    return true;
}

/* "GET /path?query HTTP/1.1", NUL-terminated. */
static enum server_progress parse_request_line(struct server_parse *p, char *base, char *line)
{
    char *target = line;
    while (is_token(*target))
        target++;
    if (target == line || target - line > 16 || *target != ' ')
        return refuse(p, 400, "malformed request line");
    *target++ = '\0';
    char *version = strchr(target, ' ');
    if (!version)
        return refuse(p, 400, "malformed request line");
    *version++ = '\0';
    if (version - target - 1 > SERVER_TARGET_MAX)
        return refuse(p, 414, "the request's target is too long");
    if (strncmp(version, "HTTP/", 5) != 0)
        return refuse(p, 400, "malformed HTTP version");
    p->http10 = strcmp(version, "HTTP/1.0") == 0;
    if (!p->http10 && strcmp(version, "HTTP/1.1") != 0)
        return refuse(p, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    for (const char *c = target; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return refuse(p, 400, "a control character in the request's target");
    if (strncmp(target, "http://", 7) == 0) /* absolute form, as to a proxy */
        target = strchr(target + 7, '/') ? strchr(target + 7, '/') : target;
    if (*target != '/')
        return refuse(p, 400, "the request's target is not a path");
    char *query = strchr(target, '?');
    if (query)
        *query++ = '\0';
    if (!decode(target, false) || !parse_query(p, base, query))
        return refuse(p, 400, "a bad escape, or too many arguments, in the request's target");
    p->method = (uint32_t)(line - base);
    p->path = (uint32_t)(target - base);
    return SERVER_COMPLETE;
}

static enum server_progress parse_header_line(struct server_parse *p, char *base, char *line)
{
    char *value = line;
    while (is_token(*value))
        value++;
    if (value == line || *value != ':')
        return refuse(p, 400, "malformed header");
    *value++ = '\0';
    while (*value == ' ' || *value == '\t')
        value++;
    char *end = value + strlen(value);
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = '\0';
    for (const char *c = value; *c; c++)
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
            return refuse(p, 400, "a control character in a header");
    if (p->headers_len == SERVER_HEADERS_MAX)
        return refuse(p, 431, "too many headers");
    p->headers[p->headers_len++] =
        (struct server_pair){.name = (uint32_t)(line - base), .value = (uint32_t)(value - base)};
    return SERVER_COMPLETE;
}

/* What the headers say about the body and the connection. */
static enum server_progress judge_headers(struct server_parse *p, const char *base, size_t max_body)
{
    int64_t length = -1;
    bool chunked = false, host = false;
    p->keep_alive = !p->http10;
    for (unsigned i = 0; i < p->headers_len; i++) {
        const char *name = base + p->headers[i].name, *value = base + p->headers[i].value;
        if (strcasecmp(name, "content-length") == 0) {
            int64_t n;
            if (num_parse(value, strlen(value), &n, NULL) < 0 || n < 0 || *value == '-')
                return refuse(p, 400, "Content-Length is not a number");
            if (length >= 0 && n != length)
                return refuse(p, 400, "two different Content-Lengths");
            length = n;
        } else if (strcasecmp(name, "transfer-encoding") == 0) {
            if (strcasecmp(value, "chunked") != 0 || chunked)
                return refuse(p, 501, "the only Transfer-Encoding known here is chunked");
            chunked = true;
        } else if (strcasecmp(name, "connection") == 0) {
            if (strcasestr(value, "close"))
                p->keep_alive = false;
            else if (p->http10 && strcasestr(value, "keep-alive"))
                p->keep_alive = true;
        } else if (strcasecmp(name, "expect") == 0) {
            if (strcasecmp(value, "100-continue") != 0)
                return refuse(p, 417, "the only expectation known here is 100-continue");
            p->expects_continue = !p->http10;
        } else if (strcasecmp(name, "host") == 0) {
            if (host)
                return refuse(p, 400, "two Host headers");
            host = true;
        }
    }
    if (!host && !p->http10)
        return refuse(p, 400, "missing required Host header");
    if (chunked && length >= 0)
        return refuse(p, 400, "both Content-Length and Transfer-Encoding");
    if (chunked && p->http10) /* a proxy that knows no chunks would see another end */
        return refuse(p, 400, "Transfer-Encoding in HTTP/1.0");
    if (length > 0 && (uint64_t)length > max_body)
        return refuse(p, 413, "the request's body is too large");
    if (chunked) {
        p->phase = SERVER_CHUNK_SIZE;
    } else {
        p->phase = SERVER_LENGTH;
        p->left = length > 0 ? (size_t)length : 0;
    }
    return SERVER_COMPLETE;
}

/* The end of the line that begins at `from`, on its '\n'; NULL: not there yet. */
static char *line_end(const struct strbuf *in, size_t from)
{
    return from >= in->len ? NULL : memchr(in->ptr + from, '\n', in->len - from);
}

/* Lines end in CRLF; a bare LF is taken as well. false: there is a NUL in the line. */
static bool end_line(char *line, char *lf)
{
    *lf = '\0';
    if (lf > line && lf[-1] == '\r')
        *--lf = '\0';
    return strlen(line) == (size_t)(lf - line);
}

/* Where the head ends (behind its blank line), or 0: not there yet. p->at remembers the line. */
static size_t find_head_end(struct server_parse *p, const struct strbuf *in)
{
    for (char *lf; (lf = line_end(in, p->at));) {
        size_t next = (size_t)(lf - in->ptr) + 1, len = next - 1 - p->at;
        bool blank = len == 0 || (len == 1 && in->ptr[p->at] == '\r');
        p->at = next;
        if (blank)
            return next;
    }
    return 0;
}

static enum server_progress parse_head(struct server_parse *p, struct strbuf *in, size_t max_body)
{
    if (p->at == 0) { /* a robust server ignores empty lines before a request */
        size_t skip = 0;
        while (skip < in->len && (in->ptr[skip] == '\r' || in->ptr[skip] == '\n'))
            skip++;
        if (skip > 0)
            strbuf_consume(in, skip);
    }
    size_t end = find_head_end(p, in);
    if (end > SERVER_HEAD_MAX || (end == 0 && in->len > SERVER_HEAD_MAX)) {
        const char *first = in->len > 0 ? memchr(in->ptr, '\n', in->len) : NULL;
        if (!first || first - in->ptr > SERVER_TARGET_MAX + 32)
            return refuse(p, 414, "the request's target is too long");
        return refuse(p, 431, "the request's head is too large");
    }
    if (end == 0)
        return SERVER_MORE;
    char *base = in->ptr;
    bool first = true;
    for (size_t from = 0; from < end;) {
        char *line = base + from, *lf = line_end(in, from);
        from = (size_t)(lf - base) + 1;
        if (!end_line(line, lf))
            return refuse(p, 400, "a NUL in the request's head");
        if (!*line)
            break;
        if ((first ? parse_request_line : parse_header_line)(p, base, line) != SERVER_COMPLETE)
            return SERVER_REFUSED;
        first = false;
    }
    p->body_at = end;
    return judge_headers(p, base, max_body);
}

static enum server_progress take_length(struct server_parse *p, struct strbuf *in)
{
    if (in->len - p->body_at < p->left)
        return SERVER_MORE;
    p->body_len = p->left;
    p->at = p->body_at + p->body_len;
    p->phase = SERVER_DONE;
    return SERVER_COMPLETE;
}

static enum server_progress take_chunk_size(struct server_parse *p, struct strbuf *in,
                                            size_t max_body)
{
    char *lf = line_end(in, p->at), *line = in->ptr + p->at;
    if (lf ? lf - line > SERVER_CHUNK_LINE_MAX : in->len - p->at > SERVER_CHUNK_LINE_MAX)
        return refuse(p, 400, "the line of a chunk's size is too long");
    if (!lf)
        return SERVER_MORE;
    size_t size = 0, digits = 0;
    for (int d; (d = hex_digit(*line)) >= 0; line++, digits++) {
        if (size > SIZE_MAX / 32)
            return refuse(p, 413, "the request's body is too large");
        size = size * 16 + (size_t)d;
    }
    while (*line == ' ' || *line == '\t')
        line++;
    if (digits == 0 || (*line != ';' && *line != '\n' && !(*line == '\r' && line + 1 == lf)))
        return refuse(p, 400, "malformed chunk size");
    if (size > max_body || p->body_len > max_body - size)
        return refuse(p, 413, "the request's body is too large");
    p->at = (size_t)(lf - in->ptr) + 1;
    p->left = size;
    p->phase = size > 0 ? SERVER_CHUNK_DATA : SERVER_TRAILERS;
    return SERVER_COMPLETE;
}

static enum server_progress take_chunk_data(struct server_parse *p, struct strbuf *in)
{
    size_t n = in->len - p->at;
    if (n > p->left)
        n = p->left;
    if (n == 0)
        return SERVER_MORE;
    memmove(in->ptr + p->body_at + p->body_len, in->ptr + p->at, n);
    p->body_len += n;
    p->at += n;
    p->left -= n;
    if (p->left == 0)
        p->phase = SERVER_CHUNK_CRLF;
    return SERVER_COMPLETE;
}

static enum server_progress take_chunk_crlf(struct server_parse *p, struct strbuf *in)
{
    if (p->at == in->len)
        return SERVER_MORE;
    size_t n = in->ptr[p->at] == '\r' ? 2 : 1;
    if (in->len - p->at < n)
        return SERVER_MORE;
    if (in->ptr[p->at + n - 1] != '\n')
        return refuse(p, 400, "a chunk is longer than its size");
    p->at += n;
    p->phase = SERVER_CHUNK_SIZE;
    return SERVER_COMPLETE;
}

/* Read and forgotten. */
static enum server_progress take_trailers(struct server_parse *p, struct strbuf *in)
{
    char *lf = line_end(in, p->at);
    size_t n = lf ? (size_t)(lf - in->ptr) + 1 - p->at : in->len - p->at;
    if (p->trailers + n > SERVER_HEAD_MAX)
        return refuse(p, 431, "the request's trailers are too large");
    if (!lf)
        return SERVER_MORE;
    bool blank = n == 1 || (n == 2 && in->ptr[p->at] == '\r');
    p->trailers += n;
    p->at += n;
    if (blank)
        p->phase = SERVER_DONE;
    return SERVER_COMPLETE;
}

static enum server_progress step(struct server_parse *p, struct strbuf *in, size_t max_body)
{
    switch (p->phase) {
    case SERVER_HEAD:
        return parse_head(p, in, max_body);
    case SERVER_LENGTH:
        return take_length(p, in);
    case SERVER_CHUNK_SIZE:
        return take_chunk_size(p, in, max_body);
    case SERVER_CHUNK_DATA:
        return take_chunk_data(p, in);
    case SERVER_CHUNK_CRLF:
        return take_chunk_crlf(p, in);
    case SERVER_TRAILERS:
        return take_trailers(p, in);
    case SERVER_DONE:
        break;
    }
    return SERVER_COMPLETE;
}

/* Chunks that were moved together leave a gap of framing behind them. In a body of many small
 * chunks it is closed now and then, so that the buffer stays in proportion to the body. */
static void close_gap(struct server_parse *p, struct strbuf *in)
{
    size_t body_end = p->body_at + p->body_len, gap = p->at - body_end;
    if (gap < 64 * 1024)
        return;
    memmove(in->ptr + body_end, in->ptr + p->at, in->len - p->at);
    in->len -= gap;
    in->ptr[in->len] = '\0';
    p->at = body_end;
}

enum server_progress server_parse(struct server_parse *p, struct strbuf *in, size_t max_body)
{
    while (p->phase != SERVER_DONE) {
        enum server_progress got = step(p, in, max_body);
        if (got != SERVER_COMPLETE) {
            if (got == SERVER_MORE && p->phase >= SERVER_CHUNK_SIZE)
                close_gap(p, in);
            return got;
        }
    }
    return SERVER_COMPLETE;
}

const char *server_parse_header(const struct server_parse *p, const char *buf, const char *name)
{
    for (unsigned i = 0; i < p->headers_len; i++)
        if (strcasecmp(buf + p->headers[i].name, name) == 0)
            return buf + p->headers[i].value;
    return NULL;
}

const char *server_parse_query(const struct server_parse *p, const char *buf, const char *name)
{
    for (unsigned i = 0; i < p->query_len; i++)
        if (strcmp(buf + p->query[i].name, name) == 0)
            return buf + p->query[i].value;
    return NULL;
}

// SPDX-License-Identifier: Apache-2.0
/* The writing half of json.h. The writer keeps a bit per open level (comma due) and whether a key
 * was just written. */
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/json.h"

void json_escape(struct strbuf *out, const char *s, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    strbuf_reserve(out, n + 2);
    strbuf_addc(out, '"');
    size_t plain = 0; /* start of pending bytes that need no escape */
    size_t i = 0;
    while (i < n) {
        unsigned char c = (unsigned char)s[i];
        if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
            i++;
            continue;
        }
        size_t len = str_utf8_len(s + i, n - i);
        if (len > 1) {
            i += len;
            continue;
        }
        strbuf_add(out, s + plain, i - plain);
        plain = ++i;
        if (len == 0)
            strbuf_adds(out, "\xef\xbf\xbd"); /* U+FFFD */
        else if (c == '"' || c == '\\')
            strbuf_add(out, (const char[]){'\\', (char)c}, 2);
        else if (c == '\n')
            strbuf_adds(out, "\\n");
        else if (c == '\t')
            strbuf_adds(out, "\\t");
        else if (c == '\r')
            strbuf_adds(out, "\\r");
        else
            strbuf_add(out, (const char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
    }
    strbuf_add(out, s + plain, n - plain);
    strbuf_addc(out, '"');
}

void json_writer_init(struct json_writer *w, struct strbuf *out)
{
    *w = (struct json_writer){.out = out};
}

/* Writes the comma before a value, unless it is the first or follows its key. */
static void before_value(struct json_writer *w)
{
    if (w->after_key_) {
        w->after_key_ = false;
        return;
    }
    if (w->comma_[w->depth])
        strbuf_addc(w->out, ',');
    w->comma_[w->depth] = w->depth > 0;
}

static void open_level(struct json_writer *w, char c)
{
    before_value(w);
    if (w->depth + 1 >= JSON_WRITER_DEPTH)
        abort();
    strbuf_addc(w->out, c);
    w->comma_[++w->depth] = false;
}

static void close_level(struct json_writer *w, char c)
{
    if (w->depth == 0 || w->after_key_)
        abort();
    w->depth--;
    strbuf_addc(w->out, c);
}

void json_object_begin(struct json_writer *w)
{
    open_level(w, '{');
}

void json_object_end(struct json_writer *w)
{
    close_level(w, '}');
}

void json_array_begin(struct json_writer *w)
{
    open_level(w, '[');
}

void json_array_end(struct json_writer *w)
{
    close_level(w, ']');
}

void json_key_n(struct json_writer *w, const char *key, size_t n)
{
    before_value(w);
    json_escape(w->out, key, n);
    strbuf_addc(w->out, ':');
    w->after_key_ = true;
}

void json_key(struct json_writer *w, const char *key)
{
    json_key_n(w, key, strlen(key));
}

void json_put_str_n(struct json_writer *w, const char *s, size_t n)
{
    before_value(w);
    if (s)
        json_escape(w->out, s, n);
    else
        strbuf_adds(w->out, "null");
}

void json_put_str(struct json_writer *w, const char *s)
{
    json_put_str_n(w, s, s ? strlen(s) : 0);
}

void json_put_int(struct json_writer *w, int64_t n)
{
    before_value(w);
    strbuf_addf(w->out, "%" PRId64, n);
}

void json_put_bool(struct json_writer *w, bool b)
{
    before_value(w);
    strbuf_adds(w->out, b ? "true" : "false");
}

void json_put_null(struct json_writer *w)
{
    before_value(w);
    strbuf_adds(w->out, "null");
}

void json_put_raw(struct json_writer *w, const char *text, size_t n)
{
    before_value(w);
    strbuf_add(w->out, text, n);
}

void json_kv_str(struct json_writer *w, const char *key, const char *s)
{
    json_key(w, key);
    json_put_str(w, s);
}

void json_kv_int(struct json_writer *w, const char *key, int64_t n)
{
    json_key(w, key);
    json_put_int(w, n);
}

void json_kv_bool(struct json_writer *w, const char *key, bool b)
{
    json_key(w, key);
    json_put_bool(w, b);
}

// SPDX-License-Identifier: Apache-2.0
#include "lib/base/str.h"

#include <stdio.h>
#include <stdlib.h>

bool str_eq(const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    return strcmp(a, b) == 0;
}

bool str_starts(const char *s, const char *prefix)
{
    if (!s || !prefix)
        return false;
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
    if (!s || !suffix)
        return false;
    size_t n = strlen(s);
    size_t m = strlen(suffix);
    return m <= n && memcmp(s + n - m, suffix, m) == 0;
}

const char *str_or_empty(const char *s)
{
    return s ? s : "";
}

uint64_t str_hash(const char *s, size_t n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++) {
        h ^= (unsigned char)s[i];
        h *= UINT64_C(0x100000001b3);
    }
    return h;
}

size_t str_utf8_len(const char *s, size_t n)
{
    if (n == 0)
        return 0;
    const unsigned char *p = (const unsigned char *)s;
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2) /* a continuation byte, or an overlong form of ASCII */
        return 0;
    if (p[0] < 0xe0)
        return n >= 2 && (p[1] & 0xc0) == 0x80 ? 2 : 0;
    if (p[0] < 0xf0) {
        if (n < 3 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80)
            return 0;
        if ((p[0] == 0xe0 && p[1] < 0xa0) ||
            (p[0] == 0xed && p[1] >= 0xa0)) /* overlong; surrogate */
            return 0;
        return 3;
    }
    if (p[0] > 0xf4 || n < 4 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80 ||
        (p[3] & 0xc0) != 0x80)
        return 0;
    if ((p[0] == 0xf0 && p[1] < 0x90) ||
        (p[0] == 0xf4 && p[1] >= 0x90)) /* overlong; above U+10FFFF */
        return 0;
    return 4;
}

char *str_tidy(char *s, size_t max)
{
    size_t len = strlen(s);
    if (len > max) {
        size_t end = 0;
        for (size_t n; (n = str_utf8_len(s + end, len - end)) > 0 && end + n <= max - 3;)
            end += n;
        for (size_t i = 0; i < 3; i++)
            s[end++] = '.';
        s[end] = '\0';
    }
    for (char *c = s; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    return s;
}

bool str_format(char *buf, size_t size, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(buf, size, fmt, ap);
    va_end(ap);
    if (n < 0 && size > 0)
        buf[0] = '\0';
    return n >= 0 && (size_t)n < size;
}

void strbuf_init(struct strbuf *b)
{
    *b = (struct strbuf){0};
}

void strbuf_deinit(struct strbuf *b)
{
    free(b->ptr);
    *b = (struct strbuf){0};
}

void strbuf_reset(struct strbuf *b)
{
    b->len = 0;
    if (b->ptr)
        b->ptr[0] = '\0';
}

void strbuf_reserve(struct strbuf *b, size_t extra)
{
    if (extra < b->cap - b->len) /* strictly: one byte is for the NUL. cap 0 means len 0 */
        return;
    if (extra >= SIZE_MAX / 2 - b->len)
        abort();
    size_t need = b->len + extra + 1;
    size_t cap = b->cap < 32 ? 64 : b->cap * 2;
    if (cap < need)
        cap = need;
    char *ptr = realloc(b->ptr, cap);
    if (!ptr)
        abort();
    ptr[b->len] = '\0';
    b->ptr = ptr;
    b->cap = cap;
}

void strbuf_add(struct strbuf *b, const void *bytes, size_t n)
{
    strbuf_reserve(b, n);
    if (n > 0)
        memcpy(b->ptr + b->len, bytes, n);
    b->len += n;
    b->ptr[b->len] = '\0';
}

void strbuf_adds(struct strbuf *b, const char *s)
{
    strbuf_add(b, s, strlen(s));
}

void strbuf_addc(struct strbuf *b, char c)
{
    strbuf_reserve(b, 1);
    b->ptr[b->len++] = c;
    b->ptr[b->len] = '\0';
}

void strbuf_addf(struct strbuf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(b, fmt, ap);
    va_end(ap);
}

void strbuf_vaddf(struct strbuf *b, const char *fmt, va_list ap)
{
    strbuf_reserve(b, 64);
    va_list again;
    va_copy(again, ap);
    size_t space = b->cap - b->len;
    int n = vsnprintf(b->ptr + b->len, space, fmt, ap);
    if (n < 0)
        abort(); /* only a broken format or an argument over INT_MAX bytes */
    if ((size_t)n >= space) {
        strbuf_reserve(b, (size_t)n);
        (void)vsnprintf(b->ptr + b->len, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    b->len += (size_t)n;
}

void strbuf_consume(struct strbuf *b, size_t n)
{
    if (n == 0)
        return;
    if (n > b->len)
        n = b->len;
    if (!b->ptr)
        return;
    memmove(b->ptr, b->ptr + n, b->len - n + 1);
    b->len -= n;
}

const char *strbuf_str(const struct strbuf *b)
{
    return b->ptr ? b->ptr : "";
}

char *strbuf_take(struct strbuf *b)
{
    if (!b->ptr)
        strbuf_reserve(b, 0);
    char *taken = b->ptr;
    *b = (struct strbuf){0};
    return taken;
}

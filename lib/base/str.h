// SPDX-License-Identifier: Apache-2.0
/* str - string helpers, and strbuf, a growing NUL-terminated buffer. Formatting is here so that
 * [P] files need no stdio. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* NULL equals only NULL. */
bool str_eq(const char *a, const char *b);
/* False if either is NULL. */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
/* "" for NULL, for printing. */
const char *str_or_empty(const char *s);
/* FNV-1a, 64 bit. The same on every machine and in every run (I4). */
uint64_t str_hash(const char *s, size_t n);
/* Length (1 to 4) of the UTF-8 character at s within n bytes, or 0 if invalid: overlong, surrogate,
 * above U+10FFFF or truncated. */
size_t str_utf8_len(const char *s, size_t n);
/* Truncates s to max bytes (at least 3) between characters, ending in "..."; what could forge a
 * line or a header becomes '?'. Returns s. */
char *str_tidy(char *s, size_t max);
/* snprintf that always terminates; true if everything fit. */
bool str_format(char *buf, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

struct strbuf {
    char *ptr; /* NULL until something is added; see strbuf_str */
    size_t len;
    size_t cap;
};

void strbuf_init(struct strbuf *b);
void strbuf_deinit(struct strbuf *b);
static inline void strbuf_cleanup(struct strbuf *b)
{
    strbuf_deinit(b);
}
#define AUTO_STRBUF __attribute__((cleanup(strbuf_cleanup))) struct strbuf

void strbuf_reset(struct strbuf *b); /* len = 0, memory kept */
/* The added bytes must not be inside the buffer, which may move. */
void strbuf_add(struct strbuf *b, const void *bytes, size_t n);
void strbuf_adds(struct strbuf *b, const char *s);
void strbuf_addc(struct strbuf *b, char c);
void strbuf_addf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strbuf_vaddf(struct strbuf *b, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
void strbuf_reserve(struct strbuf *b, size_t extra);
/* Drops the first n bytes, or all if there are fewer. */
void strbuf_consume(struct strbuf *b, size_t n);
/* Never NULL. Borrowed until the next change. */
const char *strbuf_str(const struct strbuf *b);
/* Returns the heap string (never NULL; free() it) and empties the buffer. */
char *strbuf_take(struct strbuf *b);

// SPDX-License-Identifier: Apache-2.0
/* store() sanitizes every text and truncates it at a character boundary with "...". Text is
 * formatted into a separate buffer first, since arguments may point into the error being written.
 * That buffer is one byte longer than the result, so it is full exactly if something was cut. */
#include "lib/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"

enum { DRAFT_SIZE = ERROR_TEXT_SIZE + 8 };

/* Bytes of the character at s; 0 if it is a control character (C1 too) or invalid UTF-8. */
static size_t showable(const char *s, size_t n)
{
    size_t len = str_utf8_len(s, n);
    unsigned char c = (unsigned char)s[0];
    if (len == 1 && (c < 0x20 || c == 0x7f))
        return 0;
    if (len == 2 && c == 0xc2 && (unsigned char)s[1] < 0xa0)
        return 0;
    return len;
}

static void store(struct error *err, const char *draft)
{
    static const char dots[] = "...";
    const size_t capacity = sizeof err->text - 1;
    size_t n = strlen(draft);
    size_t kept = 0;
    size_t safe = 0; /* longest prefix that leaves space for the dots */
    size_t i = 0;
    while (i < n) {
        size_t len = showable(draft + i, n - i);
        size_t width = len > 0 ? len : 1;
        if (kept + width > capacity) {
            memcpy(err->text + safe, dots, sizeof dots);
            return;
        }
        if (len > 0)
            memcpy(err->text + kept, draft + i, len);
        else
            err->text[kept] = '?';
        kept += width;
        i += width;
        if (kept + sizeof dots - 1 <= capacity)
            safe = kept;
    }
    err->text[kept] = '\0';
}

static void vset(struct error *err, enum error_code code, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

static void vset(struct error *err, enum error_code code, const char *fmt, va_list ap)
{
    char draft[DRAFT_SIZE];
    (void)vsnprintf(draft, sizeof draft, fmt, ap);
    err->code = code;
    err->http_status = 0;
    err->retry_after_ms = 0;
    store(err, draft);
}

/* Adds ": <tail>" as far as it fits. */
static void append_tail(char draft[DRAFT_SIZE], const char *tail)
{
    size_t n = strlen(draft);
    (void)snprintf(draft + n, DRAFT_SIZE - n, ": %s", tail);
}

int error_set(struct error *err, enum error_code code, const char *fmt, ...)
{
    if (!err)
        return -1;
    va_list ap;
    va_start(ap, fmt);
    vset(err, code, fmt, ap);
    va_end(ap);
    return -1;
}

static enum error_code code_of_errno(int errnum)
{
    switch (errnum) {
    case ENOENT:
        return ERROR_NOT_FOUND;
    case EACCES:
    case EPERM:
        return ERROR_DENIED;
    case ETIMEDOUT:
        return ERROR_TIMEOUT;
    default:
        return ERROR_IO;
    }
}

int error_errno(struct error *err, int errnum, const char *fmt, ...)
{
    if (!err)
        return -1;
    char draft[DRAFT_SIZE];
    char buf[128];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(draft, sizeof draft, fmt, ap);
    va_end(ap);
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
    append_tail(draft, strerror_r(errnum, buf, sizeof buf));
#else
    append_tail(draft, strerror_r(errnum, buf, sizeof buf) == 0 ? buf : "unknown error");
#endif
    err->code = code_of_errno(errnum);
    err->http_status = 0;
    err->retry_after_ms = 0;
    store(err, draft);
    return -1;
}

int error_wrap(struct error *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char draft[DRAFT_SIZE];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(draft, sizeof draft, fmt, ap);
    va_end(ap);
    append_tail(draft, err->text);
    store(err, draft);
    return -1;
}

void error_clear(struct error *err)
{
    if (!err)
        return;
    err->code = ERROR_NONE;
    err->http_status = 0;
    err->retry_after_ms = 0;
    err->text[0] = '\0';
}

bool error_is_news(char last[ERROR_TEXT_SIZE], const char *text)
{
    if (strncmp(last, text, ERROR_TEXT_SIZE - 1) == 0)
        return false;
    (void)str_format(last, ERROR_TEXT_SIZE, "%s", text);
    return text[0] != '\0';
}

bool error_is_transient(const struct error *err)
{
    return err->code == ERROR_TIMEOUT || err->code == ERROR_UNAVAILABLE ||
           err->code == ERROR_THROTTLED;
}

const char *error_code_name(enum error_code code)
{
    switch (code) {
    case ERROR_NONE:
        return "none";
    case ERROR_INVALID:
        return "invalid";
    case ERROR_RANGE:
        return "out of range";
    case ERROR_TOO_LARGE:
        return "too large";
    case ERROR_UNSUPPORTED:
        return "unsupported";
    case ERROR_NOT_FOUND:
        return "not found";
    case ERROR_CONFLICT:
        return "conflict";
    case ERROR_GONE:
        return "gone";
    case ERROR_DENIED:
        return "denied";
    case ERROR_THROTTLED:
        return "throttled";
    case ERROR_TIMEOUT:
        return "timeout";
    case ERROR_UNAVAILABLE:
        return "unavailable";
    case ERROR_IO:
        return "input/output";
    case ERROR_CANCELLED:
        return "cancelled";
    case ERROR_INTERNAL:
        return "internal";
    }
    return "unknown";
}

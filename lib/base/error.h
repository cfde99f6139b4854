// SPDX-License-Identifier: Apache-2.0
/*
 * error - an error is a value on the caller's stack.
 *
 * A function that can fail returns int (0, or -1 with *err filled) and takes `struct error *err` last.
 * Whoever receives an error returns it (usually with error_wrap, which puts the thing that was being done
 * in front) or logs it, never both:
 *
 *     if (quantity_parse(text, &q, err) < 0)
 *         return error_wrap(err, "gpu %s: memory", uuid);
 *
 *     node n1: gpu GPU-7: memory: not an integer: '4x'
 *
 * err may be NULL where the caller does not care. A scheduling "no" is not an error.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* What a caller may want to tell apart. The text is for people, the code is for programs. */
enum error_code {
    ERROR_NONE = 0,
    ERROR_INVALID,     /* malformed input; the same input fails again */
    ERROR_RANGE,       /* a number does not fit */
    ERROR_TOO_LARGE,   /* over one of our bounds */
    ERROR_UNSUPPORTED, /* understood, and deliberately not done */
    ERROR_NOT_FOUND,   /* 404, ENOENT */
    ERROR_CONFLICT,    /* 409 */
    ERROR_GONE,        /* 410: list again */
    ERROR_DENIED,      /* 401, 403 */
    ERROR_THROTTLED,   /* 429: retry_after_ms says when */
    ERROR_TIMEOUT,     /* no answer in time: what was asked may have been done */
    ERROR_UNAVAILABLE, /* could not be reached, connection lost, 5xx: may have been done as well unless never_sent */
    ERROR_IO,        /* a file or a socket said no */
    ERROR_CANCELLED, /* we are stopping */
    ERROR_INTERNAL,  /* a rule of ours was broken */
};

enum { ERROR_TEXT_SIZE = 512 };

struct error {
    enum error_code code;
    int http_status;        /* 0 when the error did not come from an HTTP reply */
    int64_t retry_after_ms; /* the peer's wish, 0 when it had none */
    char text[ERROR_TEXT_SIZE];
};

#define ERROR_INIT         \
    {                      \
        .code = ERROR_NONE \
    }

/* Each returns -1 so that `return error_set(...)` reads well. Text that does not fit ends in "...". Bytes that
 * are not printable ASCII or valid UTF-8 are shown as '?', so that hostile input cannot forge log lines. */
int error_set(struct error *err, enum error_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* "<fmt>: <strerror(errnum)>"; ENOENT becomes ERROR_NOT_FOUND, EACCES/EPERM ERROR_DENIED, ETIMEDOUT ERROR_TIMEOUT, others ERROR_IO. */
int error_errno(struct error *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts "<fmt>: " before the text that is there; the code stays. */
int error_wrap(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void error_clear(struct error *err);
/* "invalid", "not found"...: for logs and metrics labels. */
const char *error_code_name(enum error_code code);

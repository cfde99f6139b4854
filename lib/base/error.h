// SPDX-License-Identifier: Apache-2.0
/*
 * error - an error is a value on the caller's stack.
 *
 * A function that can fail returns int (0, or -1 with *err set) and takes `struct error *err` last.
 * The caller either returns the error, usually through error_wrap, or logs it, never both:
 *
 *     if (quantity_parse(text, &q, err) < 0)
 *         return error_wrap(err, "gpu %s: memory", uuid);
 *
 *     node n1: gpu GPU-7: memory: not an integer: '4x'
 *
 * err may be NULL. A pod that cannot be scheduled is not an error.
 */
#pragma once

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

/* The code is for programs, the text for people. */
enum error_code {
    ERROR_NONE = 0,
    ERROR_INVALID,     /* malformed input; the same input fails again */
    ERROR_RANGE,       /* number does not fit */
    ERROR_TOO_LARGE,   /* exceeds one of our bounds */
    ERROR_UNSUPPORTED, /* understood, deliberately not supported */
    ERROR_NOT_FOUND,   /* 404, ENOENT */
    ERROR_CONFLICT,    /* 409 */
    ERROR_GONE,        /* 410: relist */
    ERROR_DENIED,      /* 401, 403 */
    ERROR_THROTTLED,   /* 429: see retry_after_ms */
    ERROR_TIMEOUT,     /* no reply in time; the request may have taken effect */
    /* unreachable, connection lost, 5xx; may have taken effect unless never_sent */
    ERROR_UNAVAILABLE,
    ERROR_IO,        /* a file or socket operation failed */
    ERROR_CANCELLED, /* shutting down */
    ERROR_INTERNAL,  /* broken invariant */
};

enum { ERROR_TEXT_SIZE = 512 };

struct error {
    enum error_code code;
    int http_status;        /* 0: not from an HTTP reply */
    int64_t retry_after_ms; /* 0: none requested */
    char text[ERROR_TEXT_SIZE];
};

#define ERROR_INIT         \
    {                      \
        .code = ERROR_NONE \
    }

/* Each returns -1 for `return error_set(...)`. Text that does not fit ends in "...". Bytes that are
 * not printable ASCII or valid UTF-8 become '?', so input cannot forge log lines. */
int error_set(struct error *err, enum error_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* "<fmt>: <strerror(errnum)>". ENOENT becomes ERROR_NOT_FOUND, EACCES and EPERM ERROR_DENIED,
 * ETIMEDOUT ERROR_TIMEOUT, others ERROR_IO. */
int error_errno(struct error *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Prefixes "<fmt>: " and keeps the code. */
int error_wrap(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void error_clear(struct error *err);
/* Whether text differs from last, which becomes text: a lasting error is logged once. "" (no error)
 * is never news. */
bool error_is_news(char last[ERROR_TEXT_SIZE], const char *text);
/* Whether the same request may succeed later: ERROR_TIMEOUT, _UNAVAILABLE, _THROTTLED. */
bool error_is_transient(const struct error *err);
/* "invalid", "not found" etc., for logs and metrics labels. */
const char *error_code_name(enum error_code code);

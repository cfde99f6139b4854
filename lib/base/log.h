// SPDX-License-Identifier: Apache-2.0
/*
 * log - one line per event, as key=value or JSON, to standard error. Any thread.
 *
 *     log_info("pod bound", kv("pod", key), kv("node", node), kv("ms", took_ms));
 *     ts=2026-03-01T12:00:00.123Z level=info msg="pod bound" pod=default/a node=n1 ms=3
 *
 * Values with blanks, quotes or unprintable characters are quoted and escaped. A line is at most
 * LOG_LINE_MAX bytes and one write(2); each value may take half of the rest of the line and is
 * truncated with "...". errno is preserved. Never log secrets: pass names, not contents.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };
enum { LOG_LINE_MAX = 8192 };

/* Call before threads start and files are opened: opens closed descriptors 0 to 2 on /dev/null, so
 * that log lines never go to a file with such a number. program (borrowed, may be NULL) becomes a
 * field of every line. */
void log_setup(enum log_level level, enum log_format format, const char *program);
bool log_enabled(enum log_level level);
/* Lines that standard error did not accept. */
uint64_t log_lost(void);
/* Test hook: lines (with '\n') go to fn instead, one at a time. fn must not log. NULL restores. */
void log_set_sink(void (*fn)(void *arg, const char *line, size_t n), void *arg);

struct log_kv {
    const char *key; /* NULL ends the list */
    enum { LOG_KV_STR, LOG_KV_INT, LOG_KV_UINT, LOG_KV_BOOL } kind;
    union {
        const char *str;
        int64_t i;
        uint64_t u;
        bool b;
    } value;
};

static inline struct log_kv log_kv_str(const char *key, const char *s)
{
    return (struct log_kv){.key = key, .kind = LOG_KV_STR, .value.str = s};
}
static inline struct log_kv log_kv_int(const char *key, int64_t i)
{
    return (struct log_kv){.key = key, .kind = LOG_KV_INT, .value.i = i};
}
static inline struct log_kv log_kv_uint(const char *key, uint64_t u)
{
    return (struct log_kv){.key = key, .kind = LOG_KV_UINT, .value.u = u};
}
static inline struct log_kv log_kv_bool(const char *key, bool b)
{
    return (struct log_kv){.key = key, .kind = LOG_KV_BOOL, .value.b = b};
}
/* C11's true and false are ints and shown as 1 and 0. */
#define kv(key, v) \
    _Generic((v), char *: log_kv_str, const char *: log_kv_str, bool: log_kv_bool, \
             int: log_kv_int, long: log_kv_int, long long: log_kv_int, short: log_kv_int, \
             unsigned: log_kv_uint, unsigned short: log_kv_uint, unsigned char: log_kv_uint, \
             unsigned long: log_kv_uint, unsigned long long: log_kv_uint)(key, v)

/* Takes msg, struct log_kv values and log_kv_str(NULL, NULL). Use the macros. */
void log_write(enum log_level level, const char *msg, ...);

#define log_debug(...) \
    (log_enabled(LOG_DEBUG) ? log_write(LOG_DEBUG, __VA_ARGS__, log_kv_str(NULL, NULL)) : (void)0)
#define log_info(...) log_write(LOG_INFO, __VA_ARGS__, log_kv_str(NULL, NULL))
#define log_warn(...) log_write(LOG_WARN, __VA_ARGS__, log_kv_str(NULL, NULL))
#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__, log_kv_str(NULL, NULL))

// SPDX-License-Identifier: Apache-2.0
/*
 * A line is built on the stack and written by one write(2), so threads' lines never mix and no lock
 * is held. Logging cannot fail: a line that standard error does not accept (full disk, closed,
 * stalled reader) is dropped and counted.
 *
 * Each value is truncated to half of the rest of the line. A key whose value would get less than
 * VALUE_MIN is omitted with all that follow. TAIL bytes are reserved for dots, quote, brace and
 * newline.
 */
#include "lib/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"

enum { TAIL = 16, VALUE_MIN = 32, NUMBER_MAX = 24, STALL_MS = 200 };

static enum log_level min_level = LOG_INFO;
static enum log_format line_format = LOG_TEXT;
static const char *program_name;
static _Atomic uint64_t lost;

static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;
static void (*sink_fn)(void *arg, const char *line, size_t n);
static void *sink_arg;

struct line {
    char buf[LOG_LINE_MAX];
    size_t len;
    bool full;
};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static void put(struct line *l, const char *s, size_t n)
{
    memcpy(l->buf + l->len, s, n);
    l->len += n;
}

/* Whether s needs no quotes in key=value. */
static bool is_plain(const char *s)
{
    if (*s == '\0')
        return false;
    for (; *s != '\0'; s++)
        if (*s <= ' ' || *s > '~' || *s == '"' || *s == '\\' || *s == '=')
            return false;
    return true;
}

/* Writes the escaped character at s (n bytes readable); *used is its length in s. */
static size_t escape(const char *s, size_t n, char out[8], size_t *used)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char c = (unsigned char)*s;
    *used = 1;
    char message = c == '"'    ? '"'
                   : c == '\\' ? '\\'
                   : c == '\n' ? 'n'
                   : c == '\r' ? 'r'
                   : c == '\t' ? 't'
                               : '\0';
    if (message != '\0') {
        out[0] = '\\';
        out[1] = message;
        return 2;
    }
    size_t whole = str_utf8_len(s, n);
    /* C1 controls (U+0080 to U+009f) move the cursor of some terminals. */
    bool control = c < 0x20 || c == 0x7f || (whole == 2 && c == 0xc2 && (unsigned char)s[1] < 0xa0);
    if (whole != 0 && !control) {
        memcpy(out, s, whole);
        *used = whole;
        return whole;
    }
    if (whole == 0) {
        memcpy(out, "\\ufffd", 6);
        return 6;
    }
    unsigned char code = whole == 2 ? (unsigned char)s[1] : c;
    memcpy(out, "\\u00", 4);
    out[4] = hex[code >> 4];
    out[5] = hex[code & 15];
    *used = whole;
    return 6;
}

static void put_string(struct line *l, const char *s, size_t budget)
{
    size_t n = strlen(s);
    if (line_format == LOG_TEXT && n <= budget && is_plain(s)) {
        put(l, s, n);
        return;
    }
    put(l, "\"", 1);
    size_t end = l->len + budget;
    for (size_t i = 0, used; i < n; i += used) {
        char out[8];
        size_t m = escape(s + i, n - i, out, &used);
        if (l->len + m > end) {
            put(l, "...", 3);
            break;
        }
        put(l, out, m);
    }
    put(l, "\"", 1);
}

static void put_field(struct line *l, const struct log_kv *f)
{
    size_t key_len = strlen(f->key);
    size_t left = LOG_LINE_MAX - TAIL - l->len;
    if (l->full || left < key_len + 4 + 2 * VALUE_MIN) {
        l->full = true;
        return;
    }
    size_t budget = (left - key_len - 4) / 2;
    bool json = line_format == LOG_JSON;
    if (l->len > 1)
        put(l, json ? "," : " ", 1);
    if (json)
        put(l, "\"", 1);
    put(l, f->key, key_len);
    put(l, json ? "\":" : "=", json ? 2 : 1);
    char number[NUMBER_MAX] = "";
    switch (f->kind) {
    case LOG_KV_STR:
        if (f->value.str != NULL)
            put_string(l, f->value.str, budget);
        else if (json)
            put(l, "null", 4);
        else
            put(l, "\"\"", 2);
        return;
    case LOG_KV_INT:
        str_format(number, sizeof number, "%lld", (long long)f->value.i);
        break;
    case LOG_KV_UINT:
        str_format(number, sizeof number, "%llu", (unsigned long long)f->value.u);
        break;
    case LOG_KV_BOOL:
        str_format(number, sizeof number, "%s", f->value.b ? "true" : "false");
        break;
    }
    put(l, number, strlen(number));
}

/* Prints milliseconds; the clock prints none or six digits. */
static void put_time(struct line *l)
{
    char ts[CLOCK_RFC3339_SIZE];
    clock_rfc3339(clock_wall_ns(), 1, ts);
    char *dot = strchr(ts, '.');
    if (dot != NULL && strlen(dot) > 4)
        memcpy(dot + 4, "Z", 2);
    struct log_kv f = log_kv_str("ts", ts);
    put_field(l, &f);
}

static void write_line(const char *p, size_t n)
{
    while (n > 0) {
        ssize_t done = write(STDERR_FILENO, p, n);
        if (done > 0) {
            p += done;
            n -= (size_t)done;
            continue;
        }
        if (done < 0 && errno == EINTR)
            continue;
        /* Another process may have made the terminal or pipe non-blocking. Waits briefly for a
         * stalled reader, then drops the line, so that the loop does not hang. */
        if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            struct pollfd pfd = {.fd = STDERR_FILENO, .events = POLLOUT};
            if (poll(&pfd, 1, STALL_MS) > 0 && (pfd.revents & POLLOUT) != 0)
                continue;
        }
        atomic_fetch_add(&lost, 1);
        return;
    }
}

void log_write(enum log_level level, const char *msg, ...)
{
    if (!log_enabled(level))
        return;
    int saved_errno = errno;
    struct line l;
    l.len = 0;
    l.full = false;
    if (line_format == LOG_JSON)
        put(&l, "{", 1);
    put_time(&l);
    struct log_kv head[] = {
        log_kv_str("level", level_names[level]),
        log_kv_str("program", program_name),
        log_kv_str("msg", msg),
    };
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        if (head[i].value.str != NULL)
            put_field(&l, &head[i]);
    va_list ap;
    va_start(ap, msg);
    for (;;) {
        struct log_kv f = va_arg(ap, struct log_kv);
        if (f.key == NULL)
            break;
        put_field(&l, &f);
    }
    va_end(ap);
    if (line_format == LOG_JSON)
        put(&l, "}", 1);
    put(&l, "\n", 1);

    pthread_mutex_lock(&sink_lock);
    bool taken = sink_fn != NULL;
    if (taken)
        sink_fn(sink_arg, l.buf, l.len);
    pthread_mutex_unlock(&sink_lock);
    if (!taken)
        write_line(l.buf, l.len);
    errno = saved_errno;
}

bool log_enabled(enum log_level level)
{
    return level >= min_level;
}

uint64_t log_lost(void)
{
    return atomic_load(&lost);
}

void log_setup(enum log_level level, enum log_format format, const char *program)
{
    min_level = level;
    line_format = format;
    program_name = program;
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        /* open() takes the lowest free number, which is this one. */
        int opened = open("/dev/null", O_RDWR);
        if (opened > STDERR_FILENO)
            close(opened);
    }
}

void log_set_sink(void (*fn)(void *arg, const char *line, size_t n), void *arg)
{
    pthread_mutex_lock(&sink_lock);
    sink_fn = fn;
    sink_arg = arg;
    pthread_mutex_unlock(&sink_lock);
}

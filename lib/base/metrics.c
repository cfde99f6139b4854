// SPDX-License-Identifier: Apache-2.0
/*
 * Series are found by comparing label values in a short append-only array of atomic pointers, so
 * readers need no lock. The first use of a value takes the lock, checks again and publishes the new
 * series with one store. The last element is reserved for "other".
 *
 * Buckets are summed while rendering and _count is that sum, so a concurrent scrape is consistent
 * (le="+Inf" equals _count). Seconds are printed from integers: 1500 us is exactly "0.0015".
 */
#include "lib/base/metrics.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"

/* For labels that are only printed: pod names and namespaces have up to 253 bytes. */
enum { METRIC_LABEL_LONG = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct metric *registry;

static const int64_t default_bounds_us[] = {100,     500,      1000,     2500,   5000,   10000,
                                            25000,   50000,    100000,   250000, 500000, 1000000,
                                            2500000, 10000000, 30000000, 0};
static_assert(sizeof default_bounds_us / sizeof *default_bounds_us <= METRIC_BUCKETS,
              "one bucket is +Inf");

static const int64_t *bounds_of(const struct metric *m)
{
    return m->bounds_us != NULL ? m->bounds_us : default_bounds_us;
}

/* Stores the label bounded, in whole characters, without control characters. */
static void clean_label(const char *label, char *out, size_t size)
{
    size_t n = 0;
    while (*label != '\0') {
        size_t used = str_utf8_len(label, strnlen(label, 4));
        bool bad = used == 0 || (used == 1 && ((unsigned char)*label < 0x20 || *label == 0x7f));
        size_t len = bad ? 1 : used;
        if (n + len >= size)
            break;
        if (bad)
            out[n] = '?';
        else
            memcpy(out + n, label, len);
        n += len;
        label += bad ? 1 : used;
    }
    out[n] = '\0';
}

static struct metric_series *find_series(const struct metric *m, const char *value,
                                         size_t *free_index)
{
    for (size_t i = 0; i < METRIC_SERIES; i++) {
        struct metric_series *s = atomic_load_explicit(&m->series[i], memory_order_acquire);
        if (s == NULL) {
            *free_index = i;
            return NULL;
        }
        if (strcmp(s->value, value) == 0)
            return s;
    }
    *free_index = METRIC_SERIES;
    return atomic_load_explicit(&m->series[METRIC_SERIES], memory_order_acquire);
}

static struct metric_series *get_series(struct metric *m, const char *label)
{
    char value[METRIC_LABEL_SIZE] = "";
    if (m->label != NULL)
        clean_label(str_or_empty(label), value, sizeof value);
    size_t index;
    struct metric_series *s = find_series(m, value, &index);
    if (s != NULL)
        return s;
    pthread_mutex_lock(&lock);
    s = find_series(m, value, &index);
    /* A user's value "other" shares that series. */
    if (s == NULL && index == METRIC_SERIES)
        s = find_series(m, "other", &index);
    if (s == NULL) {
        s = mem_new(struct metric_series, 1);
        str_format(s->value, sizeof s->value, "%s", index == METRIC_SERIES ? "other" : value);
        atomic_store_explicit(&m->series[index], s, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return s;
}

void metrics_register(struct metric *m)
{
    size_t bounds = 0;
    while (m->kind == METRIC_HISTOGRAM && bounds_of(m)[bounds] != 0)
        bounds++;
    assert(bounds < METRIC_BUCKETS);
    (void)bounds;
    pthread_mutex_lock(&lock);
    struct metric **at = &registry;
    while (*at != NULL && *at != m) {
        assert(strcmp((*at)->name, m->name) != 0);
        at = &(*at)->next;
    }
    bool fresh = *at == NULL;
    if (fresh) {
        m->next = NULL;
        *at = m;
    }
    pthread_mutex_unlock(&lock);
    if (fresh && m->label == NULL && m->read == NULL && m->collect == NULL)
        get_series(m, NULL);
}

void metrics_inc(struct metric *m, const char *label)
{
    metrics_add(m, label, 1);
}

void metrics_add(struct metric *m, const char *label, int64_t n)
{
    if (m->kind == METRIC_HISTOGRAM || (m->kind == METRIC_COUNTER && n < 0))
        return;
    atomic_fetch_add_explicit(&get_series(m, label)->count, n, memory_order_relaxed);
}

void metrics_set(struct metric *m, const char *label, int64_t n)
{
    if (m->kind == METRIC_HISTOGRAM)
        return;
    atomic_store_explicit(&get_series(m, label)->count, n, memory_order_relaxed);
}

void metrics_observe_us(struct metric *m, const char *label, int64_t us)
{
    if (m->kind != METRIC_HISTOGRAM)
        return;
    if (us < 0)
        us = 0;
    const int64_t *bounds = bounds_of(m);
    size_t i = 0;
    while (bounds[i] != 0 && us > bounds[i])
        i++;
    struct metric_series *s = get_series(m, label);
    atomic_fetch_add_explicit(&s->buckets[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->sum_us, us, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed);
}

int64_t metrics_value(const struct metric *m, const char *label)
{
    if (m->read != NULL)
        return m->read(m->arg);
    char value[METRIC_LABEL_SIZE] = "";
    if (m->label != NULL)
        clean_label(str_or_empty(label), value, sizeof value);
    for (size_t i = 0; i <= METRIC_SERIES; i++) {
        struct metric_series *s = atomic_load_explicit(&m->series[i], memory_order_acquire);
        if (s != NULL && strcmp(s->value, value) == 0)
            return atomic_load_explicit(&s->count, memory_order_relaxed);
    }
    return 0;
}

static void add_escaped(struct strbuf *out, const char *s, bool quotes)
{
    for (; *s != '\0'; s++) {
        if (*s == '\n')
            strbuf_adds(out, "\\n");
        else if (*s == '\\' || (quotes && *s == '"'))
            strbuf_addf(out, "\\%c", *s);
        else
            strbuf_addc(out, *s);
    }
}

static void add_seconds(struct strbuf *out, int64_t us)
{
    strbuf_addf(out, "%lld", (long long)(us / 1000000));
    long long part = us % 1000000;
    if (part == 0)
        return;
    int digits = 6;
    while (part % 10 == 0) {
        part /= 10;
        digits--;
    }
    strbuf_addf(out, ".%0*lld", digits, part);
}

/* Adds `name_suffix{label="value",le="..."} `; le_us -1: no le, -2: +Inf. */
static void add_head(struct strbuf *out, const struct metric *m, const struct metric_series *s,
                     const char *suffix, int64_t le_us)
{
    strbuf_addf(out, "%s%s", m->name, suffix);
    const char *sep = "{";
    if (m->label != NULL) {
        strbuf_addf(out, "%s%s=\"", sep, m->label);
        add_escaped(out, s->value, true);
        strbuf_addc(out, '"');
        sep = ",";
    }
    if (le_us != -1) {
        strbuf_addf(out, "%sle=\"", sep);
        if (le_us == -2)
            strbuf_adds(out, "+Inf");
        else
            add_seconds(out, le_us);
        strbuf_addc(out, '"');
        sep = ",";
    }
    strbuf_adds(out, *sep == ',' ? "} " : " ");
}

static void add_histogram(struct strbuf *out, const struct metric *m, struct metric_series *s)
{
    const int64_t *bounds = bounds_of(m);
    int64_t total = 0;
    for (size_t i = 0;; i++) {
        total += atomic_load_explicit(&s->buckets[i], memory_order_relaxed);
        add_head(out, m, s, "_bucket", bounds[i] == 0 ? -2 : bounds[i]);
        strbuf_addf(out, "%lld\n", (long long)total);
        if (bounds[i] == 0)
            break;
    }
    add_head(out, m, s, "_sum", -1);
    add_seconds(out, atomic_load_explicit(&s->sum_us, memory_order_relaxed));
    strbuf_addc(out, '\n');
    add_head(out, m, s, "_count", -1);
    strbuf_addf(out, "%lld\n", (long long)total);
}

static void add_intro(struct strbuf *out, const char *name, const char *help, enum metric_kind kind)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    strbuf_addf(out, "# HELP %s ", name);
    add_escaped(out, str_or_empty(help), false);
    strbuf_addf(out, "\n# TYPE %s %s\n", name, kinds[kind]);
}

struct metric_samples {
    struct strbuf *out;
    const struct metric *metric;
};

void metrics_sample(struct metric_samples *to, const struct metric_label *labels, size_t len,
                    int64_t value)
{
    strbuf_adds(to->out, to->metric->name);
    for (size_t i = 0; i < len; i++) {
        char clean[METRIC_LABEL_LONG];
        clean_label(str_or_empty(labels[i].value), clean, sizeof clean);
        strbuf_addf(to->out, "%s%s=\"", i == 0 ? "{" : ",", labels[i].name);
        add_escaped(to->out, clean, true);
        strbuf_adds(to->out, i + 1 == len ? "\"}" : "\"");
    }
    strbuf_addf(to->out, " %lld\n", (long long)value);
}

static void add_metric(struct strbuf *out, const struct metric *m)
{
    add_intro(out, m->name, m->help, m->kind);
    if (m->collect != NULL) {
        m->collect(m->arg, &(struct metric_samples){.out = out, .metric = m});
        return;
    }
    if (m->read != NULL) {
        strbuf_addf(out, "%s %lld\n", m->name, (long long)m->read(m->arg));
        return;
    }
    for (size_t i = 0; i <= METRIC_SERIES; i++) {
        struct metric_series *s = atomic_load_explicit(&m->series[i], memory_order_acquire);
        if (s == NULL)
            continue;
        if (m->kind == METRIC_HISTOGRAM) {
            add_histogram(out, m, s);
            continue;
        }
        int64_t value = atomic_load_explicit(&s->count, memory_order_relaxed);
        add_head(out, m, s, "", -1);
        if (m->seconds)
            add_seconds(out, value);
        else
            strbuf_addf(out, "%lld", (long long)value);
        strbuf_addc(out, '\n');
    }
}

/* Reads the start of a /proc file as a string; false on failure. */
static bool read_proc(const char *path, char *buf, size_t size)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    while (fd >= 0 && n < size - 1) {
        ssize_t got = read(fd, buf + n, size - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    buf[n] = '\0';
    return n > 0;
}

/* Field `number` (from 0) of a line of blank-separated numbers, or -1. */
static int64_t field(const char *s, unsigned number)
{
    for (; number > 0; number--) {
        s += strcspn(s, " \n");
        s += strspn(s, " ");
    }
    int64_t value;
    return num_parse(s, strcspn(s, " \n"), &value, NULL) < 0 ? -1 : value;
}

static int64_t count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    if (d == NULL)
        return -1;
    int64_t n = 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(d);
    return n - 1; /* minus the one reading */
}

static void add_gauge(struct strbuf *out, const char *name, const char *help, int64_t value)
{
    if (value < 0)
        return;
    add_intro(out, name, help, METRIC_GAUGE);
    strbuf_addf(out, "%s %lld\n", name, (long long)value);
}

/* Start of this process in microseconds since the epoch, or -1. Cached, since the wall clock may
 * change. */
static int64_t start_time_us(void)
{
    static _Atomic int64_t known = -1;
    int64_t before = atomic_load(&known);
    if (before >= 0)
        return before;
    char buf[1024];
    if (!read_proc("/proc/self/stat", buf, sizeof buf))
        return -1;
    /* The second field, a name in parentheses, may hold anything; starttime is the 22nd. */
    const char *after = strrchr(buf, ')');
    int64_t ticks = after == NULL || after[1] != ' ' ? -1 : field(after + 2, 19);
    long per_second = sysconf(_SC_CLK_TCK);
    struct timespec wall, boot;
    if (ticks < 0 || per_second <= 0 || clock_gettime(CLOCK_REALTIME, &wall) != 0 ||
        clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
        return -1;
    int64_t booted_us =
        ((int64_t)wall.tv_sec - boot.tv_sec) * 1000000 + (wall.tv_nsec - boot.tv_nsec) / 1000;
    int64_t started_us =
        (booted_us + ticks * (1000000 / per_second)) / 10000 * 10000; /* tick resolution */
    atomic_store(&known, started_us);
    return started_us;
}

static void add_process(struct strbuf *out)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        add_intro(out, "process_cpu_seconds_total", "User and system CPU time spent, in seconds.",
                  METRIC_COUNTER);
        strbuf_adds(out, "process_cpu_seconds_total ");
        add_seconds(out, ((int64_t)usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
                             usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
        strbuf_addc(out, '\n');
    }
    char statm[256];
    long page = sysconf(_SC_PAGESIZE);
    if (read_proc("/proc/self/statm", statm, sizeof statm) && page > 0) {
        int64_t bytes;
        add_gauge(out, "process_virtual_memory_bytes", "Size of the address space.",
                  num_mul(field(statm, 0), page, &bytes) ? bytes : -1);
        add_gauge(out, "process_resident_memory_bytes", "Memory in RAM.",
                  num_mul(field(statm, 1), page, &bytes) ? bytes : -1);
    }
    add_gauge(out, "process_open_fds", "Open file descriptors.", count_fds());
    struct rlimit fds;
    if (getrlimit(RLIMIT_NOFILE, &fds) == 0 && fds.rlim_cur <= INT64_MAX)
        add_gauge(out, "process_max_fds", "How many file descriptors may be open.",
                  (int64_t)fds.rlim_cur);
    int64_t started_us = start_time_us();
    if (started_us >= 0) {
        add_intro(out, "process_start_time_seconds",
                  "When the process began, in seconds since the epoch.", METRIC_GAUGE);
        strbuf_adds(out, "process_start_time_seconds ");
        add_seconds(out, started_us);
        strbuf_addc(out, '\n');
    }
}

void metrics_render(struct strbuf *out)
{
    /* read() callbacks run without the lock: the list only grows, at its end. */
    pthread_mutex_lock(&lock);
    const struct metric *m = registry;
    pthread_mutex_unlock(&lock);
    while (m != NULL) {
        add_metric(out, m);
        pthread_mutex_lock(&lock);
        m = m->next;
        pthread_mutex_unlock(&lock);
    }
    add_process(out);
}

void metrics_reset(void)
{
    pthread_mutex_lock(&lock);
    struct metric *next;
    for (struct metric *m = registry; m != NULL; m = next) {
        next = m->next;
        m->next = NULL;
        for (size_t i = 0; i <= METRIC_SERIES; i++)
            free(atomic_exchange(&m->series[i], NULL));
    }
    registry = NULL;
    pthread_mutex_unlock(&lock);
}

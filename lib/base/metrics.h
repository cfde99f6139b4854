// SPDX-License-Identifier: Apache-2.0
/*
 * metrics - counters, gauges and histograms in the Prometheus text format. Any thread; updates are
 * lock-free after the first use of a label value.
 *
 *     static struct metric attempts = {.kind = METRIC_COUNTER, .label = "result",
 *                                      .name = "cosched_scheduler_attempts_total", .help = "..."};
 *     metrics_register(&attempts);
 *     metrics_inc(&attempts, "bound");
 *
 * At most one label per metric with METRIC_SERIES values (others count as "other") bounds memory.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/str.h"

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };
enum { METRIC_SERIES = 64, METRIC_BUCKETS = 16, METRIC_LABEL_SIZE = 64 };

struct metric_series {
    char value[METRIC_LABEL_SIZE];
    _Atomic int64_t count;                   /* counter or gauge value; number of observations */
    _Atomic int64_t sum_us;                  /* histogram */
    _Atomic int64_t buckets[METRIC_BUCKETS]; /* histogram, not cumulative */
};

struct metric_label {
    const char *name, *value;
};
struct metric_samples; /* samples of one collect() */

struct metric {
    enum metric_kind kind;
    const char *name;
    const char *help;
    const char *label;          /* NULL: one series */
    bool seconds;               /* counter: counts microseconds and shows seconds */
    const int64_t *bounds_us;   /* histogram: upper bounds in microseconds, ascending, at most
                                   METRIC_BUCKETS - 1, ended by 0; NULL: 100 us .. 30 s */
    int64_t (*read)(void *arg); /* gauge: called at scrape time; NULL: stored value */
    /* Counter, gauge: for changing series or several labels. Called at scrape time on the rendering
     * thread; reports each series with metrics_sample. May be NULL. */
    void (*collect)(void *arg, struct metric_samples *out);
    void *arg;
    struct metric_series *_Atomic series[METRIC_SERIES + 1];
    struct metric *next; /* registry */
};

/* Metrics are shown in order of registration; one without a label starts at 0. Registering again
 * does nothing. Names are unique. */
void metrics_register(struct metric *m);
/* label: NULL if the metric has none. Values are truncated to METRIC_LABEL_SIZE - 1 bytes;
 * unprintable bytes become '?'. */
void metrics_inc(struct metric *m, const char *label);
void metrics_add(struct metric *m, const char *label, int64_t n); /* counters ignore n < 0 */
void metrics_set(struct metric *m, const char *label, int64_t n);
void metrics_observe_us(struct metric *m, const char *label,
                        int64_t us); /* shown in seconds; below 0 counts as 0 */
int64_t metrics_value(const struct metric *m,
                      const char *label); /* for tests; histogram: observations; 0 if never used */
/* Only inside collect. Each label set once; the caller bounds the number of series. */
void metrics_sample(struct metric_samples *out, const struct metric_label *labels, size_t len,
                    int64_t value);
/* All registered metrics and process_* (CPU seconds, resident bytes, open fds, start time). */
void metrics_render(struct strbuf *out);
/* Frees the series and empties the registry, for tests and the end of main. */
void metrics_reset(void);

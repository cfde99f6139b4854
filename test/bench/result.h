// SPDX-License-Identifier: Apache-2.0
/*
 * result - what all benchmarks share: medians, the thread's own CPU time, and the one form of a
 * RESULT line:
 *
 *     RESULT name=<what> value=<number> unit=<unit> baseline=<number> ratio=<number> goal=<number>
 *     met=yes|no|- [more=<…>]...
 *
 * baseline and ratio are 0 where there is nothing to compare with; met is '-' where there is no
 * goal, or none that can be judged now.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum result_met { RESULT_NO_GOAL, RESULT_MET, RESULT_MISSED };

struct result {
    const char *name, *unit;
    int places; /* decimals of value, baseline and goal */
    double value, baseline;
    double ratio; /* 0: value by baseline */
    double goal;
    enum result_met met;
};

static inline enum result_met result_met(bool met)
{
    return met ? RESULT_MET : RESULT_MISSED;
}

/* more: further fields, "" for none. */
__attribute__((format(printf, 2, 3))) static inline void result_print(const struct result *f,
                                                                      const char *more, ...)
{
    static const char *const words[] = {"-", "yes", "no"};
    double ratio = f->ratio > 0 ? f->ratio : f->baseline > 0 ? f->value / f->baseline : 0;
    char extra[512];
    va_list ap;
    va_start(ap, more);
    int n = vsnprintf(extra, sizeof extra, more, ap);
    va_end(ap);
    printf("RESULT name=%s value=%.*f unit=%s baseline=%.*f ratio=%.2f goal=%.*f met=%s%s%s\n",
           f->name, f->places, f->value, f->unit, f->places, f->baseline, ratio, f->places, f->goal,
           words[f->met], n > 0 ? " " : "", extra);
    (void)fflush(stdout);
}

/* Integers. A goal with a minus is an upper bound, 0 is none. */
static inline void print_result(const char *name, int64_t value, const char *unit, int64_t baseline,
                                int64_t goal)
{
    struct result f = {.name = name,
                       .unit = unit,
                       .value = (double)value,
                       .baseline = (double)baseline,
                       .goal = (double)(goal < 0 ? -goal : goal)};
    if (goal != 0)
        f.met = result_met(goal < 0 ? value <= -goal : value >= goal);
    result_print(&f, "%s", "");
}

static inline int ascending(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Sorts them. percent 50: the median. */
static inline int64_t quantile(int64_t *values, int64_t n, int64_t percent)
{
    qsort(values, (size_t)n, sizeof values[0], ascending);
    int64_t i = n * percent / 100;
    return n > 0 ? values[i < n ? i : n - 1] : 0;
}

/* CPU time of this thread: on a quiet machine the same as the wall's, on a busy one the figure that
 * still means something. */
static inline int64_t result_cpu_us(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) < 0)
        abort();
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static inline _Noreturn void result_fail(const char *what, const char *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

// SPDX-License-Identifier: Apache-2.0
#include "lib/base/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "lib/base/num.h"
#include "lib/base/str.h"

#ifndef CLOCK_BOOTTIME /* outside Linux CLOCK_MONOTONIC includes suspend */
#define CLOCK_BOOTTIME CLOCK_MONOTONIC
#endif

static const int64_t ns_per_s = INT64_C(1000000000);

static int64_t read_ns(clockid_t id)
{
    struct timespec ts;
    if (clock_gettime(id, &ts) < 0)
        abort(); /* these clocks exist everywhere */
    return (int64_t)ts.tv_sec * ns_per_s + ts.tv_nsec;
}

int64_t clock_mono_ms(void)
{
    return read_ns(CLOCK_MONOTONIC) / 1000000;
}

int64_t clock_mono_us(void)
{
    return read_ns(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_boot_ms(void)
{
    return read_ns(CLOCK_BOOTTIME) / 1000000;
}

int64_t clock_wall_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

void clock_sleep_ms(int64_t ms)
{
    if (ms <= 0)
        return;
    struct timespec ts = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&ts, NULL);
}

void clock_sleep_us(int64_t us)
{
    if (us <= 0)
        return;
    struct timespec ts = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
    (void)nanosleep(&ts, NULL);
}

void clock_rfc3339(int64_t wall_ns, int micros, char out[CLOCK_RFC3339_SIZE])
{
    int64_t s = wall_ns / ns_per_s;
    int64_t ns = wall_ns % ns_per_s;
    if (ns < 0) {
        ns += ns_per_s;
        s--;
    }
    time_t t = (time_t)s;
    struct tm tm;
    if (!gmtime_r(&t, &tm))
        abort(); /* int64 nanoseconds reach from 1677 to 2262 */
    if (micros)
        (void)str_format(out, CLOCK_RFC3339_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ",
                         tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
                         tm.tm_sec, (int)(ns / 1000));
    else
        (void)str_format(out, CLOCK_RFC3339_SIZE, "%04d-%02d-%02dT%02d:%02d:%02dZ",
                         tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
                         tm.tm_sec);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Exactly n digits, then the byte `after` (0: any). Moves *s past them. */
static bool take_digits(const char **s, int n, char after, int *out)
{
    int value = 0;
    for (int i = 0; i < n; i++) {
        if (!is_digit(**s))
            return false;
        value = value * 10 + (*(*s)++ - '0');
    }
    *out = value;
    return after == 0 || *(*s)++ == after;
}

/* ".25" to 250000000; digits after the ninth are dropped. No fraction is 0. */
static bool take_fraction(const char **s, int64_t *ns)
{
    *ns = 0;
    if (**s != '.')
        return true;
    (*s)++;
    if (!is_digit(**s))
        return false;
    int64_t unit = ns_per_s / 10;
    for (; is_digit(**s); (*s)++) {
        *ns += unit * (**s - '0');
        unit /= 10;
    }
    return true;
}

/* "Z", "+02:00", "-09:30", and then the end. */
static bool take_offset(const char **s, int64_t *seconds)
{
    *seconds = 0;
    char sign = *(*s)++;
    if (sign == 'Z')
        return **s == '\0';
    if (sign != '+' && sign != '-')
        return false;
    int hours;
    int minutes;
    if (!take_digits(s, 2, ':', &hours) || !take_digits(s, 2, 0, &minutes) || hours > 23 ||
        minutes > 59)
        return false;
    *seconds = (int64_t)(hours * 3600 + minutes * 60) * (sign == '-' ? -1 : 1);
    return **s == '\0';
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

/* Days from 1970-01-01 to a day of the Gregorian calendar. timegm would do, but takes the time
 * zone's lock on each call, and every API object has timestamps. Years count from March, so that
 * the leap day is the last. */
static int64_t days_since_epoch(int year, int month, int day)
{
    int64_t y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;
    return y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719468;
}

int64_t clock_parse_rfc3339(const char *s)
{
    struct tm tm = {0};
    int64_t ns;
    int64_t offset;
    int year;
    int month;
    if (!s || !take_digits(&s, 4, '-', &year) || !take_digits(&s, 2, '-', &month) ||
        !take_digits(&s, 2, 'T', &tm.tm_mday) || !take_digits(&s, 2, ':', &tm.tm_hour) ||
        !take_digits(&s, 2, ':', &tm.tm_min) || !take_digits(&s, 2, 0, &tm.tm_sec) ||
        !take_fraction(&s, &ns) || !take_offset(&s, &offset))
        return -1;
    if (month < 1 || month > 12 || tm.tm_mday < 1 || tm.tm_mday > days_in(year, month) ||
        tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 59)
        return -1;
    int64_t at = days_since_epoch(year, month, tm.tm_mday) * 86400 + tm.tm_hour * 3600 +
                 tm.tm_min * 60 + tm.tm_sec - offset;
    if (at < 0 || !num_mul(at, ns_per_s, &at) || !num_add(at, ns, &at))
        return -1;
    return at;
}

/* splitmix64, one state per thread: no lock. */
static uint64_t next_random(void)
{
    static _Thread_local uint64_t state;
    static _Thread_local bool seeded;
    if (!seeded) {
#ifdef GRND_NONBLOCK
        bool drawn = getrandom(&state, sizeof state, GRND_NONBLOCK) == (ssize_t)sizeof state;
#else
        bool drawn = getentropy(&state, sizeof state) == 0;
#endif
        if (!drawn)
            state = (uint64_t)read_ns(CLOCK_REALTIME) ^
                    (uint64_t)(uintptr_t)&state; /* early in a boot */
        seeded = true;
    }
    state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t clock_jitter(int64_t n)
{
    if (n <= 1)
        return 0;
    uint64_t range = (uint64_t)n;
    uint64_t fair =
        UINT64_MAX - UINT64_MAX % range; /* above it small results would be more likely */
    uint64_t r = next_random();
    while (r >= fair)
        r = next_random();
    return (int64_t)(r % range);
}

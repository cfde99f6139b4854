// SPDX-License-Identifier: Apache-2.0
#include "lib/base/num.h"

#include <inttypes.h>
#include <string.h>

/* Bytes of an invalid number shown in a message. */
enum { SHOWN = 64 };

bool num_add(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

bool num_sub(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_sub_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

bool num_mul(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

int64_t num_add_sat(int64_t a, int64_t b)
{
    int64_t r;
    if (num_add(a, b, &r))
        return r;
    return b > 0 ? INT64_MAX : INT64_MIN;
}

int64_t num_sub_sat(int64_t a, int64_t b)
{
    int64_t r;
    if (num_sub(a, b, &r))
        return r;
    return b < 0 ? INT64_MAX : INT64_MIN;
}

static int shown(size_t n)
{
    return n < SHOWN ? (int)n : (int)SHOWN;
}

int num_parse(const char *s, size_t n, int64_t *out, struct error *err)
{
    size_t i = n > 0 && s[0] == '-' ? 1 : 0;
    bool negative = i == 1;
    int64_t value = 0;
    bool fits = true;
    if (i == n)
        return error_set(err, ERROR_INVALID, "not an integer: '%.*s'", shown(n), n > 0 ? s : "");
    for (; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return error_set(err, ERROR_INVALID, "not an integer: '%.*s'", shown(n), s);
        int64_t digit = s[i] - '0';
        /* Negative numbers count down, which reaches INT64_MIN without passing its absolute
         * value. */
        fits =
            fits && num_mul(value, 10, &value) && num_add(value, negative ? -digit : digit, &value);
    }
    if (!fits)
        return error_set(err, ERROR_RANGE, "does not fit in 64 bits: '%.*s'", shown(n), s);
    *out = value;
    return 0;
}

int num_parse_range(const char *s, int64_t min, int64_t max, int64_t *out, struct error *err)
{
    size_t n = s ? strlen(s) : 0;
    struct error why = ERROR_INIT;
    int64_t value = 0;
    if (num_parse(s, n, &value, &why) < 0 && why.code != ERROR_RANGE)
        return error_set(err, why.code, "%s", why.text);
    if (why.code == ERROR_RANGE || value < min || value > max)
        return error_set(err, ERROR_RANGE, "must be between %" PRId64 " and %" PRId64 ": '%.*s'",
                         min, max, shown(n), s);
    *out = value;
    return 0;
}

bool num_parse_index(const char *s, size_t n, size_t limit, size_t *out)
{
    int64_t v = 0;
    if (n == 0 || s[0] == '-' || (s[0] == '0' && n > 1) || num_parse(s, n, &v, NULL) < 0)
        return false;
    *out = (size_t)v;
    return *out < limit;
}

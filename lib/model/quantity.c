// SPDX-License-Identifier: Apache-2.0
/*
 * Parses Kubernetes quantities exactly.
 *
 * A quantity is D * 10^e * 2^b with D a decimal number of any length: no machine integer holds
 * that, and a float would lose the last byte of "9223372036854775807". So all arithmetic is done on
 * the row of decimal digits:
 *
 *     "1.5Gi"   digits 15, point after 1, b = 30
 *               times 1024 three times, digit by digit:  1610612736 0, point 1 before the end
 *     "1e-9"    digits 1, point moved 9 places to the left
 *
 * The digits before the point are the whole part, which fits only with at most 19 digits; any
 * non-zero digit after the point decides the rounding. So the first DIGITS_KEPT digits suffice; of
 * later ones only counts whether one is not zero. (The API server keeps text of any length: a
 * thousand leading zeros, a thousand nines.)
 *
 * The grammar is Kubernetes' documented one. Its parser accepts more ("k" and "." are 0 there), but
 * the API server rewrites such text in canonical form. It reads an exponent modulo 2^32 and keeps
 * the text, so "1e4294967299" is 1000 to every other program, and here.
 */
#include "lib/model/quantity.h"

#include <stdbool.h>

#include "lib/base/num.h"

enum {
    DIGITS_KEPT = 256,
    DIGITS_MAX = DIGITS_KEPT + 24, /* 2^60 adds 19 digits */
};

/* Most significant first. The value is 0.d0 d1 d2... * 10^point; no leading zeros. */
struct decimal {
    unsigned char digit[DIGITS_MAX];
    int len;
    bool rest; /* a digit that is not zero was left out behind them */
    int64_t point;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

enum { SHOWN = 64 }; /* bytes of the text in a message */

static int not_a_quantity(const char *text, size_t n, struct error *err)
{
    return error_set(err, ERROR_INVALID, "not a quantity: '%.*s'", (int)(n < SHOWN ? n : SHOWN),
                     text);
}

static int too_large(const char *text, size_t n, bool negative, int64_t *out, struct error *err)
{
    *out = negative ? INT64_MIN : INT64_MAX;
    return error_set(err, ERROR_RANGE, "quantity too large: '%.*s'", (int)(n < SHOWN ? n : SHOWN),
                     text);
}

/* Reads digits and point from the start of the text; returns the bytes read, 0: no digit. */
static size_t take_digits(const char *text, size_t n, struct decimal *d)
{
    size_t i = 0;
    bool any = false, behind_point = false;

    d->len = 0;
    d->rest = false;
    d->point = 0;
    for (; i < n; i++) {
        if (text[i] == '.' && !behind_point) {
            behind_point = true;
            continue;
        }
        if (!is_digit(text[i]))
            break;
        any = true;
        if (d->len == 0 && text[i] == '0') {
            d->point -= behind_point ? 1 : 0; /* a leading zero */
            continue;
        }
        if (d->len < DIGITS_KEPT)
            d->digit[d->len++] = (unsigned char)(text[i] - '0');
        else
            d->rest |= text[i] != '0';
        d->point += behind_point ? 0 : 1;
    }
    return any ? i : 0;
}

static void times_1024(struct decimal *d)
{
    unsigned carry = 0;

    for (int i = d->len; i-- > 0;) {
        unsigned v = d->digit[i] * 1024u + carry;
        d->digit[i] = (unsigned char)(v % 10);
        carry = v / 10;
    }
    /* The carry, at most 1023, goes in front. */
    int extra = carry >= 1000 ? 4 : carry >= 100 ? 3 : carry >= 10 ? 2 : carry > 0 ? 1 : 0;
    memmove(d->digit + extra, d->digit, (size_t)d->len);
    for (int i = extra; i-- > 0; carry /= 10)
        d->digit[i] = (unsigned char)(carry % 10);
    d->len += extra;
    d->point += extra;
}

/* "e3", "E-12": not "e" or "E" alone. The API server takes what fits into 64 bits and keeps 32 of
 * them. */
static bool take_exponent(const char *s, size_t n, int64_t *out)
{
    int64_t v;
    size_t sign = n > 2 && s[1] == '+' && s[2] != '-' ? 1 : 0;

    if (n < 2 || (s[0] != 'e' && s[0] != 'E') ||
        num_parse(s + 1 + sign, n - 1 - sign, &v, NULL) < 0)
        return false;
    *out = (int32_t)(uint32_t)(uint64_t)v;
    return true;
}

static bool apply_suffix(const char *s, size_t n, struct decimal *d)
{
    static const struct {
        char message;
        signed char thousands;
    } units[] = {{'n', -3}, {'u', -2}, {'m', -1}, {'k', 1}, {'M', 2},
                 {'G', 3},  {'T', 4},  {'P', 5},  {'E', 6}};
    static const char binary[] = "KMGTPE";
    int64_t exponent;

    if (n == 0)
        return true;
    if (n == 1) {
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
            if (units[i].message == s[0]) {
                d->point += 3 * units[i].thousands;
                return true;
            }
        return false;
    }
    if (n == 2 && s[1] == 'i') {
        for (size_t i = 0; binary[i] != '\0'; i++)
            if (binary[i] == s[0]) {
                for (size_t k = 0; k <= i; k++)
                    times_1024(d);
                return true;
            }
        return false;
    }
    if (!take_exponent(s, n, &exponent))
        return false;
    d->point += exponent;
    return true;
}

/* The whole part of d, and whether a rest was cut off. false: more than 19 digits. */
static bool whole_part(const struct decimal *d, uint64_t *out, bool *rest)
{
    uint64_t v = 0;

    *rest = d->rest;
    *out = 0;
    if (d->len == 0)
        return true;
    if (d->point > 19)
        return false;
    for (int64_t i = 0; i < d->point; i++)
        v = v * 10 + (i < d->len ? d->digit[i] : 0u); /* 19 digits fit in 64 bits */
    for (int64_t i = num_max(d->point, 0); i < d->len; i++)
        if (d->digit[i] != 0)
            *rest = true;
    *out = v;
    return true;
}

int quantity_parse(const char *text, size_t n, enum quantity_scale scale, enum quantity_round round,
                   int64_t *out, struct error *err)
{
    struct decimal d;
    bool negative, rest;
    uint64_t magnitude;
    size_t sign, used;

    negative = n > 0 && text[0] == '-';
    sign = n > 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    used = take_digits(text + sign, n - sign, &d);
    if (used == 0 || !apply_suffix(text + sign + used, n - sign - used, &d))
        return not_a_quantity(text, n, err);

    if (scale == QUANTITY_MILLI)
        d.point += 3;
    if (!whole_part(&d, &magnitude, &rest))
        return too_large(text, n, negative, out, err);
    /* Rounding up grows the magnitude of a positive number, rounding down that of a negative
     * one. */
    if (rest && (round == QUANTITY_UP) != negative)
        magnitude++;
    if (magnitude > (uint64_t)INT64_MAX + (negative ? 1u : 0u))
        return too_large(text, n, negative, out, err);
    if (!negative)
        *out = (int64_t)magnitude;
    else
        *out =
            /* INT64_MIN has no positive counterpart */
            magnitude == 0 ? 0 : -(int64_t)(magnitude - 1) - 1;
    return 0;
}

void quantity_print_milli(int64_t milli, struct strbuf *out)
{
    if (milli % 1000 == 0)
        strbuf_addf(out, "%lld", (long long)(milli / 1000));
    else
        strbuf_addf(out, "%lldm", (long long)milli);
}

void quantity_print_bytes(int64_t bytes, struct strbuf *out)
{
    static const char suffix[] = "KMGTPE";
    int power = 0;

    if (bytes != 0)
        while (power < 6 && bytes % 1024 == 0) {
            bytes /= 1024;
            power++;
        }
    strbuf_addf(out, "%lld", (long long)bytes);
    if (power > 0) {
        strbuf_addc(out, suffix[power - 1]);
        strbuf_addc(out, 'i');
    }
}

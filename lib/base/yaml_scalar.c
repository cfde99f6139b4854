// SPDX-License-Identifier: Apache-2.0
/* Numbers keep their digits where JSON allows: 0.10 stays 0.10, and a decimal integer may exceed 64
 * bits. Only what JSON cannot express is rewritten: +5, 1_000, 1., .5, 007.5 and other bases. A
 * leading zero means octal (defaultMode: 0644); 09 is not octal and thus nine, as in kubectl. */
#include "lib/base/yaml_scalar.h"

#include <inttypes.h>
#include <string.h>

/* Bytes of an invalid scalar shown in a message. */
enum { SHOWN = 64 };

enum found {
    FOUND_STRING,
    FOUND_NULL,
    FOUND_TRUE,
    FOUND_FALSE,
    FOUND_INTEGER,
    FOUND_FRACTION,
    FOUND_NOT_JSON,
    FOUND_TOO_BIG
};

static const struct word {
    const char *text;
    enum found is;
} words[] = {
    {"", FOUND_NULL},          {"~", FOUND_NULL},         {"null", FOUND_NULL},
    {"Null", FOUND_NULL},      {"NULL", FOUND_NULL},      {"true", FOUND_TRUE},
    {"True", FOUND_TRUE},      {"TRUE", FOUND_TRUE},      {"yes", FOUND_TRUE},
    {"Yes", FOUND_TRUE},       {"YES", FOUND_TRUE},       {"y", FOUND_TRUE},
    {"Y", FOUND_TRUE},         {"on", FOUND_TRUE},        {"On", FOUND_TRUE},
    {"ON", FOUND_TRUE},        {"false", FOUND_FALSE},    {"False", FOUND_FALSE},
    {"FALSE", FOUND_FALSE},    {"no", FOUND_FALSE},       {"No", FOUND_FALSE},
    {"NO", FOUND_FALSE},       {"n", FOUND_FALSE},        {"N", FOUND_FALSE},
    {"off", FOUND_FALSE},      {"Off", FOUND_FALSE},      {"OFF", FOUND_FALSE},
    {".nan", FOUND_NOT_JSON},  {".NaN", FOUND_NOT_JSON},  {".NAN", FOUND_NOT_JSON},
    {".inf", FOUND_NOT_JSON},  {".Inf", FOUND_NOT_JSON},  {".INF", FOUND_NOT_JSON},
    {"+.inf", FOUND_NOT_JSON}, {"+.Inf", FOUND_NOT_JSON}, {"+.INF", FOUND_NOT_JSON},
    {"-.inf", FOUND_NOT_JSON}, {"-.Inf", FOUND_NOT_JSON}, {"-.INF", FOUND_NOT_JSON},
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Value of a digit in any base up to 16, or 16. */
static unsigned digit_value(char c)
{
    if (is_digit(c))
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 16;
}

/* s follows the prefix. Sets out to the decimal text. */
static enum found other_base(const char *s, unsigned base, bool negative, struct strbuf *out)
{
    uint64_t value = 0;
    bool fits = true;
    if (*s == '\0')
        return FOUND_STRING;
    for (; *s != '\0'; s++) {
        unsigned digit = digit_value(*s);
        if (digit >= base)
            return FOUND_STRING;
        fits = fits && !__builtin_mul_overflow(value, base, &value) &&
               !__builtin_add_overflow(value, digit, &value);
    }
    if (!fits || (negative && value > (uint64_t)INT64_MAX + 1))
        return FOUND_TOO_BIG;
    strbuf_reset(out);
    strbuf_addf(out, "%s%" PRIu64, negative && value > 0 ? "-" : "", value);
    return FOUND_INTEGER;
}

static size_t count_digits(const char *s)
{
    size_t n = 0;
    while (is_digit(s[n]))
        n++;
    return n;
}

/* [0-9]* ( . [0-9]* )? ( e [+-]? [0-9]+ )?, with a digit before the exponent. */
static enum found decimal(const char *s, bool negative, struct strbuf *out)
{
    const char *whole = s;
    size_t whole_len = count_digits(s);
    s += whole_len;
    bool dot = *s == '.';
    const char *fraction = dot ? ++s : s;
    size_t fraction_len = dot ? count_digits(s) : 0;
    s += fraction_len;
    if (whole_len + fraction_len == 0)
        return FOUND_STRING;
    const char *exponent = s;
    if (*s == 'e' || *s == 'E') {
        s++;
        if (*s == '+' || *s == '-')
            s++;
        size_t n = count_digits(s);
        if (n == 0)
            return FOUND_STRING;
        s += n;
    }
    if (*s != '\0')
        return FOUND_STRING;
    while (whole_len > 1 && *whole == '0') {
        whole++;
        whole_len--;
    }
    strbuf_reset(out);
    if (negative)
        strbuf_addc(out, '-');
    strbuf_add(out, whole_len > 0 ? whole : "0", whole_len > 0 ? whole_len : 1);
    if (fraction_len > 0) {
        strbuf_addc(out, '.');
        strbuf_add(out, fraction, fraction_len);
    }
    strbuf_adds(out, exponent);
    return dot || *exponent != '\0' ? FOUND_FRACTION : FOUND_INTEGER;
}

/* s has no underscores and is not part of out. */
static enum found number(const char *s, struct strbuf *out)
{
    bool negative = *s == '-';
    if (*s == '-' || *s == '+')
        s++;
    if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
        return other_base(s + 2, 16, negative, out);
    if (s[0] == '0' && (s[1] == 'o' || s[1] == 'O'))
        return other_base(s + 2, 8, negative, out);
    if (s[0] == '0' && (s[1] == 'b' || s[1] == 'B'))
        return other_base(s + 2, 2, negative, out);
    if (s[0] == '0' && s[1] != '\0') {
        enum found octal = other_base(s + 1, 8, negative, out);
        if (octal != FOUND_STRING)
            return octal;
    }
    return decimal(s, negative, out);
}

static enum found classify(const char *text, size_t n, struct strbuf *out)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].text) == n && memcmp(words[i].text, text, n) == 0)
            return words[i].is;
    if (!is_digit(text[0]) && text[0] != '+' && text[0] != '-' && text[0] != '.')
        return FOUND_STRING;
    if (memchr(text, '\0', n))
        return FOUND_STRING;
    AUTO_STRBUF digits = {0};
    for (size_t i = 0; i < n; i++)
        if (text[i] != '_' || text[0] == '.')
            strbuf_addc(&digits, text[i]);
    return number(strbuf_str(&digits), out);
}

static int mismatch(const char *text, size_t n, const char *wanted, struct error *err)
{
    return error_set(err, ERROR_INVALID, "not %s: '%.*s'", wanted, (int)(n < SHOWN ? n : SHOWN),
                     text);
}

int yaml_scalar_resolve(const char *text, size_t n, enum yaml_scalar_tag tag, bool plain,
                        enum yaml_scalar_kind *kind, struct strbuf *out, struct error *err)
{
    *kind = SCALAR_STRING;
    if (tag == SCALAR_TAG_STRING || tag == SCALAR_TAG_PLAIN_BANG ||
        (tag == SCALAR_TAG_NONE && !plain))
        return 0;
    enum found is = classify(text, n, out);
    if (is == FOUND_NOT_JSON)
        return error_set(err, ERROR_UNSUPPORTED, "JSON has no '%.*s'", (int)n, text);
    if (is == FOUND_TOO_BIG)
        return error_set(err, ERROR_RANGE, "does not fit in 64 bits: '%.*s'",
                         (int)(n < SHOWN ? n : SHOWN), text);
    bool is_number = is == FOUND_INTEGER || is == FOUND_FRACTION;
    if (tag == SCALAR_TAG_INTEGER && is != FOUND_INTEGER)
        return mismatch(text, n, "an integer", err);
    if (tag == SCALAR_TAG_FLOAT && !is_number)
        return mismatch(text, n, "a number", err);
    if (tag == SCALAR_TAG_BOOLEAN && is != FOUND_TRUE && is != FOUND_FALSE)
        return mismatch(text, n, "a boolean", err);
    if (tag == SCALAR_TAG_NULL && is != FOUND_NULL)
        return mismatch(text, n, "null", err);
    if (is_number)
        *kind = SCALAR_NUMBER;
    else if (is != FOUND_STRING)
        *kind = is == FOUND_NULL ? SCALAR_NULL : is == FOUND_TRUE ? SCALAR_TRUE : SCALAR_FALSE;
    return 0;
}

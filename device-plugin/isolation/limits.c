// SPDX-License-Identifier: Apache-2.0
/* Independent of lib/base, because this is part of the library that runs in users' processes. */
#include "device-plugin/isolation/limits.h"

#include <string.h>

#define FIRST "cosched-gpu-limits 1"

struct cursor {
    const char *at, *end;
};

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static unsigned hex(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

bool limits_uuid(const char *text, size_t len, unsigned char uuid[16])
{
    static const unsigned char groups[] = {4, 2, 2, 2, 6};
    const char *at = text + 4, *end = text + len;
    size_t n = 0;
    if (len != 40 || memcmp(text, "GPU-", 4) != 0)
        return false;
    for (size_t g = 0; g < sizeof groups; g++) {
        for (unsigned i = 0; i < groups[g]; i++, at += 2) {
            if (end - at < 2 || !is_hex(at[0]) || !is_hex(at[1]))
                return false;
            uuid[n++] = (unsigned char)(hex(at[0]) << 4 | hex(at[1]));
        }
        if (g + 1 < sizeof groups && (at == end || *at++ != '-'))
            return false;
    }
    return at == end;
}

/* The next word of the line; empty at its end. */
static struct cursor word(struct cursor *line)
{
    while (line->at < line->end && *line->at == ' ')
        line->at++;
    struct cursor w = {line->at, line->at};
    while (w.end < line->end && *w.end != ' ')
        w.end++;
    line->at = w.end;
    return w;
}

/* "key=123": 1, -1 for an invalid number, 0 for another word. */
static int value(struct cursor w, const char *key, uint64_t max, uint64_t *out)
{
    size_t n = strlen(key);
    uint64_t v = 0;
    if ((size_t)(w.end - w.at) <= n || memcmp(w.at, key, n) != 0 || w.at[n] != '=')
        return 0;
    w.at += n + 1;
    if (w.at == w.end)
        return -1;
    for (; w.at < w.end; w.at++) {
        if (*w.at < '0' || *w.at > '9')
            return -1;
        v = v * 10 + (uint64_t)(*w.at - '0');
        if (v > max)
            return -1;
    }
    *out = v;
    return 1;
}

static bool card_line(struct cursor line, struct limits_card *out)
{
    uint64_t mib = 0, percent = 100, context = 0;
    bool has = false;
    struct cursor w = word(&line);
    if (!limits_uuid(w.at, (size_t)(w.end - w.at), out->uuid))
        return false;
    for (w = word(&line); w.at < w.end; w = word(&line)) {
        int m = value(w, "mib", LIMITS_MIB_MAX, &mib);
        if (m < 0 || value(w, "percent", 100, &percent) < 0 ||
            value(w, "context", LIMITS_MIB_MAX, &context) < 0)
            return false;
        has = has || m == 1;
    }
    out->bytes = mib << 20;
    out->context_bytes = context << 20;
    out->percent = (uint32_t)percent;
    return has && percent > 0;
}

static struct cursor line_of(struct cursor *text)
{
    const char *end = memchr(text->at, '\n', (size_t)(text->end - text->at));
    struct cursor line = {text->at, end != NULL ? end : text->end};
    text->at = end != NULL ? end + 1 : text->end;
    return line;
}

bool limits_parse(const char *text, size_t len, struct limits *out)
{
    struct cursor all = {text, text + len};
    struct cursor line = line_of(&all);
    out->len = 0;
    if (len > LIMITS_BYTES_MAX || (size_t)(line.end - line.at) != sizeof FIRST - 1 ||
        memcmp(line.at, FIRST, sizeof FIRST - 1) != 0)
        return false;
    while (all.at < all.end) {
        line = line_of(&all);
        struct cursor kind = word(&line);
        if ((size_t)(kind.end - kind.at) != 4 || memcmp(kind.at, "card", 4) != 0)
            continue;
        if (out->len == LIMITS_CARDS || !card_line(line, &out->cards[out->len])) {
            out->len = 0;
            return false;
        }
        out->len++;
    }
    return true;
}

int limits_find(const struct limits *l, const unsigned char uuid[16])
{
    for (uint32_t i = 0; i < l->len; i++)
        if (memcmp(l->cards[i].uuid, uuid, 16) == 0)
            return (int)i;
    return -1;
}

struct writer {
    char *at, *end;
    bool full;
};

static void put(struct writer *w, const char *text)
{
    size_t n = strlen(text);
    if (w->full || (size_t)(w->end - w->at) < n) {
        w->full = true;
        return;
    }
    memcpy(w->at, text, n);
    w->at += n;
}

static void put_number(struct writer *w, uint64_t n)
{
    char digits[21];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    put(w, digits + at);
}

static void put_uuid(struct writer *w, const unsigned char uuid[16])
{
    static const char hexes[] = "0123456789abcdef";
    put(w, "GPU");
    for (int i = 0; i < 16; i++) {
        const char pair[] = {hexes[uuid[i] >> 4], hexes[uuid[i] & 15], '\0'};
        put(w, i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "");
        put(w, pair);
    }
}

size_t limits_print(const struct limits *l, char *out, size_t size)
{
    struct writer w = {out, out + size, false};
    put(&w, FIRST "\n");
    for (uint32_t i = 0; i < l->len; i++) {
        put(&w, "card ");
        put_uuid(&w, l->cards[i].uuid);
        put(&w, " mib=");
        put_number(&w, l->cards[i].bytes >> 20);
        put(&w, " percent=");
        put_number(&w, l->cards[i].percent);
        put(&w, " context=");
        put_number(&w, l->cards[i].context_bytes >> 20);
        put(&w, "\n");
    }
    return w.full ? 0 : (size_t)(w.at - out);
}

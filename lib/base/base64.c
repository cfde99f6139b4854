// SPDX-License-Identifier: Apache-2.0
#include "lib/base/base64.h"

#include <stdint.h>

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(const char *text, size_t n, struct strbuf *out)
{
    uint32_t bits = 0;
    unsigned have = 0, padding = 0;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '\n' || c == '\r')
            continue;
        if (c == '=') {
            if (have + padding < 2 || ++padding + have > 4)
                return false;
            continue;
        }
        int v = value_of(c);
        if (v < 0 || padding > 0)
            return false;
        bits = bits << 6 | (uint32_t)v;
        if (++have == 4) {
            char bytes[3] = {(char)(bits >> 16 & 0xff), (char)(bits >> 8 & 0xff),
                             (char)(bits & 0xff)};
            strbuf_add(out, bytes, 3);
            bits = 0;
            have = 0;
        }
    }
    if (have + padding != 0 && have + padding != 4)
        return false;
    /* The padding's spare bits must be zero, so that each byte string has one encoding. */
    if (have == 2 && (bits & 0xf) == 0) {
        strbuf_addc(out, (char)(bits >> 4 & 0xff));
        return true;
    }
    if (have == 3 && (bits & 0x3) == 0) {
        char bytes[2] = {(char)(bits >> 10 & 0xff), (char)(bits >> 2 & 0xff)};
        strbuf_add(out, bytes, 2);
        return true;
    }
    return have == 0;
}

void base64_encode(const void *bytes, size_t n, struct strbuf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *from = bytes;
    strbuf_reserve(out, (n + 2) / 3 * 4); /* never reallocated, so no copy of a secret stays */
    for (size_t i = 0; i < n; i += 3) {
        size_t have = n - i < 3 ? n - i : 3;
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (k < have ? from[i + k] : 0U);
        for (size_t k = 0; k < 4; k++)
            strbuf_addc(out, k <= have ? digits[bits >> (18 - 6 * k) & 63] : '=');
    }
}

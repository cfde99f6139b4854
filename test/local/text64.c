// SPDX-License-Identifier: Apache-2.0
#include "test/local/text64.h"

#include <stdbool.h>
#include <stdint.h>

static void encode(const char *bytes, size_t n, const char *last_two, bool padded,
                   struct strbuf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    strbuf_reserve(out, (n + 2) / 3 * 4 + 1);
    for (size_t i = 0; i < n; i += 3) {
        size_t have = n - i < 3 ? n - i : 3;
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (k < have ? (unsigned char)bytes[i + k] : 0U);
        for (size_t k = 0; k < 4; k++) {
            uint32_t six = bits >> (18 - 6 * k) & 63;
            if (k <= have)
                strbuf_addc(out, six < 62 ? digits[six] : last_two[six - 62]);
            else if (padded)
                strbuf_addc(out, '=');
        }
    }
}

void text64_encode(const char *bytes, size_t n, struct strbuf *out)
{
    encode(bytes, n, "+/", true, out);
}

void text64_encode_url(const char *bytes, size_t n, struct strbuf *out)
{
    encode(bytes, n, "-_", false, out);
}
